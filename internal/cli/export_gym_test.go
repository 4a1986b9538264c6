package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	gymStore  = "../../capture/derive/testdata/gym/store"
	gymGolden = "../../capture/derive/testdata/gym"
)

// export runs an export into a file and returns what is in it and what people were told.
func export(t *testing.T, e Export) (text, told string) {
	t.Helper()
	dir := t.TempDir()
	e.Out = filepath.Join(dir, "out")
	var notes strings.Builder
	if err := e.Run(t.Context(), &Console{Out: io.Discard, Note: func(s string) { notes.WriteString(s + "\n") }}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(e.Out)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files were left, %v", len(left), err)
	}
	return string(b), notes.String()
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestExportGymRows: the attachments are those of Gym's own collector, and no byte of a row is lost.
func TestExportGymRows(t *testing.T) {
	in := []string{
		`{"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0, "response": {"id":"\ud800","n":1e3}}`,
		`{"_ng_task_index":0,"_ng_rollout_index":1}`,
		`{"_ng_rollout_id":"0-2","ng_model_call_capture":{"old":true},"reward":0}`,
		`{not json`,
		``,
		`{"_ng_task_index":0,"_ng_rollout_index":3}`,
		`{"_ng_task_index":0,"_ng_rollout_index":4,"ng_agent_observations":{"source":"x"}}`,
		`{"reward":1}`,
		`{"_ng_rollout_id":".hidden"}`,
		`{"_ng_task_index":"a b","_ng_rollout_index":0}`,
		`[1]`,
		`{"_ng_rollout_id":"0-8-torn"}`,
		`{"_ng_rollout_id":"0-10-missing"}` + "\r",
		`{"_ng_task_index":0,"_ng_rollout_index":"9"}`,
	}
	path := written(t, strings.Join(in, "\n"))
	got, told := export(t, Export{Format: "gym", Store: gymStore, Results: path})
	out := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(out) != len(in) {
		t.Fatalf("%d rows became %d", len(in), len(out))
	}
	for i, id := range map[int]string{0: "0-0", 1: "0-1", 2: "0-2", 5: "0-3", 6: "0-4", 11: "0-8-torn", 12: "0-10-missing", 13: "0-9"} {
		var row, before, want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out[i]), &row); err != nil {
			t.Fatalf("row %d: %v in %s", i, err, out[i])
		}
		golden, err := os.ReadFile(filepath.Join(gymGolden, id+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(golden, &want), json.Unmarshal([]byte(in[i]), &before)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(anyOf(t, want["ng_model_call_capture"]), anyOf(t, row["ng_model_call_capture"])); d != "" {
			t.Errorf("%s (-want +got):\n%s", id, d)
		}
		for name, v := range before {
			if name != "ng_model_call_capture" && string(row[name]) != string(v) {
				t.Errorf("%s: %s became %s, was %s", id, name, row[name], v)
			}
		}
	}
	if !strings.HasPrefix(out[0], strings.TrimSuffix(in[0], "}")+`,"ng_model_call_capture":`) || !strings.HasSuffix(out[12], "}\r") {
		t.Errorf("the bytes of a row changed: %s", out[0])
	}
	for _, i := range []int{3, 4, 7, 8, 9, 10} {
		if out[i] != in[i] {
			t.Errorf("row %d became %s, was %s", i, out[i], in[i])
		}
	}
	const want = "13 rows: 8 with 11 calls, 2 of them whose rollout has no call in the store, 4 of them with another gap, 1 of them with observations of the agent, which were not joined, " +
		"1 passed without an id, 2 passed whose id is none, 2 damaged, passed as they are (rows 4, 7, 8, 9, 10)\n"
	if told != want {
		t.Errorf("told %swant %s", told, want)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != strings.Join(in, "\n") {
		t.Error("the results were changed")
	}
}

func anyOf(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

func TestExportGymPayloads(t *testing.T) {
	for _, payloads := range []bool{false, true} {
		got, _ := export(t, Export{Format: "gym", Store: gymStore, Rollouts: []string{"0-0", "0-1"}, Payloads: payloads})
		rows := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if len(rows) != 2 || strings.Contains(got, `"request":{`) != payloads || strings.Contains(got, `"request_raw"`) != payloads {
			t.Errorf("payloads %t: %s", payloads, got)
		}
		for _, row := range rows {
			anyOf(t, []byte(row))
		}
	}
}

func TestExportRefuses(t *testing.T) {
	there := written(t, "")
	var usage *UsageError
	for _, e := range []Export{
		{Format: "gym", Store: gymStore, Results: there, Out: there},
		{Format: "gym", Store: gymStore, Results: there, Rollouts: []string{"0-0"}},
		{Format: "gym", Store: gymStore, Results: there + ".none"},
		{Format: "chat", Store: gymStore, Results: there},
		{Format: "html", Store: gymStore, Payloads: true},
		{Format: "gym", Store: gymStore, Report: "x"},
		{Format: "gym", Store: gymStore, Rollouts: []string{"../x"}},
		{Format: "gym", Store: "none"},
	} {
		if err := e.Run(t.Context(), &Console{Out: io.Discard}); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if b, err := os.ReadFile(there); err != nil || len(b) > 0 {
		t.Errorf("a file was written over: %q", b)
	}
}

// TestRowReader: a row of any length comes whole, and one beyond the limit passes byte for byte.
func TestRowReader(t *testing.T) {
	in := strings.Repeat("x", 1000) + "\n\nab\n" + strings.Repeat("y", 700<<10) + "\n" + strings.Repeat("z", 300<<10)
	for _, limit := range []int{100, 1001, 600 << 10, 1 << 20} {
		r := newRowReader(strings.NewReader(in))
		r.max = limit
		var out bytes.Buffer
		long := 0
		for {
			row, err := r.next(&out)
			if err == io.EOF {
				break
			}
			if errors.Is(err, errLongRow) {
				long++
				continue
			}
			if err != nil || len(row) > limit {
				t.Fatalf("%d bytes, %v", len(row), err)
			}
			out.Write(row)
		}
		if out.String() != in {
			t.Errorf("limit %d: what came out is another (%d of %d bytes, %d too long)", limit, out.Len(), len(in), long)
		}
	}
}

func TestClearRows(t *testing.T) {
	dir := t.TempDir()
	files := func() string {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range all {
			names = append(names, f.Name())
		}
		return strings.Join(names, " ")
	}
	for _, name := range []string{"3-2.capture.jsonl", "3-2-a1.capture.jsonl", "3-2-a1.capture.incomplete", "x.capture.jsonl", "y.capture.jsonl", "z.capture.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	before := files()
	var usage *UsageError
	for _, rows := range []string{"{\"_ng_rollout_id\":\"x\"}\n{", "{\"_ng_rollout_id\":\"x\"}\n{\"_ng_rollout_id\":\"../y\"}\n", "[]"} {
		err := (&Clear{Store: dir, Rows: written(t, rows)}).Run(t.Context(), &Console{Out: io.Discard})
		if !errors.As(err, &usage) || files() != before {
			t.Errorf("%q: %v, left %s", rows, err, files())
		}
	}
	if err := (&Clear{Store: dir}).Run(t.Context(), &Console{Out: io.Discard}); !errors.As(err, &usage) {
		t.Errorf("nothing to clear: %v", err)
	}
	rows := written(t, `{"_ng_task_index":3,"_ng_rollout_index":2,"_ng_attempt_index":1}`+"\n\n"+`{"_ng_rollout_id":"x"}`+"\n"+`{"_ng_rollout_id":"x"}`+"\n"+`{"a":1}`+"\n"+`{"_ng_rollout_id":"never"}`)
	var out, told strings.Builder
	if err := (&Clear{Store: dir, Rows: rows, Rollouts: []string{"z"}}).Run(t.Context(), &Console{Out: &out, Note: func(s string) { told.WriteString(s) }}); err != nil {
		t.Fatal(err)
	}
	if got := files(); got != "3-2.capture.jsonl y.capture.jsonl" {
		t.Errorf("left %s", got)
	}
	if want := "cleared z\ncleared 3-2-a1\ncleared x\nnever was not there\n"; out.String() != want || told.String() != "1 row without an id, skipped" {
		t.Errorf("%s%s", out.String(), told.String())
	}
}
