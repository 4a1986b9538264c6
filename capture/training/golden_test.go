package training

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rolltap/internal/tokendigest"
	parents "rolltap/rewrite/lineage"
)

// fixtures are the stores that the reference wrote, by the rollout that each holds.
func fixtures(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/tokens/*/*" + dataSuffix)
	if err != nil || len(files) < 10 {
		t.Fatalf("%d stores, %v", len(files), err)
	}
	stores := map[string]string{}
	for _, f := range files {
		stores[strings.TrimSuffix(filepath.Base(f), dataSuffix)] = filepath.Base(filepath.Dir(f))
	}
	return stores
}

// jsonEntry is the entry that a JSON object holds, read by another reader than ours.
func jsonEntry(t testing.TB, object []byte) *Entry {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatal(err)
	}
	text := func(name string) (s string) {
		if raw := m[name]; raw != nil {
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		return s
	}
	number := func(name string, absent int) int {
		if raw := string(m[name]); raw != "" && raw != "null" {
			n, err := strconv.Atoi(raw)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return n
		}
		return absent
	}
	var created float64
	if raw := m["created_at"]; raw != nil {
		if err := json.Unmarshal(raw, &created); err != nil {
			t.Fatal(err)
		}
	}
	return &Entry{
		Rollout: text("rollout_id"), CallID: text("model_call_id"), Model: text("model"),
		PromptTokenIDs: m["prompt_token_ids"], GenerationTokenIDs: m["generation_token_ids"], GenerationLogProbs: m["generation_log_probs"],
		RoutedExperts: m["routed_experts"], OutputItems: m["output_items"], TokenItem: number("token_item_index", NoItem),
		ResponseID: text("response_id"), CreatedAt: created,
		Parent: Resolution(text("parent_resolution")), ParentCallID: text("parent_call_id"), ParentReason: text("parent_resolution_reason"),
		CumLen: number("cum_len", 0), Digest: text("digest"),
		Fingerprint: text("continuation_fingerprint"), ContextLen: number("continuation_context_len", 0), ContextDigest: text("continuation_context_digest"),
		FingerprintVersion: number("fingerprint_version", 0),
		PromptIsDelta:      string(m["prompt_is_delta"]) == "true", PrefixRequested: string(m["prefix_requested"]) == "true", PrefixSupplied: string(m["prefix_supplied"]) == "true",
		Rolltap: m["rolltap"],
	}
}

func encodeLine(t testing.TB, e *Entry) string {
	t.Helper()
	l, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(l.appendTo(nil))
}

// TestLinesAreTheReferences: what the reference wrote, written by us, is the same byte for byte, and so are state and intents.
func TestLinesAreTheReferences(t *testing.T) {
	for rollout, store := range fixtures(t) {
		from, dir := filepath.Join("testdata/tokens", store), t.TempDir()
		s := newStore(t, dir)
		want := read(t, dataPath(from, rollout))
		intents := read(t, intentsPath(from, rollout))
		for line := range bytes.Lines(want) {
			e := jsonEntry(t, line)
			if slices.Contains(strings.Fields(string(intents)), e.CallID) {
				begin(t, s, rollout, e.CallID)
			}
			put(t, s, e)
			if whole := *e; !e.PromptIsDelta {
				if err := whole.Stamp(); err != nil || whole.Digest != e.Digest || whole.CumLen != e.CumLen {
					t.Errorf("%s %s is stamped %d %s, %v", store, e.CallID, whole.CumLen, whole.Digest, err)
				}
			}
		}
		if got := read(t, dataPath(dir, rollout)); !bytes.Equal(got, want) {
			t.Errorf("%s: entries are\n%s\nwant\n%s", store, got, want)
		}
		if got := read(t, intentsPath(dir, rollout)); !bytes.Equal(got, intents) {
			t.Errorf("%s: intents are %q, want %q", store, got, intents)
		}
		// The state of the same moment is the same, once somebody needs it.
		state := read(t, statePath(from, rollout))
		parsed, err := parseState(state)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.encode(); !bytes.Equal(got, state) {
			t.Errorf("%s: state is\n%s\nwant\n%s", store, got, state)
		}
		r := s.rollouts[rollout]
		if got := r.st.encode(); !bytes.Equal(got, state) {
			t.Errorf("%s: the state behind our own writes is\n%s\nwant\n%s", store, got, state)
		}
	}
}

// TestReadTheReferences: stores of the reference are read, go on, and end as its own do.
func TestReadTheReferences(t *testing.T) {
	for rollout, store := range fixtures(t) {
		dir := copyStore(t, store)
		v := noProblems(t, dir, rollout)
		n := lines(read(t, dataPath(dir, rollout)))
		if v.Entries != n || v.Version != int64(n) || v.Incomplete || v.Frozen {
			t.Errorf("%s: %+v of %d entries", store, v, n)
		}
		s := newStore(t, dir)
		for line := range bytes.Lines(read(t, dataPath(dir, rollout))) {
			e := jsonEntry(t, line)
			put(t, s, e) // the same once more
			e.ResponseID += "x"
			if rollout == "linear" {
				continue
			}
			wantErr(t, store+": another payload", s.Put(t.Context(), e), ErrConflict)
			break
		}
		if got := lines(read(t, dataPath(dir, rollout))); got != n {
			t.Errorf("%s: %d lines became %d", store, n, got)
		}
		f := freeze(t, s, rollout)
		if len(f.calls) != n || f.Incomplete != (rollout != "linear") {
			t.Errorf("%s: snapshot %+v of %d calls", store, f.Snapshot, n)
		}
	}
}

// TestReferenceLookup finds the parents that the reference finds, over the store that it wrote.
func TestReferenceLookup(t *testing.T) {
	s := newStore(t, copyStore(t, "lineage-lookup"))
	var cases []struct {
		Case   string
		Items  json.RawMessage `json:"request_items"`
		Status string
		Reason string
		Parent *string
	}
	b, err := os.ReadFile("testdata/tokens/lineage-lookup.json")
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) < 5 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		turns, err := parents.Read([]byte(`{"messages":` + string(c.Items) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		d := parents.Resolve(turns, func(fingerprint string) (list []parents.Candidate, err error) {
			found, err := s.Candidates("l", fingerprint)
			for _, f := range found {
				list = append(list, parents.Candidate{
					CallID: f.CallID, CumLen: f.CumLen, Digest: f.Digest,
					Stamp: parents.Stamp{Fingerprint: f.Fingerprint, ContextLen: f.ContextLen, ContextDigest: f.ContextDigest},
				})
			}
			return list, err
		})
		want := ""
		if c.Parent != nil {
			want = *c.Parent
		}
		if d.Resolution != c.Status || d.Reason != c.Reason || d.Parent.CallID != want {
			t.Errorf("%s: %+v, want %s %s %s", c.Case, d, c.Status, c.Reason, want)
		}
	}
}

func TestNumbersAreTheReferences(t *testing.T) {
	var pairs [][2]string
	if err := json.Unmarshal(read(t, "testdata/canon/numbers.json"), &pairs); err != nil || len(pairs) < 500 {
		t.Fatalf("%d pairs, %v", len(pairs), err)
	}
	var all, want []string
	for _, p := range pairs {
		got, n, err := canonNumbers([]byte("[" + p[0] + "]"))
		if err != nil || n != 1 || string(got) != "["+p[1]+"]" {
			t.Errorf("%s becomes %s, %v; want %s", p[0], got, err, p[1])
		}
		if plainDouble([]byte(p[0])) && p[0] != p[1] {
			t.Errorf("%s passes for canonical, which is %s", p[0], p[1])
		}
		all, want = append(all, p[0]), append(want, p[1])
	}
	got, n, err := canonNumbers([]byte("[ " + strings.Join(all, " ,\n") + "\t]"))
	if err != nil || n != len(pairs) || string(got) != "["+strings.Join(want, ",")+"]" {
		t.Errorf("together: %d, %v", n, err)
	}
}

func TestEntriesAreTheReferences(t *testing.T) {
	var cases []struct{ Name, In, Line string }
	if err := json.Unmarshal(read(t, "testdata/canon/lines.json"), &cases); err != nil || len(cases) < 8 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		if got := encodeLine(t, jsonEntry(t, []byte(c.In))); got != c.Line+"\n" {
			t.Errorf("%s:\ngot  %swant %s", c.Name, got, c.Line)
		}
		// A line is read as what it was made of.
		b := []byte(c.Line)
		v, err := NewReader(bytes.NewReader(b), 0, int64(len(b))).Next()
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		e := jsonEntry(t, b)
		if v.CallID != e.CallID || v.Model != e.Model || v.Parent != e.Parent || v.ParentCallID != e.ParentCallID || v.ParentReason != e.ParentReason ||
			v.Digest != e.Digest || v.Fingerprint != e.Fingerprint || v.ContextLen != int64(e.ContextLen) || v.ContextDigest != e.ContextDigest ||
			v.FingerprintVersion != int64(e.FingerprintVersion) || v.PromptIsDelta != e.PromptIsDelta || v.PrefixRequested != e.PrefixRequested ||
			v.PrefixSupplied != e.PrefixSupplied || v.TokenItem != int64(e.TokenItem) || v.ResponseID != e.ResponseID {
			t.Errorf("%s: read as %+v", c.Name, v)
		}
		for name, got := range map[string]Span{
			"prompt_token_ids": v.Prompt, "generation_token_ids": v.Generation, "generation_log_probs": v.LogProbs,
			"output_items": v.OutputItems, "routed_experts": v.RoutedExperts,
		} {
			var m map[string]json.RawMessage
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			if text := text(t, got, bytes.NewReader(b)); text != string(m[name]) {
				t.Errorf("%s: %s is %s, want %s", c.Name, name, text, m[name])
			}
		}
		if _, n, err := tokendigest.Sum(e.PromptTokenIDs); err != nil || int64(n) != v.Prompt.Count {
			t.Errorf("%s: %d ids in the prompt, %v; want %d", c.Name, v.Prompt.Count, err, n)
		}
	}
}

// TestStateKeepsWhatItDoesNotKnow: members of a later writer survive ours.
func TestStateKeepsWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	write(t, statePath(dir, "r"), `{"entry_digests":{},"frozen":false,"incomplete":false,"indexed_size":0,"retired":false,"snapshot_id":"","version":7,"later":{"a":[1]}}`)
	s := newStore(t, dir)
	if err := s.Mark(t.Context(), "r", "c", "why"); err != nil {
		t.Fatal(err)
	}
	st := stateOf(t, dir, "r")
	if later, _ := json.Marshal(st["later"]); string(later) != `{"a":[1]}` || st["version"] != 8.0 || st["incomplete"] != true {
		t.Errorf("%v", st)
	}
	if keys := slices.Sorted(maps.Keys(st["rolltap"].(map[string]any))); !slices.Equal(keys, []string{"marks", "more", "withdrawn"}) {
		t.Errorf("ours has %q", keys)
	}
	if _, err := s.Freeze(t.Context(), "no/such"); !errors.Is(err, ErrInvalidID) {
		t.Error(err)
	}
}
