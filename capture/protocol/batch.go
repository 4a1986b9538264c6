package protocol

// Mode is what a record rests on when it is acknowledged.
type Mode uint8

const (
	File    Mode = iota // its file was synced
	Journal             // its file, or a journal
	Async               // nothing: it was written
)

// Step is what is done for a batch.
type Step uint8

const (
	Lock        Step = iota // the file that the path names, which is made when there is none
	Look                    // whether the file ends inside a line
	Write                   // the lines, with a newline in front when Heal is set
	SyncFile                // the file that was written to
	SyncLater               // let it be synced, and wait for nothing
	Enter                   // into the journal
	SyncFolder              // the names in the store's folder
	LookName                // whether the path still names the file
	CutBack                 // take from the file what was written; whether that works changes nothing
	Acknowledge             // the end: tell everybody that the lines are durable
	Fail                    // the end: nobody may rely on the lines
)

// Batch is what has to be known of a batch to say what is done next.
type Batch struct {
	Do   Step
	Mode Mode

	Known bool // this store has seen inode and name of the file durable
	Sure  bool // the file can be told from every other, also behind a restart
	Torn  bool // the file ended inside a line
	Heal  bool // a newline goes in front of the lines

	Doubt bool // a sync of the file failed: nothing that it should have made durable is believed to be
	again bool // behind CutBack everything is done afresh, in the file that has the name now
}

// Event is what came of the step that Batch.Do named. The members behind Saw are for the steps that they name.
type Event struct {
	Saw Saw

	// Lock.
	Known, Sure bool
	AsLeft      bool // the file ends where this store ended it, with a newline
	Boundary    bool // the file ends with a sector, so that writing behind it writes nothing of what is in front

	Torn bool // Look

	// Write.
	Whole   bool // the lines were written at once and are still at hand
	Crowded bool // so many records are on their way that a journal is cheaper than a sync of each file
}

// Begin is a batch of which nothing was done.
func Begin(m Mode) Batch { return Batch{Do: Lock, Mode: m} }

// Written is a batch that somebody else is writing: the file is locked, and what is written to it now is all that goes there. Its
// lines are durable when LookName comes, which is that one's business, too.
func Written(m Mode, known, sure bool) Batch {
	return Batch{Do: Write, Mode: m, Known: known, Sure: sure}
}

// Ended reports whether there is nothing left to do.
func (b Batch) Ended() bool { return b.Do >= Acknowledge }

// Next is the batch behind its step. A batch is written afresh only when the name went to another file, because then the
// lines are in no file that anybody reads. What failed is not tried again: it may be on the disk all the same, and a second
// copy would be a record twice.
func (b Batch) Next(e Event) Batch {
	switch b.Do {
	case Lock:
		if e.Saw != Done {
			return b.fail()
		}
		// A failed sync, of whomever, may have dropped the line in front, and its newline is seen all the same.
		b.Known, b.Sure, b.Heal, b.Torn = e.Known, e.Sure, e.Boundary && !e.AsLeft, false
		b.Do = Look
		if e.AsLeft {
			b.Do = Write
		}
	case Look:
		if e.Saw != Done {
			return b.fail()
		}
		b.Torn, b.Heal = e.Torn, b.Heal || e.Torn
		b.Do = Write
	case Write:
		switch {
		case e.Saw != Done:
			b.Do = CutBack
		case b.Mode == Async:
			b.Do = SyncLater
		case b.Mode == Journal && b.Known && b.Sure && e.Whole && e.Crowded:
			b.Do = Enter
		default:
			b.Do = SyncFile
		}
	case SyncFile, SyncLater, Enter:
		if e.Saw != Done {
			b.Doubt = b.Do == SyncFile
			return b.fail()
		}
		b.Do = LookName
		if !b.Known {
			b.Do = SyncFolder
		}
	case SyncFolder:
		switch e.Saw {
		case Done:
			b.Do = LookName
		case Gone:
			b.Do, b.again = CutBack, true
		default:
			return b.fail()
		}
	case LookName:
		switch e.Saw {
		case Done:
			b.Do = Acknowledge
		case Gone:
			b.Do, b.again = CutBack, true
		default:
			return b.fail()
		}
	case CutBack:
		if !b.again {
			return b.fail()
		}
		return Begin(b.Mode)
	default:
		return b.fail()
	}
	return b
}

func (b Batch) fail() Batch {
	b.Do = Fail
	return b
}
