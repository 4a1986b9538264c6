package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestPresence(t *testing.T) {
	dir := t.TempDir()
	if busy, err := Busy(dir, "a"); busy || err != nil {
		t.Fatalf("a store that nobody has used: busy %t, %v", busy, err)
	}
	one, two := newStore(t, Options{Dir: dir}), newStore(t, Options{Dir: dir})
	enter := func(s *Store, rollout string) func() {
		t.Helper()
		leave, err := s.Enter(rollout)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	wants := func(when, rollout string, want bool) {
		t.Helper()
		if got, err := Busy(dir, rollout); got != want || err != nil {
			t.Errorf("%s: %s is busy: %t, %v; want %t", when, rollout, got, err, want)
		}
	}
	a1, a2, a3 := enter(one, "a"), enter(one, "a"), enter(two, "a")
	wants("three calls in two stores", "a", true)
	wants("calls of another rollout", "b", false)
	a1()
	a3()
	wants("one is left", "a", true)
	a2()
	wants("none is left", "a", false)

	last := enter(two, "a")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("waited"))
	defer cancel()
	if err := Idle(ctx, dir, "a"); err == nil || err.Error() != "waited" {
		t.Errorf("Idle while a call is in flight: %v", err)
	}
	done := make(chan error)
	go func() { done <- Idle(t.Context(), dir, "a") }()
	last()
	if err := <-done; err != nil {
		t.Errorf("Idle behind the last call: %v", err)
	}
	if _, err := one.Enter("../a"); !errors.Is(err, ErrInvalidID) {
		t.Errorf("an invalid id: %v", err)
	}
}

// What is in flight while the folder is replaced is in flight in the new one, as soon as somebody looks.
func TestPresenceFollowsItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := newStore(t, Options{Dir: dir})
	old, err := s.Enter("old")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	s.presence.mu.Lock()
	s.presence.checked = time.Time{}
	s.presence.mu.Unlock()
	fresh, err := s.Enter("new")
	if err != nil {
		t.Fatal(err)
	}
	for _, rollout := range []string{"old", "new"} {
		if busy, err := Busy(dir, rollout); !busy || err != nil {
			t.Errorf("%s: busy %t, %v", rollout, busy, err)
		}
	}
	old()
	fresh()
}

// A process that dies has nothing in flight any more.
func TestPresenceOfADeadProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CAPTURE_TEST_PRESENT="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the other process says nothing: %v", err)
	}
	if busy, err := Busy(dir, "a"); !busy || err != nil {
		t.Errorf("while it lives: busy %t, %v", busy, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if busy, err := Busy(dir, "a"); busy || err != nil {
		t.Errorf("behind its death: busy %t, %v", busy, err)
	}
}

// present is that process: it has a call in flight and says so.
func present(dir string) {
	s, err := Open(Options{Dir: dir})
	if err == nil {
		_, err = s.Enter("a")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("in flight")
	time.Sleep(time.Minute)
}

func TestSeal(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, Options{Dir: dir})
	sealed := func(want bool) {
		t.Helper()
		if got, err := Sealed(dir, "a"); got != want || err != nil {
			t.Errorf("sealed: %t, %v; want %t", got, err, want)
		}
	}
	sealed(false)
	for range 2 {
		if err := Seal(dir, "a", 0o660); err != nil {
			t.Fatal(err)
		}
		sealed(true)
	}
	if st, err := os.Stat(sealPath(dir, "a")); err != nil || st.Mode() != 0o660 {
		t.Errorf("the seal's mode: %v, %v", st.Mode(), err)
	}
	if err := s.Append(t.Context(), record("a", callID(), `{}`)); err != nil {
		t.Errorf("a record of a sealed rollout: %v", err)
	}
	if err := Clear(t.Context(), dir, "a"); err != nil {
		t.Fatal(err)
	}
	sealed(false)
	if err := Seal(dir, "../a", 0); !errors.Is(err, ErrInvalidID) {
		t.Errorf("an invalid id: %v", err)
	}
	if err := Seal(filepath.Join(dir, "none"), "a", 0); err == nil {
		t.Error("sealed in a folder that is not there")
	}
}

func BenchmarkPresence(b *testing.B) {
	s, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.Background())
	for b.Loop() {
		leave, err := s.Enter("a")
		if err != nil {
			b.Fatal(err)
		}
		leave()
	}
}

// A record that misses its deadline is in flight until what becomes of it is known: whoever waits for the rollout sees it, or its mark.
func TestPresence_lateRecord(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, Options{Dir: dir})
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
		t.Fatal(err)
	}
	held, _, err := lockNamed(t.Context(), osFiles{}, dataPath(dir, "r"), false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Append(ctx, record("r", callID(), `{}`)); err == nil {
		t.Fatal("appended although the file is locked")
	}
	if busy, err := Busy(dir, "r"); !busy || err != nil {
		t.Errorf("it may come yet: busy %t, %v", busy, err)
	}
	held.Close()
	if err := Idle(t.Context(), dir, "r"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dataPath(dir, "r"))
	if n := bytes.Count(b, []byte{'\n'}); n != 2 || err != nil {
		t.Errorf("idle, and the file has %d records, %v", n, err)
	}
}
