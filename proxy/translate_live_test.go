package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Each of the upstream's frames reaches the client before the next one is sent.
func TestTranslatedStreamIsLive(t *testing.T) {
	for _, dialect := range []string{"messages", "responses"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			up, s := chatSample(), sampleOf(dialect)
			seen := make(chan struct{})
			u := newUpstream(t, func(c *call) {
				c.open(200, "text/event-stream")
				for i, e := range up.events {
					c.chunk(e)
					if i == 1 || i == 2 {
						await(seen)
					}
				}
				c.end()
			})
			r := start(t, u.url(), chatOnly)
			w := dial(t, r.addr)
			w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
			res, err := http.ReadResponse(w.br, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, buf := "", make([]byte, 4096)
			for _, word := range []string{"Hello", " there"} {
				for !strings.Contains(text, word) {
					n, err := res.Body.Read(buf)
					if err != nil {
						t.Fatalf("%v behind %s", err, text)
					}
					text += string(buf[:n])
				}
				seen <- struct{}{}
			}
		})
	}
}

// Silence in front of the first event opens a stream early, and silence inside it is filled; both count.
func TestTranslatedKeepAlive(t *testing.T) {
	for _, c := range []struct{ dialect, keepAlive, failure string }{
		{"messages", "event: ping\n", "event: error\n"}, {"responses", "event: response.in_progress\n", "event: response.failed\n"},
	} {
		for _, when := range []string{"before the head", "before the first event", "inside the stream"} {
			t.Run(c.dialect+"/"+when, func(t *testing.T) {
				t.Parallel()
				up, s := chatSample(), sampleOf(c.dialect)
				enough := make(chan struct{})
				u := newUpstream(t, func(k *call) {
					k.Body()
					if when == "before the head" {
						await(enough)
					}
					k.open(200, "text/event-stream")
					if when == "before the first event" {
						await(enough)
					}
					k.chunk(up.events[0] + up.events[1])
					if when == "inside the stream" {
						await(enough)
					}
					k.chunk(strings.Join(up.events[2:], ""))
					k.end()
				})
				r := start(t, u.url(), chatOnly, func(cfg *Config) { cfg.KeepaliveOpen, cfg.Keepalive = 20*time.Millisecond, 10*time.Millisecond })
				w := dial(t, r.addr)
				w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
				res, err := http.ReadResponse(w.br, nil)
				if err != nil {
					t.Fatal(err)
				}
				text, buf, told := "", make([]byte, 4096), false
				for {
					n, err := res.Body.Read(buf)
					text += string(buf[:n])
					if !told && strings.Count(text, c.keepAlive) >= 5 {
						close(enough)
						told = true
					}
					if err != nil {
						break
					}
				}
				if !strings.Contains(text, " there") || strings.Contains(text, c.failure) {
					t.Errorf("the client saw %s", text)
				}
				rec := r.record("r")
				rec.expect(t, "rolltap.outcome", "ok", "response."+s.foldedText, s.text)
				if got := r.metric(fmt.Sprintf("rolltap_keepalives_total{dialect=%q}", c.dialect)); got < 3 {
					t.Errorf("%v keep-alives were counted", got)
				}
			})
		}
	}
}

// A failure behind an early opening is the dialect's failure event, whatever it would have been before.
func TestTranslatedFailureBehindAKeepAlive(t *testing.T) {
	for _, c := range []struct {
		name   string
		script func(*call)
		want   facts
	}{
		{"an error status", func(k *call) {
			k.reply(429, "application/json", `{"error":{"message":"slow down","type":"x","code":429}}`)
		},
			facts{status: 200, outcome: "upstream_error", category: "rate_limit", upStatus: 429, cut: true}},
		{"no head", func(k *call) { k.Body() }, facts{status: 200, outcome: "upstream_error", category: "connection", cut: true, told: "upstream_unavailable"}},
		{"an error frame", func(k *call) {
			k.open(200, "text/event-stream")
			k.chunk(data(`{"error":{"message":"slow down","type":"x","code":429}}`))
			k.end()
		}, facts{status: 200, outcome: "upstream_error", category: "upstream_error", upStatus: 200, cut: true}},
		{"HTML", func(k *call) { k.reply(200, "text/html", "<html>") }, facts{status: 200, outcome: "upstream_error", category: "upstream_error", upStatus: 200, cut: true}},
	} {
		for _, dialect := range []string{"messages", "responses"} {
			t.Run(dialect+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				s := sampleOf(dialect)
				opened := make(chan struct{})
				u := newUpstream(t, func(k *call) {
					k.Body()
					await(opened)
					c.script(k)
				})
				r := start(t, u.url(), chatOnly, func(cfg *Config) { cfg.KeepaliveOpen, cfg.Keepalive = 10*time.Millisecond, 5*time.Millisecond })
				w := dial(t, r.addr)
				w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
				res, err := http.ReadResponse(w.br, nil)
				if err != nil {
					t.Fatal(err)
				}
				close(opened)
				var text strings.Builder
				buf := make([]byte, 4096)
				for err == nil {
					var n int
					n, err = res.Body.Read(buf)
					text.Write(buf[:n])
				}
				if !s.failureSeen(text.String()) {
					t.Errorf("no failure event: %s", text.String())
				}
				want := c.want
				want.upDialect = "chat"
				r.expectFacts("r", s, want).expect(t, "response", nil) // no answer had begun
			})
		}
	}
}

func TestTranslatedSilence(t *testing.T) {
	for _, c := range []struct {
		name   string
		script func(*call)
		want   facts
	}{
		{"before the head", func(k *call) { k.untilLeft() }, facts{status: 504, code: "upstream_timeout", outcome: "upstream_timeout", category: "timeout"}},
		{"before the first byte of a content coding", func(k *call) {
			k.open(200, "text/event-stream", "Content-Encoding", "gzip")
			k.untilLeft()
		}, facts{status: 504, code: "upstream_timeout", outcome: "upstream_timeout", category: "timeout", upStatus: 200}},
		{"inside the stream", func(k *call) {
			k.open(200, "text/event-stream")
			k.chunk(untilWord(chatSample()))
			k.untilLeft()
		}, facts{status: 200, outcome: "upstream_timeout", category: "timeout", upStatus: 200, cut: true}},
	} {
		for _, dialect := range []string{"messages", "responses"} {
			t.Run(dialect+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				s := sampleOf(dialect)
				u := newUpstream(t, c.script)
				// Keep-alives are no sign of life of the upstream.
				r := start(t, u.url(), chatOnly, func(cfg *Config) {
					cfg.UpstreamIdleTimeout, cfg.Keepalive = 150*time.Millisecond, 20*time.Millisecond
				})
				got := r.exchange("/ng-rollout/r"+s.path, s.askStream)
				if got.status != c.want.status || got.cut != c.want.cut || s.failureSeen(got.body) != c.want.cut {
					t.Errorf("status %d, cut %v: %s", got.status, got.cut, got.body)
				}
				want := c.want
				want.upDialect = "chat"
				r.expectFacts("r", s, want)
			})
		}
	}
}

// A client that leaves frees the upstream, at whatever moment.
func TestTranslatedClientLeaves(t *testing.T) {
	for _, when := range []string{"before the head", "inside the stream"} {
		for _, dialect := range []string{"messages", "responses"} {
			t.Run(dialect+"/"+when, func(t *testing.T) {
				t.Parallel()
				s := sampleOf(dialect)
				reached := make(chan struct{})
				u := newUpstream(t, func(k *call) {
					k.Body()
					if when == "inside the stream" {
						k.open(200, "text/event-stream")
						k.chunk(untilWord(chatSample()))
					}
					close(reached)
					k.untilLeft()
				})
				r := start(t, u.url(), chatOnly)
				w := dial(t, r.addr)
				w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
				wait(t, "the upstream is asked", reached)
				if when == "inside the stream" {
					if _, err := http.ReadResponse(w.br, nil); err != nil {
						t.Fatal(err)
					}
				}
				w.conn.Close()
				rec := r.record("r")
				rec.expect(t, "rolltap.outcome", "client_gone", "error_category", "cancelled", "upstream_attempted", true)
			})
		}
	}
}

// What the upstream says in heads of its own before the answer is not for a client of another dialect.
func TestTranslatedInformationIsNotPassedOn(t *testing.T) {
	u := newUpstream(t, func(k *call) {
		k.say("HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=b\r\nLink: </x>\r\n\r\n")
		k.reply(200, "application/json", chatSample().unary)
	})
	r := start(t, u.url(), chatOnly)
	s := messagesSample()
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/r"+s.path, s.ask)
	if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") || strings.Contains(head, "Set-Cookie") {
		t.Errorf("the client was told %q", head)
	}
}
