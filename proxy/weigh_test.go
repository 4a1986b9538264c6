package proxy

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

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
					if n := r.counted(`rolltap_capture_truncated_total{body="upstream.response"}`); n != 1 {
						t.Errorf("%v cut answers of the upstream are counted", n)
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

// Long ends take turns, and a slow one keeps nobody for long.
func TestLongEnds_takeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 10 << 20
		h := &Handler{bursts: semaphore.NewWeighted(budget), burstBudget: budget}
		of := func() *exchange { return &exchange{h: h, ctx: t.Context()} }
		began := time.Now()
		short := of()
		if short.brace(freeBurst / burst); short.braced != 0 {
			t.Error("a short end needs no turn")
		}
		first, second, third := of(), of(), of()
		first.brace(2 * budget) // as much as there is
		relaxed := make(chan struct{})
		go func() {
			defer close(relaxed)
			time.Sleep(time.Second)
			first.relax()
		}()
		if second.brace(budget / burst / 2); second.braced != budget/2 || time.Since(began) != time.Second {
			t.Errorf("the second has %d bytes after %s", second.braced, time.Since(began))
		}
		<-relaxed
		if second.brace(budget / burst / 4); second.braced != budget/2 {
			t.Error("less than what it has is no other turn")
		}
		if third.brace(budget); third.braced != 0 || time.Since(began) != time.Second+burstWait {
			t.Errorf("the third has %d bytes after %s", third.braced, time.Since(began))
		}
		third.relax()
		second.relax()
		if !h.bursts.TryAcquire(budget) {
			t.Error("something was not given back")
		}
		h.bursts.Release(budget)
		ctx, cancel := context.WithCancel(t.Context())
		first.brace(budget)
		go cancel()
		gone := &exchange{h: h, ctx: ctx}
		if gone.brace(budget); gone.braced != 0 || time.Since(began) != time.Second+burstWait {
			t.Error("who has left waits for nothing")
		}
	})
}

// Whatever becomes of a translated answer, its turn is over with it.
func TestLongEnds_giveTheTurnBack(t *testing.T) {
	for _, s := range []sample{messagesSample(), responsesSample()} {
		for _, whole := range []bool{true, false} {
			t.Run(fmt.Sprint(s.dialect, whole), func(t *testing.T) {
				up := chatSample()
				long := strings.ReplaceAll(longStream(up, whole), `"Hello"`, `"`+strings.Repeat("Hello", 20)+`"`)
				u := newUpstream(t, func(k *call) {
					if !strings.Contains(k.Body(), `"stream":true`) {
						k.reply(200, "application/json", strings.Replace(up.unary, "Hello there", strings.Repeat("x", 100_000), 1))
						return
					}
					k.open(200, "text/event-stream")
					k.chunk(long)
					if whole {
						k.end()
					}
				})
				r := start(t, u.url(), chatOnly)
				h := r.srv.handler
				r.exchange("/ng-rollout/r"+s.path, s.askStream)
				r.exchange("/ng-rollout/r"+s.path, s.ask)
				eventually(t, "every turn is over", func() bool {
					if !h.bursts.TryAcquire(h.burstBudget) {
						return false
					}
					h.bursts.Release(h.burstBudget)
					return true
				})
				if n := len(r.records("r")); n != 2 {
					t.Errorf("%d records", n)
				}
			})
		}
	}
}
