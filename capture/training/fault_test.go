package training

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// faults is the real file system whose next calls can be made to fail. Each counter counts down; while it is positive the call
// fails.
type faults struct {
	osFiles
	failOpen, failWrite, failTruncate, failReplace, failRemove, failDir, failSecure atomic.Int32

	short atomic.Int32 // bytes that a failing write writes all the same
	skip  atomic.Int32 // calls of replace, remove, syncDir or Secure that pass before one fails
}

func hit(n *atomic.Int32) bool {
	for {
		v := n.Load()
		if v <= 0 {
			return false
		}
		if n.CompareAndSwap(v, v-1) {
			return true
		}
	}
}

type faultFile struct {
	file
	f *faults
}

func (f *faults) open(path string, create bool) (file, error) {
	if hit(&f.failOpen) {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EROFS}
	}
	h, err := f.osFiles.open(path, create)
	if err != nil {
		return nil, err
	}
	return &faultFile{h, f}, nil
}

func (f *faults) replace(path string, content []byte, durable bool) error {
	if hit(&f.failReplace) {
		return &os.PathError{Op: "rename", Path: path, Err: syscall.ENOSPC}
	}
	return f.osFiles.replace(path, content, durable)
}

func (f *faults) remove(path string) error {
	if !hit(&f.skip) && hit(&f.failRemove) {
		return &os.PathError{Op: "remove", Path: path, Err: syscall.EIO}
	}
	return f.osFiles.remove(path)
}

func (f *faults) syncDir(dir string) error {
	if hit(&f.failDir) {
		return syscall.EIO
	}
	return f.osFiles.syncDir(dir)
}

func (h *faultFile) WriteAt(p []byte, at int64) (int, error) {
	if hit(&h.f.failWrite) {
		n, _ := h.file.WriteAt(p[:min(len(p), int(h.f.short.Load()))], at)
		return n, syscall.ENOSPC
	}
	return h.file.WriteAt(p, at)
}

func (h *faultFile) Truncate(n int64) error {
	if hit(&h.f.failTruncate) {
		return syscall.EIO
	}
	return h.file.Truncate(n)
}

func newFaultyStore(t *testing.T, dir string) (*Store, *faults) {
	f := &faults{}
	o := Options{Dir: dir}
	s := newStore(t, dir) // for what it closes
	o.Secure = func(ws []Appended) error {
		if hit(&f.failSecure) {
			return syscall.EIO
		}
		return s.syncFiles(ws)
	}
	faulty, err := open(o, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := faulty.Close(context.Background()); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return faulty, f
}

// TestFaults: whatever fails, nothing of that batch is acknowledged, and the same operation passes when it is asked for again, without a
// restart. What was acknowledged before is there, and what was not is there whole or not at all.
func TestFaults(t *testing.T) {
	big := newEntry("r", "failed", "["+strings.Repeat("1234567,", batchMax/8)+"1]", "[2]") // written by itself
	small := newEntry("r", "failed", "[1,2]", "[3]")
	putSmall := func(s *Store) error { return s.Put(t.Context(), small) }
	putBig := func(s *Store) error { return s.Put(t.Context(), big) }
	beginIt := func(s *Store) error { return s.Begin(t.Context(), "r", "failed") }
	markIt := func(s *Store) error { return s.Mark(t.Context(), "r", "failed", "why") }
	freezeIt := func(s *Store) error {
		snap, err := s.Freeze(t.Context(), "r")
		if err == nil {
			err = snap.Close()
		}
		return err
	}
	for _, c := range []struct {
		name string
		set  func(*faults)
		do   func(*Store) error
		want error
	}{
		{"put: open", func(f *faults) { f.failOpen.Store(1) }, putSmall, syscall.EROFS},
		{"put: write", func(f *faults) { f.failWrite.Store(1) }, putSmall, syscall.ENOSPC},
		{"put: short write", func(f *faults) { f.failWrite.Store(1); f.short.Store(50) }, putSmall, syscall.ENOSPC},
		{"put: short write that cannot be cut off", func(f *faults) { f.failWrite.Store(1); f.short.Store(50); f.failTruncate.Store(1) }, putSmall, syscall.ENOSPC},
		{"put: secure", func(f *faults) { f.failSecure.Store(1) }, putSmall, syscall.EIO},
		{"put: secure, and it cannot be cut off", func(f *faults) { f.failSecure.Store(1); f.failTruncate.Store(1) }, putSmall, syscall.EIO},
		{"put of a large one: write", func(f *faults) { f.failWrite.Store(1); f.short.Store(1000) }, putBig, syscall.ENOSPC},
		{"put of a large one: torn", func(f *faults) { f.failWrite.Store(1); f.short.Store(1000); f.failTruncate.Store(1) }, putBig, syscall.ENOSPC},
		{"begin: open", func(f *faults) { f.failOpen.Store(1) }, beginIt, syscall.EROFS},
		{"begin: torn", func(f *faults) { f.failWrite.Store(1); f.short.Store(4); f.failTruncate.Store(1) }, beginIt, syscall.ENOSPC},
		{"begin: secure", func(f *faults) { f.failSecure.Store(1) }, beginIt, syscall.EIO},
		{"mark: state", func(f *faults) { f.failReplace.Store(1) }, markIt, syscall.ENOSPC},
		{"mark: folder", func(f *faults) { f.failDir.Store(1) }, markIt, syscall.EIO},
		{"freeze: state", func(f *faults) { f.failReplace.Store(1) }, freezeIt, syscall.ENOSPC},
		{"delete: remove", func(f *faults) { f.failRemove.Store(1) }, func(s *Store) error { return s.Delete(t.Context(), "r") }, syscall.EIO},
		{"delete: the second remove", func(f *faults) { f.failRemove.Store(1); f.skip.Store(1) }, func(s *Store) error { return s.Delete(t.Context(), "r") }, syscall.EIO},
	} {
		for _, known := range []bool{true, false} {
			if known && strings.HasSuffix(c.name, ": open") {
				continue // the file is open already
			}
			t.Run(fmt.Sprintf("%s, known %t", c.name, known), func(t *testing.T) {
				dir := t.TempDir()
				s, f := newFaultyStore(t, dir)
				before := s
				if !known {
					before = newStore(t, dir)
				}
				begin(t, before, "r", "before")
				put(t, before, newEntry("r", "before", "[1]", "[2]"))
				c.set(f)
				wantErr(t, c.name, c.do(s), c.want)
				if err := c.do(s); err != nil {
					t.Fatalf("once more: %v", err)
				}
				if v, err := Verify(dir, "r"); err != nil || len(v.Problems) > 0 && !strings.HasPrefix(c.name, "begin") {
					t.Errorf("%v, %v", v.Problems, err)
				}
				if strings.HasPrefix(c.name, "delete") {
					begin(t, s, "r", "before")
					put(t, s, newEntry("r", "before", "[1]", "[2]"))
				}
				want := []string{"before"}
				if strings.HasPrefix(c.name, "put") {
					want = append(want, "failed")
				}
				got := freeze(t, s, "r")
				if !slices.Equal(got.calls, want) {
					t.Errorf("calls %q, want %q", got.calls, want)
				}
				if masked := strings.HasPrefix(c.name, "begin") || strings.HasPrefix(c.name, "mark"); got.Incomplete != masked {
					t.Errorf("incomplete is %t", got.Incomplete)
				}
			})
		}
	}
}

// TestFailedBatch: an error is everybody's whose line was in the batch, and nobody else's.
func TestFailedBatch(t *testing.T) {
	dir := t.TempDir()
	gate, entered := make(chan struct{}), make(chan struct{}, 16)
	var fail atomic.Bool
	var s *Store
	s = newStore(t, dir, func(o *Options) {
		o.Secure = func(ws []Appended) error {
			entered <- struct{}{}
			<-gate
			if ws[0].Lines > 1 && fail.Swap(false) {
				return syscall.EIO
			}
			return s.syncFiles(ws)
		}
	})
	errs := make(chan error, 8)
	add := func(call string) { go func() { errs <- s.Put(t.Context(), newEntry("r", call, "[1]", "[2]")) }() }
	add("first")
	<-entered
	for i := range 4 {
		add(fmt.Sprint("batch-", i))
	}
	until(func() bool { return queued(s, "r") == 4 }) // behind the first
	fail.Store(true)
	close(gate)
	failed := 0
	for range 5 {
		if err := <-errs; errors.Is(err, syscall.EIO) {
			failed++
		} else if err != nil {
			t.Error(err)
		}
	}
	if failed != 4 {
		t.Errorf("%d of a batch of 4 failed", failed)
	}
	put(t, s, newEntry("r", "batch-2", "[1]", "[2]"))
	if f := freeze(t, s, "r"); !slices.Equal(f.calls, []string{"first", "batch-2"}) {
		t.Errorf("calls %q", f.calls)
	}
}
