package proxy

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/capture"
)

// A sealed rollout takes no call, whoever sealed it, also behind a restart and in another process; another rollout does.
func TestSealed(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			up := newUpstream(t, answerAll)
			r := start(t, up.url())
			if err := capture.Seal(r.cfg.Store, "r", 0); err != nil {
				t.Fatal(err)
			}
			res, got, err := r.do("POST", "/ng-rollout/r"+s.path, s.ask)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != http.StatusConflict || res.Header.Get("X-Rolltap-Error") != "sealed" {
				t.Errorf("answered %s with code %q", res.Status, res.Header.Get("X-Rolltap-Error"))
			}
			s.checkError(t, got, "sealed")
			up.quiet()
			r.expectFacts("r", s, facts{outcome: "refused", category: "client_error", status: http.StatusConflict, code: "sealed", unasked: true})
			if res, _, err := r.do("POST", "/ng-rollout/other"+s.path, s.ask); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("another rollout: %v, %v", res, err)
			}
			if err := capture.Clear(t.Context(), r.cfg.Store, "r"); err != nil {
				t.Fatal(err)
			}
			if res, _, err := r.do("POST", "/ng-rollout/r"+s.path, s.ask); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("a new attempt behind a clear: %v, %v", res, err)
			}
		})
	}
}

// newThinker is an upstream that closes asked when its only call is there, and answers when answer is closed.
func newThinker(t testing.TB) (up *upstream, asked <-chan struct{}, answer chan<- struct{}) {
	came, goes := make(chan struct{}), make(chan struct{})
	return newUpstream(t, func(c *call) {
		close(came)
		<-goes
		answerAll(c)
	}), came, goes
}

// A call is in flight for every process on the store until its record is durable.
func TestInFlightForAll(t *testing.T) {
	s := sampleOf("chat")
	up, asked, answer := newThinker(t)
	r := start(t, up.url())
	done := make(chan error)
	go func() {
		_, _, err := r.do("POST", "/ng-rollout/r"+s.path, s.ask)
		done <- err
	}()
	<-asked
	if busy, err := capture.Busy(r.cfg.Store, "r"); !busy || err != nil {
		t.Errorf("while the upstream thinks: busy %t, %v", busy, err)
	}
	close(answer)
	if err := capture.Idle(t.Context(), r.cfg.Store, "r"); err != nil {
		t.Fatal(err)
	}
	if n := len(r.records("r")); n != 1 {
		t.Errorf("idle, and the store holds %d records", n)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A scorer asks one sidecar and waits for calls of another one on the same store; the seal that it puts there holds for both, also behind a
// restart.
func TestTwoSidecars(t *testing.T) {
	s := sampleOf("chat")
	up, asked, answer := newThinker(t)
	serving := start(t, up.url())
	asking := start(t, up.url(), func(c *Config) { c.Store, c.Debug = serving.cfg.Store, true })
	done := make(chan error, 1)
	go func() {
		_, _, err := serving.do("POST", "/ng-rollout/r"+s.path, s.ask)
		done <- err
	}()
	<-asked
	type reply struct {
		status int
		body   string
	}
	seal := make(chan reply, 1)
	go func() {
		res, err := http.Post(asking.admin("/api/rollouts/r/seal?wait=complete"), "", nil)
		if err != nil {
			t.Error(err)
			seal <- reply{}
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		seal <- reply{res.StatusCode, string(b)}
	}()
	eventually(t, "the rollout is sealed", func() bool { sealed, _ := capture.Sealed(serving.cfg.Store, "r"); return sealed })
	if res, got, err := serving.do("POST", "/ng-rollout/r"+s.path, s.ask); err != nil || res.StatusCode != http.StatusConflict {
		t.Errorf("a call behind the seal: %v, %v: %s", err, res, got)
	}
	select {
	case got := <-seal:
		t.Fatalf("seal did not wait: %v", got)
	default:
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := <-seal; got.status != http.StatusOK {
		t.Errorf("seal: %v", got)
	}
	status, got := asking.get("/api/rollouts/r?wait=complete")
	if status != http.StatusOK || strings.Count(got, `"model_call_id"`) != 2 || !strings.Contains(got, `"outcomes":{"ok":1,"refused":1}`) {
		t.Errorf("%d %s", status, got)
	}
	again := start(t, up.url(), func(c *Config) { c.Store = serving.cfg.Store })
	if res, _, err := again.do("POST", "/ng-rollout/r"+s.path, s.ask); err != nil || res.StatusCode != http.StatusConflict {
		t.Errorf("a sidecar that starts later: %v, %v", err, res)
	}
}

// The reading API is there for who may profile, too, and for nobody else.
func TestAPIGuard(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		change func(*Config)
		token  string
		status int
	}{
		{"by default", func(*Config) {}, "", http.StatusNotFound},
		{"with --debug", func(c *Config) { c.Debug = true }, "", http.StatusOK},
		{"with a token", func(c *Config) { c.APITokenFile = tokens }, "sesame", http.StatusOK},
		{"without the token", func(c *Config) { c.APITokenFile = tokens }, "", http.StatusUnauthorized},
		{"without a store", func(c *Config) { c.Debug, c.Capture, c.Store = true, CaptureOff, "" }, "", http.StatusNotFound},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := start(t, newUpstream(t, answerAll).url(), row.change)
			for _, path := range []string{"GET /api/rollouts", "POST /api/rollouts/r/seal", "DELETE /api/rollouts/r"} {
				method, path, _ := strings.Cut(path, " ")
				req, err := http.NewRequest(method, r.admin(path), nil)
				if err != nil {
					t.Fatal(err)
				}
				if row.token != "" {
					req.Header.Set("Authorization", "Bearer "+row.token)
				}
				res, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != row.status {
					t.Errorf("%s %s: %s, want %d", method, path, res.Status, row.status)
				}
			}
		})
	}
}
