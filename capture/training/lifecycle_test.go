package training

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"
)

func retire(t *testing.T, s *Store, rollout string) {
	t.Helper()
	begin(t, s, rollout, "c1")
	put(t, s, newEntry(rollout, "c1", "[1]", "[2]"))
	f := freeze(t, s, rollout)
	if ok, err := s.Drop(t.Context(), rollout, f.ID, f.Version); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// TestSweep takes old tombstones, their locks included, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	for _, id := range []string{"old-1", "old-2", "fresh"} {
		retire(t, s, id)
	}
	freeze(t, s, "frozen")
	put(t, s, newEntry("live", "c1", "[1]", "[2]"))
	if err := s.Mark(t.Context(), "live", "c2", "x"); err != nil {
		t.Fatal(err)
	}
	hour := time.Now().Add(-time.Hour)
	for _, id := range []string{"old-1", "old-2", "frozen", "live"} {
		if err := os.Chtimes(statePath(dir, id), hour, hour); err != nil {
			t.Fatal(err)
		}
	}
	n, err := newStore(t, dir).SweepRetired(t.Context(), time.Minute)
	if n != 2 || err != nil {
		t.Errorf("%d swept, %v", n, err)
	}
	ids, err := Rollouts(dir)
	if err != nil || !slices.Equal(ids, []string{"fresh", "frozen", "live"}) {
		t.Errorf("%q are left, %v", ids, err)
	}
	for id, want := range map[string]bool{"old-1": false, "old-2": false, "fresh": true, "frozen": true, "live": true} {
		if _, err := os.Lstat(lockPath(dir, id)); want != (err == nil) {
			t.Errorf("the lock of %s: %v", id, err)
		}
		if Exists(dir, id) != want {
			t.Errorf("%s exists is %t", id, !want)
		}
	}
	put(t, s, newEntry("old-1", "c1", "[1]", "[2]")) // by a store that remembers the tombstone
	noProblems(t, dir, "old-1")
	if n, err := s.SweepRetired(t.Context(), time.Minute); n != 0 || err != nil {
		t.Errorf("%d swept, %v", n, err)
	}
}

func TestDelete(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	if err := s.Delete(t.Context(), "never"); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
	for name, make := range map[string]func(id string){
		"live":    func(id string) { begin(t, s, id, "c1"); put(t, s, newEntry(id, "c1", "[1]", "[2]")) },
		"intent":  func(id string) { begin(t, s, id, "c1") },
		"frozen":  func(id string) { freeze(t, s, id) },
		"retired": func(id string) { retire(t, s, id) },
		"marked": func(id string) {
			if err := s.Mark(t.Context(), id, "", "x"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		make(name)
		if !Exists(dir, name) {
			t.Errorf("%s does not exist", name)
		}
		if err := newStore(t, dir).Delete(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if Exists(dir, name) {
			t.Errorf("%s exists", name)
		}
		begin(t, s, name, "c1")
		put(t, s, newEntry(name, "c1", "[1]", "[9]"))
		if f := freeze(t, s, name); f.Incomplete || f.Version != 2 || len(f.calls) != 1 {
			t.Errorf("%s anew: %+v", name, f.Snapshot)
		}
	}
}

// TestSnapshotOutlives what happens to its files.
func TestSnapshotOutlives(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	put(t, s, newEntry("r", "c1", "[1,2]", "[3]"))
	f := freeze(t, s, "r")
	if err := s.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	put(t, s, newEntry("r", "c2", "[7]", "[8]"))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := f.Entries()
	v, err := r.Next()
	if err != nil || v.CallID != "c1" || text(t, v.Prompt, f.File()) != "[1,2]" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error(err)
	}
	empty, err := newStore(t, dir).Freeze(t.Context(), "empty")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := empty.Entries().Next(); err != io.EOF || empty.Incomplete || empty.Close() != nil {
		t.Errorf("%+v, %v", empty, err)
	}
}

// TestMarks: reasons are kept, as many as are worth reading, and counted beyond.
func TestMarks(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	const n = marksMax + 6
	for i := range n {
		if err := s.Mark(t.Context(), "r", fmt.Sprint("c", i), fmt.Sprint("why \"", i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		f := freeze(t, s, "r")
		if !f.Incomplete || len(f.Marks) != marksMax || f.Marks[1].CallID != "c1" || f.Marks[1].Reason != `why "1` || f.Marks[1].At == "" || f.Version != n+1 {
			t.Errorf("%d marks, %+v", len(f.Marks), f.Marks[1])
		}
		s = newStore(t, dir)
	}
	if got := lines(read(t, markerPath(dir, "r"))); got != n {
		t.Errorf("%d lines in the marker", got)
	}
	ours := stateOf(t, dir, "r")["rolltap"].(map[string]any)
	if ours["more"] != 6.0 || len(ours["marks"].([]any)) != marksMax {
		t.Errorf("%v more, %d marks", ours["more"], len(ours["marks"].([]any)))
	}
	for i := range n { // of as many different words
		if err := s.Withdraw(t.Context(), "w", "c", fmt.Sprint("word-", i)); err != nil {
			t.Fatal(err)
		}
	}
	freeze(t, s, "w")
	if v := noProblems(t, dir, "w"); len(v.Withdrawn) != marksMax+1 || v.Withdrawn["other"] != 6 {
		t.Errorf("%d words, %d others", len(v.Withdrawn), v.Withdrawn["other"])
	}
}

// TestObserve: what happens is told once.
func TestObserve(t *testing.T) {
	var told []string
	say := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	dir := t.TempDir()
	waits, syncs := 0, 0
	s := newStore(t, dir, func(o *Options) {
		o.Observe = Observe{
			Batch: func(intents, entries, bytes int, took time.Duration) {
				say("batch %d %d %t", intents, entries, bytes > 0 && took > 0)
			},
			Sync: func(time.Duration) { syncs++ }, LockWait: func(time.Duration) { waits++ },
			Marked:    func(rollout, call, reason string) { say("marked %s %s %s", rollout, call, reason) },
			Withdrawn: func(rollout, call, why string) { say("withdrawn %s %s %s", rollout, call, why) },
			Frozen:    func(rollout string, incomplete bool) { say("frozen %s %t", rollout, incomplete) },
			Dropped:   func(rollout string) { say("dropped %s", rollout) },
			Healed:    func(rollout string) { say("healed %s", rollout) },
			Trouble:   func(rollout string, err error) { say("trouble %s %t", rollout, errors.Is(err, ErrConflict)) },
		}
	})
	begin(t, s, "r", "c1")
	put(t, s, newEntry("r", "c1", "[1]", "[2]"))
	put(t, s, newEntry("r", "c1", "[1]", "[2]")) // nothing happens
	begin(t, s, "r", "c2")
	if err := s.Withdraw(t.Context(), "r", "c2", "refused"); err != nil {
		t.Fatal(err)
	}
	appendFile(t, dataPath(dir, "r"), []byte("{"))
	wantErr(t, "conflict", s.Put(t.Context(), newEntry("r", "c1", "[1]", "[3]")), ErrConflict)
	f := freeze(t, s, "r")
	wantErr(t, "late", s.Put(t.Context(), newEntry("r", "c3", "[1]", "[3]")), ErrFrozen) // no trouble
	if ok, err := s.Drop(t.Context(), "r", f.ID, f.Version); !ok || err != nil {
		t.Fatal(ok, err)
	}
	want := []string{
		"batch 1 0 true", "batch 0 1 true", "batch 1 0 true", "withdrawn r c2 refused", "healed r", "marked r c1 conflict", "trouble r true",
		"frozen r true", "dropped r",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%q, want\n%q", told, want)
	}
	if waits != 9 || syncs != 4 { // three batches, and what was cut off
		t.Errorf("%d waits, %d syncs", waits, syncs)
	}
}
