package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Every event is with the client before the upstream thinks of the next.
func TestLive_everyEventArrivesBeforeTheNextIsSent(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			next := make(chan struct{})
			up := newUpstream(t, func(c *call) {
				c.open(200, "text/event-stream")
				for _, e := range s.events {
					await(next)
					c.chunk(e)
				}
				c.end()
			})
			r := start(t, up.url())
			w := dial(t, r.addr)
			w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
			res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"}) // the head does not wait for an event either
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range s.events {
				next <- struct{}{}
				got := make([]byte, len(e))
				if _, err := readFull(res, got); err != nil || string(got) != e {
					t.Fatalf("event %d: got %q, %v, want %q", i, got, err, e)
				}
			}
			if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
				t.Errorf("behind the end came %q, %v", rest, err)
			}
		})
	}
}

func TestLive_slowBodiesArriveInParts(t *testing.T) {
	s := chatSample()
	half := len(s.unary) / 2
	long := s
	long.unary = s.spaced()
	chunked := func(s sample, c *call, more func(at int) bool) {
		c.open(200, "application/json")
		c.chunk(s.unary[:half])
		at := half
		for ; more(at); at++ {
			c.chunk(s.unary[at : at+1])
		}
		c.chunk(s.unary[at:])
		c.end()
	}
	length := func(s sample, c *call, more func(at int) bool) {
		c.say(replyHead(200, "application/json", fmt.Sprintf("Content-Length: %d", len(s.unary))) + s.unary[:half])
		at := half
		for ; more(at); at++ {
			c.sayEarly(s.unary[at : at+1])
		}
		c.sayEarly(s.unary[at:])
		c.keepAlive()
	}
	for _, row := range []struct {
		name, path string
		s          sample
		script     func(s sample, c *call, more func(at int) bool)
		drip       bool // a byte now and then has to push the first half: the last read is held back, as it may be the end
	}{
		{"JSON of known length", "/ng-rollout/r" + s.path, s, length, false},
		{"long JSON of known length", "/ng-rollout/r" + s.path, long, length, false},
		{"chunked JSON", "/ng-rollout/r" + s.path, s, chunked, true},
		{"anything else of known length", "/docs", s, length, false},
		{"anything else in chunks", "/docs", s, chunked, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			arrived := make(chan struct{})
			up := newUpstream(t, func(c *call) {
				row.script(row.s, c, func(at int) bool {
					if !row.drip || at == len(row.s.unary)-2 {
						await(arrived)
						return false
					}
					select {
					case <-arrived:
						return false
					case <-time.After(5 * time.Millisecond):
						return true
					}
				})
			})
			r := start(t, up.url())
			w := dial(t, r.addr)
			w.ask("POST", row.path, s.ask)
			w.conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, half)
			if _, err := readFull(res, got); err != nil || string(got) != s.unary[:half] {
				t.Fatalf("first came %q, %v", got, err)
			}
			close(arrived)
			if rest, err := io.ReadAll(res.Body); err != nil || string(got)+string(rest) != row.s.unary {
				t.Errorf("then came %q, %v", rest, err)
			}
		})
	}
}

// An upstream may answer while the request is on its way.
func TestLive_answersBeforeTheRequestHasEnded(t *testing.T) {
	for _, path := range []string{"/upload", "/ng-rollout/r/v1/responses"} {
		up := newUpstream(t, func(c *call) {
			c.sayEarly(replyHead(200, "text/event-stream", "Transfer-Encoding: chunked"))
			c.chunk(": early\n\n")
			c.Body()
			c.chunk(responsesSample().stream())
			c.end()
		})
		r := start(t, up.url())
		w := dial(t, r.addr)
		body := strings.Repeat("x", 2*holdBytes)
		w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, len(body)+1) + body)
		res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(": early\n\n"))
		if _, err := readFull(res, got); err != nil || string(got) != ": early\n\n" {
			t.Fatalf("%s: early came %q, %v", path, got, err)
		}
		w.send("y")
		rest, err := io.ReadAll(res.Body)
		if err != nil || string(rest) != responsesSample().stream() {
			t.Errorf("%s: then came %q, %v", path, rest, err)
		}
		if c := up.next(); c.Body() != body+"y" {
			t.Errorf("%s: the upstream got %d bytes", path, len(c.Body()))
		}
	}
}

func TestFrame_ofMegabytes(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			size := 2 << 20
			if s.dialect == "chat" {
				size = 8 << 20
			}
			long := strings.Repeat("x", size)
			stream := strings.Replace(s.stream(), "Hello", long, 1)
			up := newUpstream(t, func(c *call) {
				c.open(200, "text/event-stream")
				c.chunk(stream)
				c.end()
			})
			r := start(t, up.url())
			res, body := r.post("/ng-rollout/r"+s.path, s.askStream)
			if res.StatusCode != 200 || body != stream {
				t.Errorf("answered %s with %d bytes, want %d", res.Status, len(body), len(stream))
			}
			rec := r.record("r")
			rec.expect(t, "rolltap.outcome", "ok", "error_category", nil, "response_raw", stream)
			if s.dialect != "responses" { // whose last event has the whole answer, without the long word
				rec.expect(t, "response."+s.foldedText, long+" there")
			}
		})
	}
}

func packed(t testing.TB, coding string, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	for _, p := range parts {
		if _, err := io.WriteString(w, p); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEncodedBodies_passEncodedAndAreRecordedDecoded(t *testing.T) {
	for _, s := range samples() {
		for _, coding := range []string{"gzip", "zstd"} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stream %v", s.dialect, coding, stream), func(t *testing.T) {
					ask, answer, typ := packed(t, coding, s.ask), packed(t, coding, s.unary), "application/json"
					if stream {
						ask, answer, typ = packed(t, coding, s.askStream), packed(t, coding, s.events...), "text/event-stream"
					}
					up := newUpstream(t, func(c *call) {
						if stream {
							c.open(200, typ, "Content-Encoding", coding)
							c.chunk(string(answer))
							c.end()
							return
						}
						c.reply(200, typ, string(answer), "Content-Encoding", coding)
					})
					r := start(t, up.url())
					res, body := r.post("/ng-rollout/r"+s.path, string(ask), "Content-Encoding", coding, "Accept-Encoding", "gzip, zstd")
					if body != string(answer) || res.Header.Get("Content-Encoding") != coding {
						t.Errorf("the client got %d bytes under %q, want %d", len(body), res.Header.Get("Content-Encoding"), len(answer))
					}
					c := up.next()
					if c.Body() != string(ask) || c.Header.Get("Content-Encoding") != coding || c.Header.Get("Accept-Encoding") != "gzip, zstd" {
						t.Errorf("the upstream got %d bytes: %q", len(c.Body()), c.Head)
					}
					rec := r.record("r")
					rec.expect(t, "request.model", "m", "response."+s.foldedText, s.text, "rolltap.outcome", "ok", "error_category", nil,
						"rolltap.stream", stream, "rolltap.usage.completion_tokens", 2, "rolltap.request_bytes", len(ask), "rolltap.response_bytes", len(answer))
					if stream {
						rec.expect(t, "response_raw", s.stream())
					}
				})
			}
		}
	}
}

// The record is written before the client can know the end of an encoded stream.
func TestEncodedStream_endsAfterItsRecord(t *testing.T) {
	for _, s := range samples() {
		for _, coding := range []string{"gzip", "zstd"} {
			t.Run(s.dialect+"/"+coding, func(t *testing.T) {
				all, before := packed(t, coding, s.events...), packed(t, coding, s.events[:len(s.events)-1]...)
				n := 0 // bytes that all and before have in common: nothing of the terminal event is in them
				for n < len(before) && before[n] == all[n] {
					n++
				}
				up := newUpstream(t, func(c *call) {
					c.open(200, "text/event-stream", "Content-Encoding", coding)
					c.chunk(string(all[:n]))
					c.chunk(string(all[n:]))
					c.end()
				})
				r := start(t, up.url())
				w := dial(t, r.addr)
				w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
				body, records, err := w.seen(len(all)-1, func() int { return len(r.records("r")) })
				if err != nil || body != string(all) || records != 1 {
					t.Errorf("got %d bytes, %v, and %d records before the last byte", len(body), err, records)
				}
			})
		}
	}
}

// A stream that never ends is served for as long as it speaks: there is no timeout over the whole of it.
func TestLive_streamsOutliveEveryTimeout(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		c.open(200, "text/event-stream")
		for i, e := range s.events {
			if i > 0 {
				time.Sleep(60 * time.Millisecond) // longer together than each timeout below
			}
			c.chunk(e)
		}
		c.end()
	})
	r := start(t, up.url(), func(c *Config) {
		c.UpstreamIdleTimeout = 200 * time.Millisecond
		c.ClientWriteTimeout = 200 * time.Millisecond
		c.CaptureDeadline = 200 * time.Millisecond
	})
	if got := r.exchange("/ng-rollout/r"+s.path, s.askStream); got.body != s.stream() || got.cut {
		t.Errorf("got %q, cut %v", got.body, got.cut)
	}
}
