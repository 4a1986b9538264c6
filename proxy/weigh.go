package proxy

import (
	"context"
	"io"
	"time"

	"rolltap/capture"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// What grows in memory with an answer beside its copies counts against one budget: what a stream adds up to, the text that the end of a translated
// one says once more, token ids, events that come in pieces. Where nothing is left, what a stream adds up to is given up, and put together
// again when it has ended, from the copy, which may be in a file: one long answer at a time.

// weighStep is how much of an answer passes between two looks at what is kept of it. An answer that has no more is not counted.
const weighStep = 64 << 10

// weigh is told of every piece of an answer.
func (x *exchange) weigh(p []byte) {
	if x.unweighed += len(p); x.unweighed < weighStep {
		return
	}
	x.unweighed = 0
	must := weighStep
	if x.gate != nil {
		must += cap(x.gate.held)
	}
	if x.taught != nil && x.taught.collector != nil {
		must += x.taught.collector.Size()
	}
	folds := 0 // each is held twice when the record is made: the answer that it adds up to is written first
	if x.observer != nil {
		must += x.observer.Size()
		folds += 2 * x.observer.FoldSize()
	}
	said := 0
	if x.edited != nil {
		must += cap(x.edited.whole)
	}
	if tr := x.translated; tr != nil && tr.stream != nil {
		must += tr.stream.Size()
		said = 2 * tr.stream.FoldSize()
	}
	if x.growing.Hold(int64(must + folds + said)) {
		return
	}
	if folds > 0 {
		x.observer.GiveUp()
		x.foldLate = true
		if x.growing.Hold(int64(must + said)) {
			return
		}
	}
	if said > 0 { // which no copy has
		x.translated.stream.GiveUp()
	}
	x.growing.Must(int64(must))
}

// foldAnswer is what the stream that the client was sent adds up to, and what that is in a few words; nil: nothing that a record could have.
func (x *exchange) foldAnswer() (*capture.Copy, dialect.Summary) {
	switch {
	case x.translated != nil && !x.translated.stream.Begun(): // its opening and its failure were made here
		x.observer.GiveUp()
		return nil, dialect.Summary{Usage: canon.NoUsage()}
	case x.foldLate:
		return x.foldAgain()
	}
	return x.fold(x.observer)
}

func (x *exchange) fold(o *rewrite.Observer) (*capture.Copy, dialect.Summary) {
	body, summary := o.AppendResponse(nil), o.Summary()
	o.GiveUp()
	x.growing.Release()
	if len(body) == 0 {
		return nil, summary
	}
	return capture.Fold(x.h.foldOptions, body), summary
}

// foldAgain folds the copy, while no other exchange holds anything long.
func (x *exchange) foldAgain() (*capture.Copy, dialect.Summary) {
	x.h.reading.Lock()
	defer x.h.reading.Unlock()
	o := rewrite.NewObserver(x.dialect, x.response.Len())
	buf := x.h.buffers.Get()
	defer x.h.buffers.Put(buf)
	from := x.response.NewReader()
	defer from.Close()
	for {
		n, err := from.Read(buf)
		if o.Push(buf[:n]); o.FoldSize() > x.h.wholeAnswer {
			o.GiveUp()
		}
		if err != nil {
			if err != io.EOF {
				o.GiveUp()
			}
			break
		}
	}
	if x.gate.decoded == nil || !x.gate.broken {
		o.Finish()
	}
	x.unfolded = !o.Folded() || x.response.Truncated()
	return x.fold(o)
}

// The end of a translated answer takes memory in a burst: what was said is made once more for the client, held until it is recorded, and told apart
// again for the record. Long ones take turns.
const (
	burst     = 10 // times what was said, at most
	freeBurst = 256 << 10
	burstWait = 10 * time.Second // a client that reads slowly keeps nobody for longer
)

// brace waits for its turn to make much of n bytes, until relax.
func (x *exchange) brace(n int) {
	need := min(int64(n)*burst, x.h.burstBudget)
	if need <= max(freeBurst, x.braced) {
		return
	}
	x.relax()
	ctx, cancel := context.WithTimeout(x.ctx, burstWait)
	defer cancel()
	if x.h.bursts.Acquire(ctx, need) == nil {
		x.braced = need
	}
}

// relax ends the turn.
func (x *exchange) relax() {
	if x.braced > 0 {
		x.h.bursts.Release(x.braced)
		x.braced = 0
	}
}
