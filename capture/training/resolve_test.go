package training

import (
	"fmt"
	"os"
	"testing"
)

// keyed is an entry that can be looked up.
func keyed(rollout, call, fingerprint string) *Entry {
	e := newEntry(rollout, call, "[1,2]", "[3]")
	e.Fingerprint, e.ContextLen, e.ContextDigest, e.FingerprintVersion = fingerprint, 2, "digest of "+call, FingerprintVersion
	return e
}

func wantCalls(t *testing.T, what string, s *Store, rollout, fingerprint string, want ...string) {
	t.Helper()
	found, err := s.Candidates(rollout, fingerprint)
	var calls []string
	for _, c := range found {
		calls = append(calls, c.CallID)
		if c.Fingerprint != fingerprint || c.ContextDigest != "digest of "+c.CallID || c.ContextLen != 2 || c.CumLen != 3 || c.Digest == "" {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if err != nil || fmt.Sprint(calls) != fmt.Sprint(want) {
		t.Errorf("%s: %q, %v; want %q", what, calls, err, want)
	}
}

func TestCandidates(t *testing.T) {
	dir := t.TempDir()
	s, other := newStore(t, dir), newStore(t, dir)
	wantCalls(t, "before anything", other, "r", "f")
	put(t, s, keyed("r", "c1", "f"))
	wantCalls(t, "the first call", s, "r", "f", "c1")
	wantCalls(t, "the first call, elsewhere", other, "r", "f", "c1")
	put(t, other, keyed("r", "c2", "f"))
	put(t, s, keyed("r", "c3", "g"))
	put(t, s, keyed("r", "c2", "f")) // which is there
	for name, x := range map[string]*Store{"one": s, "the other": other, "a third": newStore(t, dir)} {
		wantCalls(t, name, x, "r", "f", "c1", "c2")
		wantCalls(t, name, x, "r", "g", "c3")
		wantCalls(t, name, x, "r", "h")
		wantCalls(t, name, x, "r", "")
		wantCalls(t, name, x, "s", "f")
	}

	// What is not to be looked up.
	for i, change := range []func(*Entry){
		func(e *Entry) { e.FingerprintVersion = 1 },
		func(e *Entry) { e.FingerprintVersion = 3 },
		func(e *Entry) { e.Fingerprint = "" },
	} {
		e := keyed("r", fmt.Sprint("x", i), "f")
		change(e)
		put(t, s, e)
	}
	wantCalls(t, "other versions", s, "r", "f", "c1", "c2")
	wantCalls(t, "other versions, elsewhere", other, "r", "f", "c1", "c2")

	// Neither a line that is being written, nor one that nobody has ended, is there.
	l := encodeLine(t, keyed("r", "c4", "f"))
	appendFile(t, dataPath(dir, "r"), []byte(l[:100]))
	wantCalls(t, "half a line", other, "r", "f", "c1", "c2")
	appendFile(t, dataPath(dir, "r"), []byte(l[100:len(l)-1]))
	wantCalls(t, "a line without an end", other, "r", "f", "c1", "c2")
	appendFile(t, dataPath(dir, "r"), []byte("\n"))
	wantCalls(t, "the whole line", other, "r", "f", "c1", "c2", "c4")
	wantCalls(t, "the whole line", s, "r", "f", "c1", "c2", "c4")
	appendFile(t, dataPath(dir, "r"), []byte("{\n{}\n"))
	if _, err := other.Candidates("r", "f"); err == nil {
		t.Error("damage is looked over")
	}

	// A rollout that begins anew has none of its old calls, whoever deleted it.
	if err := other.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, "deleted", other, "r", "f")
	wantCalls(t, "deleted elsewhere", s, "r", "f")
	put(t, other, keyed("r", "n1", "f"))
	wantCalls(t, "anew", s, "r", "f", "n1")
	put(t, s, keyed("r", "n2", "f"))
	wantCalls(t, "anew", s, "r", "f", "n1", "n2")
	wantCalls(t, "anew, elsewhere", other, "r", "f", "n1", "n2")
	f := freeze(t, s, "r")
	wantCalls(t, "frozen", other, "r", "f", "n1", "n2")
	if ok, err := other.Drop(t.Context(), "r", f.ID, f.Version); !ok || err != nil {
		t.Fatal(ok, err)
	}
	wantCalls(t, "dropped", other, "r", "f")
	wantCalls(t, "dropped elsewhere", s, "r", "f")
}

// TestReplacedFile: a file that somebody put in the place of another, as long and with the same calls, is read anew.
func TestReplacedFile(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	put(t, s, keyed("r", "c1", "f"))
	wantCalls(t, "before", s, "r", "f", "c1")
	b := encodeLine(t, keyed("r", "c2", "f"))
	write(t, dataPath(dir, "r")+"-new", b)
	if err := os.Rename(dataPath(dir, "r")+"-new", dataPath(dir, "r")); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, "behind", s, "r", "f", "c2")
	put(t, s, keyed("r", "c1", "f"))
	wantCalls(t, "and one more", s, "r", "f", "c2", "c1")
	noProblems(t, dir, "r")
}

// TestForgetting: a store that may remember next to nothing finds everything all the same.
func TestForgetting(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, func(o *Options) { o.Idle, o.Calls, o.Files, o.Lazy = 2, 3, 1, 1500 })
	const rollouts, calls = 7, 5
	for n := range calls {
		for r := range rollouts {
			id := fmt.Sprint("r", r)
			begin(t, s, id, fmt.Sprint("c", n))
			put(t, s, keyed(id, fmt.Sprint("c", n), "f"))
			if n > 0 {
				wantCalls(t, id, s, id, "f", []string{"c0", "c1", "c2", "c3", "c4"}[:n+1]...)
			}
		}
	}
	s.mu.Lock()
	if s.idle.Len() > 2 || len(s.rollouts) > 2 || s.open > 2 {
		t.Errorf("%d rollouts are remembered, %d idle, %d files open", len(s.rollouts), s.idle.Len(), s.open)
	}
	s.mu.Unlock()
	s.lineage.mu.Lock()
	if s.lineage.recent.Len() != len(s.lineage.byID) || s.lineage.calls > 3+calls {
		t.Errorf("%d indexes of %d calls", len(s.lineage.byID), s.lineage.calls)
	}
	s.lineage.mu.Unlock()
	for r := range rollouts {
		id := fmt.Sprint("r", r)
		if f := freeze(t, s, id); len(f.calls) != calls || f.Incomplete || f.Version != calls+1 {
			t.Errorf("%s: %+v", id, f.Snapshot)
		}
	}
}

// TestMemoryAndFileAgree: an entry is found as the same candidate by who wrote it and by who reads it.
func TestMemoryAndFileAgree(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	for i, change := range []func(*Entry){
		func(*Entry) {},
		func(e *Entry) { e.FingerprintVersion = 0 },
		func(e *Entry) { e.FingerprintVersion = 7 },
		func(e *Entry) { e.Digest = "" },
		func(e *Entry) { e.Digest, e.CumLen = "", 0 },
		func(e *Entry) { e.ContextLen, e.ContextDigest = 0, "" },
		func(e *Entry) { e.PromptIsDelta, e.Parent, e.ParentCallID = true, Resolved, "c0" },
		func(e *Entry) { e.Fingerprint = "\u00e9\"" },
	} {
		e := keyed("r", fmt.Sprint("c", i), "f")
		change(e)
		put(t, s, e)
	}
	for _, fingerprint := range []string{"f", "\u00e9\""} {
		a, err := s.Candidates("r", fingerprint)
		b, err2 := newStore(t, dir).Candidates("r", fingerprint)
		if err != nil || err2 != nil || len(a) == 0 || fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
			t.Errorf("%+v, %v\nand %+v, %v", a, err, b, err2)
		}
	}
}
