package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"rolltap/rewrite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to happen; nothing takes nearly as long unless it is broken.
const patience = 10 * time.Second

// eventually polls until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// wait takes the next thing from a channel.
func wait[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s in vain: %s", patience, what)
		panic("not reached")
	}
}

// await is wait for the scripts of an upstream, which must end even where the test has failed already.
func await[T any](ch <-chan T) (v T) {
	select {
	case v = <-ch:
	case <-time.After(patience / 2):
	}
	return v
}

// ---- the product ----

// rig is a running sidecar with a store of its own.
type rig struct {
	t     testing.TB
	cfg   Config
	srv   *Server
	addr  string
	logs  *observer.ObservedLogs
	stop  context.CancelFunc
	ended chan struct{} // closed when Run has returned
	err   error         // what Run said; valid after ended

	client *http.Client
}

// everyDialect makes an upstream that speaks all three.
func everyDialect(c *Config) { c.UpstreamDialects = []string{"chat", "messages", "responses"} }

// testConfig is the configuration that tests begin with.
func testConfig(t testing.TB, upstream string) Config {
	return Config{
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Upstream: upstream,
		UpstreamDialects: []string{"chat", "messages", "responses"}, UpstreamIdleTimeout: patience, UpstreamConnIdle: 3 * time.Second,
		ClientWriteTimeout: time.Minute, Store: filepath.Join(t.TempDir(), "store"), Capture: CaptureBestEffort,
		CaptureDeadline: 5 * time.Second, CaptureRaw: "auto", TokenCapture: "off", Gemini: true, Durability: "journal", CaptureMaxBytes: 64 << 20, MaxRequestBytes: 64 << 20,
		Rewrite: rewrite.DefaultPolicy(), Keepalive: 10 * time.Second, KeepaliveOpen: 45 * time.Second,
		DrainTimeout: 5 * time.Second, LogLevel: "debug", LogFormat: "json",
	}
}

// start runs a sidecar in front of an upstream, until the test is over.
func start(t testing.TB, upstream string, change ...func(*Config)) *rig {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	return startWith(t, upstream, zap.New(core), logs, change...)
}

func startWith(t testing.TB, upstream string, log *zap.Logger, logs *observer.ObservedLogs, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, cfg: testConfig(t, upstream), logs: logs, ended: make(chan struct{})}
	for _, c := range change {
		c(&r.cfg)
	}
	var err error
	if r.srv, err = Open(r.cfg, Deps{Log: log, Version: "v1.2.3", Commit: "abcdef"}); err != nil {
		t.Fatalf("Open: %v", err)
	}
	r.addr = r.srv.Addr()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		r.err = r.srv.Run(ctx)
	}()
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	r.client = &http.Client{Transport: tr, Timeout: 2 * patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		stop()
		wait(t, "Run returns", r.ended)
	})
	return r
}

func (r *rig) url(path string) string   { return "http://" + r.addr + path }
func (r *rig) admin(path string) string { return "http://" + r.srv.AdminAddr() + path }

// do sends a request with a body and returns the answer with what could be read of its body.
func (r *rig) do(method, path, body string, header ...string) (*http.Response, string, error) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url(path), strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

// post is do for a POST that is answered.
func (r *rig) post(path, body string, header ...string) (*http.Response, string) {
	r.t.Helper()
	res, got, err := r.do("POST", path, body, header...)
	if err != nil {
		r.t.Fatalf("POST %s: %v", path, err)
	}
	return res, got
}

// get asks the admin port.
func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	res, err := r.client.Get(r.admin(path))
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// metric is the value of one series, named as it stands in the exposition; 0 when it is not there.
func (r *rig) metric(series string) float64 {
	r.t.Helper()
	_, text := r.get("/metrics")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				r.t.Fatal(err)
			}
			return f
		}
	}
	return 0
}

// counted is metric once no exchange is in flight: a client has the end of its answer before the exchange is counted.
func (r *rig) counted(series string) float64 {
	r.t.Helper()
	eventually(r.t, "no exchange is in flight", func() bool { return r.metric("rolltap_in_flight_requests") == 0 })
	return r.metric(series)
}

// requestsTotal is the series of finished model calls.
func requestsTotal(dialect, upstream, outcome string) string {
	return fmt.Sprintf("rolltap_requests_total{dialect=%q,outcome=%q,upstream_dialect=%q}", dialect, outcome, upstream)
}

// logged waits for the log line of the only exchange so far and returns its fields.
func (r *rig) logged() map[string]any {
	r.t.Helper()
	var lines []observer.LoggedEntry
	eventually(r.t, "the exchange is logged", func() bool {
		lines = r.logs.FilterMessage("exchange").All()
		return len(lines) > 0
	})
	if len(lines) != 1 {
		r.t.Errorf("%d exchanges were logged, want 1", len(lines))
	}
	return lines[0].ContextMap()
}

// ---- the store ----

// record is one parsed line of a rollout.
type record map[string]any

// at is the value below a path of member names and indices, joined by dots; nil when there is none.
func (rec record) at(path string) any {
	var v any = map[string]any(rec)
	for step := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func (rec record) has(member string) bool { _, ok := rec[member]; return ok }

// expect compares members, given as path and value; numbers are float64, nil is null or absent.
func (rec record) expect(t testing.TB, pairs ...any) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		want := pairs[i+1]
		if n, ok := want.(int); ok {
			want = float64(n)
		}
		if got := rec.at(pairs[i].(string)); got != want {
			t.Errorf("record: %s is %#v, want %#v", pairs[i], got, want)
		}
	}
}

// records reads a rollout's file as it is now, without waiting for its lock.
func (r *rig) records(rollout string) []record {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.cfg.Store, rollout+".capture.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var all []record
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(line, "\n") {
			break // is being written
		}
		var rec record
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			r.t.Fatalf("line %d: %v\n%.500s", len(all)+1, err, line)
		}
		all = append(all, rec)
	}
	return all
}

// record waits for a rollout's record and returns it; there must be one only.
func (r *rig) record(rollout string) record {
	r.t.Helper()
	var all []record
	eventually(r.t, "a record of "+rollout, func() bool { all = r.records(rollout); return len(all) > 0 })
	if len(all) != 1 {
		r.t.Errorf("rollout %s has %d records, want 1", rollout, len(all))
	}
	return all[0]
}

// stored are the names in the store, those that begin with a dot excepted.
func (r *rig) stored() []string {
	entries, err := os.ReadDir(r.cfg.Store)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}
