package protocol

// RestoreStep is what a replay does with an entry.
type RestoreStep uint8

const (
	Identify RestoreStep = iota // is the file the one that the entry is about?
	Compare                     // its bytes with the place where they belong
	Search                      // the file for its calls at other places
	InPlace                     // the end: write it where it belongs
	Append                      // the end: line by line, see Line
	Skip                        // the end: it is about another file, or nobody was promised it
	Blank                       // the end: write spaces where it belongs
)

// Restore is what has to be known of an entry in a replay.
type Restore struct{ Do RestoreStep }

// Ended reports whether nothing else has to be found out: Do is what is done with the entry.
func (r Restore) Ended() bool { return r.Do >= InPlace }

// Finding is what was found out in the step that Restore.Do named.
type Finding struct {
	Same bool // Identify

	// Compare.
	Whole     bool // all of it is there, and is found there
	Fits      bool // it can be written there without touching a byte of anything else, and would be found
	Withdrawn bool // it was being overwritten, or has been, because what it said is over

	Elsewhere bool // Search: one of its calls is somewhere else in the file

	Closed bool // Compare and Search: the file takes no lines any more, so what has lost its place was acknowledged to nobody
}

// Next is the entry behind its step. What is there is written, too: a sync of it may have failed, for a process that has died
// since, and the system may take for durable what the disk does not have.
func (r Restore) Next(f Finding) Restore {
	switch r.Do {
	case Identify:
		r.Do = Skip
		if f.Same {
			r.Do = Compare
		}
	case Compare:
		switch {
		case f.Whole:
			r.Do = InPlace
		case f.Withdrawn:
			r.Do = Blank
		case f.Fits:
			r.Do = Search
		default:
			r.Do = displaced(f)
		}
	case Search:
		r.Do = InPlace
		if f.Elsewhere {
			r.Do = displaced(f)
		}
	}
	return r
}

// displaced is what is done with an entry that cannot be written where it belongs.
func displaced(f Finding) RestoreStep {
	if f.Closed {
		return Skip
	}
	return Append
}

// LineStep is what is done with a line of an entry that has lost its place.
type LineStep uint8

const (
	WriteAgain LineStep = iota // where it stands, like what is in its place
	WriteBehind
)

// Line says it; there: its call is in the file.
func Line(there bool) LineStep {
	if there {
		return WriteAgain
	}
	return WriteBehind
}

// Replayed is what is done with a file behind the last of its entries.
type Replayed uint8

const (
	LeaveFile Replayed = iota
	SyncReplayed
)

// Finish says it: about counts the entries that are about the file. It is synced also when nothing was written, since what
// a kill left in it may not be durable.
func Finish(about int) Replayed {
	if about == 0 {
		return LeaveFile
	}
	return SyncReplayed
}

// RemoveJournal reports whether a journal may go: owed counts its rollouts whose files could not be made to hold, durably,
// what it holds.
func RemoveJournal(owed int) bool { return owed == 0 }
