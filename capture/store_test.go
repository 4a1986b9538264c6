package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "0-0": true, "A.b_c-d": true, strings.Repeat("a", 200): true, "": false, strings.Repeat("a", 201): false,
		".a": false, "-a": false, "_a": false, "a/b": false, "a b": false, "a\n": false, "ü": false, "..": false, "a\x00": false, "a%20": false,
	} {
		if ValidID(id) != want {
			t.Errorf("%q: valid is %t", id, !want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	for _, dir := range []string{"", file, filepath.Join(file, "below"), "/proc/nothing"} {
		if s, err := Open(Options{Dir: dir}); err == nil {
			t.Errorf("%q can be opened", dir)
			s.Close(t.Context())
		}
	}
}

// TestAppendManyWriters: vectors R15 and R16 in one process, beside the order in the file.
func TestAppendManyWriters(t *testing.T) {
	for _, writers := range []int{1, 16, 256} {
		var seen tally
		s := newStore(t, Options{Observe: seen.observe()})
		var wg sync.WaitGroup
		n := max(1, 256/writers)
		for w := range writers {
			wg.Go(func() {
				for i := range n {
					id := fmt.Sprintf("r-%d", (w+i)%3)
					if err := s.Append(t.Context(), record(id, callID(), `{"text":"`+strings.Repeat("z", i*40)+`"}`)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		total := 0
		for i := range 3 {
			got := readBack(t, s.o.Dir, fmt.Sprintf("r-%d", i))
			for k, m := range got.records {
				if m.Ours.Seq != int64(k+1) {
					t.Errorf("%d writers: line %d has seq %d", writers, k+1, m.Ours.Seq)
				}
			}
			total += len(got.records)
			if got.damaged+got.torn > 0 {
				t.Errorf("%d writers: %d damaged, %d torn", writers, got.damaged, got.torn)
			}
		}
		if total != writers*n || seen.result(ResultOK) != total || seen.records != total || seen.fsyncs != seen.batches {
			t.Errorf("%d writers: %d records of %d, counted %v, %d in batches", writers, total, writers*n, seen.results, seen.records)
		}
		if writers == 256 && seen.batches > total/4 {
			t.Errorf("256 writers made %d batches of %d records", seen.batches, total)
		}
	}
}

func TestFilesAndModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := newStore(t, Options{Dir: dir})
	es, _ := os.ReadDir(dir)
	if len(es) != 0 {
		t.Errorf("an opened store holds %v", es)
	}
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
		t.Fatal(err)
	}
	s.Mark("r", "c", "test", errors.New("why"))
	soon(t, "marked", func() bool { return len(marks(t, dir, "r")) == 1 })
	for name, want := range map[string]os.FileMode{"": 0o750 | os.ModeDir, "r.capture.jsonl": 0o640, "r.capture.incomplete": 0o640} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode()&^0o7000 != want {
			t.Errorf("%q has mode %v, want %v", name, st.Mode(), want)
		}
	}
	if m := marks(t, dir, "r")[0]; m["call_id"] != "c" || m["stage"] != "test" || m["error"] != "why" || m["at"].(float64) < 1e9 {
		t.Errorf("the mark is %v", m)
	}
	if ids, err := Rollouts(dir); err != nil || len(ids) != 1 || ids[0] != "r" || !Marked(dir, "r") || Marked(dir, "s") {
		t.Errorf("rollouts %v, %v", ids, err)
	}
	if n, err := s.FreeBytes(); n <= 0 || err != nil {
		t.Errorf("%d bytes free, %v", n, err)
	}
}

// TestInvalidID: no file of that name, no mark, an error and a count.
func TestInvalidID(t *testing.T) {
	var seen tally
	s := newStore(t, Options{Observe: seen.observe()})
	if err := s.Append(t.Context(), record("../x", "c", `{}`)); !errors.Is(err, ErrInvalidID) {
		t.Errorf("got %v", err)
	}
	if seen.result(ResultLost) != 1 {
		t.Errorf("counted %v", seen.results)
	}
	if err := Clear(t.Context(), s.o.Dir, "../x"); !errors.Is(err, ErrInvalidID) {
		t.Errorf("clear: %v", err)
	}
	if _, err := OpenLines(s.o.Dir, "../x"); !errors.Is(err, ErrInvalidID) {
		t.Errorf("read: %v", err)
	}
}

// TestTornTails: vector R20, for each batch and not only the first.
func TestTornTails(t *testing.T) {
	var seen tally
	s := newStore(t, Options{Observe: seen.observe()})
	tails := []string{"{", `{"model_call_id":"`, "na\xc3", strings.Repeat("x", 100_000), "\x00\x00"}
	for _, tail := range tails {
		plant(t, s.o.Dir, "r", tail)
		if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	got := readBack(t, s.o.Dir, "r")
	if len(got.records) != len(tails) || got.damaged != len(tails) || got.torn != 0 || seen.healed != len(tails) {
		t.Errorf("%d records, %d damaged, %d torn, %d healed; want %d, %[5]d, 0, %[5]d", len(got.records), got.damaged, got.torn, seen.healed, len(tails))
	}
}

// TestEviction: a rollout that was forgotten counts from 1 again, under another writer.
func TestEviction(t *testing.T) {
	s := newStore(t, Options{Idle: 4})
	for round := range 3 {
		for i := range 12 {
			for range 2 {
				if err := s.Append(t.Context(), record(fmt.Sprintf("r-%d", i), callID(), `{}`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 12 {
			got := readBack(t, s.o.Dir, fmt.Sprintf("r-%d", i))
			got.uniqueSeqs(t)
			if len(got.records) != 2*(round+1) {
				t.Errorf("r-%d has %d records", i, len(got.records))
			}
		}
	}
	soon(t, "idle", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.rollouts.byID) <= 4 })
	report, err := Verify(s.o.Dir, func(f Finding) { t.Error(f) })
	if err != nil || report.Records != 72 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestFolderVanishes: removed, moved away and replaced, under load; nothing acknowledged is outside of what the path names.
func TestFolderVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parent", "store")
	s := newStore(t, Options{Dir: dir})
	for i, vanish := range []func() error{
		func() error { return os.RemoveAll(dir) },
		func() error { return os.RemoveAll(filepath.Dir(dir)) },
		func() error { return os.Rename(dir, dir+"-aside") },
	} {
		var wg sync.WaitGroup
		begin := make(chan struct{})
		acked := make([][]string, 8)
		for w := range acked {
			wg.Go(func() {
				for n := range 30 {
					if n == 10 {
						<-begin
					}
					call := callID()
					if err := s.Append(t.Context(), record("r", call, `{}`)); err != nil {
						t.Error(err)
					}
					if n >= 10 {
						acked[w] = append(acked[w], call)
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		if err := vanish(); err != nil {
			t.Fatal(err)
		}
		close(begin)
		wg.Wait()
		have := readBack(t, dir, "r").calls()
		for _, calls := range acked {
			for _, c := range calls {
				if have[c] != 1 {
					t.Errorf("case %d: an acknowledged call is there %d times", i, have[c])
				}
			}
		}
	}
}

// TestReplacedWhileSyncing: the file loses its name between write and acknowledgement. The lines are taken back and
// written to the file that the path names.
func TestReplacedWhileSyncing(t *testing.T) {
	f := &faults{}
	s := newStoreOn(t, Options{Dir: t.TempDir()}, f)
	path := dataPath(s.o.Dir, "r")
	if err := s.Append(t.Context(), record("r", "first", `{}`)); err != nil {
		t.Fatal(err)
	}
	f.onSync = func() {
		f.onSync = nil
		if err := os.Rename(path, path+".old"); err != nil {
			t.Error(err)
		}
	}
	if err := s.Append(t.Context(), record("r", "second", `{}`)); err != nil {
		t.Fatal(err)
	}
	if got := readBack(t, s.o.Dir, "r"); len(got.records) != 1 || got.records[0].Call != "second" {
		t.Errorf("the new file holds %+v", got.records)
	}
	if old, _ := os.ReadFile(path + ".old"); strings.Count(string(old), "\n") != 1 || !strings.Contains(string(old), "first") {
		t.Errorf("the old file holds %q", old)
	}
}

// TestReplacedWhileSyncing_batch: of a batch that is written again, every line is written once.
func TestReplacedWhileSyncing_batch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		s := newStoreOn(t, Options{Dir: t.TempDir()}, f)
		path := dataPath(s.o.Dir, "r")
		first := make(chan struct{})
		syncs := 0
		f.onSync = func() {
			switch syncs++; syncs {
			case 1:
				<-first
			case 2:
				os.Remove(path)
			}
		}
		var wg sync.WaitGroup
		put := func(call string) {
			wg.Go(func() {
				if err := s.Append(t.Context(), record("r", call, `{}`)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, call := range []string{"alone", "1", "2", "3"} {
			put(call)
		}
		close(first)
		wg.Wait()
		if got := readBack(t, s.o.Dir, "r"); syncs != 3 || len(got.records) != 3 || len(got.calls()) != 3 {
			t.Errorf("%d syncs, the file holds %v", syncs, got.calls())
		}
		s.Close(context.Background())
	})
}

func TestClear(t *testing.T) {
	s := newStore(t, Options{})
	dir := s.o.Dir
	for _, id := range []string{"0-0", "1-0"} {
		if err := s.Append(t.Context(), record(id, callID(), `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(markerPath(dir, "0-0"), nil, 0o640)
	os.WriteFile(damagedPath(dir, "0-0"), nil, 0o640)
	os.WriteFile(markerPath(dir, "2-0"), nil, 0o640) // a marker without data
	for _, id := range []string{"0-0", "0-0", "2-0", "never"} {
		if err := Clear(t.Context(), dir, id); err != nil {
			t.Errorf("clear %s: %v", id, err)
		}
	}
	if ids, _ := Rollouts(dir); len(ids) != 1 || ids[0] != "1-0" {
		t.Errorf("left: %v", ids)
	}
	if es, _ := os.ReadDir(dir); len(es) != 1 {
		t.Errorf("left: %v", es)
	}
	if err := s.Append(t.Context(), record("0-0", "again", `{}`)); err != nil {
		t.Fatal(err)
	}
	if got := readBack(t, dir, "0-0"); len(got.records) != 1 || got.records[0].Ours.Seq != 2 {
		t.Errorf("after the clear: %+v", got.records)
	}
	if err := Clear(t.Context(), filepath.Join(dir, "nowhere"), "a"); err != nil {
		t.Errorf("a folder that is missing: %v", err)
	}
}

// TestClearWhileWriting: what is acknowledged after the last clear began to be waited for is in the file.
func TestClearWhileWriting(t *testing.T) {
	s := newStore(t, Options{})
	stop := keepWriting(4, func(int) {
		if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
			t.Error(err)
		}
	})
	for range 60 {
		if err := Clear(t.Context(), s.o.Dir, "r"); err != nil {
			t.Error(err)
		}
		call := callID()
		if err := s.Append(t.Context(), record("r", call, `{}`)); err != nil {
			t.Error(err)
		}
		if readBack(t, s.o.Dir, "r").calls()[call] != 1 {
			t.Error("a record behind a clear is missing")
		}
	}
	stop()
	readBack(t, s.o.Dir, "r").uniqueSeqs(t)
}

// TestForeignLock: only the rollout whose lock is held waits, the deadline is kept, and what arrives late is told.
func TestForeignLock(t *testing.T) {
	var seen tally
	s := newStore(t, Options{Observe: seen.observe()})
	held, err := osFiles{}.open(dataPath(s.o.Dir, "held"), true)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the deadline")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
	defer cancel()
	began := time.Now()
	if err := s.Append(ctx, record("held", "late", `{}`)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	if !errors.Is(s.Trouble(), cause) {
		t.Errorf("trouble is %v", s.Trouble())
	}
	if s.Drained() {
		t.Error("drained, with a record waiting")
	}
	if err := s.Append(t.Context(), record("free", callID(), `{}`)); err != nil {
		t.Errorf("another rollout: %v", err)
	}
	if s.Trouble() != nil {
		t.Errorf("after a success: %v", s.Trouble())
	}
	soon(t, "the rollout is marked", func() bool { return len(marks(t, s.o.Dir, "held")) == 1 })
	if m := marks(t, s.o.Dir, "held")[0]; m["call_id"] != "late" || m["stage"] != "deadline" {
		t.Errorf("the mark is %v", m)
	}
	held.Close()
	soon(t, "late", func() bool { return seen.result(ResultLate) == 1 && s.Drained() })
	if got := readBack(t, s.o.Dir, "held"); got.calls()["late"] != 1 {
		t.Error("the late record is not in the file")
	}
	if seen.result(ResultOK) != 1 || seen.result(ResultLost) != 0 || seen.incomplete != 1 {
		t.Errorf("counted %v, %d incomplete", seen.results, seen.incomplete)
	}
}

// TestGiveUp: a lock that is never given back costs the records of its rollout, and each is told once.
func TestGiveUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var seen tally
		s, err := Open(Options{Dir: dir, Observe: seen.observe()})
		if err != nil {
			t.Fatal(err)
		}
		held, err := osFiles{}.open(dataPath(dir, "held"), true)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Append(short, record("held", "a", `{}`)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with a deadline: %v", err)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("the deadline took %s", took)
			}
		})
		wg.Go(func() {
			synctest.Wait()
			if err := s.Append(t.Context(), record("held", "b", `{}`)); !errors.Is(err, ErrLocked) {
				t.Errorf("without a deadline: %v", err)
			}
		})
		wg.Wait()
		if took := time.Since(began); took < 30*time.Second || took > 61*time.Second {
			t.Errorf("giving up took %s", took)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if seen.result(ResultLost) != 2 || seen.incomplete != 2 {
			t.Errorf("counted %v, %d incomplete", seen.results, seen.incomplete)
		}
	})
}

func TestClose(t *testing.T) {
	var seen tally
	s := newStore(t, Options{Observe: seen.observe()})
	held, err := osFiles{}.open(dataPath(s.o.Dir, "held"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	done := make(chan error)
	go func() { done <- s.Append(context.Background(), record("held", "a", `{}`)) }()
	soon(t, "queued", func() bool { return !s.Drained() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 records") {
		t.Errorf("close says %v", err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("append says %v", err)
	}
	if len(marks(t, s.o.Dir, "held")) != 1 {
		t.Error("the rollout is not marked")
	}
	if err := s.Append(t.Context(), record("r", "b", `{}`)); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close says %v", err)
	}
	if err := s.Probe(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("probe after close says %v", err)
	}
	if seen.result(ResultLost) != 2 {
		t.Errorf("counted %v", seen.results)
	}
}

func TestProbe(t *testing.T) {
	f := &faults{}
	s := newStoreOn(t, Options{Dir: filepath.Join(t.TempDir(), "store")}, f)
	s.failed("", errors.New("before"))
	if err := s.Probe(t.Context()); err != nil || s.Trouble() != nil {
		t.Errorf("%v, trouble %v", err, s.Trouble())
	}
	os.RemoveAll(s.o.Dir)
	os.WriteFile(s.o.Dir, nil, 0o600) // in the way
	if err := s.Probe(t.Context()); err == nil || s.Trouble() == nil {
		t.Errorf("%v, trouble %v", err, s.Trouble())
	}
	os.Remove(s.o.Dir)
	if err := s.Probe(t.Context()); err != nil || s.Trouble() != nil {
		t.Errorf("%v, trouble %v", err, s.Trouble())
	}
	if es, _ := os.ReadDir(s.o.Dir); len(es) > 0 {
		t.Errorf("it left %v", es)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // either may come first; nothing may hang or leak
		s.Probe(ctx)
	}
}
