package proxy

import (
	"net/http"
	"testing"

	"rolltap/capture"
)

// A sealed rollout takes no call, whoever sealed it, also behind a restart and in another process; another rollout does.
func TestSealed(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			up := newUpstream(t, answerAll)
			r := start(t, up.url())
			if err := capture.Seal(r.cfg.Store, "r"); err != nil {
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

// A call is in flight for every process on the store until its record is durable.
func TestInFlightForAll(t *testing.T) {
	s := sampleOf("chat")
	asked, answer := make(chan struct{}), make(chan struct{})
	up := newUpstream(t, func(c *call) {
		close(asked)
		<-answer
		answerAll(c)
	})
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
