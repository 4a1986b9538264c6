package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lazyLog is what was synced, and when.
type lazyLog struct {
	mu     sync.Mutex
	start  time.Time
	synced []string
	failed []string
}

func (l *lazyLog) note(to *[]string, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*to = append(*to, fmt.Sprintf("%s %s", time.Since(l.start), what))
}

func (l *lazyLog) read(from *[]string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(*from)
}

func TestLazyOneSyncForManyBatchesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := lazyLog{start: time.Now()}
		l := newLazy(func(id string) error { log.note(&log.synced, id); return nil }, nil)
		for range 4 {
			l.soon("a")
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		l.soon("b")
		time.Sleep(time.Second)
		if got, want := log.read(&log.synced), []string{"500ms a", "1.9s b"}; !slices.Equal(got, want) {
			t.Errorf("synced were %v, want %v", got, want)
		}
		l.soon("c")
		if err := l.close(t.Context()); err != nil || len(log.read(&log.synced)) != 3 {
			t.Errorf("close: %v, synced were %v", err, log.read(&log.synced))
		}
	})
}

func TestLazyTellsFailuresAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lazyLog
		l := newLazy(func(id string) error {
			switch id {
			case "gone":
				return &fs.PathError{Op: "open", Path: id, Err: fs.ErrNotExist}
			case "bad":
				return errors.New("EIO")
			}
			return nil
		}, func(id string, err error) { log.note(&log.failed, id+": "+err.Error()) })
		l.soon("gone")
		l.soon("bad")
		l.soon("good")
		if err := l.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if told := log.read(&log.failed); len(told) != 1 {
			t.Errorf("told were %v", told)
		}
	})
}

func TestLazyCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		l := newLazy(func(string) error { <-hang; return nil }, nil)
		l.soon("a")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := l.close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		close(hang)
		l.wg.Wait()
	})
}

// Records are acknowledged without a sync, and survive whoever only kills the process.
func TestAsyncAcknowledgesWithoutASync(t *testing.T) {
	dir := t.TempDir()
	var syncs atomic.Int64
	s, err := open(Options{Dir: dir, Durability: DurabilityAsync, Observe: Observe{Fsync: func(time.Duration) { syncs.Add(1) }}}, osFiles{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := s.Append(t.Context(), record("r", callID(), fmt.Sprintf(`{"n":%d}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := syncs.Load(); n != 0 {
		t.Errorf("%d syncs were waited for", n)
	}
	if got := readBack(t, dir, "r").calls(); len(got) != 20 {
		t.Errorf("%d records are in the file", len(got))
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(markerPath(dir, "r")); !os.IsNotExist(err) {
		t.Errorf("the rollout is marked: %v", err)
	}
}
