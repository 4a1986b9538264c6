package rewrite

import (
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/sse"
)

// Observer watches an event stream that passes through: it says up to where bytes may be let go, finds the terminal event and folds what was
// said for the record. It belongs to one goroutine and keeps no bytes that were pushed. What it folds is all that grows with the stream: Size and
// FoldSize tell by how much, and whoever has no memory for that gives it up.
type Observer struct {
	split   sse.Splitter
	fold    folding
	maxFold int64
	total   int64

	progress Progress
}

// Progress is what is known of a stream after a push. Offsets count the body's bytes from its start.
type Progress struct {
	// Safe is the end of what may be let go: whole events and comments before the terminal event. What is between it and the bytes pushed
	// is the terminal event, or may become it.
	Safe    int64
	Verdict dialect.Verdict // of the first terminal event; None until there was one
	End     int64           // offset of the first byte of that event
	Content bool            // a content, tool or reasoning delta was seen, now or earlier
	// Blind: an event was too large to be kept, so the terminal event may have been missed. Judging goes on, but only the end of the body
	// is certain to be the end.
	Blind bool
}

// NewObserver watches a stream of dialect d. The fold is given up when the body grows beyond maxFold bytes; everything else goes on.
func NewObserver(d dialect.Dialect, maxFold int64) *Observer {
	return &Observer{fold: newFolding(d, maxFold > 0), maxFold: maxFold}
}

// Push takes the next bytes of the body, split anywhere. Bytes behind the terminal event are not looked at.
func (o *Observer) Push(p []byte) Progress {
	o.total += int64(len(p))
	if o.progress.Verdict != dialect.None {
		return o.progress
	}
	if o.fold.whole() && o.total > o.maxFold {
		o.GiveUp()
	}
	o.split.Push(p)
	var ev sse.Event
	for o.split.Next(&ev) {
		if o.event(&ev); o.progress.Verdict != dialect.None {
			o.split = sse.Splitter{} // nothing is split any more; let its buffers and p go
			return o.progress
		}
	}
	o.progress.Safe = o.split.Safe()
	o.progress.Blind = o.split.Oversized()
	return o.progress
}

// Finish tells that the body has ended. A last event without its blank line counts, so it may be the terminal one.
func (o *Observer) Finish() Progress {
	if o.progress.Verdict != dialect.None {
		return o.progress
	}
	var ev sse.Event
	if o.split.Finish(&ev) {
		o.event(&ev)
	}
	if o.progress.Verdict == dialect.None {
		o.progress.Safe = o.total
	}
	o.progress.Blind = o.progress.Blind || o.split.Oversized()
	return o.progress
}

func (o *Observer) event(ev *sse.Event) {
	if ev.Oversized {
		// Without this event the fold would be short and not show it.
		o.GiveUp()
		o.progress.Blind = true
	}
	s := o.fold.event(ev.Name, ev.Data)
	if s.Content {
		o.progress.Content = true
	}
	if s.Verdict != dialect.None {
		o.progress.Verdict, o.progress.End, o.progress.Safe = s.Verdict, ev.Start, ev.Start
	}
}

// GiveUp lets go of the fold; everything else goes on.
func (o *Observer) GiveUp() { o.fold.giveUp() }

// Drop is GiveUp of who asks nothing more.
func (o *Observer) Drop() { o.fold.drop() }

// FoldSize is about how much memory the fold takes, in bytes; 0 once it is given up.
func (o *Observer) FoldSize() int { return o.fold.size() }

// Size is about how much memory an observer takes beside its fold, in bytes.
func (o *Observer) Size() int { return o.split.Size() }

// Folded tells whether AppendResponse has the whole of what was said.
func (o *Observer) Folded() bool { return o.fold.whole() }

// AppendResponse appends the unary answer that says what the stream has said so far, or nothing: when nothing was said, or not Folded.
func (o *Observer) AppendResponse(dst []byte) []byte { return o.fold.append(dst) }

// Summary is what the stream has said in a few words, as far as a fold that was given up still knows it.
func (o *Observer) Summary() dialect.Summary { return o.fold.summary() }
