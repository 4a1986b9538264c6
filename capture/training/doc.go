// Package training keeps the token ids and log probabilities of model calls, in the token files of NeMo Gym's file store as of 0.7.0
// (capture.md 5.6), which that store's own classes read, freeze and drop. Several processes may write to one folder.
//
//	Begin ──▶ the call is sent ──▶ Put (its tokens) | Withdraw (nothing was generated) | Mark (they are lost)
//	Freeze ──▶ Snapshot ──▶ Drop        a trainer's end of it
//
// It promises:
//
//   - What Begin, Put, Mark and Freeze returned nil for is durable, also after a power cut.
//   - A rollout is never whole by mistake: an intent without an entry, a mark, or an entry that contradicts an earlier one masks it.
//   - Ids and numbers are never decoded to be stored: arrays are text, and memory does not grow with a file.
//   - A delta is stored only when the caller has proven that its prompt begins with its parent's tokens, and checked when it is read.
//
// # Files
//
//	<id>.tokens.jsonl       entries: all fields, keys sorted, one a line
//	<id>.tokens.state.json  digests of the entries, frozen, incomplete, retired, snapshot, version, indexed size
//	<id>.tokens.intents     the ids of calls that began
//	<id>.tokens.incomplete  the ids of calls that were lost; informational
//	<id>.tokens.lock        its flock is held by whoever changes the files; it stays
//
// # Writing
//
// One goroutine for each rollout that has something queued takes all of it as a batch, under the lock: intents by one write, entries by one
// write, and one sync of each file (Options.Secure, which may be shared with another store). The state is written lazily, since what it says of
// entries can be read off them; freeze, mark and drop write it durably.
//
// The package knows no HTTP, no dialects and not the store of exchanges.
package training
