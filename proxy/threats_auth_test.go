package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The tests whose names begin with TestThreat belong to docs/threats.md, one a line: each fails when its control is gone, and no other
// of that document does.

func TestThreat_callWithoutToken(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url(), func(c *Config) { c.AuthTokenFile = tokenFileOf(t, "right\n") })
	for _, path := range []string{"/v1/chat/completions", "/ng-rollout/r/v1/messages", "/tokenize", "/sleep", "/"} {
		for _, header := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"X-Api-Key", "righ"}, {"Authorization", "right"}, {"Cookie", "right"}} {
			if res, _ := r.post(path, "{}", header...); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with %v is answered %s", path, header, res.Status)
			}
		}
	}
	up.quiet()
}

func TestThreat_tokenTravelsOn(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url(), func(c *Config) { c.AuthTokenFile = tokenFileOf(t, "our-token\nour-other\n") })
	for _, header := range [][]string{{"Authorization", "Bearer our-token"}, {"X-Api-Key", "our-token"}, {"X-Goog-Api-Key", "our-token"}, {"Authorization", "Bearer our-token", "X-Api-Key", "our-other"}} {
		for _, path := range []string{"/v1/chat/completions", "/tokenize"} {
			r.post(path, "{}", header...)
			if head := up.next().Head; strings.Contains(head, "our-") {
				t.Errorf("%v went up: %q", header, head)
			}
		}
	}
}

// A token that was revoked, and a certificate that was replaced, are not used any more once their file has changed.
func TestThreat_secretThatWasReplaced(t *testing.T) {
	up := newUpstream(t, answerAll)
	tokens := tokenFileOf(t, "old\n")
	r := start(t, up.url(), func(c *Config) { c.AuthTokenFile = tokens })
	change, first := secure(t)
	s := start(t, up.url(), change)
	if err := os.WriteFile(tokens, []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := pairIn(t, s.cfg.TLSCert, s.cfg.TLSKey, "second")
	r.srv.handler.tokens.mu.Lock()
	r.srv.handler.tokens.looked = time.Time{} // as if seconds had passed
	r.srv.handler.tokens.mu.Unlock()
	if got := r.srv.handler.tokens.get(); len(got) != 1 || got[0] != "new" {
		t.Errorf("the tokens are %q", got)
	}
	for end := time.Now().Add(filePoll + time.Second); ; time.Sleep(50 * time.Millisecond) {
		c, err := dialTLS(s, nil, 0, first, second)
		if err != nil {
			t.Fatal(err)
		}
		name := c.ConnectionState().PeerCertificates[0].Subject.CommonName
		c.Close()
		if name == "second" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a certificate that was replaced is still presented")
		}
	}
}

func TestThreat_clientCredentialLeaves(t *testing.T) {
	up := newUpstream(t, answerAll)
	r := start(t, up.url(), func(c *Config) { c.UpstreamAPIKeyFile = tokenFileOf(t, "upstream-key\n") })
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/tokenize"} {
		r.post(path, "{}", "Authorization", "Bearer client-secret", "X-Api-Key", "client-secret", "X-Goog-Api-Key", "client-secret")
		if head := up.next().Head; strings.Contains(head, "client-secret") || !strings.Contains(head, "upstream-key") {
			t.Errorf("%s: the upstream got %q", path, head)
		}
	}
}

func TestThreat_credentialIsKept(t *testing.T) {
	for in, want := range map[string]string{
		"key=s": "key=***", "api_key=s": "api_key=***", "api-key=s": "api-key=***", "apikey=s": "apikey=***", "access_token=s": "access_token=***",
		"token=s": "token=***", "secret=s": "secret=***", "password=s": "password=***", "signature=s": "signature=***", "sig=s": "sig=***",
		"API_Key=s": "API_Key=***", "%6bey=s": "%6bey=***", "a=1&key=s&b=2;token=s": "a=1&key=***&b=2;token=***", "key=s=s": "key=***", "key=s&key=s": "key=***&key=***",
		"keys=v": "keys=v", "monkey=v": "monkey=v", "key": "key", "": "", "beta=true&x=%20": "beta=true&x=%20", "&&key=s&": "&&key=***&",
	} {
		if got := redactQuery(in); got != want {
			t.Errorf("%q is kept as %q, want %q", in, got, want)
		}
	}
	log := syncBuffer{make(chan string, 1000)}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.DebugLevel)
	up := newUpstream(t, answerBySample)
	r := startWith(t, up.url(), zap.New(core), nil, func(c *Config) { c.UpstreamAPIKeyFile = tokenFileOf(t, "THE-SECRET-up\n") })
	s := chatSample()
	r.post("/ng-rollout/r"+s.path+"?api_key=THE-SECRET-query", s.ask, "Authorization", "Bearer THE-SECRET-1", "X-Api-Key", "THE-SECRET-2", "Cookie", "THE-SECRET-3")
	r.record("r")
	r.stop()
	wait(t, "Run returns", r.ended)
	close(log.lines)
	lines := 0
	for line := range log.lines {
		if lines++; strings.Contains(line, "THE-SECRET") {
			t.Errorf("the log says %s", line)
		}
	}
	if kept, err := os.ReadFile(filepath.Join(r.cfg.Store, "r.capture.jsonl")); err != nil || lines == 0 || len(kept) == 0 || strings.Contains(string(kept), "THE-SECRET") {
		t.Errorf("%d lines of log, the store says %s, %v", lines, kept, err)
	}
}

func TestThreat_credentialInASetting(t *testing.T) {
	for _, url := range []string{"http://user:SECRET@vllm:8000", "http://SECRET@vllm", "http://user:SECRET%zz@vllm", "ftp://user:SECRET@vllm", "http://user:SECRET@"} {
		cfg := testConfig(t, url)
		if err := cfg.Validate(); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestThreat_weakTransport(t *testing.T) {
	change, cert := secure(t)
	r := start(t, "http://127.0.0.1:1", change)
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := dialTLS(r, nil, version, cert)
		if err == nil {
			c.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// The probe presents the upstream's credential, to the upstream alone.
func TestThreat_probeIsSentElsewhere(t *testing.T) {
	asked := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer elsewhere.Close()
	up := newUpstream(t, func(c *call) { c.reply(307, "", "", "Location", elsewhere.URL+"/take") })
	r := start(t, up.url(), func(c *Config) { c.UpstreamAPIKeyFile = tokenFileOf(t, "upstream-key\n") })
	r.get("/readyz")
	select {
	case path := <-asked:
		t.Errorf("another server was asked for %s", path)
	default:
	}
}

func TestThreat_profilesWithoutToken(t *testing.T) {
	r := start(t, "http://127.0.0.1:1", func(c *Config) { c.APITokenFile = tokenFileOf(t, "api-token\n") })
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/heap", "/debug/pprof/profile?seconds=0", "/debug/pprof/trace?seconds=0", "/api/rollouts"} {
		if code, _ := r.get(path); code != http.StatusUnauthorized {
			t.Errorf("%s says %d", path, code)
		}
	}
}

func TestThreat_profilesForEverybody(t *testing.T) {
	for _, addr := range []string{":9464", "0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464", "example.org:9464"} {
		cfg := testConfig(t, "http://127.0.0.1:1")
		cfg.Debug, cfg.AdminListen = true, addr
		if err := cfg.Validate(); err == nil {
			t.Errorf("profiles are open to everybody on %s", addr)
		}
	}
}

// A page in a browser on the same host can send requests to loopback; it reads no store there, and seals and clears no rollout.
func TestThreat_webPage(t *testing.T) {
	r := start(t, "http://127.0.0.1:1", func(c *Config) { c.Debug = true })
	_, port, err := net.SplitHostPort(r.srv.AdminAddr())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:" + port, "", 200}, {"localhost:" + port, "", 200}, {"[::1]:" + port, "", 200}, {"127.0.0.1", "", 200},
		{"rebound.example:" + port, "", 403}, {"rebound.example", "", 403}, {"192.0.2.1:" + port, "", 403}, {"", "", 403},
		{"127.0.0.1:" + port, "https://page.example", 403}, {"127.0.0.1:" + port, "null", 403}, {"rebound.example:" + port, "http://rebound.example:" + port, 403},
	} {
		for _, path := range []string{"/api/rollouts", "/debug/pprof/cmdline"} {
			w := dial(t, r.srv.AdminAddr())
			origin := ""
			if row.origin != "" {
				origin = "Origin: " + row.origin + "\r\n"
			}
			w.send("GET " + path + " HTTP/1.1\r\nHost: " + row.host + "\r\nConnection: close\r\n" + origin + "\r\n")
			if codes := answersTo(w); len(codes) != 1 || codes[0] != row.want {
				t.Errorf("%s for host %q and origin %q says %v, want %d", path, row.host, row.origin, codes, row.want)
			}
		}
	}
}

// Agents reach the proxy port: nothing of the admin port is on it.
func TestThreat_adminOnTheProxyPort(t *testing.T) {
	up := newUpstream(t, func(c *call) { c.reply(200, "text/plain", "the upstream's") })
	r := start(t, up.url(), func(c *Config) { c.Debug = true })
	for _, path := range []string{"/metrics", "/drain", "/readyz", "/livez", "/version", "/debug/pprof/", "/debug/pprof/cmdline", "/api/rollouts", "/ng-rollout/r/drain"} {
		if res, body, err := r.do("GET", path, ""); err != nil || res.StatusCode != 200 || body != "the upstream's" {
			t.Errorf("%s is answered %v %q, %v", path, res, body, err)
		}
	}
	if code, _ := r.get("/readyz"); code != 200 {
		t.Errorf("somebody has turned readiness off: %d", code)
	}
}
