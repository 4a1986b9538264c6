package logs

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// every is how long a line may wait for others: a write for each costs a tenth of what durable capture costs.
	every = 100 * time.Millisecond
	// enough is how many bytes of lines are written without waiting for more.
	enough = 64 << 10
	// room is how many bytes of lines may wait while the other end is slow: of some two thousand calls.
	room = 1 << 20
	// grace is how long Close waits for the other end.
	grace = time.Second
)

// Writer gathers lines and writes them together, at most every late, those in front of a Sync at once. It is a zapcore.WriteSyncer: each Write is
// a line, or several. New makes one; Close ends it.
type Writer struct {
	out  io.Writer
	lost func(lines int64)

	some chan struct{} // holds one: there are lines
	now  chan struct{} // holds one: they must not wait
	quit chan struct{} // closed by Close
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards the rest; never held across a write
	lines   []byte     // that wait
	spare   []byte     // of the last write
	untold  int64      // lines that had no room, of which lost was not told
	dropped int64
	closed  bool
}

// New starts a Writer to out. lost, which may be nil, is told how many lines had no room, once there is room again; it may log.
func New(out io.Writer, lost func(lines int64)) *Writer {
	w := &Writer{out: out, lost: lost, some: make(chan struct{}, 1), now: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// Write takes p, whole or not at all, and returns at once. It never fails: nobody could be told.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
	case len(w.lines)+len(p) > room:
		n := count(p)
		w.untold += n
		w.dropped += n
	default:
		w.lines = append(w.lines, p...)
		signal(w.some)
		if len(w.lines) >= enough {
			signal(w.now)
		}
	}
	return len(p), nil
}

// Sync lets what was written wait no longer. It does not wait either.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) > 0 {
		signal(w.now)
	}
	return nil
}

// Dropped is how many lines were not written, because they had no room or the other end is gone.
func (w *Writer) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Close writes what is left, or gives it up when that takes too long: then the goroutine ends with its write. What is written behind Close is lost.
func (w *Writer) Close() {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.mu.Unlock()
	if !closed {
		close(w.quit)
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-w.done:
	case <-t.C:
	}
}

func (w *Writer) run() {
	defer close(w.done)
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		select {
		case <-w.some:
		case <-w.quit:
			w.flush()
			return
		}
		t.Reset(every)
		select {
		case <-w.now:
		case <-t.C:
		case <-w.quit:
		}
		w.flush()
	}
}

// flush writes what waits, and tells what had no room.
func (w *Writer) flush() {
	w.mu.Lock()
	p := w.lines
	w.lines, w.spare = w.spare[:0], nil
	untold := w.untold
	w.untold = 0
	w.mu.Unlock()
	if len(p) > 0 {
		n, err := w.out.Write(p)
		w.mu.Lock()
		if err != nil {
			w.dropped += count(p[n:])
		}
		w.spare = p[:0]
		w.mu.Unlock()
	}
	if untold > 0 && w.lost != nil {
		w.lost(untold)
	}
}

func count(p []byte) int64 { return int64(bytes.Count(p, []byte{'\n'})) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
