package proxy

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// smuggled are requests of which two programs may find different ends. Behind each lies a second request that only one of them would see.
func smuggled() map[string]string {
	const second = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	post := func(headers, body string) string {
		return "POST /ng-rollout/r/v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body
	}
	return map[string]string{
		"a length and chunks":         post(fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", 5+len(second)), "0\r\n\r\n"+second),
		"chunks of another name":      post(fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: xchunked\r\n", 5+len(second)), "0\r\n\r\n"+second),
		"chunks twice":                post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+second),
		"chunks, then identity":       post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"+second),
		"a header with a blank":       post(fmt.Sprintf("Transfer-Encoding : chunked\r\nContent-Length: %d\r\n", 5+len(second)), "0\r\n\r\n"+second),
		"two lengths":                 post(fmt.Sprintf("Content-Length: 2\r\nContent-Length: %d\r\n", 2+len(second)), "{}"+second),
		"a length with a sign":        post("Content-Length: +2\r\n", "{}"+second),
		"a length of two numbers":     post(fmt.Sprintf("Content-Length: 2, %d\r\n", 2+len(second)), "{}"+second),
		"a size that overflows":       post("Transfer-Encoding: chunked\r\n", "10000000000000002\r\n{}\r\n0\r\n\r\n"+second),
		"a chunk that is too long":    post("Transfer-Encoding: chunked\r\n", "2\r\n{}xx\r\n0\r\n\r\n"+second),
		"a chunk extension with a CR": post("Transfer-Encoding: chunked\r\n", "2;a\rb\r\n{}\r\n0\r\n\r\n"+second),
		"a NUL in a header":           post("X-A: a\x00b\r\nContent-Length: 2\r\n", "{}"+second),
		"a length that hop-by-hop":    post(fmt.Sprintf("Connection: Content-Length\r\nContent-Length: %d\r\n", len(second)), second),
	}
}

// answersTo reads every answer to what was sent, until nothing more comes.
func answersTo(w *wire) (codes []int) {
	for {
		w.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		res, err := http.ReadResponse(w.br, nil)
		if err != nil {
			return codes
		}
		codes = append(codes, res.StatusCode)
		io.Copy(io.Discard, res.Body)
	}
}

// Whatever ends others find in a request, the upstream is not asked for what lies behind it, and gets one framing that is made anew.
func TestThreat_smuggledRequest(t *testing.T) {
	for name, raw := range smuggled() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, func(c *call) { c.reply(200, "application/json", chatSample().unary) })
			r := start(t, up.url())
			w := dial(t, r.addr)
			w.send(raw)
			if codes := answersTo(w); len(codes) != 1 {
				t.Errorf("answered %v", codes)
			}
			for len(up.calls) > 0 {
				c := up.next()
				if c.Target == "/smuggled" || len(c.Header["Transfer-Encoding"])+len(c.Header["Content-Length"]) != 1 {
					t.Errorf("the upstream was asked %q", c.Head)
				}
			}
		})
	}
}

// A switch to HTTP/2 in the clear would open a tunnel in which calls pass that nobody checks or records.
func TestThreat_tunnel(t *testing.T) {
	up := newUpstream(t, func(c *call) {
		if c.Header.Get("Upgrade") != "" {
			c.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
			return
		}
		c.reply(200, "application/json", chatSample().unary)
	})
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.ask("POST", "/ng-rollout/r/v1/chat/completions", chatSample().ask, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA")
	if codes := answersTo(w); len(codes) != 1 || codes[0] != 200 {
		t.Errorf("answered %v", codes)
	}
	if head := up.next().Head; strings.Contains(head, "h2c") {
		t.Errorf("the upstream was asked %q", head)
	}
}

func TestThreat_tunnelByConnect(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	for _, target := range []string{up.addr, "example.org:443", "/v1/chat/completions"} {
		w := dial(t, r.addr)
		w.send("CONNECT " + target + " HTTP/1.1\r\nHost: example.org:443\r\nConnection: close\r\n\r\n")
		if codes := answersTo(w); len(codes) != 1 || codes[0] != 400 {
			t.Errorf("CONNECT %s is answered %v", target, codes)
		}
	}
	up.quiet()
}

// HTTP/2 is not spoken, whose faults and limits nobody here looks after.
func TestThreat_otherProtocol(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	w.conn.SetReadDeadline(time.Now().Add(patience))
	got, _ := io.ReadAll(w.br)
	if !strings.HasPrefix(string(got), "HTTP/1.1 ") && len(got) > 0 {
		t.Errorf("answered %q", got)
	}
}

// What the client declares to be for this hop goes no further, also where headers are given back as they were sent.
func TestThreat_headerOfThisHop(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	w := dial(t, r.addr)
	w.ask("GET", "/v1/models", "", "Connection", "X-Forwarded-For, close , forwarded", "X-Forwarded-For", "for-this-hop", "Forwarded", "for=for-this-hop",
		"X-Forwarded-Host", "goes.on", "Keep-Alive", "for-this-hop", "Proxy-Authorization", "for-this-hop", "Proxy-Connection", "for-this-hop")
	answersTo(w)
	if head := up.next().Head; strings.Contains(head, "for-this-hop") || !strings.Contains(head, "goes.on") {
		t.Errorf("the upstream was asked %q", head)
	}
}

func TestThreat_pathThatIsNoName(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	for _, id := range []string{"..%2f..%2fetc%2fpasswd", "..", ".hidden", "%2e%2e", "a%2fb", "a%00b", "a%0ab", "a%20b", "-rf", strings.Repeat("a", 201), "..%5c..%5ca", "%c3%a9"} {
		w := dial(t, r.addr)
		w.ask("POST", "/ng-rollout/"+id+"/v1/chat/completions", "{}", "Connection", "close")
		if codes := answersTo(w); len(codes) != 1 || codes[0] != 400 {
			t.Errorf("%s is answered %v", id, codes)
		}
	}
	up.quiet()
	if got := r.stored(); len(got) != 0 {
		t.Errorf("the store holds %v", got)
	}
}

// pipeListener hands out the server's ends of pipes, whose deadlines are those of a test's clock.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A client that never ends its head, or sends nothing at all behind a first request, holds its connection for a while only.
func TestThreat_slowHead(t *testing.T) {
	r := start(t, "http://127.0.0.1:1")
	synctest.Test(t, func(t *testing.T) {
		srv := r.srv.httpServer(http.NotFoundHandler())
		srv.BaseContext = nil
		ln := &pipeListener{make(chan net.Conn), make(chan struct{})}
		go srv.Serve(ln)
		defer srv.Close()
		client, server := net.Pipe()
		ln.conns <- server
		began := time.Now()
		ended := make(chan time.Duration, 1)
		var ends sync.WaitGroup // nothing may outlive the bubble
		ends.Go(func() {
			io.Copy(io.Discard, client)
			ended <- time.Since(began)
		})
		ends.Go(func() {
			for line := "GET / HTTP/1.1\r\nHost: a\r\n"; ; line = "X-A: b\r\n" {
				if _, err := io.WriteString(client, line); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		select {
		case took := <-ended:
			if took > headTime+time.Second {
				t.Errorf("it was given %s", took)
			}
		case <-time.After(time.Hour):
			t.Error("it holds its connection for an hour")
		}
		client.Close()
		ends.Wait()
	})
}

func TestThreat_bodyThatNeverComes(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	r.srv.handler.uploadSilence = 100 * time.Millisecond
	w := dial(t, r.addr)
	w.send("POST /ng-rollout/-/v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
	w.conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	if _, err := io.ReadAll(w.br); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is held")
	}
}

func TestThreat_readerThatStopped(t *testing.T) {
	client, server := connPair(t, 200*time.Millisecond)
	said := make(chan error, 1)
	go func() {
		_, err := server.Write(make([]byte, 8<<20))
		said <- err
	}()
	select {
	case err := <-said:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(3 * time.Second):
		t.Error("who reads nothing is waited for")
		client.Close()
		<-said
	}
}

func TestThreat_largeHead(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url())
	w := dial(t, r.addr)
	go io.WriteString(w.conn, "GET /v1/models HTTP/1.1\r\nHost: a\r\nX-A: "+strings.Repeat("a", 2<<20)+"\r\n\r\n") // it is broken off
	if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 431 ") {
		t.Errorf("answered %q", head)
	}
	up.quiet()
}

func TestThreat_largeBody(t *testing.T) {
	up := newUpstream(t, func(c *call) { c.reply(200, "application/json", chatSample().unary) })
	r := start(t, up.url(), chatOnly, func(c *Config) { c.MaxRequestBytes = 10 << 10 })
	ask := `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"` + strings.Repeat("a", 64<<10) + `"}]}`
	w := dial(t, r.addr)
	w.send(fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(ask), ask))
	if head := w.head(); !strings.HasPrefix(head, "HTTP/1.1 413 ") {
		t.Errorf("answered %q", head)
	}
}

func TestThreat_decompressionBomb(t *testing.T) {
	up := newUpstream(t, func(c *call) { c.reply(200, "application/json", chatSample().unary) })
	r := start(t, up.url(), chatOnly, func(c *Config) { c.MaxRequestBytes = 1 << 20 })
	var bomb strings.Builder
	z := gzip.NewWriter(&bomb)
	fmt.Fprintf(z, `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("a", 32<<20))
	z.Close()
	if res, body := r.post("/v1/messages", bomb.String(), "Content-Encoding", "gzip"); res.StatusCode != 413 {
		t.Errorf("%d bytes that become 32 MiB are answered %s %.200s", bomb.Len(), res.Status, body)
	}
}

// One who nests without end must not have the stack of a parser.
func TestThreat_nesting(t *testing.T) {
	up := newUpstream(t, func(c *call) { c.reply(200, "application/json", chatSample().unary) })
	r := start(t, up.url(), chatOnly)
	ask := `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hi"}],"metadata":{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}`
	if res, body := r.post("/v1/messages", ask); res.StatusCode != 400 {
		t.Errorf("600 arrays inside each other are answered %s %s", res.Status, body)
	}
}

// A call for which there is no place is refused, so that one client does not keep everybody else out.
func TestThreat_flood(t *testing.T) { floods(t, limits(1, 0), "/v1/chat/completions") }

func TestThreat_floodOfOneRollout(t *testing.T) {
	floods(t, limits(0, 1), "/ng-rollout/r/v1/chat/completions")
}

func floods(t *testing.T, change func(*Config), path string) {
	proceed := make(chan struct{})
	up := newUpstream(t, func(c *call) { await(proceed); c.reply(200, "application/json", chatSample().unary) })
	r := start(t, up.url(), change)
	done := make(chan exchanged, 1)
	go func() { done <- r.exchange(path, chatSample().ask) }()
	up.next()
	second := make(chan exchanged, 1)
	go func() { second <- r.exchange(path, chatSample().ask) }()
	select {
	case got := <-second:
		if got.status != 503 {
			t.Errorf("a call too many is answered %d", got.status)
		}
	case <-up.calls:
		t.Error("a call too many reached the upstream")
		defer wait(t, "it", second)
	}
	close(proceed)
	wait(t, "the first call", done)
}

// Under required nothing is generated whose record finds no room.
func TestThreat_fullDisk(t *testing.T) {
	up := newUpstream(t, answerBySample)
	r := start(t, up.url(), noRoom, func(c *Config) { c.Capture = CaptureRequired })
	if res, _ := r.post("/ng-rollout/r/v1/chat/completions", chatSample().ask); res.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("answered %s", res.Status)
	}
	up.quiet()
}

// Under best-effort a record that found no room is seen to be missing: there is room for the mark.
func TestThreat_lossThatDoesNotShow(t *testing.T) {
	up := newUpstream(t, answerBySample)
	r := start(t, up.url(), noRoom)
	r.post("/ng-rollout/r/v1/chat/completions", chatSample().ask)
	for end := time.Now().Add(3 * time.Second); strings.Join(r.stored(), " ") != "r.capture.incomplete"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the store holds %v", r.stored())
		}
	}
}

// What one rollout was answered is not another's to refer to.
func TestThreat_itemOfAnotherRollout(t *testing.T) {
	var m memory
	m.keep("mine", []byte(`{"output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"secret","annotations":[]}]}]}`))
	if _, ok := m.recall("mine", "msg_1"); !ok {
		t.Error("an item is forgotten")
	}
	if part, ok := m.recall("theirs", "msg_1"); ok {
		t.Errorf("another rollout is given %+v", part)
	}
}
