package canon

import (
	"errors"
	"fmt"
	"slices"
)

// maxHeld bounds what a Sequencer holds back, in bytes.
const maxHeld = 16 << 20

// heldEvent is about what an Event takes that is held back, without its texts.
const heldEvent = 512

// A Sequencer makes a stream in which one part is open at a time out of one whose parts overlap, for dialects that cannot say overlap.
// Parts keep their order and so their numbers: the first open part passes at once, the others wait until it closes. Without overlap
// nothing waits and nothing is allocated.
//
// The zero Sequencer is ready. One a stream, one goroutine.
type Sequencer struct {
	next int       // the part that passes, open or the next to open
	open bool      // it is open
	held []waiting // the parts behind it, in order
	size int       // of all that is held
}

// waiting is what was said of a part that is not its turn.
type waiting struct {
	events []Event
	closed bool
}

// Next takes the next event and appends the events whose turn has come to dst. Those of e borrow what e borrows; those that were held
// back are copies. A Fail passes at once and what was held back is dropped. An error ends the stream: it says that too much had to be held
// back, or that the stream is not of the grammar.
func (s *Sequencer) Next(dst []Event, e *Event) ([]Event, error) {
	switch e.Kind {
	case Open, Delta, Seal, Cite, Close:
		return s.part(dst, e)
	case Ended:
		if s.open || len(s.held) > 0 {
			return dst, errors.New("end while a part is open")
		}
	case Fail:
		s.held, s.size = nil, 0
	}
	return append(dst, *e), nil
}

func (s *Sequencer) part(dst []Event, e *Event) ([]Event, error) {
	if e.Part != s.next {
		return dst, s.hold(e)
	}
	if s.open == (e.Kind == Open) {
		return dst, fmt.Errorf("%v of part %d at the wrong time", e.Kind, e.Part)
	}
	dst = append(dst, *e)
	s.open = e.Kind != Close
	for !s.open {
		s.next++
		if len(s.held) == 0 {
			return dst, nil
		}
		w := s.held[0]
		s.held[0] = waiting{}
		s.held = s.held[1:]
		for i := range w.events {
			s.size -= sizeOf(&w.events[i])
		}
		dst = append(dst, w.events...)
		s.open = !w.closed
	}
	return dst, nil
}

// hold keeps an event of a part that is not its turn.
func (s *Sequencer) hold(e *Event) error {
	at := e.Part - s.next - 1
	if e.Kind == Open && s.open && at == len(s.held) {
		s.held = append(s.held, waiting{})
	} else if at < 0 || at >= len(s.held) || s.held[at].closed || e.Kind == Open {
		return fmt.Errorf("%v of part %d at the wrong time", e.Kind, e.Part)
	}
	w := &s.held[at]
	w.closed = e.Kind == Close
	if n := len(w.events); n > 0 && e.Kind == Delta && e.Logprobs == nil {
		// Nobody waits for the pieces any more: as one they need less memory and fewer frames.
		if last := &w.events[n-1]; last.Kind == Delta && last.Summary == e.Summary && last.Logprobs == nil {
			last.Text = append(last.Text, e.Text...)
			return s.grow(len(e.Text))
		}
	}
	w.events = append(w.events, e.clone())
	return s.grow(sizeOf(e))
}

// Size is about how much memory is held back, in bytes.
func (s *Sequencer) Size() int { return s.size }

func (s *Sequencer) grow(n int) error {
	if s.size += n; s.size > maxHeld {
		return fmt.Errorf("parts overlap by more than %d MiB", maxHeld>>20)
	}
	return nil
}

func sizeOf(e *Event) int {
	return heldEvent + len(e.Text) + len(e.Raw) + len(e.Logprobs) + len(e.ItemID) + len(e.Call.ID) + len(e.Call.Name) + len(e.Call.Namespace)
}

// clone is an event of a part that borrows nothing.
func (e *Event) clone() Event {
	c := *e
	c.Text, c.Raw, c.Logprobs, c.ItemID = slices.Clone(e.Text), slices.Clone(e.Raw), slices.Clone(e.Logprobs), slices.Clone(e.ItemID)
	c.Call.ID, c.Call.Name, c.Call.Namespace = slices.Clone(e.Call.ID), slices.Clone(e.Call.Name), slices.Clone(e.Call.Namespace)
	c.Call.Arguments = slices.Clone(e.Call.Arguments)
	return c
}
