package lineage

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestLookup searches a store that Gym wrote for the parents that Gym found in it.
func TestLookup(t *testing.T) {
	store := map[string][]Candidate{}
	for _, e := range entries(t, "testdata/gym/lookup.tokens.jsonl") {
		store[e.Fingerprint] = append(store[e.Fingerprint], e.candidate())
	}
	type lookup struct {
		Case, Status, Reason, Parent string
		Items                        json.RawMessage `json:"request_items"`
	}
	for _, l := range load[lookup](t, "gym/lookup.json") {
		got := Resolve(read(t, `{"messages":`+string(l.Items)+`}`), func(f string) ([]Candidate, error) { return store[f], nil })
		if got.Resolution != l.Status || got.Reason != l.Reason || got.Parent.CallID != l.Parent {
			t.Errorf("%s: %v, Gym has %s %s %s", l.Case, got, l.Status, l.Reason, l.Parent)
		}
	}
}

func read(t testing.TB, body string) *Turns {
	t.Helper()
	turns, err := Read([]byte(body))
	if err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	return turns
}

func TestResolve(t *testing.T) {
	first := read(t, `{"messages":[{"role":"user","content":"q"}]}`)
	next := read(t, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"more"}]}`)
	stamp, err := first.Stamp([]byte(`{"choices":[{"message":{"role":"assistant","content":"a"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	call := func(id, digest string, n int) Candidate { return Candidate{id, stamp, n, digest} }
	with := func(c Candidate, change func(*Candidate)) Candidate { change(&c); return c }
	for _, tt := range []struct {
		name       string
		turns      *Turns
		found      []Candidate
		err        error
		resolution string
		parent     string
		reason     string
	}{
		{"the model wrote nothing", first, []Candidate{call("a", "d", 3)}, nil, Root, "", ""},
		{"one", next, []Candidate{call("a", "d", 3)}, nil, Resolved, "a", ""},
		{"none", next, nil, nil, Unresolved, "", NoMatch},
		{"the search fails", next, nil, errors.New("no disk"), Unresolved, "", LookupError},
		{"what a failed search found is not used", next, []Candidate{call("a", "d", 3)}, errors.New("no disk"), Unresolved, "", LookupError},
		{"no turns", nil, []Candidate{call("a", "d", 3)}, nil, Unresolved, "", LookupError},
		{"equal tokens, smallest id", next, []Candidate{call("b", "d", 3), call("a", "d", 3), call("c", "d", 3)}, nil, Resolved, "a", ""},
		{"other tokens", next, []Candidate{call("a", "d", 3), call("b", "e", 3)}, nil, Unresolved, "", Ambiguous},
		{"the third has other tokens", next, []Candidate{call("c", "d", 3), call("b", "d", 3), call("a", "e", 3)}, nil, Unresolved, "", Ambiguous},
		{"other length", next, []Candidate{call("a", "d", 3), call("b", "d", 4)}, nil, Unresolved, "", Ambiguous},
		{"two without a digest", next, []Candidate{call("a", "", 3), call("b", "", 3)}, nil, Unresolved, "", Ambiguous},
		{"one without a digest", next, []Candidate{call("a", "", 3)}, nil, Resolved, "a", ""},
		{"twice the same record", next, []Candidate{call("a", "d", 3), call("a", "d", 3)}, nil, Resolved, "a", ""},
		{"two records of one call", next, []Candidate{call("a", "d", 3), call("a", "e", 3)}, nil, Unresolved, "", LookupError},
		{"another fingerprint", next, []Candidate{with(call("a", "d", 3), func(c *Candidate) { c.Fingerprint = "f" })}, nil, Unresolved, "", NoMatch},
		{"another context", next, []Candidate{with(call("a", "d", 3), func(c *Candidate) { c.ContextDigest = "f" })}, nil, Unresolved, "", NoMatch},
		{"no context digest", next, []Candidate{with(call("a", "d", 3), func(c *Candidate) { c.ContextDigest = "" })}, nil, Unresolved, "", NoMatch},
		{"no context digest and too long", next, []Candidate{with(call("a", "d", 3), func(c *Candidate) { c.ContextDigest, c.ContextLen = "", 9 })}, nil, Unresolved, "", NoMatch},
		{"context longer than the turns", next, []Candidate{with(call("a", "d", 3), func(c *Candidate) { c.ContextLen = 4 })}, nil, Unresolved, "", NoMatch},
		{"context of another length", next, []Candidate{with(call("a", "d", 3), func(c *Candidate) { c.ContextLen = 2 })}, nil, Unresolved, "", NoMatch},
		{"negative context", next, []Candidate{with(call("a", "d", 3), func(c *Candidate) { c.ContextLen = -1 })}, nil, Unresolved, "", NoMatch},
		{"one of two continues", next, []Candidate{call("b", "d", 3), with(call("a", "e", 3), func(c *Candidate) { c.ContextDigest = "f" })}, nil, Resolved, "b", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // in both orders
				asked := 0
				got := Resolve(tt.turns, func(f string) ([]Candidate, error) {
					if asked++; f != next.Fingerprint() {
						t.Errorf("asked for %q", f)
					}
					return slices.Clone(tt.found), tt.err
				})
				if got.Resolution != tt.resolution || got.Parent.CallID != tt.parent || got.Reason != tt.reason {
					t.Errorf("got %+v", got)
				}
				if (got.Resolution == Resolved) != (got.Parent != Candidate{}) || (got.Resolution == Unresolved) != (got.Reason != "") {
					t.Errorf("%+v contradicts itself", got)
				}
				if asked > 1 {
					t.Errorf("asked %d times", asked)
				}
				slices.Reverse(tt.found)
			}
		})
	}
	if got := Resolve(next, nil); got != (Decision{Resolution: Unresolved, Reason: ResolverUnavailable}) {
		t.Errorf("nobody to ask: %+v", got)
	}
	if got := Resolve(first, nil); got != (Decision{Resolution: Root}) {
		t.Errorf("a root needs nobody: %+v", got)
	}
}

// conversations have the same calls in each dialect, as clients send them: the answer of one is history of the next.
var conversations = map[string][]struct{ request, answer string }{
	"chat": {
		{`{"messages":[{"role":"user","content":"q"}]}`,
			`{"choices":[{"message":{"role":"assistant","content":"calling","reasoning":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"q\":\"x\", \"k\":3}"}}]}}]}`},
		{`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"calling","tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"k\":3,\"q\":\"x\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"r"}]}`,
			`{"choices":[{"message":{"role":"assistant","content":"done"}}]}`},
		{`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"calling","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"k\":3,\"q\":\"x\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"r"},
			{"role":"assistant","content":[{"type":"text","text":"done"}]},{"role":"user","content":"thanks"}]}`, ``},
	},
	"messages": {
		{`{"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}]}]}`,
			`{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"calling"},{"type":"tool_use","id":"c1","name":"search","input":{"q":"x","k":3}}]}`},
		{`{"system":"S","messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"calling"},{"type":"tool_use","id":"c1","name":"search","input":{"k":3,"q":"x"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral"}}]},{"type":"image","source":{"type":"url","url":"u"},"cache_control":{"type":"ephemeral"}}]}]}`,
			`{"type":"message","role":"assistant","content":[{"type":"text","text":"done"}]}`},
		{`{"system":"S2","messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"calling"},{"type":"tool_use","id":"c1","name":"search","input":{"k":3,"q":"x"},"cache_control":null}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"text":"r","type":"text"}]},{"source":{"type":"url","url":"u"},"type":"image"}]},
			{"role":"assistant","content":"done"},{"role":"user","content":"thanks"}]}`, ``},
	},
	"responses": {
		{`{"input":[{"role":"user","content":"q"}]}`,
			`{"output":[{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"calling","annotations":[]}]},
			{"type":"function_call","id":"fc","call_id":"c1","name":"search","arguments":"{\"q\":\"x\",\"k\":3}","status":"completed"}]}`},
		{`{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]},{"type":"reasoning","id":"r","encrypted_content":"e","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"calling"}]},
			{"type":"function_call","call_id":"c1","name":"search","arguments":"{\"q\":\"x\",\"k\":3}"},{"type":"function_call_output","call_id":"c1","output":"r"}]}`,
			`{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done","annotations":[]}]}]}`},
		{`{"input":[{"role":"user","content":"q"},{"type":"reasoning","id":"r","summary":[]},{"role":"assistant","content":"calling"},{"type":"function_call","call_id":"c1","name":"search","arguments":"{\"q\":\"x\",\"k\":3}"},{"type":"function_call_output","call_id":"c1","output":"r"},
			{"role":"assistant","content":"done"},{"role":"user","content":"thanks"}]}`, ``},
	},
}

// TestConversation lets a conversation go on in each dialect: each call finds the one before, and fingerprints are the same in all three.
func TestConversation(t *testing.T) {
	prints := map[string][]string{}
	for dialect, calls := range conversations {
		store := map[string][]Candidate{}
		for i, call := range calls {
			turns := read(t, call.request)
			prints[dialect] = append(prints[dialect], turns.Fingerprint())
			got := Resolve(turns, func(f string) ([]Candidate, error) { return store[f], nil })
			switch {
			case i == 0 && got.Resolution != Root, i > 0 && (got.Resolution != Resolved || got.Parent.CumLen != i-1):
				t.Errorf("%s: call %d is %+v", dialect, i, got)
			}
			if call.answer == "" {
				continue
			}
			stamp, err := turns.Stamp([]byte(call.answer))
			if err != nil {
				t.Fatal(err)
			}
			store[stamp.Fingerprint] = append(store[stamp.Fingerprint], Candidate{dialect, stamp, i, "d"})
		}
	}
	for dialect, got := range prints {
		if !slices.Equal(got, prints["chat"]) {
			t.Errorf("%s has other fingerprints than chat: %v, %v", dialect, got, prints["chat"])
		}
	}
	// The word of the specification for the second call.
	if got, want := prints["chat"][1], "82955bc805cccaf9d2faa840479ff6c30420d20e42bf2bc1ebef14d679ec3768"; got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

// TestReasoningAlone: an answer that is nothing but reasoning has a child, too.
func TestReasoningAlone(t *testing.T) {
	thinking := `{"role":"assistant","type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`
	stamp, err := read(t, `{"messages":[{"role":"user","content":"q"}]}`).Stamp([]byte(thinking))
	if err != nil {
		t.Fatal(err)
	}
	child := read(t, `{"messages":[{"role":"user","content":"q"},`+thinking+`,{"role":"user","content":"go on"}]}`)
	got := Resolve(child, func(f string) ([]Candidate, error) {
		if f != stamp.Fingerprint {
			return nil, nil
		}
		return []Candidate{{"a", stamp, 3, "d"}}, nil
	})
	if got.Resolution != Resolved {
		t.Errorf("%+v", got)
	}
}

// TestContextChanged rewrites a turn that was there before: the parent is proven no longer.
func TestContextChanged(t *testing.T) {
	for dialect, change := range map[string][2]string{
		"chat":      {`"content":"r"`, `"content":"other"`},
		"messages":  {`"text":"r"`, `"text":"other"`},
		"responses": {`"output":"r"`, `"output":"other"`},
	} {
		calls := conversations[dialect]
		stamp, err := read(t, calls[1].request).Stamp([]byte(calls[1].answer))
		if err != nil {
			t.Fatal(err)
		}
		lookup := func(string) ([]Candidate, error) { return []Candidate{{"a", stamp, 3, "d"}}, nil }
		if strings.Count(calls[2].request, change[0]) != 1 {
			t.Fatalf("%s: nothing to change", dialect)
		}
		changed := strings.Replace(calls[2].request, change[0], change[1], 1)
		if got := Resolve(read(t, changed), lookup); got.Reason != NoMatch {
			t.Errorf("%s: %+v", dialect, got)
		}
		if got := Resolve(read(t, calls[2].request), lookup); got.Resolution != Resolved {
			t.Errorf("%s, unchanged: %+v", dialect, got)
		}
	}
}

// TestEmptyContext: the digest of nothing is a value of its own.
func TestEmptyContext(t *testing.T) {
	turns := read(t, `{"input":"hi"}`)
	if got, want := turns.Digest(0), "edd3713968ca572ae44468ff61fabbec572e8de247023892e8bdf0f55aa8cb9f"; got != want || turns.Len() != 0 {
		t.Errorf("%s of %d turns, want %s", got, turns.Len(), want)
	}
	for _, body := range []string{``, `[]`, `"x"`, `null`, `3`} {
		if _, err := Read([]byte(body)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("a request that is %q: %v", body, err)
		}
		if _, err := turns.Stamp([]byte(body)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("an answer that is %q: %v", body, err)
		}
	}
}
