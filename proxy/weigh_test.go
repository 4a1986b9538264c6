package proxy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"rolltap/capture"
)

// longStream is the sample's stream with a long text, whole or up to the middle of its end.
func longStream(s sample, whole bool) string {
	var b strings.Builder
	for i, e := range s.events {
		if i == len(s.events)-1 && !whole {
			return b.String() + e[:len(e)/2]
		}
		b.WriteString(e)
		if strings.Contains(e, "delta") && strings.Contains(e, `"Hello"`) {
			b.WriteString(strings.Repeat(e, 1000))
		}
	}
	return b.String()
}

// What a stream adds up to is in the record whether there was memory for it while it came, or it is made of the copy behind its end.
func TestLongStreams_foldWithoutMemory(t *testing.T) {
	type way struct {
		name       string
		coding     string
		whole      bool
		translated bool
	}
	for _, s := range samples() {
		for _, w := range []way{{"as it came", "", true, false}, {"encoded", "gzip", true, false}, {"cut", "", false, false}, {"translated", "", true, true}} {
			if w.translated && s.dialect == "chat" {
				continue
			}
			t.Run(s.dialect+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				up := s
				if w.translated {
					up = chatSample()
				}
				stream := longStream(up, w.whole)
				u := newUpstream(t, func(k *call) {
					header := []string{}
					body := stream
					if w.coding != "" {
						body, header = string(encoded(t, w.coding, []string{stream})[0]), []string{"Content-Encoding", w.coding}
					}
					k.open(200, "text/event-stream", header...)
					k.chunk(body)
					if w.whole {
						k.end()
					}
				})
				r := start(t, u.url(), func(c *Config) { c.UpstreamDialects = []string{up.dialect} })
				record := func(rollout string, budget int64) record {
					b := capture.NewBudget(budget)
					r.srv.handler.foldOptions.Budget = b
					r.exchange("/ng-rollout/"+rollout+s.path, s.askStream)
					rec := r.record(rollout)
					eventually(t, "all memory is given back", func() bool { l := capture.Loan{Budget: b}; defer l.Release(); return l.Hold(budget) })
					return rec
				}
				live, late := record("live", 1<<20), record("late", 0)
				if text := fmt.Sprint(live["response"]); !strings.Contains(text, "Hello") {
					t.Errorf("response is %.200s", text)
				}
				if !w.translated && live["response_raw"] != late["response_raw"] {
					t.Error("the texts differ")
				}
				for _, member := range []string{"rolltap.finish_reason", "rolltap.usage", "rolltap.outcome", "error_category", "status_code"} {
					if !reflect.DeepEqual(live.at(member), late.at(member)) {
						t.Errorf("%s is %.200v, and %.200v without memory", member, live.at(member), late.at(member))
					}
				}
				if a, b := shape(live["response"]), shape(late["response"]); a != b {
					t.Errorf("response is %.300s, and %.300s without memory", a, b)
				}
				if w.translated {
					if live.at("rolltap.upstream.response") == nil {
						t.Error("what the upstream said is missing")
					}
					if got := fmt.Sprint(late.at("rolltap.truncated")); got != "[upstream.response]" || late.at("rolltap.upstream.response") != nil {
						t.Errorf("what no copy has is missing, and named: got %s", got)
					}
				}
			})
		}
	}
}

// shape is a response without what differs from call to call.
func shape(response any) string {
	m, _ := response.(map[string]any)
	delete(m, "id")
	delete(m, "created_at")
	for _, item := range asList(m["output"]) {
		delete(item.(map[string]any), "id")
	}
	return fmt.Sprint(m)
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// What adds up to more than may be held whole is not in the record, which says so; its text is.
func TestLongStreams_tooLongToFold(t *testing.T) {
	s := chatSample()
	u := newUpstream(t, func(k *call) {
		k.open(200, "text/event-stream")
		k.chunk(longStream(s, true))
		k.end()
	})
	r := start(t, u.url())
	r.srv.handler.foldOptions.Budget, r.srv.handler.wholeAnswer = capture.NewBudget(0), 1000
	r.exchange("/ng-rollout/r"+s.path, s.askStream)
	rec := r.record("r")
	rec.expect(t, "response", nil, "rolltap.outcome", "ok", "rolltap.truncated.0", "response", "rolltap.finish_reason", "stop", "rolltap.usage.completion_tokens", 2)
	if raw, _ := rec["response_raw"].(string); !strings.Contains(raw, "[DONE]") {
		t.Errorf("the text is %d bytes long", len(raw))
	}
}
