// Package canon is what a model call says, apart from every wire dialect: the request, the answer and the stream of events that an answer
// arrives in. A dialect translates between its own bytes and these types; pairs of dialects are never named.
//
// # Texts are bytes that came
//
// A Text is the inside of a JSON string, its escapes as they were sent, and a Raw is a whole JSON value. All dialects put what models say
// into JSON strings, so moving a text from one dialect into another moves these bytes: nothing is unescaped and escaped again, and lone
// surrogates, odd escapes and the spelling of numbers survive. Whoever reads a Text as text unquotes it. Texts are borrowed: those of a
// request from its body, those of an event until the decoder that made it is called again. A Folder copies what it keeps.
//
// # The stream
//
//	stream  = { ping } ( start { ping | part | usage } ( stop | fail ) | fail )
//	part    = open(i) { delta(i) | seal(i) | cite(i) } close(i)      i = 0,1,2… in order of opening; parts may overlap
//	usage   = cumulative snapshot, the last one wins
//	stop    = no part may be open
//	fail    = ends the stream whatever is open
//
// A Folder accepts exactly this and defines what was said; a Sequencer removes the overlap for dialects that may have one part open.
package canon
