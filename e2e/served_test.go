package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"rolltap/proxy"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// sidecar is a running one, in front of an upstream that replays recorded exchanges.
type sidecar struct {
	addr, store string
	mu          sync.Mutex
	bodies      map[string][]byte // last request that reached the upstream, by model
}

// serve starts both. The upstream speaks one dialect, and answers a request with the exchange that its model names.
func serve(t *testing.T, upstream canon.Dialect, replayed []exchange) *sidecar {
	t.Helper()
	s := &sidecar{store: filepath.Join(t.TempDir(), "store"), bodies: map[string][]byte{}}
	byName := map[string]*exchange{}
	for i := range replayed {
		byName[replayed[i].name] = &replayed[i]
	}
	paths := map[canon.Dialect]string{canon.Chat: "/v1/chat/completions", canon.Messages: "/v1/messages", canon.Responses: "/v1/responses"}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var asked struct{ Model string }
		if r.URL.Path != paths[upstream] || err != nil || json.Unmarshal(body, &asked) != nil || byName[asked.Model] == nil {
			http.NotFound(w, r)
			return
		}
		s.mu.Lock()
		s.bodies[asked.Model] = body
		s.mu.Unlock()
		x := byName[asked.Model]
		w.Header().Set("Content-Type", x.kind)
		w.WriteHeader(x.status)
		for rest := x.response; len(rest) > 0; { // some frames are cut
			n := min(len(rest), 3000)
			w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
		if cut(x) {
			panic(http.ErrAbortHandler)
		}
	}))
	up.Config.ErrorLog = nil
	t.Cleanup(up.Close)

	s.addr = listen(t, up.URL, upstream, s.store)
	return s
}

// listen starts a sidecar in front of an upstream, and returns its address.
func listen(t *testing.T, url string, upstream canon.Dialect, store string) string {
	t.Helper()
	server, err := proxy.Open(proxy.Config{
		Listen: "127.0.0.1:0", Upstream: url, UpstreamDialects: []string{string(upstream)}, UpstreamIdleTimeout: 10 * time.Second,
		UpstreamConnIdle: 3 * time.Second, ClientWriteTimeout: time.Minute, Store: store, Capture: proxy.CaptureRequired,
		CaptureDeadline: 20 * time.Second, CaptureRaw: "auto", TokenCapture: "off", Durability: "journal", CaptureMaxBytes: 64 << 20, MaxRequestBytes: 64 << 20,
		Rewrite: rewrite.DefaultPolicy(), Keepalive: 10 * time.Second, KeepaliveOpen: 45 * time.Second, DrainTimeout: 5 * time.Second,
		LogLevel: "error", LogFormat: "json", Gemini: true,
	}, proxy.Deps{Log: zap.NewNop(), Version: "test", Commit: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return server.Addr()
}

// cut tells a recorded stream that broke off.
func cut(x *exchange) bool { return x.stream() && strings.Contains(x.name, "abort") }

// rollout is the sidecar as the clients of one rollout see it.
func (s *sidecar) rollout(name string) server {
	return server{root: "http://" + s.addr + "/ng-rollout/" + name, wire: new(bytes.Buffer)}
}

// sent is what reached the upstream last.
func (s *sidecar) sent(model string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[model]
}

// recorded is the response in a rollout's only record. It is there when the client has read the end of the answer, or the sidecar breaks its
// first promise.
func (s *sidecar) recorded(t *testing.T, rollout string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(s.store, rollout+".capture.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(file, []byte("\n")) != 1 {
		t.Fatalf("the record is not one line: %s", file)
	}
	var record struct{ Response json.RawMessage }
	if err := json.Unmarshal(file, &record); err != nil {
		t.Fatal(err)
	}
	return record.Response
}

// byDialect are exchanges by the dialect that they were recorded in.
func byDialect(all []exchange) map[canon.Dialect][]exchange {
	sorted := map[canon.Dialect][]exchange{}
	for _, x := range all {
		sorted[x.dialect] = append(sorted[x.dialect], x)
	}
	return sorted
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Every recorded answer through a sidecar that listens and translates: SDKs ask for a stream and for JSON, whatever the upstream sends.
func TestServed(t *testing.T) {
	for upstream, all := range byDialect(append(streams(t), wholes(t)...)) {
		s := serve(t, upstream, all)
		for _, c := range sdks() {
			if c.dialect() == upstream {
				continue // see TestPassedThrough
			}
			for i := range all {
				for _, stream := range []bool{true, false} {
					t.Run(all[i].name+" to "+string(c.dialect())+mode(stream), func(t *testing.T) {
						t.Parallel()
						checkServed(t, s, c, &all[i], stream)
					})
				}
			}
		}
	}
}

func mode(stream bool) string {
	if stream {
		return "-stream"
	}
	return "-json"
}

func checkServed(t *testing.T, s *sidecar, c sdk, x *exchange, stream bool) {
	rollout := x.name + "-" + string(c.dialect()) + mode(stream)
	at := s.rollout(rollout)
	var (
		got    said
		failed *failure
	)
	if stream {
		got, failed = c.stream(patient(t), t, at, askOf(t, x))
	} else {
		got, failed = c.unary(patient(t), t, at, askOf(t, x))
	}
	wire := at.wire.Bytes()
	defer func() {
		if t.Failed() {
			t.Logf("the client was sent\n%s", wire)
		}
	}()
	client, upstream := translator(t, c.dialect()), translator(t, x.dialect)
	var said *canon.Answer
	if x.stream() {
		said = decode(t, upstream, x.response)
	} else {
		said = read(t, upstream, x.response)
	}
	if said.Failed == nil && said.Stop.Reason == 0 {
		said.Failed = &canon.Problem{Status: 502, Code: cutCode}
	}
	if failed != nil && failed.Status != 0 {
		if said.Failed == nil {
			t.Fatalf("failed with %+v", *failed)
		}
		checkStatus(t, client.ReadError(failed.Status, wire), failed, said.Failed)
		return
	}
	var ours *canon.Answer
	if stream {
		ours = decode(t, client, wire)
	} else {
		ours = read(t, client, wire)
	}
	checkFailure(t, failed, ours.Failed, said.Failed)
	if c.dialect() == canon.Messages && !stream {
		said = withObjects(said)
	}
	checkSaid(t, c, got, ours, said, said.Failed != nil)
	if failed == nil {
		recorded := c.whole(t, s.recorded(t, rollout)).mended()
		if got = got.mended(); c.dialect() == canon.Gemini {
			recorded, got = recorded.valued(), got.valued()
		}
		equal(t, "the record and the SDK say the same", recorded, got)
	}
}

// mended has arguments as whole messages have them, which are objects: without spaces, and {} where they are no JSON. A record keeps the text
// of the latter as {"_raw":"…"}.
func (s said) mended() said {
	parts := make([]part, len(s.Parts))
	for i, p := range s.Parts {
		if p.Kind == "call" {
			var compact bytes.Buffer
			var broken map[string]string
			if json.Compact(&compact, []byte(p.Arguments)) != nil ||
				json.Unmarshal(compact.Bytes(), &broken) == nil && len(broken) == 1 && broken["_raw"] != "" && !json.Valid([]byte(broken["_raw"])) {
				compact.Reset()
				compact.WriteString("{}")
			}
			p.Arguments = compact.String()
		}
		parts[i] = p
	}
	s.Parts = parts
	return s
}

// withObjects has {} in place of arguments that are no JSON: a whole message has an object there, and what a model began to write is none.
func withObjects(a *canon.Answer) *canon.Answer {
	b := *a
	b.Parts = slices.Clone(a.Parts)
	for i := range b.Parts {
		if call := &b.Parts[i].Call; !json.Valid([]byte(unquoted(call.Arguments))) {
			call.Arguments = nil
		}
	}
	return &b
}

// checkStatus compares an answer with an error status with what we read in it, and with what the upstream said.
func checkStatus(t *testing.T, ours *canon.Problem, got *failure, said *canon.Problem) {
	t.Helper()
	status := said.Status
	if status == 0 {
		status = http.StatusBadGateway // the upstream named none
	}
	if got.Status != status || ours.Status != status {
		t.Errorf("the SDK sees status %d, we see %d, and it was %d", got.Status, ours.Status, status)
	}
	if got.Message != ours.Message {
		t.Errorf("the SDK sees %q, we see %q", got.Message, ours.Message)
	}
	if got.Type != ours.Type && ours.Type != "" { // Google's word for a status is read by nobody here, see TestErrors
		t.Errorf("the SDK sees type %q, we see %q", got.Type, ours.Type)
	}
	if got.Message != said.Message && said.Code != canon.CodeOverflow && said.Code != cutCode {
		t.Errorf("the SDK sees %q, the upstream said %q", got.Message, said.Message)
	}
}
