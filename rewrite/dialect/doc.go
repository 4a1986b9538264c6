// Package dialect holds the contracts between rewrite and the wire dialects it knows: what a dialect can be asked, what it answers, and
// what all of them have in common. That is little: the words of errors and refusals, how failures are read, for what stands in front of a
// server answers in shapes of its own, whatever dialect was asked in, and how what is left over of an object is told as lost. Of requests, answers
// and streams it knows no bytes, but that a failure may be a stream.
//
// rewrite calls, the packages chat, messages and responses implement, and those never import each other. Nothing here opens sockets, reads
// clocks or logs.
package dialect
