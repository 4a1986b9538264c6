package derive

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// records are the derived records of a rollout, as the source reads it, with payloads and compacted.
func records(t *testing.T, s Source) (all []string, cut int) {
	t.Helper()
	f, err := s.Each(func(c *Call, _ capture.Line) error {
		if c == nil {
			all = append(all, "damaged")
			return nil
		}
		var b bytes.Buffer
		err := c.Rests.Write(&b, c.AppendJSON(nil, Form{Payloads: true}))
		all = append(all, string(jsonx.AppendCompact(nil, b.Bytes())))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, f.Cut
}

// sameRecords: the records of lines that are read in outline are those of the lines.
func sameRecords(t *testing.T, dir, id string) {
	t.Helper()
	want, _ := records(t, Source{Dir: dir, Rollout: id})
	got, cut := records(t, Source{Dir: dir, Rollout: id, Outline: 32, Record: true, NoSide: true})
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", id, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s, record %d of %d bytes, want %d:\n%.1500s\n%.1500s", id, i, len(got[i]), len(want[i]), got[i], want[i])
		}
		if got[i] != "damaged" {
			cut--
		}
	}
	if cut != 0 {
		t.Errorf("%s: lines were read whole", id)
	}
}

func rollout(t *testing.T, lines string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.capture.jsonl"), []byte(lines), 0o640); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRecordsOfOutlines: whatever is long in a line, and whatever shape it has, the derived record is that of the line.
func TestRecordsOfOutlines(t *testing.T) {
	for _, dir := range []string{gymStore, "testdata/gym/exchanges", "../testdata/gym", "../testdata/v1"} {
		ids, err := capture.Rollouts(dir)
		if err != nil || len(ids) == 0 {
			t.Fatal(dir, err)
		}
		for _, id := range ids {
			sameRecords(t, dir, id)
		}
	}
	var lines strings.Builder
	text := `"` + strings.Repeat(`\ud83d\ude00 \"é\" \n`, 8<<10) + `"`
	inner := string(jsonx.AppendString(nil, ` { "path" : `+text+`, "n":[1 ,2] } `))
	numbers := `[` + strings.Repeat("1,", 3<<20) + `2]`
	for _, c := range []struct{ dialect, answer, more string }{
		{"chat", `{"id":` + text + `,"model":` + text + `,"choices":[{"finish_reason":` + text + `,"message":{"content":` + text + `,"reasoning":` + text + `}},{"message":{"reasoning_content":` + text + `}}]}`, ""},
		{"chat", `{"choices":[{"message":{"tool_calls":[{"id":` + text + `,"function":{"name":` + text + `,"arguments":` + inner + `}},{"id":{"a":1},"function":{"name":[2],"arguments":` + text + `}},{"function":{"arguments":{"x":` + text + `}}}]}}]}`, ""},
		{"chat", `{"choices":[{"logprobs":{"content":[` + strings.Repeat(`{"token":"a","top_logprobs":[]},`, 10) + `1]},"message":{"reasoning_content":{"not":"text"},"reasoning":"unseen"}}],"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":1}}}`, ""},
		{"responses", `{"status":"incomplete","incomplete_details":{"reason":` + text + `},"tools":[{}],"output":[{"type":"reasoning","summary":[{"text":` + text + `},{"text":` + text + `}]},{"type":"function_call","call_id":` + text + `,"name":"n","arguments":` + inner + `}],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}`, ""},
		{"messages", `{"model":{"hides":"that of the request"},"content":[{"type":"thinking","thinking":` + text + `},{"type":"tool_use","id":` + text + `,"name":"n","input":{"deep":[{"a":` + text + `}]}},{"type":"tool_use","input":[]}],"stop_reason":"tool_use","usage":{"input_tokens":1,"cache_read_input_tokens":5}}`, ""},
		{"gemini", `{"responseId":"i","modelVersion":"v","candidates":[{"finishReason":"STOP","content":{"parts":[{"functionCall":{"name":"n","args":{"a":[` + text + `]}}},{"thought":true,"text":` + text + `},{"thought":[1],"text":"t"}]}}],"usageMetadata":{"promptTokenCount":3}}`, ""},
		{"chat", "null", `,"request_raw":` + text + `,"response_raw":` + text + `,"client_session_id":` + text + `,"local_response_reason":` + text + `,"unknown":{"a":` + text + `}`},
		// What is no text and still very large is not left out.
		{"messages", `{"content":[{"type":"tool_use","id":"t","name":"n","input":{"a":` + numbers + `,"b":1}},{"type":"tool_use","id":"u"}],"stop_reason":"tool_use"}`, ""},
		{"chat", `{"id":"c"}`, `,"upstream_status_code":` + strings.Repeat("7", 20<<10)},
	} {
		lines.WriteString(`{"model_call_id":"c","dialect":"` + c.dialect + `","model_ref":{"type":"responses_api_models","name":` + text + `},"started_at":1795000001.50,"status_code":200,"error_category":` + text +
			`,"request":{"model":` + text + `,"stream":true,"messages":[{"role":"user","content":` + text + `}]},"response":` + c.answer + c.more + `,"rolltap":{"usage":{"prompt_tokens":9}}}` + "\n")
	}
	sameRecords(t, rollout(t, lines.String()), "r")
}

// TestRecordsOfMalformedOutlines: the same for records that no writer writes.
func TestRecordsOfMalformedOutlines(t *testing.T) {
	var rows []struct{ Record json.RawMessage }
	table(t, "malformed.json", &rows)
	var lines strings.Builder
	for _, row := range rows {
		lines.Write(jsonx.AppendCompact(nil, row.Record))
		lines.WriteByte('\n')
	}
	sameRecords(t, rollout(t, lines.String()), "r")
}

// TestAttachmentAgain: the second reading has the calls that the first one counted, or fails.
func TestAttachmentAgain(t *testing.T) {
	record := func(n int) string {
		return `{"model_call_id":"c` + strconv.Itoa(n) + `","dialect":"chat","started_at":1.0,"latency_ms":` + strconv.Itoa(n) + `,"request":{},"response":{}}` + "\n"
	}
	torn := record(3)
	for _, c := range []struct {
		why, first, second string
		calls              int
		err                error
	}{
		{"nothing came", record(1) + record(2), record(1) + record(2), 2, nil},
		{"a call was appended", record(1) + record(2), record(1) + record(2) + record(3), 2, nil},
		{"a torn line was ended", record(1) + torn[:20], record(1) + torn, 1, nil},
		{"one appeared", "", record(1), 0, nil},
		{"it was cleared", record(1), "", 0, errChanged},
		{"it was written anew", record(1) + record(2), record(3), 0, errChanged},
		{"it was written anew, with as many calls", record(1) + record(2), record(1) + record(3), 0, errChanged},
	} {
		dir := rollout(t, c.first)
		a, err := Attach(dir, "r", true)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "r.capture.jsonl"), []byte(c.second), 0o640); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		err = a.WriteJSON(&b)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.why, err, c.err)
		}
		if n := strings.Count(b.String(), `"call_index"`); c.err == nil && (n != c.calls || !jsonx.Valid(b.Bytes()) || int64(n) != a.Calls()) {
			t.Errorf("%s: %s", c.why, b.String())
		}
	}
}
