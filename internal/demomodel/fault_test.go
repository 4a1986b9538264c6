package demomodel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// get posts a streamed request with faults and returns what arrived.
func get(t *testing.T, s *httptest.Server, fault string, q object) (status int, datas []string, err error) {
	t.Helper()
	w := post(t, s.URL+"/v1/chat/completions", q, "X-Demo-Fault", fault)
	if !strings.HasPrefix(w.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(w.Body)
		return w.StatusCode, []string{string(b)}, err
	}
	datas, err = frames(w.Body)
	return w.StatusCode, datas, err
}

func TestFaults_stream(t *testing.T) {
	s := server(t, Options{})
	q := ask("Count to 10", object{"stream": true})
	_, healthy, err := get(t, s, "", q)
	if err != nil {
		t.Fatal(err)
	}
	all := len(healthy)

	status, datas, _ := get(t, s, "status=503", q)
	if status != 503 || datas[0] != `{"error":{"message":"demo fault: status 503","type":"InternalServerError","param":null,"code":503}}` {
		t.Errorf("status: got %d %s", status, datas)
	}
	for _, k := range []int{0, 1, 3} {
		_, datas, err := get(t, s, "cut="+strconv.Itoa(k), q)
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(datas) != k {
			t.Errorf("cut behind %d: got %d frames and %v", k, len(datas), err)
		}
		_, datas, err = get(t, s, "error-frame="+strconv.Itoa(k), q)
		if err != nil || len(datas) != k+2 || datas[k+1] != "[DONE]" ||
			datas[k] != `{"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", "type": "InternalServerError", "param": null, "code": 500}}` {
			t.Errorf("error frame behind %d: got %q and %v", k, datas, err)
		}
		_, datas, err = get(t, s, "garbage="+strconv.Itoa(k), q)
		if err != nil || len(datas) != all+1 || json.Valid([]byte(datas[k])) {
			t.Errorf("garbage behind %d: got %d frames and %v", k, len(datas), err)
		}
	}
	_, datas, err = get(t, s, "no-done", q)
	if err != nil || len(datas) != all-1 || datas[len(datas)-1] == "[DONE]" {
		t.Errorf("no-done: got %d frames of %d and %v", len(datas), all, err)
	}
	// Behind the last chunk, in place of [DONE].
	_, datas, err = get(t, s, "cut="+strconv.Itoa(all-1), q)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(datas) != all-1 {
		t.Errorf("cut before [DONE]: got %d frames of %d and %v", len(datas), all, err)
	}
	if status, datas, _ = get(t, s, "explode", q); status != 400 || !strings.Contains(datas[0], "unknown demo fault") {
		t.Errorf("unknown fault: got %d %s", status, datas)
	}
}

func TestFaults_silence(t *testing.T) {
	s := server(t, Options{})
	q := ask("Count to 3", object{"stream": true})
	for _, fault := range []string{"wait=60ms", "stall=60ms", "stall=60ms@2", "slow=10ms", "stall=60ms@2,no-done"} {
		start := time.Now()
		if _, datas, err := get(t, s, fault, q); err != nil || len(datas) < 7 {
			t.Errorf("%s: got %d frames and %v", fault, len(datas), err)
		}
		if took := time.Since(start); took < 60*time.Millisecond {
			t.Errorf("%s: took only %v", fault, took)
		}
	}
}

func TestFaults_unary(t *testing.T) {
	s := server(t, Options{})
	q := ask("Hello")
	if _, _, err := get(t, s, "cut=1", q); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: got %v", err)
	}
	if status, body, _ := get(t, s, "error-frame=1", q); status != 500 || !strings.HasPrefix(body[0], `{"error":{"message":"EngineCore`) {
		t.Errorf("error: got %d %s", status, body)
	}
	if status, body, _ := get(t, s, "garbage=1", q); status != 200 || json.Valid([]byte(body[0])) {
		t.Errorf("garbage: got %d %s", status, body)
	}
	start := time.Now()
	if status, _, _ := get(t, s, "stall=50ms", q); status != 200 || time.Since(start) < 50*time.Millisecond {
		t.Errorf("stall: got %d after %v", status, time.Since(start))
	}
}

func TestFaultInMemberAndMessage(t *testing.T) {
	s := server(t, Options{})
	for _, q := range []object{
		ask("Hello", object{"demo_fault": "status=429"}),
		ask("Hello [demo-fault: status=429] there"),
	} {
		w := post(t, s.URL+"/v1/chat/completions", q)
		if w.StatusCode != 429 || w.Header.Get("Retry-After") != "1" {
			t.Errorf("%v: got %d, Retry-After %q", q, w.StatusCode, w.Header.Get("Retry-After"))
		}
	}
}

// TestStreamStopsWhenClientLeaves: a handler that waited for ever would keep the
// server from closing, and this test from ending.
func TestStreamStopsWhenClientLeaves(t *testing.T) {
	for fault, q := range map[string]object{
		"stall":     ask("Hello", object{"stream": true}),
		"stall=@3":  ask("Hello", object{"stream": true}),
		"slow=20ms": ask("Write 5000 words", object{"stream": true}),
		"wait=1h":   ask("Hello"),
	} {
		left := make(chan struct{})
		h := New(Options{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(left)
			h.ServeHTTP(w, r)
		}))
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		body, _ := json.Marshal(q)
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(string(body)))
		r.Header.Set("X-Demo-Fault", fault)
		if w, err := http.DefaultClient.Do(r); err == nil {
			_, err = io.Copy(io.Discard, w.Body)
			w.Body.Close()
			if err == nil {
				t.Errorf("%s: the stream ended before the client left", fault)
			}
		}
		cancel()
		select {
		case <-left:
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the handler is still there", fault)
		}
		s.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestOneHTTPChunkForEachEvent reads the raw connection: also an event larger
// than the server's buffer is one chunk.
func TestOneHTTPChunkForEachEvent(t *testing.T) {
	s := server(t, Options{})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body, _ := json.Marshal(ask("echo: "+strings.Repeat("long prompt ", 4000), capture, object{"stream": true, "max_tokens": 3}))
	_, err = io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+string(body))
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for line := ""; line != "\r\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	chunks := 0
	for {
		size, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.ParseInt(strings.TrimSpace(size), 16, 32)
		if n == 0 {
			break
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(in, chunk); err != nil {
			t.Fatal(err)
		}
		event := string(chunk[:n])
		if !strings.HasPrefix(event, "data: ") || !strings.HasSuffix(event, "\n\n") || strings.Count(event, "\n\n") != 1 {
			t.Errorf("chunk of %d bytes is not one event: %.60q", n, event)
		}
		chunks++
	}
	if chunks != 5 { // role, three tokens, [DONE]
		t.Errorf("got %d chunks, want 5", chunks)
	}
}

func TestTokenDelay(t *testing.T) {
	s := server(t, Options{TokenDelay: 5 * time.Millisecond})
	for _, streaming := range []bool{true, false} {
		start := time.Now()
		get(t, s, "", ask("Write 9 words", object{"stream": streaming}))
		if took := time.Since(start); took < 50*time.Millisecond {
			t.Errorf("stream %v: ten tokens took only %v", streaming, took)
		}
	}
}

// discard is a client that takes everything.
type discard struct {
	h http.Header
	n int64
}

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}
func (d *discard) Write(p []byte) (int, error) { d.n += int64(len(p)); return len(p), nil }

// BenchmarkStream is one streamed answer of 1000 tokens without a network: what
// the model itself costs in the benchmarks of others.
func BenchmarkStream(b *testing.B) {
	h := New(Options{})
	for name, more := range map[string]object{"plain": nil, "ids": capture} {
		body, _ := json.Marshal(ask("Write 1000 words", more, object{"stream": true}))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := &discard{h: http.Header{}}
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(string(body)))
				h.ServeHTTP(w, r)
				b.SetBytes(w.n)
			}
		})
	}
}
