package rewrite_test

import (
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// A failure inside a stream keeps its words and its status in whatever field and shape it comes, from upstreams of every dialect: to whom it is
// translated, and to whoever watches it pass.
func TestFailureFramesKeepTheirWords(t *testing.T) {
	for name, frame := range map[string]string{
		"an error field of older llama.cpp":    `error: {"code":503,"message":"no slot","type":"unavailable_error"}`,
		"the same around an error":             `error: {"error":{"code":503,"message":"no slot","type":"unavailable_error"}}`,
		"an event with its members at the top": "event: error\n" + `data: {"code":503,"message":"no slot","type":"unavailable_error"}`,
		"an event with an error":               "event: error\n" + `data: {"error":{"code":503,"message":"no slot"}}`,
	} {
		for _, up := range upstreams() {
			for _, client := range dialects(t) {
				s := asking(t, client.Name(), up, true).NewStream(0)
				s.Push([]byte(frame + "\n\n"))
				if p := s.Failed(); p == nil || s.Misunderstood() || p.Status != 503 || p.Message != "no slot" {
					t.Errorf("%s, %s to %s: %+v", name, up, client.Name(), p)
				}
			}
			o := rewrite.NewObserver(translator(t, up), 1<<20)
			if p := o.Push([]byte(": hi\n\n" + frame + "\n\n")); p.Verdict != dialect.Failed || p.End != 6 || !o.Summary().HasError || o.Summary().ErrorStatus != 503 {
				t.Errorf("%s, %s watched: %+v, %+v", name, up, p, o.Summary())
			}
		}
	}
	for _, up := range upstreams() {
		s := asking(t, canon.Gemini, up, true).NewStream(0)
		s.Push([]byte("event: error\ndata: no slot\n\n"))
		if p := s.Failed(); p == nil || s.Misunderstood() || !strings.Contains(p.Message, "no slot") {
			t.Errorf("plain words, %s: %+v", up, p)
		}
	}
}
