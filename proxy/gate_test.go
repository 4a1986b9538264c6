package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"rolltap/capture"
	"rolltap/metrics"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// streams are one short answer a dialect, its last element the terminal event.
func streams() map[canon.Dialect][]string {
	return map[canon.Dialect][]string{
		canon.Chat: {
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":"one [DONE] "}}]}` + "\n\n",
			": keep-alive\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":"two"},"finish_reason":"stop"}]}` + "\n\n",
			"data: [DONE]\n\n",
		},
		canon.Messages: {
			"event: message_start\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n",
			"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
			"event: ping\n" + `data: {"type":"ping"}` + "\n\n",
			`data: {"index":0,"delta":{"type":"text_delta","text":"event: message_stop"},"type":"content_block_delta"}` + "\r\n\r\n",
			"event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n",
			"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n",
		},
		canon.Responses: {
			"event: response.created\n" + `data: {"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}` + "\n\n",
			"event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m","delta":"response.completed"}` + "\n\n",
			`data: {"response":{"id":"resp_1","object":"response","status":"completed","output":[]},"type":"response.completed"}` + "\n\n",
		},
	}
}

// bench is a gate over a scripted upstream, with what the client has got so far.
type bench struct {
	t       *testing.T
	x       *exchange
	g       *gate
	client  bytes.Buffer
	chunks  [][]byte
	end     error // what the upstream ends with
	starved func(b *bench)
}

func (b *bench) Read(p []byte) (int, error) {
	if b.starved != nil {
		b.starved(b)
	}
	if len(b.chunks) == 0 {
		return 0, b.end
	}
	n := copy(p, b.chunks[0])
	if b.chunks[0] = b.chunks[0][n:]; len(b.chunks[0]) == 0 {
		b.chunks = b.chunks[1:]
	}
	return n, nil
}

func (b *bench) Close() error { return nil }

func newBench(t *testing.T, d canon.Dialect, stream bool, length int64, chunks [][]byte) *bench {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	h := &Handler{cfg: Config{CaptureMaxBytes: 64 << 20}, log: zap.NewNop(), metrics: metrics.New(metrics.Build{}),
		copyOptions: capture.CopyOptions{Memory: 1 << 20, Max: 64 << 20}, dialects: []canon.Dialect{d}}
	x := &exchange{h: h, in: httptest.NewRequest(http.MethodPost, "/", nil), out: answer{ResponseWriter: httptest.NewRecorder(), status: 200},
		start: time.Now(), ctx: ctx, cancel: cancel, plan: rewrite.PassThrough, dialect: rewrite.DialectOf(d), streamed: stream}
	x.response = capture.NewCopy(h.copyOptions)
	b := &bench{t: t, x: x, chunks: chunks, end: io.EOF}
	b.g = &gate{x: x, src: b, length: length}
	if stream {
		x.observer = rewrite.NewObserver(x.dialect, 64<<20)
		b.g.stream = x.observer
	}
	x.gate = b.g
	t.Cleanup(func() { b.g.Close() })
	return b
}

// recorded makes the exchange have a record, and returns what reads it when the exchange is over.
func (b *bench) recorded() func() string {
	b.t.Helper()
	dir := b.t.TempDir()
	store, err := capture.Open(capture.Options{Dir: dir})
	if err != nil {
		b.t.Fatal(err)
	}
	b.x.h.store, b.x.h.cfg.CaptureDeadline = store, time.Minute
	b.x.callID, b.x.route.Rollout = newCallID(), "r"
	return func() string {
		if err := store.Close(b.t.Context()); err != nil {
			b.t.Error(err)
		}
		line, err := os.ReadFile(filepath.Join(dir, "r.capture.jsonl"))
		if err != nil {
			b.t.Error(err)
		}
		return string(line)
	}
}

// drain copies to the client as ReverseProxy does, and lets check look behind every read.
func (b *bench) drain(check func()) error {
	buf := make([]byte, 97)
	for {
		n, err := b.g.Read(buf)
		b.client.Write(buf[:n])
		if check != nil {
			check()
		}
		if err != nil {
			return err
		}
	}
}

func split(rng *rand.Rand, s string, most int) [][]byte {
	var out [][]byte
	for len(s) > 0 {
		n := min(len(s), 1+rng.IntN(most))
		out = append(out, []byte(s[:n]))
		s = s[n:]
	}
	return out
}

func TestStreamsPassLiveAndEndAfterTheCommit(t *testing.T) {
	for d, events := range streams() {
		whole := strings.Join(events, "")
		terminal := len(whole) - len(events[len(events)-1])
		for seed := range uint64(60) {
			rng := rand.New(rand.NewPCG(seed, 1))
			most := []int{1, 3, 40, 400, len(whole)}[seed%5]
			b := newBench(t, d, true, -1, split(rng, whole, most))
			fed := 0
			left := func() int {
				n := 0
				for _, c := range b.chunks {
					n += len(c)
				}
				return n
			}
			b.starved = func(b *bench) {
				// Everything whole that was fed is with the client before more is waited for.
				fed = len(whole) - left()
				at, want := 0, 0
				for _, ev := range events[:len(events)-1] {
					if at += len(ev); at <= fed {
						want = at
					}
				}
				if b.client.Len() < want {
					b.t.Errorf("%s, seed %d: %d bytes are with the client while more is waited for, want at least %d", d, seed, b.client.Len(), want)
				}
			}
			err := b.drain(func() {
				if !b.x.settled && b.client.Len() > terminal {
					t.Errorf("%s, seed %d: %d bytes passed before the commit, the terminal event begins at %d", d, seed, b.client.Len(), terminal)
				}
			})
			if err != io.EOF || b.client.String() != whole {
				t.Errorf("%s, seed %d: ended with %v after %q", d, seed, err, b.client.String())
			}
			if b.x.situation != situationWhole {
				t.Errorf("%s, seed %d: situation %d, want whole", d, seed, b.x.situation)
			}
		}
	}
}

func TestEndOfABodyThatIsNoStream(t *testing.T) {
	body := `{"id":"c","choices":[]}`
	for _, c := range []struct {
		name   string
		length int64
		chunks []string
		passes int // bytes that may pass before the commit
	}{
		{"a length, one read", int64(len(body)), []string{body}, 0},
		{"a length, three reads", int64(len(body)), []string{body[:5], body[5:20], body[20:]}, 20},
		{"no length: one read is held back", -1, []string{body[:5], body[5:22], body[22:]}, 22},
		{"no length, one read", -1, []string{body}, 0},
		{"empty", 0, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var chunks [][]byte
			for _, s := range c.chunks {
				chunks = append(chunks, []byte(s))
			}
			b := newBench(t, canon.Chat, false, c.length, chunks)
			before := 0
			if err := b.drain(func() {
				if !b.x.settled {
					before = b.client.Len()
				}
			}); err != io.EOF {
				t.Fatalf("ended with %v", err)
			}
			if got, want := b.client.String(), strings.Join(c.chunks, ""); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if before != c.passes {
				t.Errorf("%d bytes passed before the commit, want %d", before, c.passes)
			}
		})
	}
}

func TestBrokenAnswerIsSettledBeforeWhatIsHeldPasses(t *testing.T) {
	broken := errors.New("connection reset")
	for d, events := range streams() {
		whole := strings.Join(events, "")
		sent := strings.TrimSuffix(whole, "\n") // the terminal event lacks nothing but its blank line
		b := newBench(t, d, true, -1, [][]byte{[]byte(sent)})
		b.end = broken
		terminal := len(whole) - len(events[len(events)-1])
		err := b.drain(func() {
			if !b.x.settled && b.client.Len() > terminal {
				t.Errorf("%s: bytes of the terminal event passed before the exchange was settled", d)
			}
		})
		if !errors.Is(err, broken) || b.client.String() != sent {
			t.Errorf("%s: ended with %v after %q", d, err, b.client.String())
		}
		if b.x.situation != situationCut || b.x.ending.outcome != outcomeUpstreamCut {
			t.Errorf("%s: situation %d, outcome %q, want a cut", d, b.x.situation, b.x.ending.outcome)
		}
	}
}

func TestStreamWithoutTerminalIsTruncated(t *testing.T) {
	for d, events := range streams() {
		part := strings.Join(events[:len(events)-1], "")
		b := newBench(t, d, true, -1, [][]byte{[]byte(part)})
		record := b.recorded()
		if err := b.drain(nil); err != io.EOF || b.client.String() != part {
			t.Errorf("%s: ended with %v after %q", d, err, b.client.String())
		}
		if b.x.ending != (ending{outcomeUpstreamCut, "stream_truncated"}) {
			t.Errorf("%s: got %+v", d, b.x.ending)
		}
		if line := record(); !strings.Contains(line, `"response":{`) {
			t.Errorf("%s: what arrived was not folded: %s", d, line)
		}
	}
}

func TestFrameTooLargeToFollowHoldsOneReadBack(t *testing.T) {
	frame := "data: " + strings.Repeat("x", 17<<20)
	chunks := [][]byte{[]byte(frame), []byte("\n\n"), []byte("data: [DO"), []byte("NE]"), []byte("\n\n")}
	whole := string(bytes.Join(chunks, nil))
	b := newBench(t, canon.Chat, true, -1, chunks)
	terminal := strings.LastIndex(whole, "data: [DONE]")
	if err := b.drain(func() {
		if !b.x.settled && b.client.Len() > terminal {
			t.Errorf("%d bytes passed before the commit", b.client.Len())
		}
	}); err != io.EOF || b.client.String() != whole {
		t.Errorf("ended with %v after %d bytes, want %d", err, b.client.Len(), len(whole))
	}
}

func TestReadIntoTheCallersBufferDoesNotAllocate(t *testing.T) {
	event := []byte(`data: {"choices":[{"index":0,"delta":{"content":"word "}}]}` + "\n\n")
	b := newBench(t, canon.Chat, true, -1, nil)
	b.x.observer = rewrite.NewObserver(b.x.dialect, 0)
	b.g.stream = b.x.observer
	src := &repeated{event: event}
	b.g.src = src
	buf := make([]byte, 32<<10)
	b.x.response = capture.NewCopy(capture.CopyOptions{Max: 1})
	if n := testing.AllocsPerRun(1000, func() {
		if n, err := b.g.Read(buf); n != len(event) || err != nil {
			t.Fatal(n, err)
		}
	}); n > 0 {
		t.Errorf("%.1f allocations a chunk, want none", n)
	}
}

type repeated struct{ event []byte }

func (r *repeated) Read(p []byte) (int, error) { return copy(p, r.event), nil }
func (r *repeated) Close() error               { return nil }

func ExampleSize() {
	var s Size
	fmt.Println(s.UnmarshalText([]byte("64MiB")), int64(s), s)
	// Output: <nil> 67108864 64MiB
}
