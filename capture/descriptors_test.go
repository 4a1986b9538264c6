package capture

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestKept: a descriptor is used again while the path names its file, and closed soon after.
func TestKept(t *testing.T) {
	f := &faults{}
	s := newStoreOn(t, Options{Dir: t.TempDir(), Files: 3, Idle: 8}, f)
	add := func(id string) {
		t.Helper()
		if err := s.Append(t.Context(), record(id, callID(), `{}`)); err != nil {
			t.Error(err)
		}
	}
	open := func(what string, opens, files int32, do func()) {
		t.Helper()
		f.opens.Store(0)
		do()
		// Who was told does not wait for the committer to end.
		for range 100 {
			if f.files.Load() == files {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if f.opens.Load() != opens || f.files.Load() != files {
			t.Errorf("%s: opened %d, are open %d; want %d, %d", what, f.opens.Load(), f.files.Load(), opens, files)
		}
	}
	path := dataPath(s.o.Dir, "a")
	open("the first", 1, 1, func() { add("a") })
	open("the next", 0, 1, func() { add("a"); add("a") })
	open("cleared", 1, 1, func() { Clear(t.Context(), s.o.Dir, "a"); add("a") })
	open("renamed", 1, 1, func() { os.Rename(path, path+".old"); add("a") })
	open("replaced", 1, 1, func() { os.Rename(path+".old", path); add("a") })
	open("torn by somebody else", 0, 1, func() { plant(t, s.o.Dir, "a", `{"torn`); add("a") })
	if got := readBack(t, s.o.Dir, "a"); len(got.records) != 3 || got.damaged != 1 {
		t.Errorf("%d records, %d damaged", len(got.records), got.damaged)
	}
	open("so many and no more", 3, 3, func() { add("b"); add("c"); add("d") })
	open("used least recently goes", 1, 3, func() { add("c"); add("d"); add("a"); add("c") })
	open("after a while", 0, 0, func() { soon(t, "closed", func() bool { return f.files.Load() == 0 }) })
	few := newStoreOn(t, Options{Dir: s.o.Dir, Idle: 1}, f)
	open("forgotten", 2, 1, func() {
		for _, id := range []string{"a", "b"} {
			if err := few.Append(t.Context(), record(id, callID(), `{}`)); err != nil {
				t.Error(err)
			}
		}
	})
	if err := few.Close(t.Context()); err != nil || f.files.Load() != 0 {
		t.Errorf("%d are open after Close, %v", f.files.Load(), err)
	}
	add("a")
	if err := s.Close(t.Context()); err != nil || f.files.Load() != 0 {
		t.Errorf("%d are open after Close, %v", f.files.Load(), err)
	}
}

// TestKeeperSweeps: its goroutine runs only while something is kept.
func TestKeeperSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := &faults{}
		s := newStoreOn(t, Options{Dir: dir}, f)
		put := func(i int) {
			path := fmt.Sprint(dir, "/", i)
			os.WriteFile(path, nil, 0o600)
			l, err := tryLock(f, path, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.lock.Close()
			s.kept.put(path, l.file, l.info)
		}
		sweeping := func() bool { s.kept.mu.Lock(); defer s.kept.mu.Unlock(); return s.kept.sweeps }
		for i := range 10 {
			put(i)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(keepFor - 150*time.Millisecond)
		if n := f.files.Load(); n < 5 || n > 9 || !sweeping() {
			t.Errorf("%d are open", n)
		}
		time.Sleep(keepFor + keepPause)
		if n := f.files.Load(); n != 0 || sweeping() {
			t.Errorf("%d are open after %s", n, keepFor)
		}
		put(0)
		s.Close(t.Context())
		put(1)
		if n := f.files.Load(); n != 0 {
			t.Errorf("%d are open after Close", n)
		}
	})
}
