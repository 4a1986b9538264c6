package training

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCrashPoints: files as a process leaves them that dies between two steps, what a freeze makes of them, and that the rollout goes on.
func TestCrashPoints(t *testing.T) {
	l1, l2 := encodeLine(t, newEntry("r", "c1", "[1]", "[2]")), encodeLine(t, newEntry("r", "c2", "[1]", "[3]"))
	for _, c := range []struct {
		name                 string
		data, intents, state string // state: the calls that it has indexed; "-" is no file
		mark                 bool
		calls                []string
		incomplete           bool
		version              int64 // of the freeze
		intact               bool  // the file of entries is as it was
	}{
		{name: "behind an intent, before its call", intents: "c1\n", state: "-", incomplete: true, version: 1},
		{name: "inside an intent", intents: "c1", state: "-", version: 1},
		{name: "inside an intent behind a whole call", data: l1, intents: "c1\nc", state: "c1", calls: []string{"c1"}, version: 2, intact: true},
		{name: "inside an entry", data: l1[:200], intents: "c1\n", state: "-", incomplete: true, version: 1},
		{name: "inside the second entry", data: l1 + l2[:200], intents: "c1\nc2\n", state: "c1", calls: []string{"c1"}, incomplete: true, version: 2},
		{name: "before the newline of an entry", data: l1[:len(l1)-1], intents: "c1\n", state: "-", calls: []string{"c1"}, version: 2},
		{name: "behind an entry, before the state", data: l1, intents: "c1\n", state: "-", calls: []string{"c1"}, version: 2, intact: true},
		{name: "behind the second entry, before the state", data: l1 + l2, intents: "c1\nc2\n", state: "c1", calls: []string{"c1", "c2"}, version: 3, intact: true},
		{name: "behind a repeated entry of a writer without a lock", data: l1 + l1, intents: "c1\n", state: "c1", calls: []string{"c1", "c1"}, version: 3, intact: true},
		{name: "behind a mark, before its marker", data: l1, intents: "c1\n", state: "c1", mark: true, calls: []string{"c1"}, incomplete: true, version: 3, intact: true},
		{name: "behind a withdrawal", data: l1, intents: "c1\n  \n", state: "c1", calls: []string{"c1"}, version: 2, intact: true},
		{name: "inside a withdrawal", data: l1, intents: "c1\n 2\n", state: "c1", calls: []string{"c1"}, incomplete: true, version: 2, intact: true},
		{name: "of a writer that ends lines in two bytes", data: strings.ReplaceAll(l1+l2, "\n", "\r\n"), intents: "c1\r\nc2\r\n", state: "-", calls: []string{"c1", "c2"}, version: 3, intact: true},
		{name: "before anything", state: "-", version: 1},
		{name: "inside the temporary state", data: l1, state: "-", calls: []string{"c1"}, version: 2, intact: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			lay := func() string {
				dir := t.TempDir()
				if c.data != "" {
					write(t, dataPath(dir, "r"), c.data)
				}
				if c.intents != "" {
					write(t, intentsPath(dir, "r"), c.intents)
				}
				if c.state == "c1" {
					st := newState()
					sum, err := encode(newEntry("r", "c1", "[1]", "[2]"))
					if err != nil {
						t.Fatal(err)
					}
					st.digests["c1"], st.indexed, st.version = sum.sum, int64(len(l1)), 1
					if st.incomplete = c.mark; c.mark {
						st.version++
					}
					write(t, statePath(dir, "r"), string(st.encode()))
				}
				write(t, filepath.Join(dir, ".tokens-state-123"), `{"entry_dig`)
				return dir
			}
			dir := lay()
			f := freeze(t, newStore(t, dir), "r")
			if !slices.Equal(f.calls, c.calls) || f.Incomplete != c.incomplete || f.Version != c.version {
				t.Errorf("calls %q, incomplete %t, version %d", f.calls, f.Incomplete, f.Version)
			}
			if got := read(t, dataPath(dir, "r")); c.intact && string(got) != c.data || len(got) > 0 && got[len(got)-1] != '\n' {
				t.Errorf("entries are %q", got)
			}
			if st := stateOf(t, dir, "r"); st["indexed_size"] != float64(len(read(t, dataPath(dir, "r")))) {
				t.Errorf("state %v", st)
			}
			if ids, err := Rollouts(dir); err != nil || !slices.Equal(ids, []string{"r"}) {
				t.Errorf("rollouts %q, %v", ids, err)
			}

			// The other way on: one more call.
			dir = lay()
			s := newStore(t, dir)
			begin(t, s, "r", "c9")
			put(t, s, newEntry("r", "c9", "[1]", "[9]"))
			f = freeze(t, s, "r")
			if !slices.Equal(f.calls, append(slices.Clone(c.calls), "c9")) || f.Incomplete != c.incomplete || f.Version != c.version+1 {
				t.Errorf("with one more call: %q, incomplete %t, version %d", f.calls, f.Incomplete, f.Version)
			}
		})
	}
}

// TestCrashInsideDrop: the tombstone is written first, so that no call is taken any more, and whoever comes later removes the rest.
func TestCrashInsideDrop(t *testing.T) {
	for _, removed := range []int{0, 1, 2} {
		for name, finish := range map[string]func(*Store, string, int64) error{
			"drop": func(s *Store, id string, version int64) error {
				ok, err := s.Drop(t.Context(), "r", id, version)
				if err == nil && !ok {
					err = errors.New("not dropped")
				}
				return err
			},
			"sweep": func(s *Store, _ string, _ int64) error {
				n, err := s.SweepRetired(t.Context(), -time.Hour)
				if err == nil && n != 1 {
					err = errors.New("not swept")
				}
				return err
			},
			"delete": func(s *Store, _ string, _ int64) error { return s.Delete(t.Context(), "r") },
		} {
			dir := t.TempDir()
			s, f := newFaultyStore(t, dir)
			begin(t, s, "r", "c1")
			put(t, s, newEntry("r", "c1", "[1]", "[2]"))
			snap := freeze(t, s, "r")
			f.skip.Store(int32(removed))
			f.failRemove.Store(3)
			if ok, err := s.Drop(t.Context(), "r", snap.ID, snap.Version); ok || err == nil {
				t.Fatalf("dropped %t, %v", ok, err)
			}
			f.failRemove.Store(0)
			again := newStore(t, dir)
			wantErr(t, name+": put", again.Put(t.Context(), newEntry("r", "c2", "[1]", "[2]")), ErrRetired)
			wantErr(t, name+": begin", s.Begin(t.Context(), "r", "c2"), ErrRetired)
			_, err := again.Freeze(t.Context(), "r")
			wantErr(t, name+": freeze", err, ErrRetired)
			if removed == 0 {
				wantProblem(t, dir, "r", "entries of a retired rollout")
			}
			if err := finish(again, snap.ID, snap.Version); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, path := range []string{dataPath(dir, "r"), intentsPath(dir, "r"), markerPath(dir, "r")} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s, %d removed: %s is still there", name, removed, filepath.Base(path))
				}
			}
			noProblems(t, dir, "r")
		}
	}
}

// TestStateAheadOfItsFile: what the state has seen and the file lacks was lost after it was acknowledged. Nothing goes on as if it had not been.
func TestStateAheadOfItsFile(t *testing.T) {
	for name, cut := range map[string]func(path string, size int64) error{
		"shorter": func(path string, size int64) error { return os.Truncate(path, size/2) },
		"empty":   func(path string, _ int64) error { return os.Truncate(path, 0) },
		"removed": func(path string, _ int64) error { return os.Remove(path) },
	} {
		dir := t.TempDir()
		s := newStore(t, dir, func(o *Options) { o.Lazy = 1 })
		put(t, s, newEntry("r", "c1", "[1]", "[2]"))
		put(t, s, newEntry("r", "c2", "[1]", "[2]"))
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		path := dataPath(dir, "r")
		if err := cut(path, int64(len(read(t, path)))); err != nil {
			t.Fatal(err)
		}
		before := read(t, path)
		s = newStore(t, dir)
		wantErr(t, name+": put", s.Put(t.Context(), newEntry("r", "c3", "[1]", "[2]")), ErrDamaged)
		_, err := s.Freeze(t.Context(), "r")
		wantErr(t, name+": freeze", err, ErrDamaged)
		if got := read(t, path); !bytes.Equal(got, before) {
			t.Errorf("%s: the file was changed", name)
		}
		if v, err := Verify(dir, "r"); err != nil || len(v.Problems) == 0 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if err := s.Delete(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		put(t, s, newEntry("r", "c1", "[1]", "[2]"))
		noProblems(t, dir, "r")
	}
}

// TestLegacyState is one that was written before there was an index.
func TestLegacyState(t *testing.T) {
	dir := t.TempDir()
	l := encodeLine(t, newEntry("r", "c1", "[1]", "[2]"))
	write(t, dataPath(dir, "r"), l)
	write(t, statePath(dir, "r"), `{"frozen":false,"incomplete":false,"retired":false,"snapshot_id":"","version":5}`)
	s := newStore(t, dir)
	if err := s.Mark(t.Context(), "r", "", "no index is needed"); err != nil {
		t.Fatal(err)
	}
	if st := stateOf(t, dir, "r"); st["indexed_size"] != nil || st["entry_digests"] != nil || st["version"] != 6.0 {
		t.Errorf("a mark makes an index: %v", st)
	}
	put(t, s, newEntry("r", "c1", "[1]", "[2]"))
	put(t, s, newEntry("r", "c2", "[1]", "[2]"))
	if f := freeze(t, s, "r"); f.Version != 8 || len(f.calls) != 2 || !f.Incomplete {
		t.Errorf("%+v", f.Snapshot)
	}
}

// TestStateIsLazy: a state is written when it lacks much, when its store is closed, and when somebody needs it; never for each call.
func TestStateIsLazy(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, func(o *Options) { o.Lazy = 4000 })
	put(t, s, newEntry("r", "c1", "[1]", "[2]"))
	if _, err := os.Lstat(statePath(dir, "r")); err == nil {
		t.Error("a state for one call")
	}
	for _, call := range []string{"c2", "c3", "c4", "c5", "c6", "c7"} {
		put(t, s, newEntry("r", call, "[1]", "[2]"))
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := stateOf(t, dir, "r"); st["version"] != 7.0 || st["indexed_size"] != float64(len(read(t, dataPath(dir, "r")))) {
		t.Errorf("%v", st)
	}
	wantErr(t, "closed twice", s.Close(t.Context()), ErrClosed)
	wantErr(t, "put", s.Put(t.Context(), newEntry("r", "c8", "[1]", "[2]")), ErrClosed)
}

// TestIndexInsideALine: nothing is written behind what does not end.
func TestIndexInsideALine(t *testing.T) {
	l := encodeLine(t, newEntry("r", "c1", "[1]", "[2]"))
	lay := func(file string, indexed int) string {
		dir := t.TempDir()
		st := newState()
		e, err := encode(newEntry("r", "c1", "[1]", "[2]"))
		if err != nil {
			t.Fatal(err)
		}
		st.digests["c1"], st.indexed, st.version = e.sum, int64(indexed), 1
		write(t, dataPath(dir, "r"), file)
		write(t, statePath(dir, "r"), string(st.encode()))
		return dir
	}
	dir := lay(l, len(l)-2)
	s := newStore(t, dir)
	wantErr(t, "put", s.Put(t.Context(), newEntry("r", "c2", "[1]", "[2]")), ErrDamaged)
	if got := string(read(t, dataPath(dir, "r"))); got != l {
		t.Errorf("the file became %q", got)
	}
	wantProblem(t, dir, "r", "is no end of a line")

	dir = lay(l[:len(l)-1], len(l)-1) // as a writer leaves it that takes a last line without its newline
	s = newStore(t, dir)
	put(t, s, newEntry("r", "c2", "[1]", "[2]"))
	if f := freeze(t, s, "r"); !slices.Equal(f.calls, []string{"c1", "c2"}) || f.Version != 3 {
		t.Errorf("calls %q, version %d", f.calls, f.Version)
	}
	noProblems(t, dir, "r")
}
