package rewrite_test

import (
	"errors"
	"testing"

	"rolltap/rewrite/canon"
)

// An answer of which nobody can make one is invalid, streamed or not: it is no failure that the upstream tells of.
func TestWhatIsNoAnswerIsInvalidAsAStreamToo(t *testing.T) {
	for _, c := range []struct {
		name   string
		up     canon.Dialect
		whole  string
		stream []byte
	}{
		{"no finish reason", canon.Chat, `{"id":"i","choices":[{"index":0,"message":{"content":"a"}}]}`, frames(`{"id":"i","choices":[{"index":0,"delta":{"content":"a"}}]}`, "[DONE]")},
		{"nothing but the end", canon.Chat, `{}`, frames("[DONE]")},
		{"a call without a name", canon.Chat, `{"id":"i","choices":[{"index":0,"message":{"tool_calls":[{"id":"c","function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			frames(`{"id":"i","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "[DONE]")},
		{"a call without a name", canon.Responses, `{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"c","arguments":"{}"}]}`,
			frames(`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","arguments":"{}"}}`, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`)},
		{"a call without a name", canon.Messages, `{"id":"m","type":"message","content":[{"type":"tool_use","id":"c","input":{}}],"stop_reason":"tool_use"}`,
			frames(`{"type":"message_start","message":{"id":"m","content":[]}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","input":{}}}`)},
	} {
		for _, client := range dialects(t) {
			s := asking(t, client.Name(), c.up, true).NewStream(0)
			s.Push(c.stream)
			if p := s.Failed(); p == nil || !s.Misunderstood() || p.Status != 502 || p.Code != canon.CodeUpstreamInvalid {
				t.Errorf("%s, %s to %s, streamed: %+v", c.name, c.up, client.Name(), p)
			}
			_, err := asking(t, client.Name(), c.up, false).Answer([]byte(c.whole))
			var p *canon.Problem
			if !errors.As(err, &p) || p.Status != 502 || p.Code != canon.CodeUpstreamInvalid {
				t.Errorf("%s, %s to %s: %+v", c.name, c.up, client.Name(), err)
			}
		}
	}
	// An engine that gives up tells so itself.
	for _, stream := range []bool{false, true} {
		tr := asking(t, canon.Messages, canon.Chat, stream)
		const answer = `{"id":"i","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"abort"}]}`
		var err error
		if stream {
			_, err = tr.NewStream(0).Whole([]byte(answer))
		} else {
			_, err = tr.Answer([]byte(answer))
		}
		var p *canon.Problem
		if !errors.As(err, &p) || p.Status != 503 || p.Code != "overloaded" {
			t.Errorf("aborted, stream %v: %+v", stream, err)
		}
	}
}
