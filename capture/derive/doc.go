// Package derive reads what a store captured: it makes of a record, which is one line of a rollout's data file, what people and
// trainers ask for. It is pure over lines, which Source hands out, and knows no clock.
//
//   - Call is the derived record of one call, equal to what the Gym reader derives from the same line, and in a member of its
//     own what only rolltap knows: outcome, losses, sessions, and whether the call was a side call (a title, a compaction, …).
//   - Aggregates are the sums over calls, and ours: percentiles, shares, counts by outcome, reason and kind.
//   - Attachment is the object ng_model_call_capture of a result row, written call by call, RolloutID the rule that says which rollout a row is of.
//
// What is not known is null or a named gap, never a guess. Counts below 0 are unknown. Nothing here fails on a malformed body:
// a shape that nobody expects says nothing. A Call holds parts of the line it was read from and is valid as long as that is.
package derive
