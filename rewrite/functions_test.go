package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// Who offers functions reads function_call: one call, and the others are told as lost.
func TestFunctionsAreAnsweredInKind(t *testing.T) {
	const request = `{"model":"m","messages":[{"role":"user","content":"x"}],"functions":[{"name":"f"},{"name":"g"}]`
	whole := map[canon.Dialect]string{
		canon.Messages: `{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":1}},{"type":"tool_use","id":"b","name":"g","input":{}}],"stop_reason":"tool_use"}`,
		canon.Responses: `{"id":"r","object":"response","status":"completed","output":[{"type":"function_call","id":"1","call_id":"a","name":"f","arguments":"{\"x\":1}"},` +
			`{"type":"function_call","id":"2","call_id":"b","name":"g","arguments":"{}"}]}`,
	}
	for up, answer := range whole {
		for _, stream := range []bool{false, true} {
			tr := between(t, canon.Chat, up)
			sent, err := tr.Request([]byte(request + fmt.Sprintf(`,"stream":%v}`, stream)))
			if err != nil || !strings.Contains(string(sent), `"disable_parallel_tool_use":true`) && !strings.Contains(string(sent), `"parallel_tool_calls":false`) {
				t.Errorf("%s: %v, and one call was not asked for: %s", up, err, sent)
			}
			var got []byte
			want := []string{`"function_call":{"name":"f","arguments":"{\"x\":1}"}}`, `"finish_reason":"function_call"`}
			if stream {
				want = []string{`{"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{\"x\":1}"}}`, `"finish_reason":"function_call"`}
				got, err = tr.NewStream(0).Whole([]byte(answer))
			} else {
				got, err = tr.Answer([]byte(answer))
			}
			for _, piece := range want {
				if err != nil || !strings.Contains(string(got), piece) {
					t.Errorf("%s, stream %v: %v, no %s in %s", up, stream, err, piece, got)
				}
			}
			if strings.Contains(string(got), "tool_calls") || strings.Count(string(got), `"name"`) != 1 {
				t.Errorf("%s, stream %v: another call in %s", up, stream, got)
			}
			if lost := []canon.Loss{{Path: "choices[0].message.tool_calls[1]", Reason: canon.NoEquivalent}}; !slices.Equal(tr.Losses(), lost) {
				t.Errorf("%s, stream %v: lost %v", up, stream, tr.Losses())
			}
		}
	}
}
