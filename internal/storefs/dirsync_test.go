package storefs

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestDirSyncShares: whoever asks before a sync begins is served by it, whoever asks later is not.
func TestDirSyncShares(t *testing.T) {
	var n atomic.Int32
	gate := make(chan struct{})
	d := DirSync{Sync: func() error { n.Add(1); <-gate; return nil }}
	var wg sync.WaitGroup
	wg.Go(func() { d.Wait() })
	soon(t, "the first runs", func() bool { return n.Load() == 1 })
	for range 20 {
		wg.Go(func() { d.Wait() })
	}
	soon(t, "the others queue", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.next != nil })
	time.Sleep(10 * time.Millisecond)
	close(gate)
	wg.Wait()
	if n.Load() > 3 {
		t.Errorf("%d syncs for 21 callers", n.Load())
	}
}

func soon(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
