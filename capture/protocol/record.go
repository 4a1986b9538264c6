package protocol

// Claim says who speaks for a record. Who leaves Waiting decides what the record is.
type Claim uint8

const (
	Waiting      Claim = iota
	Acknowledged       // the committer
	Expired            // its caller, who waits no longer
)

// Take is the claim behind the try of by, Acknowledged or Expired, and whether it is by's. The caller swaps it in atomically.
func Take(now, by Claim) (next Claim, ours bool) {
	if now != Waiting {
		return now, false
	}
	return by, true
}

// Result is what became of a record.
type Result uint8

const (
	Lost Result = iota // not acknowledged; it may be there all the same
	Late               // durable, but its caller has been told that it was not
	OK                 // durable, and its caller has been told so
)

// Settle is what the committer makes of a record whose batch ended, durable or not. ours is from Take. mark: the rollout has
// to be marked, before anybody is told. Who waited no longer has marked it.
func Settle(durable, ours bool) (r Result, mark bool) {
	switch {
	case durable && ours:
		return OK, false
	case durable:
		return Late, false
	}
	return Lost, ours
}

// Overdue is what a caller does whose deadline has come; ours is from Take. mark: it marks the rollout and leaves. Otherwise
// the committer has just spoken, and it takes what that says.
func Overdue(ours bool) (mark bool) { return ours }

// TellLoss reports whether a caller may be told that its record is not durable: when the mark is, or nobody can wait for
// that any longer. That a record is durable may be told at once.
func TellLoss(m Mark, impatient bool) bool { return m == Forget || impatient }

// Mark is what is done next for the mark of a rollout.
type Mark uint8

const (
	WriteMark Mark = iota
	SyncMark
	SyncMarkFolder
	Forget // the end: it is durable, or what it was about was cleared
)

// Next is the mark behind its step. What could not be made durable is written anew, as often as it takes. Gone is a marker
// that was cleared together with what it was about. more says that another record was lost since the writing began: the clear
// may have come in between, so the marker is written once more for that one.
func (m Mark) Next(s Saw, more bool) Mark {
	switch {
	case s == Failed:
		return WriteMark
	case m == WriteMark && s == Done:
		return SyncMark
	case m == SyncMark:
		return SyncMarkFolder
	case m == SyncMarkFolder && !more:
		return Forget
	}
	return WriteMark
}

// Policy is what a missing record means for an answer.
type Policy uint8

const (
	Required   Policy = iota // its end is withheld
	BestEffort               // it ends as it would
)

// Release reports whether the end of an answer may be shown.
func Release(p Policy, recorded bool) bool { return recorded || p == BestEffort }
