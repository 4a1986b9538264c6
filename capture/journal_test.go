package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// journalFaults is the real file system whose next calls can be made to fail, and which counts.
type journalFaults struct {
	osJournalFiles
	failCreate, failWrite, failSync, failData, failDir atomic.Int32
	writes, syncs, datas                               atomic.Int32
	onSync                                             func() // before the sync of a segment; set before use
}

type faultSegment struct {
	segmentFile
	f *journalFaults
}

func (f *journalFaults) create(path string) (segmentFile, error) {
	if hit(&f.failCreate) {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}
	}
	s, err := f.osJournalFiles.create(path)
	return faultSegment{s, f}, err
}

func (f *journalFaults) syncData(path string) error {
	f.datas.Add(1)
	if hit(&f.failData) {
		return &os.PathError{Op: "sync", Path: path, Err: syscall.EIO}
	}
	return f.osJournalFiles.syncData(path)
}

func (f *journalFaults) syncDir(dir string) error {
	if hit(&f.failDir) {
		return syscall.EIO
	}
	return f.osJournalFiles.syncDir(dir)
}

func (s faultSegment) WriteAt(p []byte, off int64) (int, error) {
	s.f.writes.Add(1)
	if off > 0 && hit(&s.f.failWrite) {
		n, _ := s.segmentFile.WriteAt(p[:len(p)/2], off)
		return n, syscall.ENOSPC
	}
	return s.segmentFile.WriteAt(p, off)
}

func (s faultSegment) Sync() error {
	s.f.syncs.Add(1)
	if s.f.onSync != nil {
		s.f.onSync()
	}
	if hit(&s.f.failSync) {
		return syscall.EIO
	}
	return s.segmentFile.Sync()
}

func testJournal(t testing.TB, o journalOptions) *journal {
	t.Helper()
	if o.dir == "" {
		o.dir = t.TempDir()
	}
	if o.writer == "" {
		o.writer = newWriter()
	}
	j := newJournal(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := j.close(ctx); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

// testLine is a record as far as the journal and the reader care.
func testLine(call string, pad int) string {
	return fmt.Sprintf(`{"model_call_id":"%s","pad":"%s"}`+"\n", call, strings.Repeat("x", pad))
}

// put does what a committer does: under the lock it commits the lines, writes them and says so.
func put(t testing.TB, j *journal, rollout string, lines ...string) error {
	t.Helper()
	e, f := prepare(t, j, rollout, lines...)
	defer f.Close()
	ref, err := j.commit(e)
	if err != nil {
		return err
	}
	if _, err := f.Write(e.data); err != nil {
		t.Error(err)
	}
	ref.applied(fileName(rollout))
	return nil
}

// prepare returns the entry for lines at the end of the rollout's file, and that file, locked.
func prepare(t testing.TB, j *journal, rollout string, lines ...string) (*journalEntry, file) {
	t.Helper()
	f, st, err := lockNamed(t.Context(), osFiles{}, dataPath(j.o.dir, rollout), true)
	if err != nil {
		t.Fatal(err)
	}
	id, err := identityOf(f.(syscall.Conn))
	if errors.Is(err, errNoBirthTime) {
		f.Close()
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	heal, err := torn(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	data := strings.Join(lines, "")
	if heal {
		data = "\n" + data
	}
	return &journalEntry{name: fileName(rollout), file: id, offset: st.Size(), lines: len(lines), data: []byte(data)}, f
}

// abandon is what a kill leaves of a journal: nobody holds the lock, everything else stays.
func abandon(t testing.TB, j *journal) {
	t.Helper()
	j.mu.Lock()
	for _, s := range append(j.sealed, j.cur) {
		if s != nil {
			s.open++ // never applied: it stays
		}
	}
	j.mu.Unlock()
	if err := j.close(t.Context()); err == nil {
		t.Fatal("nothing was left")
	}
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, journalDir, "*", "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// segmentTexts are the segments of a store, by their paths.
func segmentTexts(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for _, name := range segments(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = b
	}
	return texts
}

// entriesOf reads a segment that must be whole.
func entriesOf(t testing.TB, path string) (entries []segmentEntry, data []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSegmentReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := s.next()
		if err == io.EOF {
			return entries, data
		}
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
		data = append(data, string(b[e.at:e.at+e.size]))
	}
}

func TestJournalNothingIsWrittenBeforeTheFirstEntry(t *testing.T) {
	j := testJournal(t, journalOptions{})
	if err := j.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, _ := os.ReadDir(j.o.dir); len(names) > 0 {
		t.Errorf("there is %v", names)
	}
	if _, err := j.commit(&journalEntry{name: "r", data: []byte("x")}); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after close: %v", err)
	}
}

func TestJournalEntriesOfEverySize(t *testing.T) {
	j := testJournal(t, journalOptions{})
	var want []string
	for i, size := range []int{0, 100, directBlock, 70_000, 1 << 20, journalBatchMax + 10} {
		line := testLine(fmt.Sprint(i), size)
		if err := put(t, j, "r", line); err != nil {
			t.Fatal(err)
		}
		want = append(want, line)
	}
	entries, got := entriesOf(t, segments(t, j.o.dir)[0])
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	offset := int64(0)
	for i, e := range entries {
		if got[i] != want[i] || e.lines != 1 {
			t.Errorf("entry %d: %d bytes, %d lines, want %d bytes", i, len(got[i]), e.lines, len(want[i]))
		}
		if e.offset != offset {
			t.Errorf("entry %d: offset %d, want %d", i, e.offset, offset)
		}
		offset += e.size
	}
	if _, err := j.commit(&journalEntry{name: "../x", data: []byte("x")}); !errors.Is(err, ErrInvalidID) {
		t.Errorf("a path for an id: %v", err)
	}
}

func TestJournalGroupCommit(t *testing.T) {
	f := &journalFaults{onSync: func() { time.Sleep(2 * time.Millisecond) }} // a disk as slow everywhere
	j := testJournal(t, journalOptions{fs: f})
	const committers, each = 64, 10
	var wg sync.WaitGroup
	for c := range committers {
		wg.Go(func() {
			for i := range each {
				if err := put(t, j, fmt.Sprint("r", c), testLine(fmt.Sprint(c, "-", i), 100)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := f.syncs.Load(); n > committers*each/8 {
		t.Errorf("%d syncs for %d entries", n, committers*each)
	}
	if w, s := f.writes.Load(), f.syncs.Load(); w > s+1 {
		t.Errorf("%d writes for %d batches and a header", w, s)
	}
	if err := j.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.datas.Load(); n != committers {
		t.Errorf("%d files synced, want %d", n, committers)
	}
	if _, err := os.Stat(filepath.Join(j.o.dir, journalDir)); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestJournalRecovers: after any failure the next entry succeeds, in a new segment, and what was acknowledged before is kept
// until its file is durable.
func TestJournalRecovers(t *testing.T) {
	for _, c := range []struct {
		name     string
		arm      func(f *journalFaults)
		segments int // afterwards
	}{
		{"write", func(f *journalFaults) { f.failWrite.Store(1) }, 2},
		{"sync", func(f *journalFaults) { f.failSync.Store(1) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &journalFaults{}
			j := testJournal(t, journalOptions{fs: f})
			e, file := prepare(t, j, "r", testLine("first", 10))
			ref, err := j.commit(e)
			if err != nil {
				t.Fatal(err)
			}
			c.arm(f)
			if _, err := j.commit(e); err == nil {
				t.Fatal("no error")
			}
			syncs := f.syncs.Load()
			again, err := j.commit(e)
			if err != nil {
				t.Fatal(err)
			}
			if f.syncs.Load() != syncs+1 {
				t.Error("the old segment was synced again")
			}
			if got := segments(t, j.o.dir); len(got) != c.segments {
				t.Errorf("segments %v", got)
			}
			file.Write(e.data)
			file.Close()
			ref.applied("r")
			again.applied("r")
			soon(t, "the first segment is retired", func() bool { return len(segments(t, j.o.dir)) == 1 })
		})
	}
	for _, c := range []struct {
		name string
		arm  func(f *journalFaults)
	}{
		{"create", func(f *journalFaults) { f.failCreate.Store(1) }},
		{"folder", func(f *journalFaults) { f.failDir.Store(1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &journalFaults{}
			c.arm(f)
			j := testJournal(t, journalOptions{fs: f})
			if err := put(t, j, "r", testLine("a", 1)); err == nil {
				t.Error("no error")
			}
			if err := put(t, j, "r", testLine("a", 1)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestJournalFolderGone(t *testing.T) {
	for _, what := range []string{"segment", "folder", "journals", "store", "moved", "replaced"} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			j := testJournal(t, journalOptions{dir: dir})
			if err := put(t, j, "r", testLine("a", 1)); err != nil {
				t.Fatal(err)
			}
			var err error
			switch seg := segments(t, dir)[0]; what {
			case "segment":
				err = os.Remove(seg)
			case "folder":
				err = os.RemoveAll(j.folder)
			case "journals":
				err = os.RemoveAll(filepath.Dir(j.folder))
			case "store":
				err = os.RemoveAll(dir)
			case "moved":
				err = os.Rename(dir, dir+"-away")
			case "replaced":
				if err = os.Remove(seg); err == nil {
					err = os.WriteFile(seg, nil, 0o640)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := put(t, j, "r", testLine("b", 1)); !errors.Is(err, errJournalMoved) {
				t.Errorf("got %v", err)
			}
			if err := put(t, j, "r", testLine("b", 1)); err != nil {
				t.Errorf("it did not recover: %v", err)
			}
			if what == "moved" {
				if err := replayJournals(t.Context(), dir+"-away", nil); err != nil {
					t.Error(err)
				}
				if len(segments(t, dir+"-away")) > 0 {
					t.Error("what was moved cannot be replayed")
				}
			}
			if _, err := os.Stat(filepath.Join(j.folder, journalLock)); err != nil {
				t.Error(err)
			}
		})
	}
}

// BenchmarkJournal is one durable entry of 4 KiB by so many committers.
func BenchmarkJournal(b *testing.B) {
	for _, committers := range []int{1, 64, 256} {
		b.Run(fmt.Sprint("committers=", committers), func(b *testing.B) {
			f := &journalFaults{}
			j := testJournal(b, journalOptions{fs: f})
			data := []byte(testLine("a", 4096))
			var next atomic.Int64
			before := cpu()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range committers {
				wg.Go(func() {
					e := &journalEntry{name: "r", lines: 1, data: data}
					for next.Add(1) <= int64(b.N) {
						ref, err := j.commit(e)
						if err != nil {
							b.Error(err)
							return
						}
						ref.forsaken()
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(f.syncs.Load())/float64(b.N), "fsync/op")
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
