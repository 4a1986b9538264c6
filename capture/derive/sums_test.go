package derive

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"rolltap/capture"
)

// TestWriteSums: the sums of a whole store are those of its attachments, and an error of whoever watches ends the reading.
func TestWriteSums(t *testing.T) {
	var b strings.Builder
	seen := int64(0)
	if err := WriteSums(&b, gymStore, SumsOptions{Calls: true, Progress: func(n int64) error { seen += n; return nil }}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rollouts []struct {
			ID      string `json:"rollout_id"`
			Calls   []any
			Metrics json.RawMessage
		}
		Total struct {
			Rollouts int
			Metrics  struct {
				Calls int `json:"num_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, r := range got.Rollouts {
		a, err := Attach(gymStore, r.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		if want := string(a.aggregates.AppendMetrics(nil)); string(r.Metrics) != want || int64(len(r.Calls)) != a.Calls() {
			t.Errorf("%s: %s and %d calls, want %s and %d", r.ID, r.Metrics, len(r.Calls), want, a.Calls())
		}
		calls += len(r.Calls)
	}
	if len(got.Rollouts) < 9 || got.Total.Rollouts != len(got.Rollouts) || got.Total.Metrics.Calls != calls || calls < 15 || seen == 0 {
		t.Errorf("%d rollouts, %d calls, %d bytes, total %+v", len(got.Rollouts), calls, seen, got.Total)
	}
	stop := errors.New("stop")
	if err := WriteSums(&strings.Builder{}, gymStore, SumsOptions{Progress: func(int64) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if err := WriteSums(&b, t.TempDir(), SumsOptions{}); err != nil || !strings.HasSuffix(b.String(), `"agents":{}}}}`+"\n") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestWriteCall(t *testing.T) {
	file, err := os.ReadFile(gymStore + "/0-0.capture.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(file), "\n")
	var b strings.Builder
	if err := WriteCall(&b, gymStore, "0-0", 1); err != nil || b.String() != lines[1] {
		t.Errorf("%v: %q", err, b.String())
	}
	for _, c := range []struct {
		id   string
		n    int
		want error
	}{{"0-0", 99, ErrNoCall}, {"0-0", -1, ErrNoCall}, {"none", 0, ErrNoCall}, {"0-2", damagedAt(t, "0-2"), ErrDamaged}} {
		if err := WriteCall(&b, gymStore, c.id, c.n); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// damagedAt is the call_index of the first damaged line of a rollout.
func damagedAt(t *testing.T, id string) int {
	t.Helper()
	at, n := -1, 0
	if _, err := (Source{Dir: gymStore, Rollout: id}).Each(func(_ *Call, l capture.Line) error {
		if l.Damage != nil && at < 0 {
			at = n
		}
		n++
		return nil
	}); err != nil || at < 0 {
		t.Fatalf("%v: no damaged line in %s", err, id)
	}
	return at
}
