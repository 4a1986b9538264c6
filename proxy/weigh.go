package proxy

import (
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

// weighStep is how much of an answer passes at least between two looks at what is kept of it: an eighth of what has passed, since a look costs as much
// as it has parts. An answer that has no more is not counted.
const weighStep = 64 << 10

// weigh is told of every piece of an answer.
func (x *exchange) weigh(p []byte) {
	if x.passed += len(p); x.passed < x.weighAt+weighStep {
		return
	}
	x.weighAt = x.passed + x.passed/8
	must := 0
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
		x.observer.Drop()
		return nil, dialect.Summary{Usage: canon.NoUsage()}
	case x.foldLate && x.callID != "" && !x.response.Truncated(): // the beginning of an answer is none
		return x.foldAgain()
	}
	return x.fold(x.observer)
}

func (x *exchange) fold(o *rewrite.Observer) (*capture.Copy, dialect.Summary) {
	var summary dialect.Summary
	if x.translated == nil { // else it is that of what the upstream said
		summary = o.Summary()
	}
	body := o.AppendResponse(nil)
	o.Drop()
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
	passed, look := 0, 0
	for {
		n, err := from.Read(buf)
		o.Push(buf[:n])
		if passed += n; passed >= look+weighStep {
			if look = passed + passed/8; o.FoldSize() > x.h.wholeAnswer {
				o.GiveUp()
			}
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
	x.unfolded = !o.Folded()
	return x.fold(o)
}

// The end of a translated answer takes memory in a burst: what was said is made once more for the client, held until it is recorded, and told apart
// again for the record. Long ones take turns.
const (
	burst     = 10 // times what was said, at most
	freeBurst = 256 << 10
	burstWait = 5 * time.Second // all waits of an exchange together; meanwhile its client is not kept alive
	burstPoll = 5 * time.Millisecond
)

// brace waits for its turn to make much of n bytes, until relax. Who has waited for as long as anybody may goes on without one.
func (x *exchange) brace(n int) {
	need := min(int64(n)*burst, x.h.bursts.Size()) // nobody can have more
	if need <= freeBurst || x.turn.Hold(need) {
		return
	}
	began := x.elapsed()
	tick := time.NewTicker(burstPoll) // whoever gives something back does not know who waits; small ones pass large ones
	defer tick.Stop()
	for x.braced+x.elapsed()-began < burstWait && !x.turn.Hold(need) {
		select {
		case <-tick.C:
		case <-x.ctx.Done():
			return
		}
	}
	x.braced += x.elapsed() - began
}

// relax ends the turn.
func (x *exchange) relax() { x.turn.Release() }
