package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// seen reads an answer a byte at a time at most where it matters: it reports how many records there were when the byte at
// offset from was first seen, and returns the whole body.
func (w *wire) seen(from int, records func() int) (body string, before int, err error) {
	w.t.Helper()
	res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
	if err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	before = -1
	buf := make([]byte, 32<<10)
	for {
		n, err := res.Body.Read(buf)
		b.Write(buf[:n])
		if before < 0 && b.Len() > from {
			before = records()
		}
		if err == io.EOF {
			return b.String(), before, nil
		}
		if err != nil {
			return b.String(), before, err
		}
	}
}

// order is one way for an answer to arrive; from is the offset of the first byte that has to wait for the record.
type order struct {
	name   string
	stream bool
	body   func(s sample) string
	from   func(s sample) int
	script func(s sample, c *call)
}

func beforeTerminal(s sample) int { return len(s.before()) }
func lastByte(s sample) int       { return len(s.unary) - 1 }

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// dataOnly takes the event names off.
func dataOnly(events []string) []string {
	var out []string
	for _, e := range events {
		_, rest, _ := strings.Cut("\n"+e, "\ndata: ")
		out = append(out, "data: "+rest)
	}
	return out
}

func orders() []order {
	inChunks := func(typ string, parts func(s sample) []string) func(s sample, c *call) {
		return func(s sample, c *call) {
			c.open(200, typ)
			for _, p := range parts(s) {
				c.chunk(p)
			}
			c.end()
		}
	}
	const sse, js = "text/event-stream", "application/json"
	return []order{
		{"JSON of known length", false, whole, lastByte, func(s sample, c *call) { c.reply(200, js, s.unary) }},
		{"JSON of known length in two writes", false, whole, lastByte, func(s sample, c *call) {
			c.say(replyHead(200, js, fmt.Sprintf("Content-Length: %d", len(s.unary))) + s.unary[:len(s.unary)-1])
			c.sayEarly(s.unary[len(s.unary)-1:])
			c.keepAlive()
		}},
		{"JSON in one chunk", false, whole, lastByte, inChunks(js, func(s sample) []string { return []string{s.unary} })},
		{"JSON in many chunks", false, whole, lastByte, inChunks(js, func(s sample) []string { return strings.SplitAfter(s.unary, ",") })},
		{"JSON until the connection ends", false, whole, lastByte, func(s sample, c *call) {
			c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + s.unary)
		}},
		{"an error answer", false, func(s sample) string { return s.nativeErrorBody }, func(s sample) int { return len(s.nativeErrorBody) - 1 },
			func(s sample, c *call) { c.reply(429, js, s.nativeErrorBody) }},
		{"a stream, an event a chunk", true, wholeText, beforeTerminal, inChunks(sse, func(s sample) []string { return s.events })},
		{"a stream in one chunk", true, wholeText, beforeTerminal, inChunks(sse, func(s sample) []string { return []string{s.stream()} })},
		{"a stream in one write, its end included", true, wholeText, beforeTerminal, func(s sample, c *call) {
			c.say(replyHead(200, sse, "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s.stream()), s.stream()))
			c.keepAlive()
		}},
		{"a stream of known length", true, wholeText, beforeTerminal, func(s sample, c *call) { c.reply(200, sse, s.stream()) }},
		{"a stream with CRLF", true, func(s sample) string { return crlf(s.stream()) }, func(s sample) int { return len(crlf(s.before())) },
			inChunks(sse, func(s sample) []string { return []string{crlf(s.before()), crlf(s.terminal())} })},
		{"a stream with CR", true, func(s sample) string { return strings.ReplaceAll(s.stream(), "\n", "\r") }, beforeTerminal,
			inChunks(sse, func(s sample) []string { return []string{strings.ReplaceAll(s.stream(), "\n", "\r")} })},
		{"a stream without a space behind the colon", true, func(s sample) string { return strings.ReplaceAll(s.stream(), "data: ", "data:") },
			func(s sample) int { return len(strings.ReplaceAll(s.before(), "data: ", "data:")) },
			inChunks(sse, func(s sample) []string { return []string{strings.ReplaceAll(s.stream(), "data: ", "data:")} })},
		{"a stream of data without names", true, func(s sample) string { return strings.Join(dataOnly(s.events), "") },
			func(s sample) int { return len(strings.Join(dataOnly(s.events[:len(s.events)-1]), "")) },
			inChunks(sse, func(s sample) []string { return dataOnly(s.events) })},
		{"a terminal event without its blank line", true, func(s sample) string { return strings.TrimRight(s.stream(), "\n") }, beforeTerminal,
			inChunks(sse, func(s sample) []string { return []string{strings.TrimRight(s.stream(), "\n")} })},
		{"a byte-order mark and comments", true, func(s sample) string { return "\ufeff: hi\n\n" + s.before() + ": bye\n\n" + s.terminal() },
			func(s sample) int { return len("\ufeff: hi\n\n" + s.before() + ": bye\n\n") },
			inChunks(sse, func(s sample) []string { return []string{"\ufeff: hi\n\n" + s.before() + ": bye\n\n" + s.terminal()} })},
		{"more behind the terminal event", true, func(s sample) string { return s.stream() + ": bye\n\n" }, beforeTerminal,
			inChunks(sse, func(s sample) []string { return []string{s.stream(), ": bye\n\n"} })},
		{"an error frame", true, func(s sample) string { return s.before() + s.failure }, beforeTerminal,
			inChunks(sse, func(s sample) []string { return []string{s.before() + s.failure} })},
	}
}

func TestOrder_recordBeforeTheEnd(t *testing.T) {
	for _, s := range samples() {
		for _, o := range orders() {
			t.Run(s.dialect+"/"+o.name, func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, func(c *call) { o.script(s, c) })
				r := start(t, up.url())
				r.expectOrder(s, o, "r")
			})
		}
	}
}

func (r *rig) expectOrder(s sample, o order, rollout string) {
	r.t.Helper()
	ask := s.ask
	if o.stream {
		ask = s.askStream
	}
	w := dial(r.t, r.addr)
	w.ask("POST", "/ng-rollout/"+rollout+s.path, ask)
	body, before, err := w.seen(o.from(s), func() int { return len(r.records(rollout)) })
	if err != nil || body != o.body(s) {
		r.t.Errorf("%s: got %q, %v", o.name, body, err)
	}
	if before != 1 {
		r.t.Errorf("%s: %d records when the client saw the first byte of the end, want 1", o.name, before)
	}
	w.conn.Close()
}

// The terminal event arrives in two writes, split at every byte. The first part must not be seen early, or a client that
// reads lines takes the name of the event for the event.
func TestOrder_terminalEventSplitAnywhere(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			step := 1
			if testing.Short() || len(s.terminal()) > 60 {
				step = 17
			}
			waiting := make(chan int)
			proceed := make(chan struct{})
			up := newUpstream(t, func(c *call) {
				at := await(waiting)
				c.open(200, "text/event-stream")
				c.chunk(s.before() + s.terminal()[:at])
				await(proceed)
				c.chunk(s.terminal()[at:])
				c.end()
			})
			r := start(t, up.url())
			for at := 1; at < len(s.terminal()); at += step {
				rollout := fmt.Sprintf("r%d", at)
				w := dial(t, r.addr)
				w.ask("POST", "/ng-rollout/"+rollout+s.path, s.askStream)
				waiting <- at
				res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
				if err != nil {
					t.Fatal(err)
				}
				// Everything before the terminal event is there before the rest of it is sent.
				got := make([]byte, len(s.before()))
				if _, err := readFull(res, got); err != nil || string(got) != s.before() {
					t.Fatalf("split at %d: before the end came %q, %v", at, got, err)
				}
				one := make([]byte, 1)
				saw := make(chan int, 1)
				go func() {
					n, _ := res.Body.Read(one)
					if n > 0 {
						saw <- len(r.records(rollout))
					} else {
						saw <- -1
					}
				}()
				if n := len(r.records(rollout)); n != 0 && at < len(s.terminal())-1 {
					t.Errorf("split at %d: there is a record before the terminal event has arrived", at)
				}
				proceed <- struct{}{}
				if n := wait(t, "the terminal event", saw); n != 1 {
					t.Errorf("split at %d: %d records when the first byte of the terminal event was seen", at, n)
				}
				rest, err := io.ReadAll(res.Body)
				if err != nil || string(one)+string(rest) != s.terminal() {
					t.Errorf("split at %d: the end is %q, %v", at, string(one)+string(rest), err)
				}
				w.conn.Close()
			}
		})
	}
}

// Events that share a chunk with the terminal event do not wait for the disk (vector S2).
func TestOrder_nothingElseWaits(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, func(c *call) {
				c.open(200, "text/event-stream")
				c.chunk(s.stream())
				c.end()
			})
			r := start(t, up.url())
			unlock := r.lockRollout("r") // the record cannot be written yet
			w := dial(t, r.addr)
			w.ask("POST", "/ng-rollout/r"+s.path, s.askStream)
			res, err := http.ReadResponse(w.br, &http.Request{Method: "POST"})
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(s.before()))
			if _, err := readFull(res, got); err != nil || string(got) != s.before() {
				t.Fatalf("while the record waits the client has %q, %v", got, err)
			}
			unlock()
			rest, err := io.ReadAll(res.Body)
			if err != nil || string(rest) != s.terminal() {
				t.Errorf("the end is %q, %v", rest, err)
			}
		})
	}
}

// An upstream that keeps the connection open behind the terminal event does not keep the client.
func TestOrder_connectionThatHangsBehindTheEnd(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, func(c *call) {
				c.open(200, "text/event-stream")
				c.chunk(s.stream())
				c.untilLeft()
			})
			r := start(t, up.url())
			began := time.Now()
			got := r.exchange("/ng-rollout/r"+s.path, s.askStream)
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("the client got its end after %s, want about a second", took)
			}
			if got.body != s.stream() || got.cut {
				t.Errorf("the client got %q, cut %v", got.body, got.cut)
			}
			r.expectFacts("r", s, facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"})
		})
	}
}

// A flood behind the terminal event does not keep the client either.
func TestOrder_floodBehindTheEnd(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, func(c *call) {
		c.open(200, "text/event-stream")
		c.chunk(s.stream())
		for range 1 << 20 {
			if _, err := io.WriteString(c.conn, "400\r\n"+strings.Repeat(":", 1024)+"\r\n"); err != nil {
				return
			}
		}
		t.Error("the proxy read a gigabyte behind the end")
	})
	r := start(t, up.url())
	got := r.exchange("/ng-rollout/r"+s.path, s.askStream)
	if !strings.HasPrefix(got.body, s.stream()) || got.cut {
		t.Errorf("the client got %d bytes, cut %v", len(got.body), got.cut)
	}
	r.expectFacts("r", s, facts{status: 200, outcome: "ok", upStatus: 200, finish: "stop"})
}
