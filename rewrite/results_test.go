package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// A tool that said nothing said nothing, however the client writes that: without a content, or with null.
func TestResultsWithoutContentAreEmpty(t *testing.T) {
	empty := map[canon.Dialect]string{
		canon.Chat:      `"role":"tool","tool_call_id":"c","content":""`,
		canon.Messages:  `{"type":"tool_result","tool_use_id":"c"`,
		canon.Responses: `"call_id":"c","output":""`,
	}
	for _, c := range []struct {
		client       canon.Dialect
		body, member string
	}{
		{canon.Chat, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c"%s}]}`, "content"},
		{canon.Messages, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"%s}]}]}`, "content"},
		{canon.Responses, `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c"%s}]}`, "output"},
		{canon.Responses, `{"model":"m","input":[{"role":"user","content":"x"},{"type":"custom_tool_call","call_id":"c","name":"f","input":""},{"type":"custom_tool_call_output","call_id":"c"%s}]}`, "output"},
		{canon.Responses, `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"role":"tool","tool_call_id":"c"%s}]}`, "content"},
	} {
		for _, up := range upstreams() {
			for _, said := range []string{"", `,"` + c.member + `":null`, `,"` + c.member + `":""`} {
				if up == c.client {
					continue
				}
				tr := between(t, c.client, up)
				sent, err := tr.Request(fmt.Appendf(nil, c.body, said))
				if err != nil || len(tr.Losses()) > 0 || !strings.Contains(string(sent), empty[up]) {
					t.Errorf("%s to %s with %q: %v, lost %v\n%s", c.client, up, said, err, tr.Losses(), sent)
				}
			}
		}
	}
}
