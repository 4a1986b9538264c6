// Package trajectory tells what an agent did in a rollout, by what its requests repeat.
//
// A record says what was asked and what was answered, not whether the client took the answer. Clients throw whole answers away, keep
// the pieces of broken ones, ask again without a mark, and summarise their history. So the next request decides: a call is a turn when
// the history of a later one holds its answer, or when it is the last word of its conversation (harness.md 2 and 6).
//
//   - Item is one thing that a request or an answer says, in one form for all dialects.
//   - Read goes through a rollout once and makes a Rollout of it: a Call for each record with its role, its parent and its thread,
//     branches, tool calls with their results, and gaps. It keeps fingerprints of what is new in a call and no text beyond the names
//     and ids of tools, so its memory grows with a conversation and not with its square.
//   - WriteJSON and the writers of the exports read the file a second time for what was said.
//
// Long lines are read as outlines with rests (capture.Lines.Refer): texts are hashed and written from the file, never held. Of what is too much
// even so nothing is compared and nothing exported: GapLong.
//
// Answers are found in a history by the ids of their tool calls, else by what they say, white space and the spelling of arguments
// aside, and never by bytes: clients write both anew. Reasoning is not compared; most clients send none back.
//
// What cannot be known is a Gap with a name, and such a call is no turn. Nothing is guessed from the order of calls alone.
package trajectory
