// Package gemini is the dialect of POST /v1beta/models/{model}:generateContent and :streamGenerateContent: Google's Gemini API.
//
// Clients speak it, no upstream does: a request that another dialect has made is refused. Which model, and whether the answer is a stream, is
// said by the path, and comes in dialect.Target. Names of members may be written in camel or in snake case, as in every JSON form of a protocol
// buffer; here they are written in camel case.
//
// A stream has no event names and no end mark: the chunk with a finish reason is the last, and a chunk with an error ends it, too. A chunk is an
// answer of its own, so that a call cannot come in pieces. It is written when its arguments are whole.
//
// Reasoning is parts with thought: true. Its signature is the thoughtSignature of the part behind it, mostly that of a call, which is sent back
// when the thoughts are not. In canon it is the signature of the reasoning in front.
//
// request_*.go read and write requests, schema.go makes JSON Schema of Google's schemas, answer_*.go whole answers, decoder.go and encoder.go
// streams; stream.go and response.go fold raw JSON for the record. It knows no other dialect and keeps nothing between calls.
package gemini
