package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"rolltap/capture"
)

// asking is a request of the dialect that says text.
func (s sample) asking(text string) string {
	said := strings.Replace(s.ask, `"hi"`, `"`+text+`"`, 1)
	if said == s.ask {
		panic("the sample says something else")
	}
	return said
}

// The memory of a request that was made anew is used again, but not while the transport reads it: an upstream may answer first and read later.
func TestRequestMadeAnew_keepsItsMemory(t *testing.T) {
	o := capture.CopyOptions{Budget: capture.NewBudget(1 << 30)}
	h := &Handler{copyOptions: o}
	o.Reuse = true
	x := &exchange{h: h}
	x.send(append(x.roomToSend(9_000)[:0], every(8_000)...))
	if mem, _ := x.sent.Bytes(); string(mem) != every(8_000) || &x.room.Room()[0] == &mem[0] {
		t.Error("what is too short to be lent is in memory that is used again")
	}
	x.giveBack()
	for name, made := range map[string]func(x *exchange) (mem []byte, read func() io.ReadCloser){
		"translated": func(x *exchange) ([]byte, func() io.ReadCloser) {
			x.send(append(x.roomToSend(100_000)[:0], every(100_000)...))
			mem, _ := x.sent.Bytes()
			sent := x.sent
			return mem, func() io.ReadCloser { return x.reader(sent) }
		},
		"as it came": func(x *exchange) ([]byte, func() io.ReadCloser) {
			body := strings.NewReader(every(100_000))
			x.in, _ = http.NewRequest("POST", "/", body)
			x.out.control = http.NewResponseController(httptest.NewRecorder())
			got, ok := x.wholeBody()
			if !ok || x.sent != nil || !x.held {
				t.Fatalf("read: %t, held: %t, and something else is sent: %t", ok, x.held, x.sent != nil)
			}
			request := x.request
			return got, func() io.ReadCloser { return x.reader(request) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // a pool may drop what it is given
				x := &exchange{h: h}
				h.cfg.MaxRequestBytes, h.wholeRequest = 1<<20, 1<<20
				mem, read := made(x)
				one, other := read(), read() // as when the transport sends it twice
				x.release()
				one.Close()
				if usedAgain(o, mem) {
					t.Fatal("memory is used again that a translation looks at")
				}
				x.giveBack()
				if usedAgain(o, mem) {
					t.Fatal("memory is used again that the transport reads")
				}
				got, err := io.ReadAll(other)
				if err != nil || string(got) != every(100_000) {
					t.Errorf("%d bytes were read: %v", len(got), err)
				}
				other.Close()
				if usedAgain(o, mem) {
					return
				}
			}
			t.Error("memory is never used again")
		})
	}
}

// A request that is made anew is whole whatever becomes of the copy that it is read from.
func TestRequestMadeAnew_isWhole(t *testing.T) {
	missing := func(t *testing.T, o *capture.CopyOptions) { o.Dir = filepath.Join(t.TempDir(), "missing") }
	for name, row := range map[string]struct {
		length int
		change func(t *testing.T, o *capture.CopyOptions)
	}{
		"in memory":       {100_000, func(*testing.T, *capture.CopyOptions) {}},
		"in a file":       {3 << 20, func(*testing.T, *capture.CopyOptions) {}},
		"too long for it": {100_000, func(t *testing.T, o *capture.CopyOptions) { missing(t, o); o.Memory = 50_000 }},
		"nowhere":         {100_000, func(t *testing.T, o *capture.CopyOptions) { missing(t, o); o.Budget = capture.NewBudget(0) }},
		"cut":             {100_000, func(_ *testing.T, o *capture.CopyOptions) { o.Max = 50_000 }},
	} {
		for how, change := range map[string]func(*Config){
			"translated": chatOnly,
			"renamed":    func(c *Config) { c.UpstreamDialects, c.Model = []string{"messages"}, "served" },
			"as it came": func(c *Config) {
				c.UpstreamDialects, c.ModelMap = []string{"messages"}, map[string]string{"another": "served"}
			},
		} {
			for _, chunked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/chunked %v", name, how, chunked), func(t *testing.T) {
					t.Parallel()
					s, up := messagesSample(), messagesSample()
					if how == "translated" {
						up = chatSample()
					}
					u := newUpstream(t, func(k *call) { k.reply(200, "application/json", up.unary) })
					r := start(t, u.url(), change)
					row.change(t, &r.srv.handler.copyOptions)
					text := strings.Repeat("abcdefghij", row.length/10)
					var body io.Reader = strings.NewReader(s.asking(text))
					if chunked {
						body = struct{ io.Reader }{body}
					}
					res, err := r.client.Post(r.url("/ng-rollout/r"+s.path), "application/json", body)
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
					if res.StatusCode != 200 {
						t.Errorf("answered %d", res.StatusCode)
					}
					if got := u.next().Body(); !strings.Contains(got, `"`+text+`"`) {
						t.Errorf("the upstream got %d bytes, of a text of %d", len(got), len(text))
					}
					r.record("r").expect(t, "rolltap.outcome", "ok", "rolltap.request_bytes", len(s.asking(text)))
				})
			}
		}
	}
}

// While answers take their time the prompts that were sent leave memory to others.
func TestPromptsThatWereSent_leaveMemory(t *testing.T) {
	const calls = 20
	for how, change := range map[string]func(*Config){
		"translated": chatOnly,
		"renamed":    func(c *Config) { c.UpstreamDialects, c.Model = []string{"messages"}, "served" },
		"as it came": func(c *Config) { c.UpstreamDialects = []string{"messages"} },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, up := messagesSample(), messagesSample()
			if how == "translated" {
				up = chatSample()
			}
			sent, answer := make(chan struct{}, calls), make(chan struct{})
			u := newUpstream(t, func(k *call) {
				k.Body()
				sent <- struct{}{}
				<-answer
				k.reply(200, "application/json", up.unary)
			})
			r := start(t, u.url(), change)
			o := &r.srv.handler.copyOptions
			o.Budget = capture.NewBudget(8 << 20)
			text := strings.Repeat("abcdefghij", 70_000)
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					if got := r.exchange("/ng-rollout/r"+s.path, s.asking(text)); got.status != 200 {
						t.Errorf("answered %d", got.status)
					}
				})
			}
			for range calls {
				wait(t, "a request at the upstream", sent)
			}
			eventually(t, "memory is left", func() bool {
				c := capture.NewCopy(*o)
				defer c.Release()
				c.Expect(1000 << 10)
				return len(c.Room()) > 0
			})
			close(answer)
			wg.Wait()
			for _, rec := range r.records("r") {
				rec.expect(t, "rolltap.outcome", "ok", "request.messages.0.content", text)
				if how != "as it came" {
					rec.expect(t, "rolltap.upstream.request.messages.0.content", text)
				}
			}
			if n := len(r.records("r")); n != calls {
				t.Errorf("%d records", n)
			}
		})
	}
}

// What has to be held whole is held only where there is memory for it and for what is made of it; what passes needs none.
func TestWholeBodies_needMemory(t *testing.T) {
	before := debug.SetMemoryLimit(64 << 20)
	defer debug.SetMemoryLimit(before)
	s, up := messagesSample(), chatSample()
	answer := up.unary
	u := newUpstream(t, func(k *call) { k.reply(200, "application/json", answer) })
	r := start(t, u.url(), chatOnly)
	for _, c := range []struct {
		name   string
		ask    string
		said   int // bytes of the answer's text
		coding bool
		status int
		says   string
	}{
		{"a request that fits", strings.Repeat("a", 7<<20), 1, false, 200, ""},
		{"one that does not", strings.Repeat("a", 9<<20), 1, false, 413, "an eighth of the memory limit"},
		{"one that does not when it is decoded", strings.Repeat("a", 9<<20), 1, true, 413, "an eighth of the memory limit"},
		{"an answer that fits", "a", 7 << 20, false, 200, ""},
		{"one that does not", "a", 9 << 20, false, 502, "too long"},
	} {
		answer = strings.Replace(up.unary, "Hello there", strings.Repeat("b", c.said), 1)
		body, header := s.asking(c.ask), []string{}
		if c.coding {
			body, header = string(encoded(t, "gzip", []string{body})[0]), []string{"Content-Encoding", "gzip"}
		}
		if res, got := r.post("/ng-rollout/r"+s.path, body, header...); res.StatusCode != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s: answered %d: %.200s", c.name, res.StatusCode, got)
		}
	}
	answer = up.unary
	if res, _ := r.post("/ng-rollout/r"+up.path, up.asking(strings.Repeat("a", 9<<20))); res.StatusCode != 200 {
		t.Errorf("what passes is answered %d", res.StatusCode)
	}
}

// Long requests are in memory one at a time, but nobody waits for the one whose upstream takes its time to answer a question about it.
func TestLongRequests_waitForNoUpstream(t *testing.T) {
	s, up := messagesSample(), chatSample()
	long := strings.Repeat("a", 3<<20)
	coded := func(body string) string { return string(encoded(t, "gzip", []string{body})[0]) }
	for name, row := range map[string]struct {
		path, body, question string
		header               []string
		change               func(*Config)
	}{
		"a count":           {"/v1/messages/count_tokens", s.asking(long), "/tokenize", nil, chatOnly},
		"a count, encoded":  {"/v1/messages/count_tokens", coded(s.asking(long)), "/tokenize", []string{"Content-Encoding", "gzip"}, chatOnly},
		"how much it holds": {s.path, s.asking(long), "/v1/models", nil, func(c *Config) { c.UpstreamDialects = []string{"chat"} }},
		"how much, encoded": {s.path, coded(s.asking(long)), "/v1/models", []string{"Content-Encoding", "gzip"}, func(c *Config) { c.UpstreamDialects = []string{"chat"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, given := make(chan struct{}), make(chan struct{})
			var once sync.Once
			u := newUpstream(t, func(k *call) {
				if k.Target == row.question {
					once.Do(func() { close(asked) })
					k.untilLeft()
					close(given)
					return
				}
				k.reply(200, "application/json", up.unary)
			})
			r := start(t, u.url(), row.change)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			wg.Go(func() {
				q, _ := http.NewRequestWithContext(ctx, "POST", r.url("/ng-rollout/r"+row.path), strings.NewReader(row.body))
				if len(row.header) > 0 {
					q.Header.Set(row.header[0], row.header[1])
				}
				if res, err := r.client.Do(q); err == nil {
					res.Body.Close()
				}
			})
			wait(t, "the question", asked)
			if res, _ := r.post("/ng-rollout/other"+up.path, up.asking(long)); res.StatusCode != 200 {
				t.Errorf("another call is answered %d", res.StatusCode)
			}
			select {
			case <-given:
				t.Error("another call has waited until the question was given up")
			default:
			}
		})
	}
}

// An answer that is translated whole is whole wherever it was kept.
func TestWholeAnswers_areTranslatedFromCopies(t *testing.T) {
	text := strings.Repeat("abcdefghij", 200_000)
	for name, row := range map[string]struct {
		change    func(t *testing.T, h *Handler)
		status    int
		truncated string // of the record
	}{
		"in a file":              {func(*testing.T, *Handler) {}, 200, "[]"},
		"in memory":              {func(_ *testing.T, h *Handler) { h.copyOptions.Memory = 4 << 20 }, 200, "[]"},
		"longer than the record": {func(_ *testing.T, h *Handler) { h.copyOptions.Max = 1000; h.cfg.CaptureMaxBytes = 1000 }, 200, "[response upstream.response]"},
		"nowhere":                {func(t *testing.T, h *Handler) { h.copyOptions.Dir = filepath.Join(t.TempDir(), "missing") }, 200, "[response]"},
	} {
		for _, s := range []sample{messagesSample(), responsesSample()} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stream %v", name, s.dialect, stream), func(t *testing.T) {
					t.Parallel()
					up := chatSample()
					u := newUpstream(t, func(k *call) {
						k.reply(200, "application/json", strings.Replace(up.unary, "Hello there", text, 1))
					})
					r := start(t, u.url(), chatOnly)
					row.change(t, r.srv.handler)
					ask := s.ask
					if stream {
						ask = s.askStream
					}
					got := r.exchange("/ng-rollout/r"+s.path, ask)
					if got.status != row.status || strings.Contains(got.body, text) != (row.status == 200) {
						t.Errorf("answered %d with %d bytes", got.status, len(got.body))
					}
					rec := r.record("r")
					if cut := fmt.Sprint(rec.at("rolltap.truncated")); cut != row.truncated {
						t.Errorf("truncated: %s", cut)
					}
					if !strings.Contains(row.truncated, "upstream") {
						rec.expect(t, "rolltap.upstream.response.choices.0.message.content", text, "rolltap.finish_reason", "stop", "rolltap.usage.completion_tokens", 2)
					}
				})
			}
		}
	}
}
