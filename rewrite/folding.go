package rewrite

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// folding folds a stream for the record as long as there is memory for what it adds up to. Given up it goes on for the Summary alone, in which what
// comes last counts most.
type folding struct {
	d       dialect.Dialect
	folder  dialect.Folder // nil: nothing is folded
	partial bool           // it was given up, and folder has a part of the stream
	before  dialect.Summary
	seen    int // bytes of events in a partial folder
}

// partLimit is how much of a stream a partial folder is given.
const partLimit = 64 << 10

func newFolding(d dialect.Dialect, on bool) folding {
	f := folding{d: d, before: dialect.Summary{Usage: canon.NoUsage()}}
	if on {
		f.folder = d.NewFolder()
	}
	return f
}

func (f *folding) event(name, data []byte) dialect.Signal {
	if f.folder == nil {
		return f.d.Judge(name, data)
	}
	s := f.folder.Event(name, data)
	if f.partial {
		if f.seen += len(data); f.seen > partLimit {
			f.giveUp()
		}
	}
	return s
}

// giveUp lets go of what was folded.
func (f *folding) giveUp() {
	if f.folder != nil {
		f.before = f.summary()
		f.folder, f.partial, f.seen = f.d.NewFolder(), true, 0
	}
}

// drop lets go of what was folded, and of its summary.
func (f *folding) drop() { f.folder = nil }

// whole tells that append has all that was said.
func (f *folding) whole() bool { return f.folder != nil && !f.partial }

// append appends the unary answer, or nothing unless it is whole.
func (f *folding) append(dst []byte) []byte {
	if !f.whole() {
		return dst
	}
	return f.folder.AppendResponse(dst)
}

// size is about how much memory it takes that giving up would free, in bytes.
func (f *folding) size() int {
	if !f.whole() {
		return 0
	}
	return f.folder.Size()
}

func (f *folding) summary() dialect.Summary {
	switch {
	case f.folder == nil:
		return f.before
	case f.partial:
		return f.before.With(f.folder.Summary())
	}
	return f.folder.Summary()
}
