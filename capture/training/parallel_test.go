package training

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestManyStores: several stores on one folder, as several processes are. What one has put, every other finds at once; nothing is there
// twice; and a freeze by any of them is everybody's.
func TestManyStores(t *testing.T) {
	dir := t.TempDir()
	const stores, workers, calls = 3, 3, 12
	rollouts := []string{"a", "b"}
	all := make([]*Store, stores)
	for i := range all {
		all[i] = newStore(t, dir, func(o *Options) { o.Lazy, o.Idle, o.Calls, o.Files = 3000, 1+i, 20, 1 })
	}
	var wg sync.WaitGroup
	for i := range all {
		for w := range workers {
			wg.Go(func() {
				for n := range calls {
					rollout := rollouts[(n+w)%len(rollouts)]
					call := fmt.Sprintf("%d-%d-%d", i, w, n)
					e := newEntry(rollout, call, "[1,2]", "[3]")
					e.Fingerprint, e.ContextLen, e.ContextDigest, e.FingerprintVersion = "f"+call, 1, "d", FingerprintVersion
					if err := all[i].Begin(t.Context(), rollout, call); err != nil {
						t.Error(err)
					}
					if err := all[i].Put(t.Context(), e); err != nil {
						t.Error(err)
					}
					for k := range all { // the resolver of each
						found, err := all[(i+k)%stores].Candidates(rollout, "f"+call)
						if err != nil || len(found) != 1 || found[0].CallID != call || found[0].CumLen != 3 {
							t.Errorf("store %d finds %+v of %s, %v", k, found, call, err)
						}
					}
					if err := all[(i+1)%stores].Put(t.Context(), e); err != nil { // what is there is no error
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for i, rollout := range rollouts {
		f := freeze(t, all[i], rollout)
		slices.Sort(f.calls)
		want := stores * workers * calls / len(rollouts)
		if f.Incomplete || len(f.calls) != want || len(slices.Compact(f.calls)) != want || f.Version != int64(want)+1 {
			t.Errorf("%s: %d calls, want %d; %+v", rollout, len(f.calls), want, f.Snapshot)
		}
		for _, s := range all {
			again := freeze(t, s, rollout)
			if again.ID != f.ID || again.Version != f.Version {
				t.Errorf("%s is frozen as %s and %s", rollout, f.ID, again.ID)
			}
			wantErr(t, "late", s.Put(t.Context(), newEntry(rollout, "late", "[1]", "[2]")), ErrFrozen)
		}
		noProblems(t, dir, rollout)
	}
}

// TestFreezeUnderLoad: a freeze comes while calls are being put, through another store. What was acknowledged is in the snapshot, and nothing
// else ever gets into the file.
func TestFreezeUnderLoad(t *testing.T) {
	for round := range 8 {
		dir := t.TempDir()
		writer, other := newStore(t, dir), newStore(t, dir)
		var acked sync.Map
		var begun, puts atomic.Int32
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					call := fmt.Sprintf("%d-%d", w, n)
					if err := writer.Begin(t.Context(), "r", call); err != nil {
						if !errors.Is(err, ErrFrozen) {
							t.Error(err)
						}
						return
					}
					begun.Add(1)
					err := writer.Put(t.Context(), newEntry("r", call, "[1]", "[2]"))
					switch {
					case err == nil:
						acked.Store(call, true)
						puts.Add(1)
					case errors.Is(err, ErrFrozen):
						return
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		until(func() bool { return puts.Load() >= int32(2+round) })
		s := other
		if round%2 == 0 {
			s = writer
		}
		f := freeze(t, s, "r")
		wg.Wait()
		n := 0
		acked.Range(func(call, _ any) bool {
			if n++; !slices.Contains(f.calls, call.(string)) {
				t.Errorf("%s was acknowledged and is not in the snapshot", call)
			}
			return true
		})
		if len(f.calls) != n || f.Incomplete != (begun.Load() > puts.Load()) {
			t.Errorf("%d calls, %d acknowledged of %d that began, incomplete %t", len(f.calls), n, begun.Load(), f.Incomplete)
		}
		if got := int64(len(read(t, dataPath(dir, "r")))); got != f.size {
			t.Errorf("the file has %d bytes, the snapshot %d", got, f.size)
		}
	}
}

// blocking is a Secure that lets nothing pass until it is told to.
type blocking struct {
	entered, gate chan struct{}
	s             *Store
}

func newBlockingStore(t *testing.T, dir string) (*Store, *blocking) {
	b := &blocking{entered: make(chan struct{}, 16), gate: make(chan struct{})}
	b.s = newStore(t, dir, func(o *Options) {
		o.Secure = func(ws []Appended) error {
			b.entered <- struct{}{}
			<-b.gate
			return b.s.syncFiles(ws)
		}
	})
	return b.s, b
}

// TestFreezeWaitsForPut: an entry that is being made durable when the freeze is asked for is in it.
func TestFreezeWaitsForPut(t *testing.T) {
	for _, same := range []bool{true, false} {
		dir := t.TempDir()
		s, b := newBlockingStore(t, dir)
		freezer := s
		if !same {
			freezer = newStore(t, dir)
		}
		wrote := make(chan error, 1)
		go func() { wrote <- s.Put(t.Context(), newEntry("r", "c1", "[1]", "[2]")) }()
		<-b.entered
		frozen := make(chan *Snapshot, 1)
		go func() {
			snap, err := freezer.Freeze(t.Context(), "r")
			if err != nil {
				t.Error(err)
			}
			frozen <- snap
		}()
		select {
		case <-frozen:
			t.Error("frozen before the entry was durable")
		default:
		}
		close(b.gate)
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		snap := <-frozen
		if v, err := snap.Entries().Next(); err != nil || v.CallID != "c1" {
			t.Errorf("the snapshot begins with %+v, %v", v, err)
		}
		snap.Close()
	}
}

// TestGivenUp: whoever does not wait to the end is told so at once. What was begun is done all the same, and nobody else waits.
func TestGivenUp(t *testing.T) {
	dir := t.TempDir()
	s, b := newBlockingStore(t, dir)
	reason := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	errs := make(chan error, 4)
	go func() { errs <- s.Put(ctx, newEntry("r", "c1", "[1]", "[2]")) }()
	<-b.entered
	go func() { errs <- s.Begin(ctx, "r", "c2") }()
	go func() { errs <- s.Mark(ctx, "r", "c2", "x") }()
	go func() {
		snap, err := s.Freeze(ctx, "r")
		if snap != nil {
			t.Error("a snapshot that nobody waited for")
		}
		errs <- err
	}()
	until(func() bool { return queued(s, "r") == 3 })
	cancel(reason)
	for range 4 {
		wantErr(t, "given up", <-errs, reason)
	}
	if _, err := Verify(dir, "r"); err != nil { // takes no lock
		t.Error(err)
	}
	go func() { errs <- s.Put(t.Context(), newEntry("other", "c1", "[1]", "[2]")) }()
	<-b.entered // although the first rollout is stuck
	close(b.gate)
	if err := <-errs; err != nil {
		t.Error(err)
	}
	f := freeze(t, s, "r")
	if !slices.Equal(f.calls, []string{"c1"}) || !f.Incomplete {
		t.Errorf("%q, incomplete %t", f.calls, f.Incomplete)
	}

	// A Close that nobody waits for returns as well.
	s, b = newBlockingStore(t, t.TempDir())
	go func() { errs <- s.Put(t.Context(), newEntry("r", "c1", "[1]", "[2]")) }()
	<-b.entered
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(reason)
	wantErr(t, "close", s.Close(ctx), reason)
	close(b.gate)
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

// TestCloseWaits for what is queued.
func TestCloseWaits(t *testing.T) {
	dir := t.TempDir()
	s, b := newBlockingStore(t, dir)
	errs := make(chan error, 2)
	go func() { errs <- s.Put(t.Context(), newEntry("r", "c1", "[1]", "[2]")) }()
	<-b.entered
	go func() { errs <- s.Close(t.Context()) }()
	until(func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.closed })
	wantErr(t, "put", s.Put(t.Context(), newEntry("r", "c2", "[1]", "[2]")), ErrClosed)
	wantErr(t, "begin", s.Begin(t.Context(), "r", "c2"), ErrClosed)
	close(b.gate)
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if v := noProblems(t, dir, "r"); v.Entries != 1 {
		t.Errorf("%+v", v)
	}
}
