package proxy

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// Of a stream that is longer than its copy there is no response, and all that is said of it in a few words, whenever its fold was given up.
func TestLongStreams_longerThanTheCopy(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			stream := longStream(s, true)
			u := newUpstream(t, func(k *call) {
				k.open(200, "text/event-stream")
				k.chunk(stream)
				k.end()
			})
			r := start(t, u.url(), func(c *Config) { c.CaptureMaxBytes = Size(len(stream) * 3 / 4) })
			for _, budget := range []int64{1 << 20, 0} {
				r.srv.handler.foldOptions.Budget = capture.NewBudget(budget)
				rollout := fmt.Sprint("r", budget)
				r.exchange("/ng-rollout/"+rollout+s.path, s.askStream)
				r.record(rollout).expect(t, "response", nil, "rolltap.truncated.0", "response", "rolltap.truncated.1", nil,
					"rolltap.finish_reason", "stop", "rolltap.usage.prompt_tokens", 3, "rolltap.usage.completion_tokens", 2, "rolltap.outcome", "ok")
			}
		})
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

// Long ends take turns, and a slow one keeps nobody for long, however many ends an answer has.
func TestLongEnds_takeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 10 << 20
		h := &Handler{bursts: capture.NewBudget(budget)}
		of := func() *exchange {
			return &exchange{h: h, ctx: t.Context(), start: time.Now(), turn: capture.Loan{Budget: h.bursts}}
		}
		began := time.Now()
		taken := func(want time.Duration, what string) {
			t.Helper()
			if took := time.Since(began); took < want || took > want+2*burstPoll {
				t.Errorf("%s: after %s, want %s", what, took, want)
			}
		}
		first, second, third := of(), of(), of()
		first.brace(2 * budget) // as much as there is
		relaxed := make(chan struct{})
		go func() {
			defer close(relaxed)
			time.Sleep(time.Second)
			first.relax()
		}()
		of().brace(freeBurst / burst)
		taken(0, "a short end needs no turn")
		second.brace(budget / burst)
		taken(time.Second, "the second waits for the first")
		<-relaxed
		third.brace(budget / burst)
		taken(time.Second+burstWait, "the third does not wait for ever")
		third.brace(budget / burst)
		taken(time.Second+burstWait, "nor once more")
		second.relax()
		ctx, cancel := context.WithCancel(t.Context())
		first.brace(budget)
		go cancel()
		gone := of()
		gone.ctx = ctx
		gone.brace(budget)
		taken(time.Second+burstWait, "who has left waits for nothing")
		for _, x := range []*exchange{first, third, gone} {
			x.relax()
		}
		if all := (capture.Loan{Budget: h.bursts}); !all.Hold(budget) {
			t.Error("something was not given back")
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
					all := capture.Loan{Budget: h.bursts}
					defer all.Release()
					return all.Hold(h.bursts.Size())
				})
				if n := len(r.records("r")); n != 2 {
					t.Errorf("%d records", n)
				}
			})
		}
	}
}
