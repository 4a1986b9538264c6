package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// crowd makes a store believe that many records are on their way, so that one alone goes through the journal, too.
func crowd(t testing.TB, s *Store) {
	t.Helper()
	many := func(n int) { s.mu.Lock(); s.records += n; s.mu.Unlock() }
	many(journalFrom)
	t.Cleanup(func() { many(-journalFrom) })
}

// journalStore is a store whose journal is used for every record but the first of a rollout, and whose calls can be made to fail.
func journalStore(t *testing.T, o Options) (*Store, *journalFaults) {
	t.Helper()
	f := &journalFaults{}
	o.Durability = DurabilityJournal
	s := newStore(t, o)
	s.journal.o.fs = f // nothing has been written yet
	if _, err := identityOf(dirConn(t, s.o.Dir)); errors.Is(err, errNoBirthTime) {
		t.Skip(err)
	}
	return s, f
}

func dirConn(t *testing.T, dir string) syscall.Conn {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func add(t *testing.T, s *Store, rollout string) (call string) {
	t.Helper()
	call = callID()
	if err := s.Append(t.Context(), record(rollout, call, `{"text":"some text"}`)); err != nil {
		t.Fatal(err)
	}
	return call
}

// killed is a store whose writer is dead: rollout r holds a record that its file keeps and two that stand in the journal, too.
func killed(t *testing.T) (dir string, calls []string) {
	t.Helper()
	s, _ := journalStore(t, Options{})
	crowd(t, s)
	for range 3 {
		calls = append(calls, add(t, s, "r"))
	}
	abandon(t, s.journal)
	s.Close(t.Context()) // its journal is closed, and it says so
	if len(segments(t, s.o.Dir)) != 1 {
		t.Fatal("there is no journal")
	}
	return s.o.Dir, calls
}

// cutBack takes from a file everything behind its first record and the beginning of the second.
func cutBack(t *testing.T, dir string) {
	t.Helper()
	st, err := os.Stat(dataPath(dir, "r"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dataPath(dir, "r"), st.Size()/3+20); err != nil {
		t.Fatal(err)
	}
}

func wantCalls(t *testing.T, dir, id string, want ...string) {
	t.Helper()
	r := readBack(t, dir, id)
	r.uniqueSeqs(t)
	got := r.calls()
	for _, c := range want {
		if got[c] != 1 {
			t.Errorf("%s: call %s is there %d times", id, c, got[c])
		}
	}
	if len(got) != len(want) || r.damaged+r.torn > 0 {
		t.Errorf("%s: %d calls, want %d; %d damaged, %d torn", id, len(got), len(want), r.damaged, r.torn)
	}
}

func noJournal(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, journalDir))
	return errors.Is(err, fs.ErrNotExist)
}

// TestJournalStore_longBatches: beyond journalTo a batch is synced in its file, and not written twice.
func TestJournalStore_longBatches(t *testing.T) {
	t.Parallel()
	s, _ := journalStore(t, Options{})
	crowd(t, s)
	put := func(size int) {
		t.Helper()
		if err := s.Append(t.Context(), record("r", callID(), `{"text":"`+strings.Repeat("x", size)+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	put(10) // its file is new
	put(journalTo)
	put(journalTo)
	if names := segments(t, s.o.Dir); len(names) > 0 {
		t.Fatalf("long batches are in the journal: %v", names)
	}
	put(journalTo / 2)
	names := segments(t, s.o.Dir)
	if len(names) != 1 {
		t.Fatalf("%d segments for a batch of half the size, want 1", len(names))
	}
	if entries, _ := entriesOf(t, names[0]); len(entries) != 1 {
		t.Errorf("%d entries, want 1", len(entries))
	}
}

// load lets so many writers append so many records each to a rollout of its own and returns the calls of each that were
// acknowledged. failed is told the others.
func load(s *Store, writers, each int, failed func(rollout string, err error)) map[string][]string {
	acked := map[string][]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range writers {
		id := fmt.Sprint("r-", w)
		wg.Go(func() {
			for range each {
				call := callID()
				err := s.Append(context.Background(), record(id, call, `{"text":"some text"}`))
				if err != nil {
					failed(id, err)
					continue
				}
				mu.Lock()
				acked[id] = append(acked[id], call)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return acked
}

// TestJournalStore: under load the journal makes records durable, with far fewer syncs than records; everything stands in
// the files, and a store at rest has no journal, be it closed or not.
func TestJournalStore(t *testing.T) {
	t.Parallel()
	var seen tally
	s, f := journalStore(t, Options{Observe: seen.observe()})
	fail := func(rollout string, err error) { t.Errorf("%s: %v", rollout, err) }
	acked := load(s, 64, 20, fail)
	if n := f.syncs.Load(); n == 0 {
		t.Error("the journal was not used")
	}
	if noJournal(s.o.Dir) {
		t.Error("no folder of journals under load")
	}
	began := time.Now()
	soon(t, "the idle store has no journal", func() bool { return noJournal(s.o.Dir) })
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	for id, calls := range load(s, 64, 5, fail) { // and begins another when there is load again
		acked[id] = append(acked[id], calls...)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !noJournal(s.o.Dir) {
		t.Error("the closed store has a journal")
	}
	for id, calls := range acked {
		wantCalls(t, s.o.Dir, id, calls...)
	}
	if report, err := Verify(s.o.Dir, func(f Finding) { t.Error(f) }); err != nil || report.Records != 64*25 {
		t.Errorf("%+v, %v", report, err)
	}
	if n := seen.result(ResultOK); n != 64*25 || len(seen.trouble) > 0 {
		t.Errorf("%d ok, trouble %v", n, seen.trouble)
	}
}

// TestFileStore: without the journal there is never a trace of it.
func TestFileStore(t *testing.T) {
	t.Parallel()
	for _, d := range []Durability{DurabilityFile, ""} {
		dir := t.TempDir()
		o := Options{Dir: dir, Durability: d}
		o.Observe.Batch = func(int, int, time.Duration) {
			if !noJournal(dir) {
				t.Error("there is a journal")
			}
		}
		load(newStore(t, o), 32, 5, func(rollout string, err error) { t.Errorf("%s: %v", rollout, err) })
	}
}

// TestJournalStore_failingSync: what a journal cannot sync is lost as loudly as what a file cannot, and the next record is
// written without a restart.
func TestJournalStore_failingSync(t *testing.T) {
	t.Parallel()
	for name, arm := range map[string]func(f *journalFaults, n int32){
		"sync":  func(f *journalFaults, n int32) { f.failSync.Store(n) },
		"write": func(f *journalFaults, n int32) { f.failWrite.Store(n) },
		"new segment": func(f *journalFaults, n int32) {
			f.failCreate.Store(n)
			f.failSync.Store(n - 1) // else nothing asks for a new one
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := journalStore(t, Options{})
			crowd(t, s)
			first := add(t, s, "r")
			arm(f, 1)
			if err := s.Append(t.Context(), record("r", callID(), `{}`)); err == nil {
				t.Fatal("no error")
			}
			if s.Trouble() == nil {
				t.Error("no trouble")
			}
			soon(t, "the rollout is marked", func() bool { return Marked(s.o.Dir, "r") })
			next := add(t, s, "r")
			if err := s.Trouble(); err != nil {
				t.Error(err)
			}
			got := readBack(t, s.o.Dir, "r").calls()
			if got[first] != 1 || got[next] != 1 {
				t.Errorf("calls %v", got)
			}
			// And under load: each record is there, or its rollout says that one is missing.
			arm(f, 5)
			var mu sync.Mutex
			failed := map[string]bool{}
			acked := load(s, 32, 20, func(rollout string, _ error) { mu.Lock(); failed[rollout] = true; mu.Unlock() })
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if len(failed) == 0 || !noJournal(s.o.Dir) {
				t.Errorf("%d rollouts failed; no journal is left: %t", len(failed), noJournal(s.o.Dir))
			}
			for id := range failed {
				if !Marked(s.o.Dir, id) {
					t.Errorf("%s is not marked", id)
				}
			}
			for id, calls := range acked {
				got := readBack(t, s.o.Dir, id).calls()
				for _, c := range calls {
					if got[c] != 1 {
						t.Errorf("%s: call %s is there %d times", id, c, got[c])
					}
				}
			}
		})
	}
}

// TestClear_deadJournal: what was cleared does not come back from the journal of a dead writer, nor into the next attempt.
func TestClear_deadJournal(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		dir, _ := killed(t)
		if err := Clear(t.Context(), dir, "r"); err != nil {
			t.Fatal(err)
		}
		var next []string
		if again {
			s := newStore(t, Options{Dir: t.TempDir()})
			s.o.Dir = dir // opened with dir it would replay
			next = append(next, add(t, s, "r"))
		}
		cleared := 0
		if err := Replay(t.Context(), dir, func(e ReplayEvent) {
			if e.Kind != ReplayCleared {
				t.Errorf("event %+v", e)
			}
			cleared += e.Lines
		}); err != nil {
			t.Fatal(err)
		}
		if cleared != 2 || !noJournal(dir) {
			t.Errorf("%d lines were cleared; no journal is left: %t", cleared, noJournal(dir))
		}
		if again {
			wantCalls(t, dir, "r", next...)
		} else if ids, err := Rollouts(dir); err != nil || len(ids) > 0 {
			t.Errorf("there is %v, %v", ids, err)
		}
	}
}

// TestRepair_replaysFirst: a repaired file is another one, to which no journal applies any more.
func TestRepair_replaysFirst(t *testing.T) {
	t.Parallel()
	dir, calls := killed(t)
	cutBack(t, dir)
	if report, err := Repair(t.Context(), dir, func(f Finding) { t.Error(f) }); err != nil || !report.Clean(true) {
		t.Errorf("%+v, %v", report, err)
	}
	wantCalls(t, dir, "r", calls...)
	if !noJournal(dir) {
		t.Error("the journal is still there")
	}
}

// TestRepair_whileSomebodyElseReplays: it keeps its hands off a file that another process is about to bring lines back into.
func TestRepair_whileSomebodyElseReplays(t *testing.T) {
	t.Parallel()
	dir, calls := killed(t)
	cutBack(t, dir)
	before, err := os.ReadFile(dataPath(dir, "r"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := osFiles{}.open(filepath.Join(filepath.Dir(segments(t, dir)[0]), journalLock), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(t.Context(), dir, nil); !errors.Is(err, errOwed) {
		t.Errorf("got %v", err)
	}
	if now, err := os.ReadFile(dataPath(dir, "r")); err != nil || string(now) != string(before) {
		t.Errorf("the file was touched: %v", err)
	}
	other.Close()
	if _, err := Repair(t.Context(), dir, nil); err != nil {
		t.Error(err)
	}
	wantCalls(t, dir, "r", calls...)
}

// TestRepair_besideALiveJournal: lines that stand in their file do not keep a repair from it.
func TestRepair_besideALiveJournal(t *testing.T) {
	t.Parallel()
	s, _ := journalStore(t, Options{})
	crowd(t, s)
	calls := []string{add(t, s, "r"), add(t, s, "r")}
	plant(t, s.o.Dir, "r", "no record\n")
	calls = append(calls, add(t, s, "r"))
	if report, err := Repair(t.Context(), s.o.Dir, nil); err != nil || report.Found[FoundDamaged] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	calls = append(calls, add(t, s, "r"))
	wantCalls(t, s.o.Dir, "r", calls...)
}

// TestCopyOfAStore: a copy of a running store has what was acknowledged, with or without the folder of journals. Once a power
// cut has happened the journal is of use only where its files are.
func TestCopyOfAStore(t *testing.T) {
	t.Parallel()
	s, _ := journalStore(t, Options{})
	crowd(t, s)
	calls := []string{add(t, s, "r"), add(t, s, "r"), add(t, s, "r")}
	for _, journal := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(s.o.Dir)); err != nil {
			t.Fatal(err)
		}
		if noJournal(dir) {
			t.Fatal("nothing of a journal was copied")
		}
		if !journal {
			os.RemoveAll(filepath.Join(dir, journalDir))
		}
		if err := Replay(t.Context(), dir, nil); err != nil {
			t.Error(err)
		}
		wantCalls(t, dir, "r", calls...)
		if !noJournal(dir) {
			t.Error("the copy keeps a journal")
		}
	}
}
