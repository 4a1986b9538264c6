package training

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSamePut is vector T1.
func TestSamePut(t *testing.T) {
	dir := t.TempDir()
	var marked []string
	s := newStore(t, dir, func(o *Options) {
		o.Observe.Marked = func(rollout, call, reason string) { marked = append(marked, rollout+" "+call+" "+reason) }
	})
	put(t, s, newEntry("r", "c1", "[1,2]", "[3]"))
	put(t, s, newEntry("r", "c1", "[1, 2]", "[ 3 ]")) // the same numbers
	before := read(t, dataPath(dir, "r"))
	wantErr(t, "another generation", s.Put(t.Context(), newEntry("r", "c1", "[1,2]", "[4]")), ErrConflict)
	if got := read(t, dataPath(dir, "r")); !bytes.Equal(got, before) || lines(got) != 1 {
		t.Errorf("the file is %q, was %q", got, before)
	}
	st := stateOf(t, dir, "r")
	if st["incomplete"] != true || st["version"] != 2.0 {
		t.Errorf("state %v", st)
	}
	if !slices.Equal(marked, []string{"r c1 conflict"}) {
		t.Errorf("marked %q", marked)
	}
	snap := freeze(t, s, "r")
	if !snap.Incomplete || len(snap.calls) != 1 || len(snap.Marks) != 1 || snap.Marks[0].Reason != "conflict" {
		t.Errorf("snapshot %+v", snap)
	}
}

// TestIntents is vector T2, with an intent that is withdrawn.
func TestIntents(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	begin(t, s, "dangling", "c1")
	if f := freeze(t, s, "dangling"); !f.Incomplete || len(f.calls) != 0 {
		t.Errorf("an intent without an entry: %+v", f)
	}
	begin(t, s, "whole", "c1")
	put(t, s, newEntry("whole", "c1", "[1]", "[2]"))
	if f := freeze(t, s, "whole"); f.Incomplete || len(f.calls) != 1 {
		t.Errorf("an intent with an entry: %+v", f)
	}
	for _, c := range []string{"c1", "c2", "c3"} {
		begin(t, s, "refused", c)
	}
	put(t, s, newEntry("refused", "c1", "[1]", "[2]"))
	if err := s.Withdraw(t.Context(), "refused", "c2", "upstream_refused"); err != nil {
		t.Fatal(err)
	}
	if err := s.Withdraw(t.Context(), "refused", "never-begun", "client_refused"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "withdraw a call with an entry", s.Withdraw(t.Context(), "refused", "c1", "no"), ErrConflict)
	if got := string(read(t, intentsPath(dir, "refused"))); got != "c1\n  \nc3\n" {
		t.Errorf("intents are %q", got)
	}
	if err := s.Withdraw(t.Context(), "refused", "c3", "upstream_refused"); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "refused", "c4")
	put(t, s, newEntry("refused", "c4", "[1]", "[2]"))
	if f := freeze(t, s, "refused"); f.Incomplete {
		t.Error("a withdrawn intent masks")
	}
	wantErr(t, "withdraw behind a freeze", s.Withdraw(t.Context(), "refused", "c3", "no"), ErrFrozen)
	wantErr(t, "begin behind a freeze", s.Begin(t.Context(), "refused", "c5"), ErrFrozen)
	if v := noProblems(t, dir, "refused"); v.Withdrawn["upstream_refused"] != 2 || v.Withdrawn["client_refused"] != 1 {
		t.Errorf("withdrawn %v", v.Withdrawn)
	}
}

// TestLifecycle is vector T3 and the version arithmetic of capture.md 5.6.
func TestLifecycle(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	put(t, s, newEntry("r", "c1", "[1]", "[2]"))
	first := freeze(t, s, "r")
	second := freeze(t, s, "r")
	if first.ID == "" || first.ID != second.ID || first.Version != 2 || second.Version != 2 || first.Incomplete || second.Incomplete {
		t.Errorf("%+v and %+v", first, second)
	}
	wantErr(t, "late put", s.Put(t.Context(), newEntry("r", "c2", "[1]", "[2]")), ErrFrozen)
	if err := s.Mark(t.Context(), "r", "c2", "late"); err != nil {
		t.Fatal(err)
	}
	drop := func(version int64, want bool) {
		t.Helper()
		got, err := s.Drop(t.Context(), "r", first.ID, version)
		if err != nil || got != want {
			t.Errorf("drop of version %d: %v %v", version, got, err)
		}
	}
	drop(2, false)
	third := freeze(t, s, "r")
	if third.ID != first.ID || third.Version != 3 || !third.Incomplete {
		t.Errorf("%+v", third)
	}
	drop(3, true)
	if got, err := s.Drop(t.Context(), "r", "other", 3); got || err != nil {
		t.Errorf("drop of another snapshot: %v %v", got, err)
	}
	if text(t, third.views[0].Prompt, third.File()) != "[1]" {
		t.Error("a snapshot cannot be read behind its drop")
	}
	wantErr(t, "put", s.Put(t.Context(), newEntry("r", "c1", "[1]", "[2]")), ErrRetired)
	wantErr(t, "begin", s.Begin(t.Context(), "r", "c1"), ErrRetired)
	wantErr(t, "mark", s.Mark(t.Context(), "r", "c1", "x"), ErrRetired)
	wantErr(t, "withdraw", s.Withdraw(t.Context(), "r", "c1", "x"), ErrRetired)
	_, err := s.Freeze(t.Context(), "r")
	wantErr(t, "freeze", err, ErrRetired)
	for _, path := range []string{dataPath(dir, "r"), intentsPath(dir, "r"), markerPath(dir, "r")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	st := stateOf(t, dir, "r")
	if st["retired"] != true || st["indexed_size"] != 0.0 || len(st["entry_digests"].(map[string]any)) != 0 {
		t.Errorf("tombstone %v", st)
	}
	if err := s.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	put(t, s, newEntry("r", "c1", "[1]", "[2]"))
	if f := freeze(t, s, "r"); f.Version != 2 || f.ID == first.ID || len(f.calls) != 1 {
		t.Errorf("behind a delete: %+v", f)
	}

	put(t, s, newEntry("v", "c1", "[1]", "[2]"))
	put(t, s, newEntry("v", "c2", "[1]", "[2]"))
	if err := s.Mark(t.Context(), "v", "c3", "no_token_ids"); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, markerPath(dir, "v"))); got != "c3\n" {
		t.Errorf("marker %q", got)
	}
	if f := freeze(t, s, "v"); f.Version != 4 {
		t.Errorf("append, append, mark, freeze is version %d", f.Version)
	}
}

// TestUnindexed is vector T4: another program wrote a line and died before its state.
func TestUnindexed(t *testing.T) {
	dir := t.TempDir()
	e := newEntry("r", "c1", "[1]", "[2]")
	l, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dataPath(dir, "r"), string(l.appendTo(nil)))
	syncs := 0
	s := newStore(t, dir, func(o *Options) {
		o.Secure = func(ws []Appended) error {
			syncs++
			if len(ws) != 1 || !ws[0].New {
				t.Errorf("secured %+v", ws)
			}
			return ws[0].Sync()
		}
	})
	put(t, s, e)
	if syncs != 1 {
		t.Errorf("%d syncs for what nobody had made durable", syncs)
	}
	put(t, s, e)
	if syncs != 1 {
		t.Errorf("%d syncs for what is durable", syncs)
	}
	if got := read(t, dataPath(dir, "r")); lines(got) != 1 {
		t.Errorf("%q", got)
	}
	if f := freeze(t, s, "r"); f.Version != 2 || f.Incomplete {
		t.Errorf("%+v", f)
	}
	if st := stateOf(t, dir, "r"); st["indexed_size"] != float64(len(read(t, dataPath(dir, "r")))) {
		t.Errorf("%v", st)
	}
}

// TestTorn is vector T5, in all the ways in which a line can end too early.
func TestTorn(t *testing.T) {
	l, err := encode(newEntry("r", "c2", "[1]", "[2]"))
	if err != nil {
		t.Fatal(err)
	}
	whole := string(l.appendTo(nil))
	for name, tail := range map[string]struct {
		tail string
		kept bool
	}{
		"half":            {whole[:len(whole)/2], false},
		"a byte":          {"{", false},
		"half, newline":   {whole[:len(whole)/2] + "\n", false},
		"NUL bytes":       {strings.Repeat("\x00", 5000), false},
		"blanks behind":   {whole[:20] + "\n \n", false},
		"without newline": {whole[:len(whole)-1], true},
		"whole":           {whole, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := newStore(t, dir)
			put(t, s, newEntry("r", "c1", "[1]", "[2]"))
			appendFile(t, dataPath(dir, "r"), []byte(tail.tail))
			put(t, s, newEntry("r", "c3", "[1]", "[2]"))
			want := []string{"c1", "c2", "c3"}
			if !tail.kept {
				want = []string{"c1", "c3"}
			}
			f := freeze(t, s, "r")
			if !slices.Equal(f.calls, want) || f.Version != int64(len(want)+1) {
				t.Errorf("calls %q, version %d", f.calls, f.Version)
			}
			noProblems(t, dir, "r")
		})
	}
	t.Run("damage inside", func(t *testing.T) {
		dir := t.TempDir()
		s := newStore(t, dir)
		write(t, dataPath(dir, "r"), whole[:30]+"\n"+whole)
		wantErr(t, "put", s.Put(t.Context(), newEntry("r", "c3", "[1]", "[2]")), ErrDamaged)
		_, err := s.Freeze(t.Context(), "r")
		wantErr(t, "freeze", err, ErrDamaged)
		if got := string(read(t, dataPath(dir, "r"))); got != whole[:30]+"\n"+whole {
			t.Error("damage was changed")
		}
		wantProblem(t, dir, "r", "r.tokens.jsonl:1: no JSON")
		if err := s.Mark(t.Context(), "r", "", "damaged"); err != nil {
			t.Errorf("what is damaged cannot be marked: %v", err)
		}
	})
	t.Run("intents", func(t *testing.T) {
		dir := t.TempDir()
		s := newStore(t, dir)
		begin(t, s, "r", "c1")
		appendFile(t, intentsPath(dir, "r"), []byte("c2-to"))
		begin(t, s, "r", "c3")
		if got := string(read(t, intentsPath(dir, "r"))); got != "c1\nc3\n" {
			t.Errorf("intents %q", got)
		}
	})
	t.Run("conflict on the disk", func(t *testing.T) {
		dir := t.TempDir()
		s := newStore(t, dir)
		put(t, s, newEntry("r", "c2", "[1,1]", "[2]"))
		appendFile(t, dataPath(dir, "r"), []byte(whole))
		for range 2 {
			wantErr(t, "put", s.Put(t.Context(), newEntry("r", "c3", "[1]", "[2]")), ErrConflict)
		}
		if st := stateOf(t, dir, "r"); st["incomplete"] != true {
			t.Errorf("%v", st)
		}
		wantProblem(t, dir, "r", "call c2 is on line 1 already, with another payload")
	})
}

// TestForeignVersion is vector T17.
func TestForeignVersion(t *testing.T) {
	for _, version := range []string{"0", "2"} {
		dir := t.TempDir()
		l, err := encode(newEntry("r", "c1", "[1]", "[2]"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dataPath(dir, "r"), strings.Replace(string(l.appendTo(nil)), `"schema_version":1`, `"schema_version":`+version, 1))
		s := newStore(t, dir)
		_, err = s.Freeze(t.Context(), "r")
		wantErr(t, "freeze", err, ErrDamaged)
		wantErr(t, "freeze", err, ErrEntry)
		_, err = s.Candidates("r", "x")
		wantErr(t, "candidates", err, ErrEntry)
		wantProblem(t, dir, "r", "schema version "+version)
	}
}
