package rewrite

import (
	"bytes"
	"errors"
	"io"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/sse"
)

// Stream translates an answer as it arrives: bytes of the upstream's stream are pushed, and the frames that they make for the client are
// taken at once. For a client that wants no stream it adds up the answer. It belongs to one goroutine at a time.
type Stream struct {
	t     *Translation
	split sse.Splitter
	dec   dialect.Decoder
	enc   dialect.Encoder // nil: the client wants no stream
	chain chain
	order *canon.Sequencer // nil: parts may overlap
	whole canon.Folder     // of a client that wants no stream

	decoded, filtered, ordered []canon.Event
	out                        []byte

	fold    folding // of the upstream's side, for the record
	folded  int64   // bytes that went into it
	maxFold int64
	read    *dialect.Summary // of an answer that came whole; nil: it did not

	keeps  bool           // what was said is kept to the end
	said   int            // bytes of that
	before func(said int) // see BeforeRepeat

	begun   bool // the upstream has begun to answer
	opened  bool // the client was given something
	content bool
	ended   bool // the terminal event, or the failure
	problem *canon.Problem
	invalid bool // problem is that a frame, or the whole, could not be understood
}

// NewStream begins to translate a stream. What the upstream says is folded for the record until it is longer than maxFold bytes.
func (t *Translation) NewStream(maxFold int64) *Stream {
	s := &Stream{t: t, dec: t.upstream.NewDecoder(t.options()), chain: t.chain(), maxFold: maxFold}
	if t.asked.Stream {
		s.enc = t.client.NewEncoder(t.asked, t.options())
		if !s.enc.Overlap() {
			s.order = new(canon.Sequencer)
		}
	}
	if _, s.keeps = s.enc.(dialect.Keeper); s.enc == nil {
		s.keeps = true
	}
	s.fold = newFolding(t.upstream, maxFold > 0)
	return s
}

// BeforeRepeat sets what is called before the client is told once more what it was told, and how much that is at most: the frames that do so are made at
// once.
func (s *Stream) BeforeRepeat(f func(said int)) { s.before = f }

// Push takes the next bytes of the upstream's stream and returns the client's frames that they make, valid until the next call. Behind the
// end nothing is looked at. When a failure comes before anything was given to the client there are no frames: Failed has it.
func (s *Stream) Push(p []byte) []byte {
	s.out = s.out[:0]
	if s.ended {
		return nil
	}
	s.split.Push(p)
	var ev sse.Event
	for !s.ended && s.split.Next(&ev) {
		s.frame(&ev)
	}
	if s.ended {
		s.split = sse.Splitter{}
	}
	return s.out
}

// Finish tells that the upstream's stream has ended cleanly. It returns the last frames; without the dialect's own end there is a failure.
func (s *Stream) Finish() []byte {
	s.out = s.out[:0]
	if s.ended {
		return nil
	}
	var ev sse.Event
	if s.split.Finish(&ev) && isWhole(ev.Data) { // else the stream was cut inside of it
		s.frame(&ev)
	}
	if s.ended {
		return s.out
	}
	if err := s.dec.Finish(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.misunderstood(err)
	}
	return s.out
}

// isWhole tells whether the data of an event without its blank line can be all of it.
func isWhole(data []byte) bool {
	return jsonx.Valid(data) || string(bytes.TrimSpace(data)) == "[DONE]"
}

// Ended tells whether the stream has had its end, good or bad: only then is a clean end of the upstream's body one.
func (s *Stream) Ended() bool { return s.ended }

// Begun tells whether the upstream has begun to answer.
func (s *Stream) Begun() bool { return s.begun }

// Opened tells whether the client was given something.
func (s *Stream) Opened() bool { return s.opened }

// Failed is the failure that ended the stream, nil when there was none. The client was told by the dialect's failure event, unless it had been
// given nothing yet, or an EmptyTurn can stand for it.
func (s *Stream) Failed() *canon.Problem { return s.problem }

// Misunderstood tells that Failed is no error of the upstream: it sent something that is not its dialect.
func (s *Stream) Misunderstood() bool { return s.invalid }

// Content tells whether a content, tool or reasoning delta was translated.
func (s *Stream) Content() bool { return s.content }

// KeepAlive returns what keeps a waiting client there; it opens a stream that has not begun.
func (s *Stream) KeepAlive() []byte {
	s.out = s.out[:0]
	if s.enc != nil && !s.ended {
		s.opened = true
		s.out = s.enc.AppendKeepAlive(s.out)
	}
	return s.out
}

// Fail ends the stream with a failure that the upstream did not tell itself, and returns the failure event.
func (s *Stream) Fail(p *canon.Problem) []byte {
	s.out = s.out[:0]
	s.fail(p)
	return s.out
}

// Whole translates an answer that came whole although the client wants a stream.
func (s *Stream) Whole(body []byte) ([]byte, error) {
	s.out = s.out[:0]
	a, err := s.t.read(body)
	if err != nil {
		return nil, err
	}
	read := s.t.upstream.ReadResponse(body)
	s.read = &read
	if a.Failed != nil {
		return nil, a.Failed
	}
	if err := s.replay(a); err != nil {
		s.misunderstood(err)
	}
	return s.out, nil
}

// EmptyTurn ends the stream with the turn that policy puts in place of a failure, see Translation.Overflows.
func (s *Stream) EmptyTurn() []byte {
	s.out = s.out[:0]
	if err := s.replay(emptyTurn()); err != nil {
		s.misunderstood(err)
	}
	return s.out
}

// Answer is the answer for a client that wants no stream, of a stream that Ended without a failure.
func (s *Stream) Answer() ([]byte, error) {
	if s.before != nil {
		s.before(s.said)
	}
	return s.t.append(s.whole.Answer())
}

// AppendUpstream appends what the upstream said so far as one unary answer of its dialect, or nothing: when nothing was said, or it GaveUp.
func (s *Stream) AppendUpstream(dst []byte) []byte { return s.fold.append(dst) }

// GiveUp lets go of what AppendUpstream has to say.
func (s *Stream) GiveUp() { s.fold.giveUp() }

// Drop is GiveUp of who asks nothing more.
func (s *Stream) Drop() { s.fold.drop() }

// GaveUp tells that what AppendUpstream would say was given up.
func (s *Stream) GaveUp() bool { return s.fold.partial }

// FoldSize is about how much memory that takes, in bytes; 0 once it is given up.
func (s *Stream) FoldSize() int { return s.fold.size() }

// Size is about how much memory the translation itself takes, in bytes.
func (s *Stream) Size() int {
	n := s.split.Size() + cap(s.out) + s.said
	if s.order != nil {
		n += s.order.Size()
	}
	return n
}

// Summary tells what the upstream said in a few words.
func (s *Stream) Summary() dialect.Summary {
	if s.read != nil {
		return *s.read
	}
	return s.fold.summary()
}

// frame translates one event of the upstream.
func (s *Stream) frame(ev *sse.Event) {
	if s.folded += ev.End - ev.Start; s.fold.whole() && (ev.Oversized || s.folded > s.maxFold) {
		s.GiveUp()
	}
	if ev.Oversized {
		s.misunderstood(errOversized)
		return
	}
	s.fold.event(ev.Name, ev.Data)
	var err error
	if s.decoded, err = s.dec.Frame(s.decoded[:0], ev.Name, ev.Data); err != nil {
		s.misunderstood(err)
		return
	}
	for i := range s.decoded {
		if err := s.event(&s.decoded[i]); err != nil {
			s.misunderstood(err)
		}
		if s.ended {
			return
		}
	}
}

var errOversized = errors.New("an event is too large")

// event takes an event of the upstream through the filters to the client.
func (s *Stream) event(e *canon.Event) error {
	var err error
	if s.filtered, err = s.chain.run(s.filtered[:0], e); err != nil {
		return err
	}
	for i := range s.filtered {
		e := &s.filtered[i]
		if s.order == nil {
			if err := s.emit(e); err != nil {
				return err
			}
			continue
		}
		if s.ordered, err = s.order.Next(s.ordered[:0], e); err != nil {
			return err
		}
		for j := range s.ordered {
			if err := s.emit(&s.ordered[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// emit gives an event to the client.
func (s *Stream) emit(e *canon.Event) error {
	switch e.Kind {
	case canon.Start:
		s.begun = true
	case canon.Fail: // that nobody can make an answer of it is not what the upstream says of itself
		s.invalid = e.Problem.Code == canon.CodeUpstreamInvalid
		s.fail(e.Problem)
		return nil
	case canon.Ended:
		s.ended = true
	case canon.Delta:
		s.content = true
		if s.keeps {
			s.said += len(e.Text) + len(e.Logprobs)
		}
	case canon.Ping:
		if !s.opened {
			return nil // a ping opens nothing: whatever comes first may still be an error with its own status
		}
	}
	if s.enc == nil {
		return s.whole.Event(e)
	}
	s.opened = true
	if s.keeps && s.before != nil && (e.Kind == canon.Close || e.Kind == canon.Ended) {
		s.before(s.said)
	}
	s.out = s.enc.Append(s.out, e)
	return nil
}

func (s *Stream) misunderstood(err error) {
	s.invalid = true
	s.fail(canon.Unreadable("the upstream sent something that is not its dialect: " + err.Error()))
}

func (s *Stream) fail(p *canon.Problem) {
	if s.ended {
		return
	}
	s.ended, s.problem = true, p
	if s.opened && s.enc != nil && (s.content || !s.t.Overflows(p)) {
		if s.keeps && s.before != nil {
			s.before(s.said)
		}
		s.out = s.enc.Append(s.out, &canon.Event{Kind: canon.Fail, Problem: p})
	}
}

// replay gives a whole answer to the client.
func (s *Stream) replay(a *canon.Answer) error {
	return a.Replay(s.event)
}

func (t *Translation) chain() chain {
	return chain{filters: t.policy.filters(t.asked, t.names, &t.losses), window: t.window, counted: canon.NoUsage()}
}

// chain is the filters between the decoder and the client's order of events.
type chain struct {
	filters []filter
	spare   [2][]canon.Event
	window  int64 // how many tokens the model holds, 0 unknown
	counted canon.Usage
}

// filled tells that prompt and completion take all that the model holds. Engines call that length as well (wire.md 1.7, 5.2).
func (c *chain) filled() bool {
	return c.window > 0 && c.counted.Prompt > 0 && c.counted.Completion >= 0 && c.counted.InAll() >= c.window
}

// run takes one event through all filters and appends what comes out.
func (c *chain) run(dst []canon.Event, e *canon.Event) ([]canon.Event, error) {
	switch e.Kind {
	case canon.Counted:
		c.counted = e.Usage
	case canon.Ended:
		if e.Stop.Reason == canon.StopLength && c.filled() {
			e.Stop.Reason = canon.StopContext
		}
	}
	switch len(c.filters) {
	case 0:
		return append(dst, *e), nil
	case 1:
		return c.filters[0].next(dst, e)
	}
	var err error
	in := append(c.spare[0][:0], *e)
	for i, f := range c.filters {
		last := i == len(c.filters)-1
		out := c.spare[(i+1)%2][:0]
		if last {
			out = dst
		}
		for j := range in {
			if out, err = f.next(out, &in[j]); err != nil {
				return dst, err
			}
		}
		c.spare[i%2] = in[:0]
		if last {
			return out, nil
		}
		in = out
	}
	return dst, nil
}
