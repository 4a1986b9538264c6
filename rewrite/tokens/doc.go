// Package tokens is what token capture does to an exchange with a Chat upstream such as vLLM: it asks for token ids and log
// probabilities, takes them out of the answer, judges them, and hides from the client what it did not ask for.
//
//	request ──▶ Ask ──▶ upstream ──▶ Collector ──▶ Result: arrays as the engine wrote them, or the reason why they are no use
//	                        └──────▶ Hider ──▶ a client that speaks Chat itself
//
// It promises:
//
//   - Nothing is made up. Ids and log probabilities are copied as text, number by number, and never decoded, rounded, filled up or
//     guessed. They are whole, or Result.Reason says why not, in one word of a closed list.
//   - Nothing is mapped to text: in a stream, text and ids are not aligned (vllm.md 1). Both are one sequence each.
//   - The client's bytes stay. Requests and answers are spliced: what was not asked for is cut out with its comma, or becomes the null
//     that a server which was not asked would have sent; every other byte passes in its place.
//   - Memory is bounded by the limit of the Collector and the longest event.
//
// Ids come from three sources, in this order (capture.md 5.4): a bundle on the message; prompt_token_ids, the choice's token_ids and its
// logprobs; entries of logprobs that are written token_id:N, for which the prompt's ids have to be asked from the engine's tokenizer.
// A source that is there in part is a failure, and sources that are there together must agree.
//
// The package knows no sockets, files or clocks. It reads Chat Completions only: Messages and Responses upstreams carry no ids.
package tokens
