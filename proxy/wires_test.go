package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// ---- the client's end of a connection ----

// wire is a connection on which a test speaks HTTP by hand.
type wire struct {
	t    testing.TB
	conn *net.TCPConn
	br   *bufio.Reader
}

func dial(t testing.TB, addr string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(3 * patience))
	return &wire{t: t, conn: c.(*net.TCPConn), br: bufio.NewReader(c)}
}

func (w *wire) send(s string) {
	w.t.Helper()
	if _, err := io.WriteString(w.conn, s); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// head reads the head of the next answer, byte for byte, its blank line included.
func (w *wire) head() string {
	w.t.Helper()
	var b strings.Builder
	for {
		line, err := w.br.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			w.t.Fatalf("the connection ended inside a head %q: %v", b.String(), err)
		}
		if line == "\r\n" {
			return b.String()
		}
	}
}

// answer reads a whole answer. The error is the body's.
func (w *wire) answer(method string) (*http.Response, string, error) {
	w.t.Helper()
	res, err := http.ReadResponse(w.br, &http.Request{Method: method})
	if err != nil {
		w.t.Fatalf("read the answer: %v", err)
	}
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

// ask writes a request with a Content-Length.
func (w *wire) ask(method, target, body string, header ...string) {
	w.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: proxy.test\r\n", method, target)
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	if body != "" || method == "POST" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	w.send(b.String() + "\r\n" + body)
}

// ---- the upstream's end ----

// call is one request that a scripted upstream has received.
type call struct {
	t       *upstream
	conn    *net.TCPConn
	br      *bufio.Reader
	Number  int    // of its connection, from 1
	Line    string // the request line
	Head    string // request line and headers as they came, without the blank line
	Target  string
	Method  string
	Header  http.Header
	Trailer string // of a chunked body, as it came
	body    io.Reader
	read    bool
	got     string
	keep    bool
}

// upstream is a model server that says, byte for byte, what a test wants.
type upstream struct {
	testing.TB
	addr   string
	script func(*call)
	calls  chan *call // every call, when its head has been read; dropped when nobody listens

	mu    sync.Mutex // guards conns
	conns int
	all   []net.Conn
}

// newUpstream listens, and runs the script for each request. After it the connection is closed, unless the script called keepAlive.
func newUpstream(t testing.TB, script func(*call)) *upstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{TB: t, addr: ln.Addr().String(), script: script, calls: make(chan *call, 1024)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.conns++
			u.all = append(u.all, c)
			n := u.conns
			u.mu.Unlock()
			wg.Go(func() { u.serve(c.(*net.TCPConn), n) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		u.mu.Lock()
		for _, c := range u.all {
			c.Close()
		}
		u.mu.Unlock()
		wg.Wait()
	})
	return u
}

func (u *upstream) url() string { return "http://" + u.addr }

// connections is how many were accepted so far.
func (u *upstream) connections() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.conns
}

// next waits for a call.
func (u *upstream) next() *call { u.Helper(); return wait(u.TB, "a call at the upstream", u.calls) }

// quiet reports an upstream that was asked anything.
func (u *upstream) quiet() {
	u.Helper()
	select {
	case c := <-u.calls:
		u.Errorf("the upstream was asked %q", c.Line)
	default:
	}
}

func (u *upstream) serve(conn *net.TCPConn, number int) {
	defer conn.Close()
	br := bufio.NewReader(conn)
	for {
		var head strings.Builder
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
			head.WriteString(line)
		}
		c := &call{t: u, conn: conn, br: br, Number: number, Head: head.String()}
		if err := c.parse(); err != nil {
			u.Errorf("the upstream cannot read %q: %v", c.Head, err)
			return
		}
		select {
		case u.calls <- c:
		default:
		}
		u.script(c)
		if !c.keep {
			return
		}
	}
}

func (c *call) parse() error {
	c.Line, _, _ = strings.Cut(c.Head, "\r\n")
	words := strings.Split(c.Line, " ")
	if len(words) != 3 {
		return fmt.Errorf("request line %q", c.Line)
	}
	c.Method, c.Target, c.Header = words[0], words[1], http.Header{}
	for line := range strings.Lines(c.Head[len(c.Line)+2:]) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !ok {
			return fmt.Errorf("header line %q", line)
		}
		c.Header.Add(name, strings.TrimSpace(value))
	}
	switch n, err := strconv.ParseInt(c.Header.Get("Content-Length"), 10, 64); {
	case c.Header.Get("Transfer-Encoding") == "chunked":
		c.body = httputil.NewChunkedReader(c.br)
	case err == nil:
		c.body = io.LimitReader(c.br, n)
	default:
		c.body = strings.NewReader("")
	}
	return nil
}

// Body reads the request body to its end, once.
func (c *call) Body() string {
	if c.read {
		return c.got
	}
	c.read = true
	b, err := io.ReadAll(c.body)
	if err != nil {
		c.t.Errorf("the upstream reads the body: %v", err)
	}
	if c.Header.Get("Transfer-Encoding") == "chunked" {
		for {
			line, err := c.br.ReadString('\n')
			if err != nil || line == "\r\n" {
				break
			}
			c.Trailer += line
		}
	}
	c.got = string(b)
	return c.got
}

// say writes bytes once the request body has been read.
func (c *call) say(s string) { c.Body(); c.sayEarly(s) }

// sayEarly writes bytes now. A proxy that has gone is no fault.
func (c *call) sayEarly(s string) { _, _ = io.WriteString(c.conn, s) }

// keepAlive keeps the connection for the next request.
func (c *call) keepAlive() { c.Body(); c.keep = true }

// reply says a whole answer with a Content-Length, and keeps the connection.
func (c *call) reply(status int, contentType, body string, header ...string) {
	c.say(replyHead(status, contentType, "Content-Length: "+strconv.Itoa(len(body)), header...) + body)
	c.keepAlive()
}

// open says the head of a chunked answer.
func (c *call) open(status int, contentType string, header ...string) {
	c.say(replyHead(status, contentType, "Transfer-Encoding: chunked", header...))
}

func replyHead(status int, contentType, framing string, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	if contentType != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", contentType)
	}
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	return b.String() + framing + "\r\n\r\n"
}

// chunk says one chunk, with one write.
func (c *call) chunk(s string) { c.sayEarly(fmt.Sprintf("%x\r\n%s\r\n", len(s), s)) }

// end says the last chunk and keeps the connection.
func (c *call) end() { c.sayEarly("0\r\n\r\n"); c.keepAlive() }

// reset breaks the connection so that the other side sees an error at once.
func (c *call) reset() { c.conn.SetLinger(0); c.conn.Close() }

// untilLeft returns when the proxy has closed the connection.
func (c *call) untilLeft() {
	c.Body()
	c.conn.SetReadDeadline(time.Now().Add(2 * patience))
	if _, err := io.Copy(io.Discard, c.br); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("the proxy kept the upstream's connection open")
	}
}
