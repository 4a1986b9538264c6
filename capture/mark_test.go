package capture

import (
	"errors"
	"os"
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
