package training

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rolltap/internal/storefs"
)

// TestHostileNames: what is no id touches no file, whatever is asked for.
func TestHostileNames(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "store")
	s := newStore(t, dir)
	long := strings.Repeat("a", storefs.MaxIDLen+1)
	for _, id := range []string{
		"", ".", "..", "../r", "a/b", "/r", `a\b`, "a b", "a\x00b", "a\nb", "-a", "_a", ".a", "é", "a:b", "a%2fb", "a*", "~", "a\xff", long,
	} {
		snap, freezeErr := s.Freeze(t.Context(), id)
		if snap != nil {
			t.Errorf("%q: a snapshot", id)
		}
		_, dropErr := s.Drop(t.Context(), id, "", 0)
		_, lookErr := s.Candidates(id, "f")
		_, verifyErr := Verify(dir, id)
		for what, err := range map[string]error{
			"begin": s.Begin(t.Context(), id, "c"), "put": s.Put(t.Context(), newEntry(id, "c", "[1]", "[2]")), "mark": s.Mark(t.Context(), id, "c", "x"),
			"withdraw": s.Withdraw(t.Context(), id, "c", "x"), "delete": s.Delete(t.Context(), id), "freeze": freezeErr, "drop": dropErr,
			"candidates": lookErr, "verify": verifyErr,
		} {
			wantErr(t, what+" of "+id, err, ErrInvalidID)
		}
		if ValidID(id) || Exists(dir, id) {
			t.Errorf("%q is an id", id)
		}
	}
	for _, call := range []string{"", " ", "a b", "a\n", "a\rb", "\x00", "é", strings.Repeat("c", maxCallLen+1), "a\x7f"} {
		for what, err := range map[string]error{
			"begin": s.Begin(t.Context(), "r", call), "put": s.Put(t.Context(), newEntry("r", call, "[1]", "[2]")), "withdraw": s.Withdraw(t.Context(), "r", call, "x"),
		} {
			wantErr(t, what+" of call "+call, err, ErrInvalidID)
		}
		if call != "" {
			wantErr(t, "mark of call "+call, s.Mark(t.Context(), "r", call, "x"), ErrInvalidID)
		}
	}
	for _, path := range []string{root, dir} {
		files, err := os.ReadDir(path)
		if err != nil || len(files) != map[string]int{root: 1, dir: 0}[path] {
			t.Errorf("%s has %v, %v", path, files, err)
		}
	}
	longest, odd := strings.Repeat("a", storefs.MaxIDLen), strings.Repeat(`~"\<`, maxCallLen/4)
	begin(t, s, longest, odd)
	put(t, s, newEntry(longest, odd, "[1]", "[2]"))
	if f := freeze(t, s, longest); f.Incomplete || len(f.calls) != 1 || f.calls[0] != odd {
		t.Errorf("%+v", f)
	}
	for _, name := range []string{"b.tokens.jsonl.tokens.jsonl", "c.tokens.lock", "..tokens.jsonl", ".tokens-state-1", "d.capture.jsonl", "é.tokens.jsonl", "e.tokens.incomplete"} {
		write(t, filepath.Join(dir, name), "")
	}
	ids, err := Rollouts(dir)
	if want := longest + " b.tokens.jsonl e"; err != nil || strings.Join(ids, " ") != want {
		t.Errorf("rollouts %q, %v", ids, err)
	}
}

// TestForeignFiles: in the place of a file there may be anything that somebody put there. It is neither followed nor read nor waited for.
func TestForeignFiles(t *testing.T) {
	for name, plant := range map[string]func(path, target string) error{
		"a symbolic link":            func(path, target string) error { return os.Symlink(target, path) },
		"a symbolic link to nowhere": func(path, target string) error { return os.Symlink(target+"-none", path) },
		"a folder":                   func(path, _ string) error { return os.Mkdir(path, 0o750) },
		"a pipe":                     func(path, _ string) error { return unix.Mkfifo(path, 0o640) },
		"a socket":                   func(path, _ string) error { return unix.Mknod(path, unix.S_IFSOCK|0o640, 0) },
	} {
		for what, place := range map[string]func(dir, id string) string{
			"entries": dataPath, "intents": intentsPath, "state": statePath, "lock": lockPath, "marker": markerPath,
		} {
			t.Run(name+" for "+what, func(t *testing.T) {
				dir := t.TempDir()
				target := filepath.Join(t.TempDir(), "target")
				write(t, target, "precious\n")
				if err := plant(place(dir, "r"), target); err != nil {
					t.Fatal(err)
				}
				s := newStore(t, dir)
				putErr := s.Put(t.Context(), newEntry("r", "c", "[1]", "[2]"))
				beginErr := s.Begin(t.Context(), "r", "c2")
				markErr := s.Mark(t.Context(), "r", "c", "x")
				_, freezeErr := s.Freeze(t.Context(), "r")
				for op, err := range map[string]error{"put": putErr, "begin": beginErr, "mark": markErr, "freeze": freezeErr} {
					uses := map[string]string{"entries": "put freeze", "intents": "begin freeze", "state": "put begin mark freeze", "lock": "put begin mark freeze", "marker": "mark"}[what]
					if used := strings.Contains(uses, op); used != (err != nil) {
						t.Errorf("%s: %v", op, err)
					} else if err != nil && !errors.Is(err, ErrNoFile) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, ErrLocked) {
						t.Errorf("%s says %v", op, err)
					}
				}
				if _, err := s.Candidates("r", "f"); what == "entries" && !errors.Is(err, ErrNoFile) {
					t.Errorf("candidates: %v", err)
				}
				if _, err := Verify(dir, "r"); err != nil {
					t.Errorf("verify: %v", err)
				}
				if what != "lock" {
					wantProblem(t, dir, "r", ErrNoFile.Error())
					if err := s.Delete(t.Context(), "r"); err != nil {
						t.Errorf("delete: %v", err)
					}
				}
				if got := string(read(t, target)); got != "precious\n" || read(t, target+"-none") != nil {
					t.Errorf("the target is %q", got)
				}
			})
		}
	}
}

// TestForeignLock: whoever holds a rollout's lock stops that rollout, for as long as we are patient, and nothing else.
func TestForeignLock(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, func(o *Options) { o.GiveUp = 30 * time.Millisecond })
	l, err := tryLock(lockPath(dir, "held"), 0)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "put", s.Put(t.Context(), newEntry("held", "c", "[1]", "[2]")), ErrLocked)
	wantErr(t, "begin", s.Begin(t.Context(), "held", "c"), ErrLocked)
	put(t, s, newEntry("free", "c", "[1]", "[2]"))
	patient := newStore(t, dir)
	done := make(chan error)
	go func() { done <- patient.Put(t.Context(), newEntry("held", "c", "[1]", "[2]")) }()
	put(t, patient, newEntry("free", "c2", "[1]", "[2]"))
	// A store that is closed meanwhile does not wait for it either.
	closing := newStore(t, dir)
	wrote := make(chan error)
	go func() { wrote <- closing.Put(t.Context(), newEntry("held", "c9", "[1]", "[2]")) }()
	until(func() bool { closing.mu.Lock(); defer closing.mu.Unlock(); return closing.rollouts["held"] != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	wantErr(t, "close", closing.Close(ctx), context.DeadlineExceeded)
	wantErr(t, "put that was closed upon", <-wrote, ErrClosed)
	unlock(l)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if f := freeze(t, s, "held"); len(f.calls) != 1 {
		t.Errorf("calls %q", f.calls)
	}
}

// TestFolderGone: a folder that is removed while we run is made anew.
func TestFolderGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	s := newStore(t, dir)
	begin(t, s, "r", "c1")
	put(t, s, newEntry("r", "c1", "[1]", "[2]"))
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "r", "c2")
	put(t, s, newEntry("r", "c2", "[1]", "[2]"))
	if f := freeze(t, s, "r"); len(f.calls) != 1 || f.Incomplete || f.Version != 2 {
		t.Errorf("%+v", f)
	}
	noProblems(t, dir, "r")
	if _, err := Open(Options{}); err == nil {
		t.Error("a store without a folder")
	}
	write(t, filepath.Join(filepath.Dir(dir), "file"), "")
	if _, err := Open(Options{Dir: filepath.Join(filepath.Dir(dir), "file", "store")}); err == nil {
		t.Error("a store inside a file")
	}
}
