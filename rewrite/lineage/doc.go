// Package lineage decides which recorded model call a request continues, and digests the token ids that prove it.
//
// An agent sends its whole conversation with every call. The turns that the model wrote in it name the call that wrote the last of them,
// and the turns before tell whether it is the same conversation still. So a parent can be found when the request comes, from hashes
// that earlier calls left behind:
//
//   - the fingerprint is a hash over the turns that the model wrote, and the key of the search;
//   - the context digest is a hash over all turns of a request, and the proof: a candidate counts only if it equals that of as many
//     first turns of the new request;
//   - the token digest is a hash over a sequence of token ids; package tokendigest makes it. A reader holds the first ids of the child's
//     prompt against it.
//
// All three are the hashes of NeMo Gym's token capture, byte for byte: fingerprint version 2, digest version 1 (capture.md 5.9). They
// are made from the request as the client sent it, in whichever dialect.
//
// # What is left out
//
// Reasoning is in none of the hashes, since clients need not send it back: no thinking and redacted_thinking blocks of Messages, no summaries
// and no encrypted content. An item of reasoning in Responses is a turn without content. A cache_control member of a block or a tool
// is left out as well: clients move it along with every call. Gym converts Messages before it hashes and loses the same.
// The system text of a Messages request is no turn; its tools are in the envelope.
//
// A custom tool call is not hashed as the model's, and a response that is named by previous_response_id is not seen: a request whose history has
// nothing else has no parent to Gym, and none here.
//
// Gym knows no Gemini; its contents are hashed in the same way (contents.go), with the system text in the envelope.
//
// # Where Gym has no hash
//
// Gym fails on lone surrogates, on integers beyond 64 bits inside structured values and on values deeper than 254 containers, and with it the
// call is lost. Here they are hashed: a surrogate as the three bytes that UTF-8 would give it, integers by their digits, and values as
// deep as package jsonx goes. Arguments of a tool call that are deeper still are hashed as text. An answer of Messages with nothing but
// reasoning is a turn of the model here, so that the request that sends it back finds its call; to Gym it is none.
//
// The package holds no state, reads no store and knows no tokenizer. A hash never leads to a guess: what is not proven is unresolved.
package lineage
