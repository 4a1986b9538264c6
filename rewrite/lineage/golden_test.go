package lineage

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// load reads a golden file that holds a list and must not be empty.
func load[T any](t testing.TB, name string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(list) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return list
}

// TestConverted holds the hashes of whole requests against those of Gym, in all dialects.
func TestConverted(t *testing.T) {
	names, err := filepath.Glob("testdata/gym/*.json")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Input  json.RawMessage
			Output struct {
				Items       []json.RawMessage
				Fingerprint string `json:"assistant_fingerprint"`
				Digest      string `json:"conversation_digest"`
			}
		}
		if json.Unmarshal(b, &golden) != nil {
			continue // a file of another shape
		}
		n++
		turns, err := Read(golden.Input)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, want := turns.Len(), len(golden.Output.Items); got != want {
			t.Errorf("%s: %d turns, Gym has %d", name, got, want)
		}
		if got := turns.Fingerprint(); got != golden.Output.Fingerprint {
			t.Errorf("%s: fingerprint %s, Gym has %s", name, got, golden.Output.Fingerprint)
		}
		if got := turns.Digest(turns.Len()); got != golden.Output.Digest {
			t.Errorf("%s: context digest %s, Gym has %s", name, got, golden.Output.Digest)
		}
	}
	if n != 8 {
		t.Errorf("%d files were compared, there should be 8", n)
	}
}

// request is a body with what Gym makes of it: its context digests for every number of turns, or the error it ends with.
type request struct {
	Name, Body, Fingerprint, Refused string
	Digests                          []string
}

// refusedHere are the requests that are refused here as they are by Gym. Of those that Gym alone refuses doc.go speaks.
var refusedHere = []string{
	"text item", "number item", "list item", "number content", "object content", "false content", "null block", "number block", "untyped", "empty block",
	"calls object", "calls text", "calls number", "text call", "text function",
}

func TestRequests(t *testing.T) {
	for _, r := range load[request](t, "made/requests.json") {
		turns, err := Read([]byte(r.Body))
		if r.Refused != "" {
			if refused := slices.Contains(refusedHere, r.Name); refused != errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: error %v, Gym ends with %s: %.300s", r.Name, err, r.Refused, r.Body)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		if got, want := turns.Len(), len(r.Digests)-1; got != want {
			t.Errorf("%s: %d turns, Gym has %d", r.Name, got, want)
			continue
		}
		if turns.Fingerprint() != r.Fingerprint {
			t.Errorf("%s: fingerprint %q, Gym has %q\n%.300s", r.Name, turns.Fingerprint(), r.Fingerprint, r.Body)
		}
		for n, want := range r.Digests {
			if got := turns.Digest(n); got != want {
				t.Errorf("%s: digest of %d turns %q, Gym has %q\n%.300s", r.Name, n, got, want, r.Body)
				break
			}
		}
		if turns.Digest(-1) != "" || turns.Digest(turns.Len()+1) != "" {
			t.Errorf("%s: a digest of turns that are not there", r.Name)
		}
	}
}

func TestStamps(t *testing.T) {
	type stamp struct {
		Name, Request, Answer, Fingerprint string
		ContextLen                         int    `json:"context_len"`
		ContextDigest                      string `json:"context_digest"`
	}
	for _, s := range load[stamp](t, "made/stamps.json") {
		turns, err := Read([]byte(s.Request))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		got, err := turns.Stamp([]byte(s.Answer))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if want := (Stamp{s.Fingerprint, s.ContextLen, s.ContextDigest}); got != want {
			t.Errorf("%s: %v, Gym has %v\n%s", s.Name, got, want, s.Answer)
		}
		if again, err := turns.Stamp([]byte(s.Answer)); err != nil || again != got {
			t.Errorf("%s: a second stamp differs: %v, %v", s.Name, again, err)
		}
	}
}

// TestValues holds the two spellings of JSON values against orjson's and json.dumps's.
func TestValues(t *testing.T) {
	type value struct {
		Text, Arguments, Compact, Spaced string
		Invalid, Refused                 bool
	}
	for _, v := range load[value](t, "made/values.json") {
		var c canonical
		got, ok := c.append(nil, []byte(v.Text), compact, false)
		if ok == v.Invalid {
			t.Errorf("%.80q: read %t", v.Text, ok)
			continue
		}
		if !ok {
			if stripped := strip([]byte(v.Text)); string(stripped) != v.Arguments {
				t.Errorf("%.80q as a text: %q, Gym has %q", v.Text, stripped, v.Arguments)
			}
			continue
		}
		if !v.Refused && string(got) != v.Compact {
			t.Errorf("%.80q: %s, orjson has %s", v.Text, got, v.Compact)
		}
		if !jsonx.Valid(got) {
			t.Errorf("%.80q: %s is no JSON", v.Text, got)
		}
		if got, _ = c.append(got[:0], []byte(v.Text), spaced, false); string(got) != v.Spaced {
			t.Errorf("%.80q: %s, json.dumps has %s", v.Text, got, v.Spaced)
		}
	}
}

// TestBeyond is about values for which Gym has no hash: what differs must not be taken for the same, and what is the same must not differ.
func TestBeyond(t *testing.T) {
	arguments := func(s string) string {
		quoted, _ := json.Marshal(s)
		return `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":` + string(quoted) + `}}]}]}`
	}
	text := func(s string) string { return `{"messages":[{"role":"assistant","content":"` + s + `"}]}` }
	deep := func(n int, inside string) string { return strings.Repeat("[", n) + inside + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"surrogates", text(`\ud800`), text(`\ud801`), false},
		{"surrogate and replacement", text(`\ud800`), text("\uFFFD"), false},
		{"spelling of a surrogate", text(`a\uD800`), text(`\u0061\ud800`), true},
		{"surrogates that meet", text(`\ud83d\ude00`), text("\U0001F600"), true},
		{"surrogates the wrong way round", text(`\ude00\ud83d`), text("\U0001F600"), false},
		{"surrogates in arguments", arguments(`{"a":"\ud800"}`), arguments(`{"a":"\ud801"}`), false},
		{"big integers", arguments(`{"a":18446744073709551616}`), arguments(`{"a":18446744073709551617}`), false},
		{"members of big integers", arguments(`{"a":18446744073709551616,"b":1}`), arguments(`{ "b":1, "a":18446744073709551616}`), true},
		{"deep", arguments(deep(500, "1")), arguments(deep(500, " 1 ")), true},
		{"deeper than JSON goes here", arguments(deep(513, "1")), arguments(deep(513, "2")), false},
		{"deeper still", arguments(deep(100_000, "1")), arguments(" " + deep(100_000, "1") + "\n"), true},
	} {
		a, errA := Read([]byte(tt.a))
		b, errB := Read([]byte(tt.b))
		if errA != nil || errB != nil {
			t.Errorf("%s: %v, %v", tt.name, errA, errB)
			continue
		}
		if same := a.Fingerprint() == b.Fingerprint(); same != tt.same {
			t.Errorf("%s: the same is %t", tt.name, same)
		}
		if same := a.Digest(1) == b.Digest(1); same != tt.same {
			t.Errorf("%s: the same context is %t", tt.name, same)
		}
	}
}
