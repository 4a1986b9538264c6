package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"rolltap/capture/derive"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// store is a store of every dialect, of hostile text, of another program's records, and of damage.
var store = filepath.Join("testdata", "store")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another:\n%s", name, got)
	}
}

func show(t *testing.T, s Show, c Console) string {
	t.Helper()
	var b bytes.Buffer
	c.Out, c.Zone = &b, time.UTC
	if err := s.Run(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShowGolden(t *testing.T) {
	for _, id := range []string{"agent", "claude", "codex", "hostile", "foreign", "damaged", "lost"} {
		t.Run(id, func(t *testing.T) {
			got := show(t, Show{Rollout: id, Store: store}, Console{})
			golden(t, id+".txt", got)
			for _, r := range got {
				if r != '\n' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf) {
					t.Fatalf("%U reached the terminal", r)
				}
			}
		})
	}
	golden(t, "colours.txt", show(t, Show{Rollout: "agent", Store: store}, Console{Colour: true, Width: 80}))
}

func TestShowList(t *testing.T) {
	golden(t, "list.txt", show(t, Show{Store: store}, Console{}))
	golden(t, "list.json", show(t, Show{Store: store, JSON: true}, Console{}))
}

// TestShowAgreesWithStats: a line whose members have other types than records have is damaged to all who read calls, and an answer of
// another program ends with the same word.
func TestShowAgreesWithStats(t *testing.T) {
	dir := t.TempDir()
	lines := `{"dialect":"messages","model_call_id":"a","latency_ms":{},"response":{"stop_reason":"end_turn"}}` + "\n" +
		`{"dialect":"messages","model_call_id":"b","latency_ms":7,"response":{"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_read_input_tokens":4}}}` + "\n"
	if err := os.WriteFile(dataFile(dir, "r"), []byte(lines), 0o640); err != nil {
		t.Fatal(err)
	}
	one, list, sums := show(t, Show{Rollout: "r", Store: dir}, Console{}), show(t, Show{Store: dir}, Console{}), stats(t, Stats{Store: dir, Rollouts: []string{"r"}})
	for name, v := range map[string]struct{ got, want string }{
		"transcript: damage": {one, "line 1 is damaged: " + derive.ErrUnusable.Error()},
		"transcript: answer": {one, "finish stop  7.0 ms  7 → - tokens (4 cached)"},
		"transcript: total":  {one, "1 call, 7 → - tokens, 1 damaged line"},
		"list":               {list, "1 damaged line"},
		"stats":              {sums, "1 damaged line"},
	} {
		if !strings.Contains(v.got, v.want) {
			t.Errorf("%s: %q is not in\n%s", name, v.want, v.got)
		}
	}
}

func TestShowJSONHasEveryRecordWhole(t *testing.T) {
	got := show(t, Show{Rollout: "damaged", Store: store, JSON: true}, Console{})
	var v struct {
		ID         string            `json:"rollout_id"`
		Calls      []json.RawMessage `json:"calls"`
		Damaged    []int             `json:"damaged_lines"`
		Incomplete bool              `json:"incomplete"`
	}
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(dataFile(store, "damaged"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(file), "\n")
	for i, n := range []int{0, 3, 5} {
		if want := strings.TrimLeft(lines[n], "\x00"); string(v.Calls[i]) != want {
			t.Errorf("record %d is another:\n%s\nwant\n%s", i, v.Calls[i], want)
		}
	}
	if v.ID != "damaged" || len(v.Calls) != 3 || len(v.Damaged) != 3 || v.Damaged[0] != 2 || !v.Incomplete {
		t.Errorf("got %s with %d calls, damaged %v, incomplete %t", v.ID, len(v.Calls), v.Damaged, v.Incomplete)
	}
	if got := show(t, Show{Rollout: "lost", Store: store, JSON: true}, Console{}); !json.Valid([]byte(got)) {
		t.Errorf("a rollout without records: %s", got)
	}
}

func TestShowErrors(t *testing.T) {
	var usage *UsageError
	for _, c := range []struct {
		s     Show
		usage bool
	}{
		{Show{Rollout: "../x", Store: store}, true},
		{Show{Store: filepath.Join(store, "none")}, true},
		{Show{Store: dataFile(store, "agent")}, true},
		{Show{Rollout: "none", Store: store}, false},
	} {
		err := c.s.Run(t.Context(), &Console{Out: io.Discard})
		if err == nil || errors.As(err, &usage) != c.usage {
			t.Errorf("%+v: got %v, want a usage error: %t", c.s, err, c.usage)
		}
	}
}

// watched is an output that a test waits on.
type watched struct {
	mu   sync.Mutex // guards b
	b    bytes.Buffer
	more chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (w *watched) wait(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		w.mu.Lock()
		got := w.b.String()
		w.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-w.more:
		case <-deadline:
			t.Fatalf("%q does not come; got\n%s", text, got)
		}
	}
}

func twoRecords(t *testing.T) (first, second string) {
	t.Helper()
	b, err := os.ReadFile(dataFile(store, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	return lines[0], lines[1]
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, s Show) (w *watched, stop func() error) {
	t.Helper()
	w = &watched{more: make(chan struct{}, 1)}
	s.Follow, s.every = true, time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, &Console{Out: w, Zone: time.UTC}) }()
	return w, func() error { cancel(); return <-done }
}

// A followed rollout may not be there yet, is read while a line is being written, and may be cleared.
func TestShowFollow(t *testing.T) {
	dir := t.TempDir()
	first, second := twoRecords(t)
	w, stop := follow(t, Show{Rollout: "r", Store: dir})
	w.wait(t, "rollout r")
	path := dataFile(dir, "r")
	add(t, path, first)
	w.wait(t, "go build")
	add(t, path, second[:1000])
	add(t, path, second[1000:])
	w.wait(t, "Add an import.")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "the rollout was cleared")
	add(t, path, second)
	w.wait(t, "rollout r") // of the second attempt; its call comes behind
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestShowFollowList(t *testing.T) {
	dir := t.TempDir()
	first, second := twoRecords(t)
	add(t, dataFile(dir, "a"), first)
	w, stop := follow(t, Show{Store: dir})
	w.wait(t, "\na  ")
	add(t, dataFile(dir, "b"), second)
	w.wait(t, "\nb  ")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestShowLong: what a transcript says of a line that was read as an outline is not taken for all that there is.
func TestShowLong(t *testing.T) {
	dir := t.TempDir()
	add(t, dataFile(dir, "r"), `{"model_call_id":"a","dialect":"chat","request":{"messages":[{"role":"user","content":"`+strings.Repeat("x", 5<<20)+`"}]},"response":null}`+"\n"+
		`{"model_call_id":"b","dialect":"chat","request":{"messages":[{"role":"user","content":"y"}]},"response":null}`+"\n")
	if out := show(t, Show{Rollout: "r", Store: dir}, Console{}); strings.Count(out, "a line of 5.0 MiB: ") != 1 {
		t.Error(out)
	}
}

// Any line may stand in a store, and it is printed without a panic and without anything that a terminal obeys.
func FuzzTranscript(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(store, "*.jsonl"))
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for l := range bytes.Lines(b) {
			f.Add(l)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(dataFile(dir, "r"), append(line, '\n'), 0o640); err != nil {
			t.Fatal(err)
		}
		for _, r := range show(t, Show{Rollout: "r", Store: dir}, Console{}) {
			if r != '\n' && r != '\t' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf) {
				t.Fatalf("%U reached the terminal", r)
			}
		}
		show(t, Show{Store: dir}, Console{})
	})
}
