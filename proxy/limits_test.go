package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func limits(all, ofOne int64) func(*Config) {
	return func(c *Config) { c.MaxInFlight, c.MaxInFlightPerRollout = all, ofOne }
}

// overloadedType is the error type that clients of a dialect know for a server without room (dialects.md 5.2).
func overloadedType(dialect string) string {
	if dialect == "messages" {
		return "overloaded_error"
	}
	return "server_error"
}

func TestLimits_refuseWhatIsTooMuch(t *testing.T) {
	for _, s := range samples() {
		for _, row := range []struct {
			name      string
			change    func(*Config)
			translate bool
			names     string // the flag that the refusal names
		}{
			{"all", limits(1, 0), false, "--max-in-flight"},
			{"of a rollout", limits(0, 1), false, "--max-in-flight-per-rollout"},
			{"translated", limits(1, 5), true, "--max-in-flight"},
		} {
			if row.translate && s.dialect == "chat" {
				continue
			}
			t.Run(s.dialect+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				proceed := make(chan struct{})
				up := newUpstream(t, func(c *call) {
					for _, s := range samples() {
						if s.path == c.Target {
							await(proceed)
							c.reply(200, "application/json", s.unary)
							return
						}
					}
					c.reply(200, "text/plain", "")
				})
				r := start(t, up.url(), row.change, func(c *Config) {
					if row.translate {
						c.UpstreamDialects = []string{"chat"}
					}
				})
				first := make(chan exchanged, 1)
				go func() { first <- r.exchange("/ng-rollout/r"+s.path, s.ask) }()
				for c := up.next(); c.Method != "POST"; c = up.next() { // a translated call may ask for the models first
				}

				got := r.exchange("/ng-rollout/r"+s.path, s.ask)
				if got.status != http.StatusServiceUnavailable || got.header.Get("X-Rolltap-Error") != "overloaded" || got.header.Get("Retry-After") != "1" {
					t.Errorf("answered %d, code %q, Retry-After %q", got.status, got.header.Get("X-Rolltap-Error"), got.header.Get("Retry-After"))
				}
				s.checkError(t, got.body, "overloaded")
				var e struct {
					Error struct{ Type, Message string }
				}
				if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Error.Type != overloadedType(s.dialect) || !strings.HasSuffix(e.Error.Message, "which is "+row.names) {
					t.Errorf("the body is %s", got.body)
				}
				up.quiet()
				rec := r.expectFacts1("r", s, "refused")
				rec.expect(t, "status_code", 503, "error_category", "upstream_error", "local_response_reason", "overloaded", "response_source", "local",
					"upstream_attempted", false, "rolltap.upstream", nil, "model_call_id", got.header.Get("X-Rolltap-Call-Id"), "rolltap.request_bytes", len(s.ask))
				if rec.at("request") == nil {
					t.Error("the record lacks the request")
				}

				// What is no model call is never refused.
				if res, _ := r.post("/tokenize", "{}"); res.StatusCode != 200 {
					t.Errorf("another path is answered %s", res.Status)
				}
				close(proceed)
				if got := wait(t, "the first call", first); got.status != 200 {
					t.Errorf("the first call is answered %d", got.status)
				}
				if got := r.exchange("/ng-rollout/r"+s.path, s.ask); got.status != 200 {
					t.Errorf("behind it a call is answered %d %s", got.status, got.body)
				}
			})
		}
	}
}

// expectFacts1 is the record of the one call with the outcome, which the metric has counted.
func (r *rig) expectFacts1(rollout string, s sample, outcome string) record {
	r.t.Helper()
	eventually(r.t, "the call is counted", func() bool { return r.metric(requestsTotal(s.dialect, "none", outcome)) == 1 })
	return r.record(rollout)
}

func TestLimits_ofARolloutAreItsOwn(t *testing.T) {
	s := chatSample()
	proceed := make(chan struct{})
	up := newUpstream(t, func(c *call) { await(proceed); c.reply(200, "application/json", s.unary) })
	r := start(t, up.url(), limits(0, 1))
	paths := []string{"/ng-rollout/a" + s.path, "/ng-rollout/b" + s.path, s.path, s.path}
	answers := make(chan exchanged, len(paths))
	for _, path := range paths {
		go func() { answers <- r.exchange(path, s.ask) }()
		up.next()
	}
	if got := r.exchange("/ng-rollout/a"+s.path, s.ask); got.status != 503 {
		t.Errorf("a second call of a rollout is answered %d", got.status)
	}
	close(proceed)
	for range paths {
		if got := wait(t, "a call", answers); got.status != 200 {
			t.Errorf("a call is answered %d %s", got.status, got.body)
		}
	}
}

// A client that has seen the end of its answer may send the next call at once.
func TestLimits_oneAfterTheOtherIsNeverTooMuch(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		if strings.Contains(c.Body(), `"stream":true`) {
			c.open(200, "text/event-stream")
			c.chunk(s.stream())
			c.end()
			return
		}
		c.reply(200, "application/json", s.unary)
	})
	r := start(t, up.url(), limits(1, 1))
	for i := range 200 {
		ask := []string{s.ask, s.askStream}[i%2]
		if got := r.exchange("/ng-rollout/r"+s.path, ask); got.status != 200 {
			t.Fatalf("call %d is answered %d %s", i, got.status, got.body)
		}
	}
}

// Whatever becomes of a call, its place is free afterwards.
func TestLimits_everyWayOutGivesThePlaceBack(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		switch c.Header.Get("X-Case") {
		case "closed":
			c.Body()
		case "cut":
			c.open(200, "text/event-stream")
			c.chunk(untilWord(s))
		case "silent":
			c.untilLeft()
		default:
			c.reply(200, "application/json", s.unary)
		}
	})
	r := start(t, up.url(), limits(1, 1))
	for _, kind := range []string{"", "closed", "cut"} {
		r.exchange("/ng-rollout/r"+s.path, s.ask, "X-Case", kind)
	}
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/r"+s.path, s.ask, "X-Case", "silent")
	eventually(t, "the call is in flight", func() bool { return r.metric("rolltap_in_flight_requests") == 1 })
	w.conn.Close()
	eventually(t, "a place is free", func() bool { return r.exchange("/ng-rollout/r"+s.path, s.ask).status == 200 })
	w = dial(t, r.addr)
	w.send("POST /ng-rollout/r" + s.path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
	eventually(t, "the upload is in flight", func() bool { return r.metric("rolltap_in_flight_requests") == 1 })
	w.conn.Close()
	eventually(t, "nothing is in flight", func() bool { return r.metric("rolltap_in_flight_requests") == 0 })
	f := &r.srv.handler.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all != 0 || len(f.rollouts) != 0 {
		t.Errorf("%d places and those of %v are taken", f.all, f.rollouts)
	}
}
