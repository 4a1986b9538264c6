package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rolltap/capture"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// A fault while a copy is looked into, in whichever goroutine, ends one exchange and not the program.
func TestPanic_insideTheDecoderIsTheGates(t *testing.T) {
	chunk := encoded(t, "gzip", []string{"data: {}\n\n", "data: {}\n\n"})[0]
	f := newInflater("gzip", rewrite.NewObserver(rewrite.DialectOf(canon.Chat), 1<<20), func([]byte, rewrite.Progress) { panic("a fault") })
	func() {
		defer func() {
			if got, _ := recover().(string); !strings.HasPrefix(got, "a fault\n") {
				t.Errorf("push panicked with %q", got)
			}
		}()
		f.push(chunk)
		t.Error("push says nothing of the fault")
	}()
	f.close()
}

type faultyDialect struct{ dialect.Dialect }

func (faultyDialect) ReadResponse([]byte) dialect.Summary { panic("a fault in reading") }

func TestPanic_whileTheRecordIsMade(t *testing.T) {
	r := start(t, "http://127.0.0.1:1")
	h := r.srv.handler
	for _, broken := range []bool{false, true} {
		in := httptest.NewRequest(http.MethodPost, "/ng-rollout/r/v1/chat/completions", nil)
		x := &exchange{h: h, in: in, out: newAnswer(httptest.NewRecorder(), in), start: time.Now(),
			plan: rewrite.PassThrough, route: rewrite.ParseRoute("/ng-rollout/r/v1/chat/completions"), callID: newCallID(),
			attempted: true, upstreamStatus: 200, source: "upstream"}
		x.out.status = 200
		x.ctx, x.cancel = in.Context(), func(error) {}
		x.dialect = faultyDialect{rewrite.DialectOf(canon.Chat)}
		x.response = capture.NewCopy(h.copyOptions)
		io.WriteString(x.response, `{"a":1}`)
		h.inFlight.Add(1)
		h.metrics.InFlight(1)
		func() {
			defer func() {
				if got := recover(); got != nil && got != http.ErrAbortHandler {
					t.Errorf("finish lets %v out", got)
				}
			}()
			defer x.finish()
			if broken {
				panic(http.ErrAbortHandler)
			}
			x.commit(situationWhole)
		}()
	}
	if n := h.inFlight.Load(); n != 0 {
		t.Errorf("%d exchanges are in flight", n)
	}
	eventually(t, "both records", func() bool { return len(r.records("r")) == 2 })
	for _, rec := range r.records("r") {
		rec.expect(t, "rolltap.outcome", "aborted", "error_category", "exception", "response.a", 1)
	}
	if n := r.metric(requestsTotal("chat", "chat", "aborted")); n != 2 {
		t.Errorf("counted %v aborted, want 2", n)
	}
}

// A panic in front of the head is answered by a 500 only when the record of it is durable; nothing is not a 200.
func TestPanic_requiredAndNotDurableIsAborted(t *testing.T) {
	s := chatSample()
	r := start(t, "http://127.0.0.1:1", func(c *Config) { c.Capture = CaptureRequired })
	r.srv.handler.transport = tripper(func(*http.Request) (*http.Response, error) { panic("a fault") })
	defer r.breakStore()()
	if got := r.exchange("/ng-rollout/r"+s.path, s.ask); !got.cut || got.status != 0 {
		t.Errorf("the client got %d %q, cut %v", got.status, got.body, got.cut)
	}
}
