package capture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrLow is returned when less is free in the store's file system than Options.MinFree.
var ErrLow = errors.New("too little space is left for the capture store")

// lowFresh is how long a look at the free space is believed.
const lowFresh = 250 * time.Millisecond

// watermark knows whether the free space is below Options.MinFree.
type watermark struct {
	mu      sync.Mutex // guards the rest; never held across a system call
	looked  time.Time
	low     error
	looking chan struct{} // closed when the look that goes on is over; nil: none does
}

// Low returns an error of ErrLow while less than Options.MinFree is free, as it was at most a moment ago. A store without
// that option, and one whose file system does not tell, is never low: records tell then. A look that is not over when ctx
// ends is an error as well: who asks has no time to wait for a file system that does not answer.
//
// Nothing keeps Append from writing below the mark: it is for who can still decide what to begin.
func (s *Store) Low(ctx context.Context) error {
	if s.o.MinFree <= 0 {
		return nil
	}
	w := &s.watermark
	w.mu.Lock()
	if time.Since(w.looked) < lowFresh {
		defer w.mu.Unlock()
		return w.low
	}
	done := w.looking
	if done == nil {
		done = make(chan struct{})
		w.looking = done
		if !s.spawn(func() { s.look(done) }) {
			w.looking = nil
			w.mu.Unlock()
			return ErrClosed
		}
	}
	w.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("free space of the capture store: %w", context.Cause(ctx))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.low
}

// spawn runs f in a goroutine that Close waits for, and reports whether it does.
func (s *Store) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Go(f)
	return true
}

func (s *Store) look(done chan struct{}) {
	free, err := s.fs.free(s.o.Dir)
	w := &s.watermark
	w.mu.Lock()
	was := w.low
	if w.low = nil; err == nil && free < s.o.MinFree {
		w.low = fmt.Errorf("%w: %d bytes are free, and %d are to be", ErrLow, free, s.o.MinFree)
	}
	fell := was == nil && w.low != nil
	w.looked, w.looking = time.Now(), nil
	w.mu.Unlock()
	if fell && s.o.Observe.Low != nil {
		s.o.Observe.Low(free)
	}
	close(done)
}

// Decline is the end of a record that is not given to the disk: the rollout is marked, and the record counted as lost. It
// takes ownership of r and its copies, as Append does.
func (s *Store) Decline(r *Record, why error) {
	r.release()
	s.lost(r.Rollout, r.CallID, "watermark", fmt.Errorf("append to %s: %w", r.Rollout, why))
}
