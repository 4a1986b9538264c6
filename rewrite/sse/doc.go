// Package sse cuts a pushed byte stream into the events of the WHATWG event stream format.
//
// It knows framing and nothing else: no JSON, no dialect, no sockets, no goroutines. Two promises matter to
// its callers:
//
//   - Any split of the bytes over pushes gives the same events, in time linear in the stream.
//   - Safe says how much of the stream cannot belong to an event that is still unfinished, so that a proxy
//     can hold that event back and pass on everything in front of it.
//
// A line ends with LF, CRLF or CR and with nothing else: U+0085, U+2028 and U+2029 are text. It differs
// from the standard in four ways, because real servers do: data that is empty still makes an event, a name
// without data does too, at the end of the stream an event counts without its blank line, and a field error
// with an object is the data of an event of that name.
package sse
