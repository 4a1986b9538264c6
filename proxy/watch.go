package proxy

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// silence watches one exchange for an upstream that says nothing. It costs two atomic stores a read: a timer fires once
// a timeout at most and looks, instead of being moved with every byte. The zero value watches nothing.
type silence struct {
	limit  time.Duration
	cancel context.CancelCauseFunc
	start  time.Time
	since  atomic.Int64 // nanoseconds from start to the beginning of the wait that is going on, plus 1; 0: not waiting

	mu      sync.Mutex // guards timer and stopped
	timer   *time.Timer
	stopped bool
}

// arm starts the watch; stop ends it. Both are called once, by the exchange's goroutine.
func (s *silence) arm(limit time.Duration, start time.Time, cancel context.CancelCauseFunc) {
	if limit <= 0 {
		return
	}
	s.limit, s.start, s.cancel = limit, start, cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(limit, s.look)
}

// begin says that from now on the upstream is being waited for.
func (s *silence) begin() {
	if s.limit > 0 {
		s.since.Store(int64(time.Since(s.start)) + 1)
	}
}

// end says that the upstream has spoken, or that nobody waits for it.
func (s *silence) end() {
	if s.limit > 0 {
		s.since.Store(0)
	}
}

// progress says that something moved while the upstream is being waited for: a request on its way up is no silence.
func (s *silence) progress() {
	if s.limit <= 0 {
		return
	}
	// Another goroutine may end the wait at the same time, and it has to stay ended.
	if since := s.since.Load(); since != 0 {
		s.since.CompareAndSwap(since, int64(time.Since(s.start))+1)
	}
}

func (s *silence) look() {
	next := s.limit
	if since := s.since.Load(); since != 0 {
		next = s.limit - (time.Since(s.start) - time.Duration(since-1))
		if next <= 0 {
			s.cancel(errSilence)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.timer.Reset(next)
	}
}

func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// watchedBody is a body whose silence is watched; of a model call the gate does it.
type watchedBody struct {
	io.ReadCloser
	watch *silence
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.begin()
	n, err := b.ReadCloser.Read(p)
	b.watch.end()
	return n, err
}
