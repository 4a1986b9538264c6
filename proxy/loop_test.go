package proxy

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An upstream that is the sidecar itself: a request comes round once, the client is told why, and nothing is left of it.
func TestLoop(t *testing.T) {
	for name, dialects := range map[string][]string{"passes": {"chat", "messages", "responses"}, "translated": {"chat"}} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := ln.Addr().String()
			ln.Close()
			r := start(t, "http://"+addr, func(c *Config) { c.Listen, c.UpstreamDialects = addr, dialects })
			for path, body := range map[string]string{
				"/ng-rollout/r/v1/messages": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
				"/v1/chat/completions":      `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
				"/tokenize":                 `{"prompt":"hi"}`,
			} {
				if res, got := r.post(path, body); res.StatusCode != http.StatusLoopDetected || !strings.Contains(got, "--upstream leads back to this very proxy") {
					t.Errorf("%s is answered with %d: %s", path, res.StatusCode, got)
				}
			}
			if got := r.record("r"); got.at("rolltap.outcome") != "upstream_error" || got.at("status_code") != 508. {
				t.Errorf("recorded is %v", got)
			}
			if code, text := r.get("/readyz"); code != http.StatusServiceUnavailable {
				t.Errorf("/readyz says %d %q", code, text)
			}
			r.stop()
			wait(t, "Run returns", r.ended)
			d := r.srv.handler.dialled
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.open) > 0 {
				t.Errorf("still known behind the end: %v", d.open)
			}
		})
	}
}

// A client may call from the very port that the sidecar calls its upstream from: systems give a port away again for another peer.
func TestLoop_sharedPort(t *testing.T) {
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	var d dialled
	c, err := dialUpstream(&net.Dialer{}, &d)(t.Context(), "tcp", up.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other := *up.Addr().(*net.TCPAddr)
	other.Port ^= 1
	wide := *up.Addr().(*net.TCPAddr) // as a socket for both families tells it
	wide.IP = wide.IP.To16()
	for name, row := range map[string]struct {
		caller string
		called net.Addr
		want   bool
	}{
		"our own":             {c.LocalAddr().String(), up.Addr(), true},
		"of the wide socket":  {c.LocalAddr().String(), &wide, true},
		"to somebody else":    {c.LocalAddr().String(), &other, false},
		"from somebody else":  {"127.0.0.1:1", up.Addr(), false},
		"over no TCP":         {"@", &net.UnixAddr{}, false},
		"of an unknown place": {c.LocalAddr().String(), nil, false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = row.caller
		if got := d.carries(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, row.called))); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
