package derive

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/capture"
)

const gymStore = "testdata/gym/store"

// attach reads a rollout as a reader does, and its calls with all they have.
func attach(t *testing.T, dir, id string) (*Attachment, []string) {
	t.Helper()
	a, err := Attach(dir, id, false)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	if _, err := (Source{Dir: dir, Rollout: id}).Each(func(c *Call, _ capture.Line) error {
		if c != nil {
			calls = append(calls, string(c.AppendJSON(nil, Form{Payloads: true})))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return a, calls
}

// value decodes JSON for comparison, numbers as floats.
func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func order(t *testing.T, text string) []string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
	}
	return names
}

// TestGymDerived: records, metrics and attachment are those of the Gym reader, member for member and in its order.
func TestGymDerived(t *testing.T) {
	golden, err := filepath.Glob("testdata/gym/*.json")
	if err != nil || len(golden) < 10 {
		t.Fatalf("%d golden files, %v", len(golden), err)
	}
	for _, path := range golden {
		id := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(id, func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Records    []json.RawMessage `json:"records"`
				Metrics    json.RawMessage   `json:"metrics"`
				Unusable   int               `json:"unusable_lines"`
				Attachment json.RawMessage   `json:"ng_model_call_capture"`
			}
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			a, calls := attach(t, gymStore, id)
			if len(calls) != len(want.Records) || a.Damaged != want.Unusable {
				t.Fatalf("%d calls and %d damaged lines, want %d and %d", len(calls), a.Damaged, len(want.Records), want.Unusable)
			}
			for i, c := range calls {
				if d := cmp.Diff(value(t, string(want.Records[i])), value(t, c)); d != "" {
					t.Errorf("call %d (-want +got):\n%s", i, d)
				}
				if got, want := order(t, c), order(t, string(want.Records[i])); !reflect.DeepEqual(got, want) {
					t.Errorf("order %q, want %q", got, want)
				}
			}
			var b strings.Builder
			if err := a.WriteJSON(&b); err != nil {
				t.Fatal(err)
			}
			got := b.String()
			if d := cmp.Diff(value(t, string(want.Attachment)), value(t, got)); d != "" {
				t.Errorf("attachment (-want +got):\n%s", d)
			}
			if got, want := order(t, got), order(t, string(want.Attachment)); !reflect.DeepEqual(got, want) {
				t.Errorf("order %q, want %q", got, want)
			}
			if d := cmp.Diff(value(t, string(want.Metrics)), value(t, string(a.aggregates.AppendMetrics(nil)))); d != "" {
				t.Errorf("metrics (-want +got):\n%s", d)
			}
		})
	}
}

func table(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/gym/tables", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func TestGymTokenStats(t *testing.T) {
	var rows []struct {
		Usage json.RawMessage
		Stats struct {
			In       *int64 `json:"tokens_in"`
			Out      *int64 `json:"tokens_out"`
			Thought  *int64 `json:"tokens_reasoning"`
			Total    *int64 `json:"tokens_total"`
			Creation *int64 `json:"cache_creation_tokens"`
		}
		Hit    *bool  `json:"cache_hit"`
		Cached *int64 `json:"cached_tokens"`
	}
	table(t, "token-stats.json", &rows)
	n := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	for _, row := range rows {
		want := Tokens{n(row.Stats.In), n(row.Stats.Out), n(row.Stats.Thought), n(row.Stats.Total), n(row.Stats.Creation), n(row.Cached)}
		got := ReadTokens(row.Usage)
		if got != want {
			t.Errorf("%s: %+v, want %+v", row.Usage, got, want)
		}
		if row.Hit != nil && *row.Hit != (got.Cached > 0) {
			t.Errorf("%s: hit %t", row.Usage, *row.Hit)
		}
	}
	if len(rows) < 15 {
		t.Fatalf("only %d rows", len(rows))
	}
}

// TestGymMalformed: what Gym refuses is unusable here, and what it accepts becomes the same.
func TestGymMalformed(t *testing.T) {
	var rows []struct{ Record, Derived json.RawMessage }
	table(t, "malformed.json", &rows)
	var r Reader
	for _, row := range rows {
		c, err := r.Read(row.Record, 3)
		if refused := string(row.Derived) == "null"; refused != errors.Is(err, ErrUnusable) {
			t.Errorf("%s: %v, Gym refuses: %t", row.Record, err, refused)
			continue
		} else if refused {
			continue
		}
		if d := cmp.Diff(value(t, string(row.Derived)), value(t, string(c.AppendJSON(nil, Form{Payloads: true})))); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.Record, d)
		}
	}
	if len(rows) < 90 {
		t.Fatalf("only %d rows", len(rows))
	}
}

func TestGymRolloutIDs(t *testing.T) {
	var rows []struct{ Body, ID json.RawMessage }
	table(t, "rollout-ids.json", &rows)
	for _, row := range rows {
		id, err := RolloutID(row.Body)
		got := "null"
		if id != "" {
			b, _ := json.Marshal(id)
			got = string(b)
		}
		want := string(row.ID)
		switch {
		case want == `"a\n"`: // an anchor of theirs lets it through; their store refuses it, and so does this rule
			if !errors.Is(err, ErrRow) {
				t.Errorf("%s: %q, %v", row.Body, id, err)
			}
		case strings.Contains(want, "raises"):
			if !errors.Is(err, ErrRow) {
				t.Errorf("%s: %q, %v, want ErrRow", row.Body, id, err)
			}
		case err != nil || got != want:
			t.Errorf("%s: %s, %v, want %s", row.Body, got, err, want)
		}
	}
	if len(rows) < 15 {
		t.Fatalf("only %d rows", len(rows))
	}
}

// TestGymStore: a store that Gym's middleware wrote reads whole.
func TestGymStore(t *testing.T) {
	const dir = "testdata/gym/exchanges"
	ids, err := capture.Rollouts(dir)
	if err != nil || len(ids) < 80 {
		t.Fatalf("%d rollouts, %v", len(ids), err)
	}
	for _, id := range ids {
		a, calls := attach(t, dir, id)
		if a.Damaged != 0 || len(calls) == 0 && !a.Marked {
			t.Errorf("%s: %d calls, %d damaged", id, len(calls), a.Damaged)
		}
		for _, c := range calls {
			value(t, c)
		}
	}
}
