package capture

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		var falls []int64
		s := newStoreOn(t, Options{Dir: t.TempDir(), MinFree: 1000, Observe: Observe{Low: func(free int64) { falls = append(falls, free) }}}, f)
		for i, row := range []struct {
			left int64 // 0: as before
			wait time.Duration
			low  bool
		}{
			{left: 1000, low: false},
			{left: 999, low: false}, // a look is believed for a while
			{wait: lowFresh, low: true},
			{left: 500, wait: lowFresh, low: true},
			{left: 2000, low: true},
			{wait: lowFresh, low: false},
			{left: -1, wait: lowFresh, low: false}, // nobody can tell
			{left: 1, wait: lowFresh, low: true},
		} {
			if row.left != 0 {
				f.left.Store(row.left)
			}
			time.Sleep(row.wait)
			if err := s.Low(t.Context()); errors.Is(err, ErrLow) != row.low || (err != nil) != row.low {
				t.Errorf("look %d says %v, want low: %v", i, err, row.low)
			}
		}
		if len(falls) != 2 || falls[0] != 999 || falls[1] != 1 {
			t.Errorf("told of falls to %v", falls)
		}
	})
}

// hungFree is a file system that does not say how much is free.
type hungFree struct {
	osFiles
	proceed chan struct{}
	asked   atomic.Int32
}

func (f *hungFree) free(string) (int64, error) {
	f.asked.Add(1)
	<-f.proceed
	return 1, nil
}

// Who asks a file system that hangs is told when its time is over, and all share one look.
func TestLow_fileSystemThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &hungFree{proceed: make(chan struct{})}
		s := newStoreOn(t, Options{Dir: t.TempDir(), MinFree: 1000}, f)
		said := make(chan error)
		for range 3 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				said <- s.Low(ctx)
			}()
		}
		for range 3 {
			if err := <-said; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLow) {
				t.Errorf("it says %v", err)
			}
		}
		close(f.proceed)
		synctest.Wait()
		if err := s.Low(t.Context()); !errors.Is(err, ErrLow) || f.asked.Load() != 1 {
			t.Errorf("later it says %v, after %d looks", err, f.asked.Load())
		}
	})
}

func TestLow_notAsked(t *testing.T) {
	f := &faults{}
	f.left.Store(1)
	s := newStoreOn(t, Options{Dir: t.TempDir()}, f)
	if err := s.Low(t.Context()); err != nil {
		t.Errorf("without a mark it says %v", err)
	}
}

// A record that is declined counts as lost and marks its rollout; the next one is written.
func TestDecline(t *testing.T) {
	var results []Result
	s := newStore(t, Options{Observe: Observe{Record: func(r Result) { results = append(results, r) }}})
	s.Decline(record("r", callID(), `{}`), ErrLow)
	soon(t, "the mark", func() bool { return Marked(s.o.Dir, "r") })
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
		t.Fatal(err)
	}
	if got := readBack(t, s.o.Dir, "r"); len(got.records) != 1 || len(results) != 2 || results[0] != ResultLost || results[1] != ResultOK {
		t.Errorf("%d records, results %v", len(got.records), results)
	}
}
