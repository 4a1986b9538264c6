package training

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"testing"
)

// delta is newEntry of a call that continues another one, its prompt a delta.
func delta(t testing.TB, rollout, call string, parent *Entry, prompt, rest, generation string) *Entry {
	t.Helper()
	e := newEntry(rollout, call, prompt, generation)
	e.Parent, e.ParentCallID, e.PromptIsDelta, e.PromptTokenIDs = Resolved, parent.CallID, true, []byte(rest)
	return e
}

// A peek takes nothing and freezes nothing: writers go on, a call in flight shows, and prompts are whole however they are stored.
func TestPeek(t *testing.T) {
	dir := t.TempDir()
	if _, err := Peek(dir, "r"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a rollout that is not there: %v", err)
	}
	if _, err := Peek(dir, "../r"); !errors.Is(err, ErrInvalidID) {
		t.Errorf("an id that is none: %v", err)
	}
	s := newStore(t, dir)
	begin(t, s, "r", "a")
	peeked(t, dir, true)
	first := newEntry("r", "a", "[1,2]", "[3]")
	put(t, s, first)
	begin(t, s, "r", "b")
	peeked(t, dir, true, "[1,2]")
	put(t, s, delta(t, "r", "b", first, "[1,2,3,4]", "[4]", "[5,6]"))
	peeked(t, dir, false, "[1,2]", "[1,2,3,4]")
	if err := s.Mark(t.Context(), "r", "c", "no_token_ids"); err != nil {
		t.Fatal(err)
	}
	p := peeked(t, dir, true, "[1,2]", "[1,2,3,4]")
	if len(p.Marks) != 1 || p.Marks[0].Reason != "no_token_ids" {
		t.Errorf("marks %v", p.Marks)
	}
	begin(t, s, "r", "c") // nothing was frozen
	freeze(t, s, "r")
	if p := peeked(t, dir, true, "[1,2]", "[1,2,3,4]"); p.ID == "" {
		t.Error("frozen, and it has no snapshot id")
	}
}

// What is damaged is counted, and the rest is read.
func TestPeek_damage(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	first := newEntry("r", "a", "[1,2]", "[3]")
	put(t, s, delta(t, "r", "b", first, "[1,2,3,4]", "[4]", "[5,6]")) // its parent is lost
	put(t, s, newEntry("r", "c", "[7]", "[8]"))
	appendFile(t, dataPath(dir, "r"), []byte("{\"torn\":"))
	peeked(t, dir, false, "null", "[7]")
}

func peeked(t testing.TB, dir string, incomplete bool, prompts ...string) *Snapshot {
	t.Helper()
	p, err := Peek(dir, "r")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Incomplete != incomplete {
		t.Errorf("incomplete %t, want %t", p.Incomplete, incomplete)
	}
	var b bytes.Buffer
	if err := p.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var o struct {
		Rollout    string `json:"rollout_id"`
		Incomplete bool   `json:"incomplete"`
		Damaged    int    `json:"damaged"`
		Calls      []struct {
			Call       string          `json:"model_call_id"`
			Prompt     json.RawMessage `json:"prompt_token_ids"`
			Generation []int           `json:"generation_token_ids"`
			Logprobs   []float64       `json:"generation_log_probs"`
			Items      []any           `json:"output_items"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(b.Bytes(), &o); err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	if o.Rollout != "r" || o.Incomplete != incomplete || len(o.Calls) != len(prompts) {
		t.Fatalf("want %d calls, incomplete %t: %s", len(prompts), incomplete, b.Bytes())
	}
	for i, c := range o.Calls {
		if string(c.Prompt) != prompts[i] || len(c.Generation) == 0 || len(c.Generation) != len(c.Logprobs) || len(c.Items) != 1 {
			t.Errorf("call %d is %+v, want the prompt %s", i, c, prompts[i])
		}
	}
	return p
}
