package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// stale makes the next look at the upstream a fresh one, as a few seconds would.
func (r *rig) stale() {
	h := r.srv.health
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = time.Time{}
}

func TestLivez_andVersion(t *testing.T) {
	r := start(t, "http://127.0.0.1:1")
	if code, text := r.get("/livez"); code != 200 || text != "ok\n" {
		t.Errorf("/livez says %d %q without an upstream", code, text)
	}
	code, text := r.get("/version")
	var v map[string]string
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != 200 || v["version"] != "v1.2.3" || v["commit"] != "abcdef" || v["go"] == "" {
		t.Errorf("/version says %d %s", code, text)
	}
	if code, _ := r.get("/nothing"); code != 404 {
		t.Errorf("an unknown path says %d", code)
	}
}

func TestReadyz_followsTheUpstream(t *testing.T) {
	var status atomic.Int64
	up := newUpstream(t, func(c *call) {
		if c.Target != "/base/health" || c.Method != "GET" {
			t.Errorf("the probe asks %s %s", c.Method, c.Target)
		}
		if s := status.Load(); s > 0 {
			c.reply(int(s), "text/plain", "hello")
		} // else it closes
	})
	r := start(t, up.url()+"/base/v1")
	for _, row := range []struct{ upstream, want int64 }{{200, 200}, {0, 503}, {204, 200}, {503, 503}, {401, 200}, {404, 200}, {307, 200}, {500, 503}} {
		status.Store(row.upstream)
		r.stale()
		if code, text := r.get("/readyz"); int64(code) != row.want {
			t.Errorf("/readyz says %d %q while the upstream says %d, want %d", code, text, row.upstream, row.want)
		}
	}
	up2 := len(up.calls)
	for range 10 {
		r.get("/readyz")
	}
	if len(up.calls) != up2 {
		t.Error("each /readyz asks the upstream")
	}
	if code, _ := r.get("/livez"); code != 200 {
		t.Errorf("/livez says %d with a broken upstream", code)
	}
}

func TestReadyz_presentsTheUpstreamsKey(t *testing.T) {
	up := newUpstream(t, answerAll)
	for dialect, header := range map[string]string{"chat": "Authorization", "messages": "X-Api-Key"} {
		r := start(t, up.url(), func(c *Config) {
			c.UpstreamAPIKeyFile = tokenFileOf(t, "up-key\n")
			c.UpstreamDialects = []string{dialect}
		})
		r.get("/readyz")
		if got := up.next().Header.Get(header); !strings.HasSuffix(got, "up-key") {
			t.Errorf("%s: the probe's %s is %q", dialect, header, got)
		}
	}
}

func TestMetrics_inBothFormats(t *testing.T) {
	up := newUpstream(t, answerBySample)
	r := start(t, up.url())
	s := messagesSample()
	r.post("/ng-rollout/r"+s.path, s.askStream)
	r.post("/tokenize", "{}")
	_, text := r.get("/metrics")
	for _, name := range []string{"requests_total", "in_flight_requests", "request_duration_seconds", "time_to_first_token_seconds", "inter_chunk_seconds",
		"overhead_seconds", "prompt_tokens", "generation_tokens", "finish_total", "losses_total", "keepalives_total", "uncaptured_requests_total",
		"capture_records_total", "capture_truncated_total", "capture_commit_seconds", "capture_fsync_seconds", "capture_batch_records", "capture_lock_wait_seconds",
		"capture_bytes_total", "capture_incomplete_total", "store_low_total", "store_removed_rollouts_total", "store_removed_bytes_total", "store_free_bytes", "build_info"} {
		if !strings.Contains(text, "# TYPE rolltap_"+name+" ") {
			t.Errorf("rolltap_%s is missing", name)
		}
	}
	for series, want := range map[string]float64{
		requestsTotal("messages", "messages", "ok"):         1,
		`rolltap_finish_total{finish_reason="stop"}`:        1,
		"rolltap_time_to_first_token_seconds_count":         1,
		"rolltap_prompt_tokens_sum":                         3,
		"rolltap_generation_tokens_sum":                     2,
		`rolltap_capture_records_total{result="ok"}`:        1,
		`rolltap_uncaptured_requests_total{reason="other"}`: 0,
	} {
		eventually(t, series, func() bool { return r.metric(series) == want })
	}
	req := newGet(t, r.admin("/metrics"))
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(b), "# EOF\n") || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/openmetrics-text") {
		t.Errorf("OpenMetrics: %s, %v", res.Header.Get("Content-Type"), err)
	}
}

func TestDrainEndpoint_returnsWhenNothingIsInFlight(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		proceed := make(chan struct{})
		s := chatSample()
		up := newUpstream(t, func(c *call) {
			if c.Target == "/health" {
				c.reply(200, "text/plain", "")
				return
			}
			await(proceed)
			c.reply(200, "application/json", s.unary)
		})
		r := start(t, up.url())
		if code, _ := r.get("/readyz"); code != 200 {
			t.Errorf("/readyz says %d before", code)
		}
		up.next()
		answered := make(chan exchanged, 1)
		go func() { answered <- r.exchange("/ng-rollout/r"+s.path, s.ask) }()
		up.next()
		drained := make(chan int, 1)
		go func() {
			req, err := http.NewRequest(method, r.admin("/drain"), nil)
			if err != nil {
				t.Error(err)
			}
			res, err := r.client.Do(req)
			if err != nil {
				t.Error(err)
				drained <- 0
				return
			}
			res.Body.Close()
			drained <- res.StatusCode
		}()
		eventually(t, "readiness goes off", func() bool { code, _ := r.get("/readyz"); return code == 503 })
		select {
		case <-drained:
			t.Error("/drain returned with a call in flight")
		default:
		}
		close(proceed)
		if code := wait(t, "/drain", drained); code != 200 {
			t.Errorf("/drain says %d", code)
		}
		if got := wait(t, "the call", answered); got.body != s.unary {
			t.Errorf("the call in flight got %d %q", got.status, got.body)
		}
		if code, _ := r.get("/readyz"); code != 503 {
			t.Errorf("/readyz says %d afterwards", code)
		}
		if res, _ := r.post("/ng-rollout/r2"+s.path, s.ask); res.StatusCode != 200 {
			t.Errorf("a late call is answered %s", res.Status)
		}
	}
}

func TestDrainEndpoint_refusesOtherMethods(t *testing.T) {
	r := start(t, "http://127.0.0.1:1")
	req, err := http.NewRequest("DELETE", r.admin("/drain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 405 {
		t.Errorf("DELETE /drain says %s", res.Status)
	}
}

func TestAdminPort_canBeOff(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url(), func(c *Config) { c.AdminListen = "" })
	if got := r.srv.AdminAddr(); got != "" {
		t.Errorf("the admin port is at %q", got)
	}
	if res, _ := r.post("/metrics", ""); res.StatusCode != 200 {
		t.Errorf("the proxy port says %s", res.Status)
	}
}

func TestProfiles_areGuarded(t *testing.T) {
	off := start(t, "http://127.0.0.1:1")
	if code, _ := off.get("/debug/pprof/"); code != 404 {
		t.Errorf("without --debug profiles say %d", code)
	}
	open := start(t, "http://127.0.0.1:1", func(c *Config) { c.Debug = true })
	if code, _ := open.get("/debug/pprof/"); code != 200 {
		t.Errorf("with --debug on loopback profiles say %d", code)
	}
	guarded := start(t, "http://127.0.0.1:1", func(c *Config) { c.APITokenFile = tokenFileOf(t, "api-token\n") })
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/heap", "/debug/pprof/profile?seconds=0"} {
		if code, _ := guarded.get(path); code != 401 {
			t.Errorf("%s says %d without a token", path, code)
		}
	}
	req := newGet(t, guarded.admin("/debug/pprof/cmdline"))
	req.Header.Set("Authorization", "Bearer api-token")
	res, err := guarded.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("with the token it says %s", res.Status)
	}
	cfg := testConfig(t, "http://127.0.0.1:1")
	cfg.Debug, cfg.AdminListen = true, "0.0.0.0:0"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "--debug") {
		t.Errorf("--debug for everybody is accepted: %v", err)
	}
}

func TestClientTokens(t *testing.T) {
	up := newUpstream(t, answerAll)
	file := tokenFileOf(t, "one\n\n  two  \n")
	r := start(t, up.url(), func(c *Config) { c.AuthTokenFile = file })
	s := messagesSample()
	try := func(want int, header ...string) {
		t.Helper()
		if res, _ := r.post("/ng-rollout/r"+s.path, s.ask, header...); res.StatusCode != want {
			t.Errorf("%v is answered %s, want %d", header, res.Status, want)
		}
	}
	try(401)
	try(401, "Authorization", "Basic one")
	try(401, "Authorization", "one")
	try(401, "X-Api-Key", "")
	try(401, "Authorization", "Bearer ")
	up.quiet()
	for _, header := range [][]string{
		{"Authorization", "Bearer one"}, {"Authorization", "bearer two"}, {"X-Api-Key", "two"},
		{"Authorization", "Bearer theirs", "X-Api-Key", "one"}, {"X-Api-Key", "theirs", "Authorization", "Bearer one"},
	} {
		try(200, header...)
		c := up.next()
		for _, name := range []string{"Authorization", "X-Api-Key"} {
			if got := c.Header.Get(name); strings.Contains(got, "one") || strings.Contains(got, "two") {
				t.Errorf("%v: the upstream got %s %q", header, name, got)
			}
		}
		if strings.Contains(strings.Join(header, " "), "theirs") && !strings.Contains(c.Head, "theirs") {
			t.Errorf("%v: the credential for the upstream is gone", header)
		}
	}
	if err := os.WriteFile(file, []byte("three-is-new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := r.srv.handler.tokens
	fresh.mu.Lock()
	fresh.looked = time.Time{} // as if seconds had passed
	fresh.mu.Unlock()
	try(200, "X-Api-Key", "three-is-new")
	try(401, "X-Api-Key", "one")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	fresh.mu.Lock()
	fresh.looked = time.Time{}
	fresh.mu.Unlock()
	try(200, "X-Api-Key", "three-is-new")
}

func TestUpstreamKey_replacesTheClientsCredentials(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url(), func(c *Config) { c.UpstreamAPIKeyFile = tokenFileOf(t, "up-key\n") })
	for _, row := range []struct{ path, authorization, key string }{
		{"/ng-rollout/r/v1/chat/completions", "Bearer up-key", ""},
		{"/ng-rollout/r/v1/responses", "Bearer up-key", ""},
		{"/ng-rollout/r/v1/messages", "", "up-key"},
		{"/v1/messages", "", "up-key"},
		{"/v1/models", "Bearer up-key", ""},
	} {
		r.post(row.path, "{}", "Authorization", "Bearer theirs", "X-Api-Key", "theirs")
		c := up.next()
		if got := c.Header.Get("Authorization"); got != row.authorization {
			t.Errorf("%s: Authorization %q, want %q", row.path, got, row.authorization)
		}
		if got := c.Header.Get("X-Api-Key"); got != row.key {
			t.Errorf("%s: X-Api-Key %q, want %q", row.path, got, row.key)
		}
		if strings.Contains(c.Head, "theirs") {
			t.Errorf("%s: the client's credential went up: %q", row.path, c.Head)
		}
	}
}

// syncBuffer is a log for one test.
type syncBuffer struct{ lines chan string }

func (b syncBuffer) Write(p []byte) (int, error) { b.lines <- string(p); return len(p), nil }
func (syncBuffer) Sync() error                   { return nil }

// Whatever a client sends to prove who it is stays out of the store and out of the log, at every level.
func TestCredentials_areNeitherStoredNorLogged(t *testing.T) {
	log := syncBuffer{make(chan string, 10_000)}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.DebugLevel)
	up := newUpstream(t, func(c *call) {
		switch c.Header.Get("X-Case") {
		case "closed":
			c.Body()
		case "odd":
			c.say("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")
		default:
			answerBySample(c)
		}
	})
	r := startWith(t, up.url(), zap.New(core), nil, func(c *Config) {
		c.AuthTokenFile = tokenFileOf(t, "SECRET-token\n")
		c.UpstreamAPIKeyFile = tokenFileOf(t, "SECRET-upstream\n")
	})
	for _, name := range []string{"key", "api_key", "api-key", "apikey", "access_token", "token", "secret", "password", "signature", "sig", "API_KEY", "%6Bey", "Sig"} {
		for _, kind := range []string{"", "closed", "odd"} {
			path := "/ng-rollout/r/v1/responses?a=1&" + name + "=SECRET-query&" + name + "=SECRET%2Dtwice;" + name + "=SECRET-thrice&b=2"
			r.post(path, `{"input":"hi"}`, "Authorization", "Bearer SECRET-token", "X-Api-Key", "SECRET-key", "Cookie", "s=SECRET-cookie",
				"Proxy-Authorization", "Basic SECRET-proxy", "X-Goog-Api-Key", "SECRET-goog", "X-Case", kind)
		}
		r.post("/tokenize?"+name+"=SECRET-opaque", "", "X-Api-Key", "SECRET-token")
	}
	r.post("/ng-rollout/r/v1/responses?key=SECRET-refused", "", "X-Api-Key", "SECRET-wrong")
	r.stop()
	wait(t, "Run returns", r.ended)
	close(log.lines)
	lines := 0
	for line := range log.lines {
		if lines++; strings.Contains(line, "SECRET") {
			t.Errorf("the log says %s", line)
		}
	}
	b, err := os.ReadFile(filepath.Join(r.cfg.Store, "r.capture.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if i := strings.Index(line, "SECRET"); i >= 0 {
			t.Errorf("the store says …%s…", line[max(0, i-60):min(len(line), i+60)])
		}
	}
	if lines < 39 || strings.Count(string(b), "\n") != 39 || !strings.Contains(string(b), `"query":"a=1&key=***&key=***;key=***&b=2"`) {
		t.Errorf("%d log lines and %d records were looked at\n%.600s", lines, strings.Count(string(b), "\n"), b)
	}
}

func TestClientIdentity_isRecorded(t *testing.T) {
	up := newUpstream(t, answerBySample)
	for _, row := range []struct {
		name   string
		header []string
		want   []any
	}{
		{"a session id", []string{"X-Session-Id", "inv-1"}, []any{"client_session_id", "inv-1", "rolltap.client.session", "inv-1"}},
		{"twice the same", []string{"X-Session-Id", "inv-1", "X-Session-Id", "inv-1"}, []any{"client_session_id", "inv-1", "rolltap.client.session", "inv-1"}},
		{"two of them", []string{"X-Session-Id", "inv-1", "X-Session-Id", "inv-2"}, []any{"client_session_id", nil, "rolltap.client.session", nil}},
		{"an empty one", []string{"X-Session-Id", ""}, []any{"client_session_id", nil, "rolltap.client.session", nil}},
		{"Claude Code", []string{"X-Claude-Code-Session-Id", "s", "X-Claude-Code-Agent-Id", "a", "X-Claude-Code-Parent-Agent-Id", "p", "User-Agent", "claude-cli/2"},
			[]any{"client_session_id", nil, "rolltap.client.session", "s", "rolltap.client.agent", "a", "rolltap.client.parent_agent", "p", "rolltap.client.user_agent", "claude-cli/2"}},
		{"Codex", []string{"Session_id", "s", "Thread-Id", "t", "X-Codex-Parent-Thread-Id", "p"},
			[]any{"rolltap.client.session", "s", "rolltap.client.agent", "t", "rolltap.client.parent_agent", "p"}},
		{"bytes that are no UTF-8", []string{"X-Session-Id", "\xe9t\xe9", "Thread-Id", "\xff", "X-Codex-Parent-Thread-Id", "a\x80", "User-Agent", "caf\xe9/1"},
			[]any{"client_session_id", "été", "rolltap.client.session", "été", "rolltap.client.agent", "ÿ", "rolltap.client.parent_agent", "a\u0080", "rolltap.client.user_agent", "café/1"}},
		{"UTF-8, which is Latin-1, too", []string{"X-Session-Id", "é", "User-Agent", "ü"},
			[]any{"client_session_id", "Ã©", "rolltap.client.session", "Ã©", "rolltap.client.user_agent", "Ã¼"}},
		{"one text in two encodings", []string{"X-Session-Id", "é", "X-Session-Id", "\xe9"}, []any{"client_session_id", nil, "rolltap.client.session", nil}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := start(t, up.url(), func(c *Config) { c.ModelRef = "ref" })
			r.post("/ng-rollout/r/v1/messages", `{}`, row.header...)
			rec := r.record("r")
			rec.expect(t, row.want...)
			rec.expect(t, "model_ref.name", "ref")
			if row.want[1] == nil && rec.has("client_session_id") {
				t.Error("client_session_id is there without need")
			}
		})
	}
}
