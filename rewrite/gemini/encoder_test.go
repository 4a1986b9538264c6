package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// Chats of Google's SDKs take the turn of a stream for invalid, and forget it with the question, when a chunk has no candidate, no content or no
// part in it: keep-alives and the end have a text without a character.
func TestEveryChunkHasAPart(t *testing.T) {
	text := []canon.Event{{Kind: canon.Open, Type: canon.TextPart}, {Kind: canon.Delta, Text: canon.Text("a")}, {Kind: canon.Close}}
	call := []canon.Event{{Kind: canon.Open, Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("f")}}, {Kind: canon.Close}}
	thought := []canon.Event{{Kind: canon.Open, Type: canon.ReasoningPart}, {Kind: canon.Delta, Text: canon.Text("T")}, {Kind: canon.Seal, Text: canon.Text("S"), SignedBy: canon.Gemini}, {Kind: canon.Close}}
	for _, tc := range []struct {
		name   string
		events []canon.Event
		want   string // parts of the fold
	}{
		{"a text", text, `[{"text":"a"}]`},
		{"a call", call, `[{"functionCall":{"id":"c","name":"f","args":{}}}]`},
		{"a thought alone", thought, `[{"thought":true,"text":"T"},{"text":"","thoughtSignature":"S"}]`},
		{"nothing", nil, `[{"text":""}]`},
	} {
		policy := dialect.DefaultPolicy()
		e := New().NewEncoder(&canon.Request{From: canon.Gemini, Model: canon.Text("m"), Stream: true}, dialect.Options{Policy: &policy, ID: "1"})
		wire := e.AppendKeepAlive(nil)
		events := append([]canon.Event{{Kind: canon.Start, Usage: canon.NoUsage()}}, tc.events...)
		for _, ev := range append(events, canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: canon.StopEnd}}) {
			wire = e.AppendKeepAlive(e.Append(wire, &ev))
		}
		for line := range strings.Lines(string(wire)) {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var chunk struct {
				Candidates []struct {
					Content *struct {
						Role  string
						Parts []map[string]any
					}
				}
			}
			if err := json.Unmarshal([]byte(data), &chunk); err != nil {
				t.Fatal(err)
			}
			if c := chunk.Candidates; len(c) != 1 || c[0].Content == nil || c[0].Content.Role != "model" || len(c[0].Content.Parts) == 0 || len(c[0].Content.Parts[0]) == 0 {
				t.Errorf("%s: a chunk that chats take for invalid: %s", tc.name, data)
			}
		}
		if folded := dialecttest.Fold(New(), wire).Response; !strings.Contains(folded, `"parts":`+tc.want) {
			t.Errorf("%s: %s; want %s", tc.name, folded, tc.want)
		}
	}
}
