package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
)

// Compare two states of the code, and rolltap with the bare ReverseProxy of the same run:
//
//	go test ./proxy -run '^$' -bench . -count 10 | tee new.txt
//	benchstat old.txt new.txt
//	benchstat -col /proxy new.txt
//
// Upstream and clients run in the same process and allocate next to nothing, so what is reported is the proxy's.

// cannedUpstream answers every request with the same writes. Between two of them it waits for step, unless that is nil.
func cannedUpstream(b *testing.B, writes [][]byte, step <-chan struct{}) string {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	over := make(chan struct{})
	serve := func(c net.Conn) {
		defer c.Close()
		br := bufio.NewReader(c)
		for {
			length := 0
			for {
				line, err := br.ReadSlice('\n')
				if err != nil {
					return
				}
				if len(line) == 2 {
					break
				}
				if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
					length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
				}
			}
			if _, err := br.Discard(length); err != nil {
				return
			}
			for i, w := range writes {
				if step != nil && i > 0 {
					select {
					case <-step:
					case <-over:
						return
					}
				}
				if _, err := c.Write(w); err != nil {
					return
				}
			}
		}
	}
	var mu sync.Mutex // guards conns
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() { serve(c) })
		}
	})
	b.Cleanup(func() {
		ln.Close()
		close(over)
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + ln.Addr().String()
}

// bareProxy is what the standard library does alone, with the transport that rolltap has.
func bareProxy(b *testing.B, upstream string) string {
	b.Helper()
	root, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	tr := newTransport(testConfig(b, upstream).UpstreamConnIdle, new(dialled))
	p := &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(root) }, Transport: tr, BufferPool: newBufferPool(32 << 10)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without it the server may close the request body under the transport once the answer begins, which cuts the answer.
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.ServeHTTP(w, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln) // ends with Close
	}()
	b.Cleanup(func() {
		srv.Close()
		<-done
		tr.CloseIdleConnections()
	})
	return ln.Addr().String()
}

// benchProxies runs a benchmark with nothing in between, with the bare proxy, and with rolltap without and with capture.
func benchProxies(b *testing.B, writes [][]byte, step chan struct{}, run func(b *testing.B, addr, prefix string)) {
	for _, proxy := range []string{"none", "bare", "rolltap-uncaptured", "rolltap"} {
		b.Run("proxy="+proxy, func(b *testing.B) {
			upstream := cannedUpstream(b, writes, step)
			addr, prefix := strings.TrimPrefix(upstream, "http://"), ""
			switch proxy {
			case "bare":
				addr = bareProxy(b, upstream)
			case "rolltap-uncaptured", "rolltap":
				r := startWith(b, upstream, zap.NewNop(), nil)
				if addr = r.addr; proxy == "rolltap" {
					prefix = "/ng-rollout/r%d"
				}
			}
			run(b, addr, prefix)
		})
	}
}

// benchClient is a client with one connection.
type benchClient struct {
	conn net.Conn
	br   *bufio.Reader
	ask  []byte
}

func newBenchClient(b *testing.B, addr, prefix, body string, number int64) *benchClient {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	if strings.Contains(prefix, "%d") {
		prefix = fmt.Sprintf(prefix, number)
	}
	ask := fmt.Sprintf("POST %s/v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", prefix, len(body), body)
	return &benchClient{conn, bufio.NewReaderSize(conn, 32<<10), []byte(ask)}
}

// call asks once and reads the whole answer; got is told of each read of the body.
func (c *benchClient) call(buf []byte, got func(n int)) error {
	if _, err := c.conn.Write(c.ask); err != nil {
		return err
	}
	res, err := http.ReadResponse(c.br, nil)
	if err != nil {
		return err
	}
	for {
		n, err := res.Body.Read(buf)
		if n > 0 && got != nil {
			got(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// parallel runs clients side by side, a rollout each; figures are per call.
func parallel(body string, events int) func(b *testing.B, addr, prefix string) {
	return func(b *testing.B, addr, prefix string) {
		var clients atomic.Int64
		b.ReportAllocs()
		b.SetParallelism(8)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.RunParallel(func(pb *testing.PB) {
			c := newBenchClient(b, addr, prefix, body, clients.Add(1))
			defer c.conn.Close()
			buf := make([]byte, 32<<10)
			for pb.Next() {
				if err := c.call(buf, nil); err != nil {
					b.Error(err)
					return
				}
			}
		})
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		if events > 0 {
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N)/float64(events), "allocs/event")
		}
	}
}

// agentAsk is a request of a few kilobytes, as agents send them.
func agentAsk(stream bool) string {
	return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"system","content":"%s"},{"role":"user","content":"hi"}]}`, stream, strings.Repeat("Be brief. ", 400))
}

func BenchmarkUnary(b *testing.B) {
	answer := strings.Replace(chatSample().unary, "Hello there", strings.Repeat("Hello there ", 150), 1)
	writes := [][]byte{[]byte(replyHead(200, "application/json", "Content-Length: "+strconv.Itoa(len(answer))) + answer)}
	benchProxies(b, writes, nil, parallel(agentAsk(false), 0))
}

const benchEvents = 200

// manyEvents are the events of a long stream.
func manyEvents() []string {
	s := chatSample()
	events := []string{s.events[0]}
	for len(events) < benchEvents-3 {
		events = append(events, s.events[1])
	}
	return append(events, s.events[3:]...)
}

// streamWrites are the writes of that stream: a head, an event each, and the end together with the last one.
func streamWrites() [][]byte {
	events := manyEvents()
	writes := [][]byte{[]byte(replyHead(200, "text/event-stream", "Transfer-Encoding: chunked"))}
	for _, e := range events {
		writes = append(writes, fmt.Appendf(nil, "%x\r\n%s\r\n", len(e), e))
	}
	last := len(writes) - 1
	writes[last] = append(writes[last], "0\r\n\r\n"...)
	return writes
}

func BenchmarkStream(b *testing.B) {
	benchProxies(b, streamWrites(), nil, parallel(agentAsk(true), benchEvents))
}

// BenchmarkEvent is one client whose upstream sends an event only when the one before has arrived: each event is a read
// and a write of its own. Figures are per stream of 200 events; ns/event is the way there and back.
func BenchmarkEvent(b *testing.B) {
	step := make(chan struct{}, benchEvents)
	events := manyEvents()
	benchProxies(b, streamWrites(), step, func(b *testing.B, addr, prefix string) {
		c := newBenchClient(b, addr, prefix, agentAsk(true), 1)
		defer c.conn.Close()
		buf := make([]byte, 32<<10)
		stream := func() {
			seen, left := 0, len(events[0])
			step <- struct{}{} // the first event follows the head at once
			err := c.call(buf, func(n int) {
				for left -= n; left <= 0 && seen < benchEvents; {
					if seen++; seen < benchEvents {
						left += len(events[seen])
						step <- struct{}{}
					}
				}
			})
			if err != nil || seen != benchEvents {
				b.Fatalf("%d events, %v", seen, err)
			}
		}
		stream() // connections and pools are there
		var before, after runtime.MemStats
		b.ReportAllocs()
		b.ResetTimer()
		runtime.ReadMemStats(&before)
		for range b.N {
			stream()
		}
		runtime.ReadMemStats(&after)
		sent := float64(b.N) * benchEvents
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/sent, "allocs/event")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/sent, "ns/event")
	})
}
