package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// clearedMarks is a file system where markers are cleared between their writing and their first sync.
type clearedMarks struct {
	osFiles
	cleared func()
	times   atomic.Int32
}

func (f *clearedMarks) syncMark(path string) error {
	if f.times.Add(1) == 1 {
		if err := os.Remove(path); err != nil {
			return err
		}
		f.cleared()
	}
	return f.osFiles.syncMark(path)
}

// TestMarkBehindAClear: the mark of a record that was lost behind a clear is not taken for the one that was cleared.
func TestMarkBehindAClear(t *testing.T) {
	f := &clearedMarks{}
	s := newStoreOn(t, Options{Dir: t.TempDir()}, f)
	f.cleared = func() { s.Mark("r", "behind", "test", errors.New("lost behind the clear")) }
	s.Mark("r", "before", "test", errors.New("lost before the clear"))
	s.marks.wait("r")
	soon(t, "marked again", func() bool {
		m := marks(t, s.o.Dir, "r")
		return len(m) == 1 && m[0]["call_id"] == "behind"
	})
	soon(t, "forgotten", func() bool {
		s.marks.mu.Lock()
		defer s.marks.mu.Unlock()
		return len(s.marks.pending) == 0
	})
}

// closingMarks is a file system where the first marker is being written while the store begins to close.
type closingMarks struct {
	osFiles
	closing      func() <-chan struct{}
	written      atomic.Bool
	wrote, syncs atomic.Int32
}

func (f *closingMarks) mark(path string, line []byte) error {
	err := f.osFiles.mark(path, line)
	f.wrote.Add(1)
	if f.written.CompareAndSwap(false, true) {
		<-f.closing()
	}
	return err
}

func (f *closingMarks) syncMark(path string) error {
	f.syncs.Add(1)
	return f.osFiles.syncMark(path)
}

// TestMarkWrittenWhileClosing: a mark that was written when the store began to close is synced by Close, is there once, and is not said to be
// missing.
func TestMarkWrittenWhileClosing(t *testing.T) {
	for _, marks := range []int{1, 3 * marksAtOnce} {
		f := &closingMarks{}
		dir := t.TempDir()
		s := newStoreOn(t, Options{Dir: dir}, f)
		f.closing = func() <-chan struct{} { return s.marks.closing }
		for i := range marks {
			s.Mark(fmt.Sprint("r-", i), "call", "test", errors.New("lost"))
		}
		soon(t, "a mark is being written", f.written.Load)
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("%d marks: %v", marks, err)
		}
		if f.wrote.Load() != int32(marks) || f.syncs.Load() != int32(marks) {
			t.Errorf("%d marks: %d writes, %d syncs", marks, f.wrote.Load(), f.syncs.Load())
		}
		for i := range marks {
			if b, err := os.ReadFile(markerPath(dir, fmt.Sprint("r-", i))); err != nil || strings.Count(string(b), "\n") != 1 {
				t.Errorf("%d marks: the marker of %d is %q, %v", marks, i, b, err)
			}
		}
	}
}
