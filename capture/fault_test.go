package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// faults is the real file system whose next calls can be made to fail. Each counter counts down; while it is positive the
// call fails.
type faults struct {
	osFiles
	failOpen, failWrite, failSync, failTruncate, failMarker, failMarkSync, failDir atomic.Int32

	short    atomic.Int32 // bytes that a failing write writes all the same
	slow     atomic.Int64 // nanoseconds of a sync
	dirSyncs atomic.Int32
	opens    atomic.Int32 // of data files
	files    atomic.Int32 // that are open
	left     atomic.Int64 // bytes that are free; 0: what the file system says
	onSync   func()       // called before a sync, by the test that set it alone
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

func (h *faultFile) Close() error {
	h.f.files.Add(-1)
	return h.file.Close()
}

func (f *faults) lock(path string, create bool) (lock, error) {
	if hit(&f.failOpen) {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EROFS}
	}
	return f.osFiles.lock(path, create)
}

func (f *faults) data(path string) (file, error) {
	f.opens.Add(1)
	h, err := f.osFiles.data(path)
	if err != nil {
		return nil, err
	}
	f.files.Add(1)
	return &faultFile{file: h, f: f}, nil
}

func (f *faults) mark(path string, line []byte) error {
	if hit(&f.failMarker) {
		return &os.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
	}
	return f.osFiles.mark(path, line)
}

func (f *faults) syncMark(path string) error {
	time.Sleep(time.Duration(f.slow.Load()))
	if hit(&f.failMarkSync) {
		return syscall.EIO
	}
	return f.osFiles.syncMark(path)
}

func (f *faults) syncDir(dir string) error {
	f.dirSyncs.Add(1)
	if hit(&f.failDir) {
		return syscall.EIO
	}
	return f.osFiles.syncDir(dir)
}

func (f *faults) free(dir string) (int64, error) {
	switch n := f.left.Load(); {
	case n < 0:
		return 0, syscall.EIO
	case n > 0:
		return n, nil
	}
	return f.osFiles.free(dir)
}

func (h *faultFile) Write(p []byte) (int, error) {
	if hit(&h.f.failWrite) {
		n, _ := h.file.Write(p[:min(len(p), int(h.f.short.Load()))])
		return n, syscall.ENOSPC
	}
	return h.file.Write(p)
}

func (h *faultFile) Sync() error {
	if h.f.onSync != nil {
		h.f.onSync()
	}
	time.Sleep(time.Duration(h.f.slow.Load()))
	if hit(&h.f.failSync) {
		return syscall.EIO
	}
	return h.file.Sync()
}

func (h *faultFile) Truncate(n int64) error {
	if hit(&h.f.failTruncate) {
		return syscall.EIO
	}
	return h.file.Truncate(n)
}

// TestFaults: whatever fails, nothing of that batch is acknowledged, the rollout is marked, and the next record is written
// and readable without a restart.
func TestFaults(t *testing.T) {
	large := `{"t":"` + strings.Repeat("x", inlineMax) + `"}`
	for _, c := range []struct {
		name    string
		set     func(*faults)
		want    error
		request string
		records int // readable afterwards, of before, failed, after
		damaged int
	}{
		{"open", func(f *faults) { f.failOpen.Store(1) }, syscall.EROFS, `{}`, 2, 0},
		{"write", func(f *faults) { f.failWrite.Store(1) }, syscall.ENOSPC, `{}`, 2, 0},
		{"short write", func(f *faults) { f.failWrite.Store(1); f.short.Store(50) }, syscall.ENOSPC, `{}`, 2, 0},
		{"short write that cannot be taken back", func(f *faults) { f.failWrite.Store(1); f.short.Store(50); f.failTruncate.Store(1) }, syscall.ENOSPC, `{}`, 2, 1},
		{"write of a streamed line", func(f *faults) { f.failWrite.Store(1); f.short.Store(50) }, syscall.ENOSPC, large, 2, 0},
		{"torn write of a streamed line", func(f *faults) { f.failWrite.Store(1); f.short.Store(50); f.failTruncate.Store(1) }, syscall.ENOSPC, large, 2, 1},
		{"sync", func(f *faults) { f.failSync.Store(1) }, syscall.EIO, `{}`, 3, 0}, // the line is there, but nobody was told so
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &faults{}
			var seen tally
			s := newStoreOn(t, Options{Dir: t.TempDir(), Observe: seen.observe()}, f)
			if err := s.Append(t.Context(), record("r", "before", `{}`)); err != nil {
				t.Fatal(err)
			}
			c.set(f)
			if err := s.Append(t.Context(), record("r", "failed", c.request)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if !errors.Is(s.Trouble(), c.want) {
				t.Errorf("trouble is %v", s.Trouble())
			}
			soon(t, "marked", func() bool { return len(marks(t, s.o.Dir, "r")) == 1 })
			if err := s.Append(t.Context(), record("r", "after", `{}`)); err != nil {
				t.Errorf("the next record: %v", err)
			}
			if s.Trouble() != nil {
				t.Errorf("trouble after a success is %v", s.Trouble())
			}
			if n := f.opens.Load(); n != 2 && c.name != "open" || f.files.Load() != 1 {
				t.Errorf("opened %d times, %d are open: a descriptor that failed is not used again", n, f.files.Load())
			}
			got := readBack(t, s.o.Dir, "r")
			if len(got.records) != c.records || got.damaged != c.damaged || got.calls()["after"] != 1 || got.calls()["before"] != 1 {
				t.Errorf("%d records, %d damaged: %v", len(got.records), got.damaged, got.calls())
			}
			got.uniqueSeqs(t)
			if seen.result(ResultOK) != 2 || seen.result(ResultLost) != 1 || seen.incomplete != 1 {
				t.Errorf("counted %v, %d incomplete", seen.results, seen.incomplete)
			}
			if !Marked(s.o.Dir, "r") {
				t.Error("a success took the mark away")
			}
		})
	}
}

// TestFolderSync: once for a new file, for many callers at once, again after a failure and after a clear.
func TestFolderSync(t *testing.T) {
	f := &faults{}
	s := newStoreOn(t, Options{Dir: t.TempDir()}, f)
	add := func(id string) error { return s.Append(t.Context(), record(id, callID(), `{}`)) }
	step := func(what string, want int32, do func()) {
		t.Helper()
		f.dirSyncs.Store(0)
		do()
		if got := f.dirSyncs.Load(); got != want {
			t.Errorf("%s: the folder was synced %d times, want %d", what, got, want)
		}
	}
	step("a new file", 1, func() { add("r") })
	step("a known file", 0, func() { add("r") })
	step("after a clear", 1, func() { Clear(t.Context(), s.o.Dir, "r"); add("r") })
	step("a failure, and the mark of it", 2, func() {
		f.failDir.Store(1)
		if err := add("s"); !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v", err)
		}
		soon(t, "the mark is written", func() bool { s.marks.mu.Lock(); defer s.marks.mu.Unlock(); return len(s.marks.pending) == 0 })
	})
	step("after the failure", 1, func() { add("s") })
	f.dirSyncs.Store(0)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if err := add(fmt.Sprint("many-", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := f.dirSyncs.Load(); got > 64 {
		t.Errorf("64 new files: %d syncs of the folder", got)
	}
}

// TestSlowDisk: a sync that takes longer than the deadline is late; the tokens for writing bound nothing else.
func TestSlowDisk(t *testing.T) {
	f := &faults{}
	var seen tally
	s := newStoreOn(t, Options{Dir: t.TempDir(), Observe: seen.observe()}, f)
	f.slow.Store(int64(300 * time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if err := s.Append(ctx, record(fmt.Sprint("r-", i%3), callID(), `{}`)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if s.Trouble() == nil {
		t.Error("no trouble while the disk is slow")
	}
	soon(t, "all are late", func() bool { return seen.result(ResultLate) == 10 })
	if s.Trouble() == nil {
		t.Error("late records ended the trouble")
	}
	f.slow.Store(0)
	if err := s.Append(t.Context(), record("r-0", callID(), `{}`)); err != nil || s.Trouble() != nil {
		t.Errorf("when the disk is fast again: %v, %v", err, s.Trouble())
	}
}

// TestForeignWriterIsNotStarved: on a slow disk a rollout that is written without a break is free for somebody else now and
// then.
func TestForeignWriterIsNotStarved(t *testing.T) {
	f := &faults{}
	busy := newStoreOn(t, Options{Dir: t.TempDir()}, f)
	other := newStore(t, Options{Dir: busy.o.Dir})
	f.slow.Store(int64(40 * time.Millisecond))
	stop := keepWriting(4, func(int) {
		if err := busy.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(100 * time.Millisecond)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := other.Append(ctx, record("r", callID(), `{}`)); err != nil {
			t.Error(err)
		}
		cancel()
	}
	f.slow.Store(0)
	stop()
	readBack(t, busy.o.Dir, "r").uniqueSeqs(t)
}

// TestPendingIsBounded: a disk that does not answer costs bounded memory.
func TestPendingIsBounded(t *testing.T) {
	f := &faults{}
	var seen tally
	s := newStoreOn(t, Options{Dir: t.TempDir(), Pending: 20_000, Observe: seen.observe()}, f)
	f.slow.Store(int64(time.Second))
	ended, end := context.WithCancel(t.Context())
	end()
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range 40 { // at once: each waits for its mark, which is slow, too
		wg.Go(func() {
			if errors.Is(s.Append(ended, record("r", callID(), `{"t":"`+strings.Repeat("x", 1000)+`"}`)), ErrFull) {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	full := int(refused.Load())
	f.slow.Store(0)
	if full < 20 || full > 35 {
		t.Errorf("%d of 40 were refused", full)
	}
	soon(t, "drained", s.Drained)
	if seen.result(ResultLost) != full || seen.result(ResultLate) != 40-full || seen.incomplete != 40 {
		t.Errorf("%d refused, counted %v, %d incomplete", full, seen.results, seen.incomplete)
	}
	report, err := Verify(s.o.Dir, nil)
	if err != nil || report.Records != 40-full {
		t.Errorf("%+v, %v", report, err)
	}
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
		t.Error(err)
	}
	if report, _ := Verify(s.o.Dir, nil); report.Found[FoundGap] != 1 || !report.Clean(false) || report.Clean(true) {
		t.Errorf("the refused ones leave no gap: %+v", report)
	}
}

// TestMarksAreRetried: a store that does not take marks is asked until it does.
func TestMarksAreRetried(t *testing.T) {
	dir := t.TempDir()
	f := &faults{}
	var seen tally
	s := newStoreOn(t, Options{Dir: dir, Observe: seen.observe()}, f)
	f.failMarker.Store(2)
	s.Mark("r", "c-1", "test", nil)
	s.Mark("r", "c-2", "test", nil) // the same rollout: it counts, but one line is enough
	s.Mark("../x", "c-3", "test", nil)
	soon(t, "marked", func() bool { return len(marks(t, dir, "r")) > 0 })
	if n := len(marks(t, dir, "r")); n != 1 || seen.incomplete != 2 {
		t.Errorf("%d lines, %d counted", n, seen.incomplete)
	}
	idle := func() bool {
		s.marks.mu.Lock()
		defer s.marks.mu.Unlock()
		return !s.marks.writing && !s.marks.syncing && len(s.marks.pending) == 0
	}
	soon(t, "forgotten", idle)

	f.failMarkSync.Store(1)
	s.Mark("unsynced", "c", "test", nil)
	soon(t, "written once more", func() bool { return len(marks(t, dir, "unsynced")) == 2 && idle() })

	f.failMarker.Store(3)
	for i := range 3 {
		s.Mark(fmt.Sprint("closing-", i), "c", "test", nil)
	}
	soon(t, "each was tried", func() bool { return f.failMarker.Load() == 0 })
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for i := range 3 {
		if !Marked(dir, fmt.Sprint("closing-", i)) {
			t.Error("Close did not try again")
		}
	}
}

// TestMarksFollowARecovery: once a record is durable again, marks of what was lost are tried soon, however long they had waited for that.
func TestMarksFollowARecovery(t *testing.T) {
	dir := t.TempDir()
	f := &faults{}
	s := newStoreOn(t, Options{Dir: dir}, f)
	f.failOpen.Store(1)
	f.failMarker.Store(1 << 30)
	if err := s.Append(t.Context(), record("lost", callID(), `{}`)); err == nil {
		t.Fatal("the record is not lost")
	}
	soon(t, "the mark waits", func() bool {
		s.marks.mu.Lock()
		defer s.marks.mu.Unlock()
		k := s.marks.pending["lost"]
		if k == nil || k.tries == 0 {
			return false
		}
		k.next = time.Now().Add(time.Hour)
		return true
	})
	f.failMarker.Store(0)
	if err := s.Append(t.Context(), record("other", callID(), `{}`)); err != nil {
		t.Fatal(err)
	}
	soon(t, "marked", func() bool { return Marked(dir, "lost") })
}

// TestMarksExistAtOnce: a slow sync of one marker does not keep the next from existing.
func TestMarksExistAtOnce(t *testing.T) {
	f := &faults{}
	s := newStoreOn(t, Options{Dir: t.TempDir()}, f)
	f.slow.Store(int64(500 * time.Millisecond))
	began := time.Now()
	for i := range 8 {
		id := fmt.Sprint("r-", i)
		s.Mark(id, "c", "test", nil)
		soon(t, "marked", func() bool { return Marked(s.o.Dir, id) })
	}
	if took := time.Since(began); took > 400*time.Millisecond {
		t.Errorf("eight markers took %s", took)
	}
	f.slow.Store(0)
}

// TestMarksOutliveTheFolder: a mark whose marker went with the folder is made again, one that was cleared is not.
func TestMarksOutliveTheFolder(t *testing.T) {
	f := &faults{}
	s := newStoreOn(t, Options{Dir: t.TempDir() + "/store"}, f)
	f.slow.Store(int64(50 * time.Millisecond))
	s.Mark("r", "c", "test", nil)
	soon(t, "marked", func() bool { return Marked(s.o.Dir, "r") })
	os.RemoveAll(s.o.Dir)
	soon(t, "marked again", func() bool { return Marked(s.o.Dir, "r") })
	s.Mark("q", "c", "test", nil)
	soon(t, "marked", func() bool { return Marked(s.o.Dir, "q") })
	if err := Clear(t.Context(), s.o.Dir, "q"); err != nil {
		t.Fatal(err)
	}
	soon(t, "forgotten", func() bool { s.marks.mu.Lock(); defer s.marks.mu.Unlock(); return len(s.marks.pending) == 0 })
	if Marked(s.o.Dir, "q") {
		t.Error("a mark came back after the clear")
	}
}

// TestMarksAreBounded: what cannot be written is kept for so many rollouts and no more.
func TestMarksAreBounded(t *testing.T) {
	f := &faults{}
	s := newStoreOn(t, Options{Dir: t.TempDir()}, f)
	f.failMarker.Store(1 << 30)
	for i := range marksMax + 100 {
		s.Mark(fmt.Sprint("r-", i), "c", "test", nil)
	}
	s.marks.mu.Lock()
	n := len(s.marks.pending)
	s.marks.mu.Unlock()
	if n != marksMax {
		t.Errorf("%d marks are kept", n)
	}
	if err := s.Close(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprint(marksMax)) {
		t.Errorf("close says %v", err)
	}
}
