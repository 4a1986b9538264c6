package training

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("TRAINING_CHILD_DIR"); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func newStore(t testing.TB, dir string, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: dir}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

// elements counts the elements of a flat array.
func elements(array string) int {
	if strings.Trim(array, "[] ") == "" {
		return 0
	}
	return strings.Count(array, ",") + 1
}

// newEntry is a small valid entry.
func newEntry(rollout, call string, prompt, generation string) *Entry {
	probs := "[" + strings.TrimSuffix(strings.Repeat("-0.5,", elements(generation)), ",") + "]"
	e := &Entry{
		Rollout: rollout, CallID: call, Model: "m", PromptTokenIDs: []byte(prompt), GenerationTokenIDs: []byte(generation),
		GenerationLogProbs: []byte(probs), OutputItems: []byte(`[{"type":"message","role":"assistant","content":` + strconv.QuoteToASCII(call) + `}]`),
		ResponseID: "resp_" + call, CreatedAt: 1, Parent: Root,
	}
	if err := e.Stamp(); err != nil {
		panic(err)
	}
	return e
}

func begin(t testing.TB, s *Store, rollout, call string) {
	t.Helper()
	if err := s.Begin(t.Context(), rollout, call); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, s *Store, e *Entry) {
	t.Helper()
	if err := s.Put(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// frozen is a snapshot with its entries read.
type frozen struct {
	*Snapshot
	calls []string
	views []*View
}

func freeze(t testing.TB, s *Store, rollout string) frozen {
	t.Helper()
	snap, err := s.Freeze(t.Context(), rollout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snap.Close() })
	f := frozen{Snapshot: snap}
	r := snap.Entries()
	for {
		v, err := r.Next()
		if err == io.EOF {
			return f
		}
		if err != nil {
			t.Fatal(err)
		}
		f.views = append(f.views, v)
		f.calls = append(f.calls, v.CallID)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func appendFile(t testing.TB, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stateOf is the state file as encoding/json sees it.
func stateOf(t testing.TB, dir, rollout string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(read(t, statePath(dir, rollout)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func lines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }

// copyStore copies a store of the fixtures into a folder of its own.
func copyStore(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/tokens", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

// text reads the value at a span.
func text(t testing.TB, s Span, f io.ReaderAt) string {
	t.Helper()
	b, err := io.ReadAll(s.Open(f))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func noProblems(t testing.TB, dir, rollout string) *Verification {
	t.Helper()
	v, err := Verify(dir, rollout)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range v.Problems {
		t.Error(p)
	}
	return v
}

func wantProblem(t testing.TB, dir, rollout, part string) {
	t.Helper()
	v, err := Verify(dir, rollout)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(v.Problems), part) {
		t.Errorf("no problem with %q in %v", part, v.Problems)
	}
}

// until waits for what another goroutine is about to do.
func until(done func() bool) {
	for !done() {
		runtime.Gosched()
	}
}

// queued is how many operations on a rollout wait for the one that runs.
func queued(s *Store, rollout string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rollouts[rollout].queue)
}
