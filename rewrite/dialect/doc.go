// Package dialect holds the contracts between rewrite and the wire dialects it knows: what a dialect can be asked, what it answers, and
// the few words that all dialects share. It knows the bytes of none of them.
//
// rewrite calls, the packages chat, messages and responses implement, and those never import each other. Nothing here opens sockets, reads
// clocks or logs.
package dialect
