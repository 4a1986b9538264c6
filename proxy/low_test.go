package proxy

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// more than any disk has
func noRoom(c *Config) { c.StoreMinFree = 1 << 60 }

func TestLowStore_bestEffortServesAndMarks(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, answerBySample)
			r := start(t, up.url(), noRoom)
			for range 2 {
				got := r.exchange("/ng-rollout/r"+s.path, s.askStream)
				if got.status != 200 || got.cut || got.body != s.stream() {
					t.Errorf("answered %d, cut %v: %q", got.status, got.cut, got.body)
				}
			}
			eventually(t, "two records are counted as lost", func() bool { return r.metric(`rolltap_capture_records_total{result="lost"}`) == 2 })
			eventually(t, "the rollout is marked", func() bool { return strings.Join(r.stored(), " ") == "r.capture.incomplete" })
			if got := r.metric("rolltap_store_low_total"); got != 1 {
				t.Errorf("the fall was counted %v times", got)
			}
			if got := r.metric(requestsTotal(s.dialect, s.dialect, "ok")); got != 2 {
				t.Errorf("%v calls were ok", got)
			}
			if code, text := r.get("/readyz"); code != 200 {
				t.Errorf("/readyz says %d %s", code, text)
			}
		})
	}
}

func TestLowStore_requiredRefusesBeforeGeneration(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			up := newUpstream(t, func(c *call) { c.reply(200, "text/plain", "") })
			r := start(t, up.url(), noRoom, func(c *Config) { c.Capture = CaptureRequired; c.MaxInFlight = 1 })
			for range 2 { // the second proves that no place was kept
				got := r.exchange("/ng-rollout/r"+s.path, s.ask)
				if got.status != http.StatusInsufficientStorage || got.header.Get("X-Rolltap-Error") != "store_unavailable" || got.header.Get("X-Rolltap-Call-Id") != "" {
					t.Errorf("answered %d, code %q, call id %q", got.status, got.header.Get("X-Rolltap-Error"), got.header.Get("X-Rolltap-Call-Id"))
				}
				s.checkError(t, got.body, "store_unavailable")
			}
			up.quiet()
			eventually(t, "the calls are counted", func() bool { return r.metric(requestsTotal(s.dialect, "none", "refused")) == 2 })
			eventually(t, "the rollout is marked", func() bool { return strings.Join(r.stored(), " ") == "r.capture.incomplete" })
			mark, err := os.ReadFile(filepath.Join(r.cfg.Store, "r.capture.incomplete"))
			if err != nil || !strings.Contains(string(mark), `"stage":"watermark"`) {
				t.Errorf("the mark says %s, %v", mark, err)
			}
			if code, text := r.get("/readyz"); code != 503 || !strings.Contains(text, "takes no records") {
				t.Errorf("/readyz says %d %s", code, text)
			}
			// What is not recorded is served all the same.
			for _, path := range []string{s.path, "/tokenize"} {
				if res, _ := r.post(path, s.ask); res.StatusCode != 200 {
					t.Errorf("%s is answered %s", path, res.Status)
				}
			}
		})
	}
}

func TestLowStore_roomEnough(t *testing.T) {
	s := chatSample()
	up := newUpstream(t, answerBySample)
	r := start(t, up.url(), func(c *Config) { c.StoreMinFree, c.Capture = 1, CaptureRequired })
	if got := r.exchange("/ng-rollout/r"+s.path, s.ask); got.status != 200 {
		t.Errorf("answered %d %s", got.status, got.body)
	}
	r.record("r").expect(t, "rolltap.outcome", "ok")
	if code, text := r.get("/readyz"); code != 200 && !strings.Contains(text, "upstream") {
		t.Errorf("/readyz says %d %s", code, text)
	}
}
