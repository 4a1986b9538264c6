// Package protocol holds the decisions on which the promise of the store rests, as functions without files, clocks and locks.
//
// The promise: when a client has seen the end of an answer, its record is readable behind any crash and its recovery, exactly
// once, or the rollout is marked. Package capture does what these functions say and tells them what it saw; nothing of what they decide
// is decided a second time there. So a test can put a model of files, crashes and faults in place of the disk and walk every order in which
// things can happen, and see that it notices when a decision is wrong: see explore_test.go and seeded_test.go.
//
//	Batch    lines of one rollout: lock, look, write, sync or journal, look at the name, acknowledge    batch.go
//	Entries  what waits for one sync of the journal                                                     journal.go
//	Retire, Trust   when a segment may go, and whether a sync of a rollout's file is believed            journal.go
//	Restore  what a replay does with an entry                                                           replay.go
//	Take, Settle, Tell, Release   who speaks for a record, what it is, when its caller may know          record.go
//	Mark     the way of a marker to the disk                                                            record.go
//
// Each machine is a small value. Do says what is done next, Next takes what came of it. A step that is not named in Next ends
// nothing: the machine fails, it never acknowledges. Values are copied, never shared, and nothing here allocates.
package protocol

// Saw is what came of a step.
type Saw uint8

const (
	Failed Saw = iota // the zero value promises nothing
	Done
	Gone // the file, or the folder, is not where it was
)
