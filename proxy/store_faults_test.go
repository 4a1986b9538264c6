package proxy

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// breakStore makes the store take nothing, whoever runs the tests; the returned func makes the folder again.
func (r *rig) breakStore() (mend func()) {
	r.t.Helper()
	aside := r.cfg.Store + ".aside"
	if err := os.Rename(r.cfg.Store, aside); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.cfg.Store, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(r.cfg.Store); err != nil {
			r.t.Fatal(err)
		}
		if err := os.Rename(aside, r.cfg.Store); err != nil {
			r.t.Fatal(err)
		}
	}
}

// lockRollout holds the lock of a rollout's file, so that a record of it has to wait.
func (r *rig) lockRollout(rollout string) (unlock func()) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.cfg.Store, rollout+".capture.jsonl"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		r.t.Fatal(err)
	}
	return func() { f.Close() }
}

func (r *rig) marked(rollout string) bool {
	_, err := os.Stat(filepath.Join(r.cfg.Store, rollout+".capture.incomplete"))
	return err == nil
}

// answerBySample serves every dialect, as a stream where one is asked for.
func answerBySample(c *call) {
	for _, s := range samples() {
		if s.path != c.Target {
			continue
		}
		if strings.Contains(c.Body(), `"stream":true`) {
			c.open(200, "text/event-stream")
			c.chunk(s.before())
			c.chunk(s.terminal())
			c.end()
			return
		}
		c.reply(200, "application/json", s.unary)
		return
	}
	c.reply(200, "text/plain", "ok")
}

func TestStoreThatFails_bestEffort(t *testing.T) {
	for _, s := range samples() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream %v", s.dialect, stream), func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, answerBySample)
				r := start(t, up.url())
				mend := r.breakStore()
				ask, want := s.ask, s.unary
				if stream {
					ask, want = s.askStream, s.stream()
				}
				got := r.exchange("/ng-rollout/r"+s.path, ask)
				if got.status != 200 || got.body != want || got.cut || got.header.Get("X-Rolltap-Error") != "" {
					t.Errorf("the client got %d %q, cut %v, code %q", got.status, got.body, got.cut, got.header.Get("X-Rolltap-Error"))
				}
				if line := r.logged(); line["outcome"] != "ok" {
					t.Errorf("logged %v", line)
				}
				if n := r.metric(requestsTotal(s.dialect, s.dialect, "ok")); n != 1 {
					t.Errorf("counted %v ok", n)
				}
				if n := r.metric(`rolltap_capture_records_total{result="lost"}`); n != 1 {
					t.Errorf("%v records were counted as lost, want 1", n)
				}
				if n := r.metric("rolltap_capture_incomplete_total"); n != 1 {
					t.Errorf("%v marks were counted, want 1", n)
				}
				if code, text := r.get("/readyz"); code != 200 {
					t.Errorf("/readyz says %d %s; nobody asked to be strict", code, text)
				}
				mend()
				eventually(t, "the rollout is marked", func() bool { return r.marked("r") })
				if got := r.exchange("/ng-rollout/r"+s.path, ask); got.status != 200 {
					t.Errorf("the next call: %d", got.status)
				}
				rec := r.record("r")
				rec.expect(t, "rolltap.outcome", "ok")
				if seq, _ := rec.at("rolltap.seq").(float64); seq < 2 {
					t.Errorf("seq is %v: the loss does not show", seq)
				}
				if !r.marked("r") {
					t.Error("a later success took the mark back")
				}
			})
		}
	}
}

func TestStoreThatFails_required(t *testing.T) {
	for _, s := range samples() {
		for _, shape := range []string{"length", "stream", "local"} {
			t.Run(s.dialect+"/"+shape, func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, func(c *call) {
					if shape == "local" && c.Target == s.path {
						c.Body() // and closes: a 502 of our own
						return
					}
					answerBySample(c)
				})
				r := start(t, up.url(), func(c *Config) { c.Capture = CaptureRequired })
				if code, text := r.get("/readyz"); code != 200 {
					t.Fatalf("/readyz says %d %s at first", code, text)
				}
				mend := r.breakStore()
				ask := s.ask
				if shape == "stream" {
					ask = s.askStream
				}
				got := r.exchange("/ng-rollout/r"+s.path, ask)
				if !got.cut || got.header.Get("X-Rolltap-Error") != "" {
					t.Errorf("the client got %d %q, cut %v, code %q", got.status, got.body, got.cut, got.header.Get("X-Rolltap-Error"))
				}
				switch shape {
				case "length":
					if got.body == s.unary {
						t.Error("the whole body was shown")
					}
				case "stream":
					if got.body != s.before() {
						t.Errorf("the client saw %q, want everything before the terminal event", got.body)
					}
				case "local":
					if got.status != 0 {
						t.Errorf("an answer of our own was shown: %d", got.status)
					}
				}
				if line := r.logged(); line["outcome"] != "aborted" {
					t.Errorf("logged %v", line)
				}
				if n := r.metric(requestsTotal(s.dialect, s.dialect, "aborted")); n != 1 {
					t.Errorf("counted %v aborted", n)
				}
				if code, _ := r.get("/readyz"); code != 503 {
					t.Errorf("/readyz says %d while the store takes nothing", code)
				}
				mend()
				if code, text := r.get("/readyz"); code != 200 {
					t.Errorf("/readyz says %d %s when the store works again", code, text)
				}
				eventually(t, "the rollout is marked", func() bool { return r.marked("r") })
				if n := len(r.records("r")); n != 0 {
					t.Errorf("%d records of an exchange that was lost", n)
				}
			})
		}
	}
}

// A record that takes longer than the deadline arrives late, with the outcome that it was written with.
func TestStoreThatIsSlow(t *testing.T) {
	for _, s := range samples() {
		for _, policy := range []string{CaptureBestEffort, CaptureRequired} {
			t.Run(s.dialect+"/"+policy, func(t *testing.T) {
				t.Parallel()
				up := newUpstream(t, answerBySample)
				r := start(t, up.url(), func(c *Config) {
					c.Capture = policy
					c.CaptureDeadline = 100 * time.Millisecond
				})
				unlock := r.lockRollout("r")
				got := r.exchange("/ng-rollout/r"+s.path, s.askStream)
				want, outcome := s.stream(), "ok"
				if policy == CaptureRequired {
					want, outcome = s.before(), "aborted"
				}
				if got.status != 200 || got.body != want || got.cut != (policy == CaptureRequired) {
					t.Errorf("the client got %d %q, cut %v", got.status, got.body, got.cut)
				}
				if line := r.logged(); line["outcome"] != outcome {
					t.Errorf("logged %v", line)
				}
				unlock()
				rec := r.record("r")
				rec.expect(t, "rolltap.outcome", "ok", "response."+s.foldedText, s.text)
				eventually(t, "the record is counted as late", func() bool { return r.metric(`rolltap_capture_records_total{result="late"}`) == 1 })
				eventually(t, "the rollout is marked", func() bool { return r.marked("r") })
			})
		}
	}
}

// Other rollouts do not wait for one that is locked.
func TestStoreThatIsSlow_forOneRolloutOnly(t *testing.T) {
	up := newUpstream(t, answerBySample)
	r := start(t, up.url())
	unlock := r.lockRollout("slow")
	s := chatSample()
	done := make(chan exchanged, 1)
	go func() { done <- r.exchange("/ng-rollout/slow"+s.path, s.ask) }()
	up.next()
	if got := r.exchange("/ng-rollout/fast"+s.path, s.ask); got.body != s.unary {
		t.Errorf("the other rollout got %d %q", got.status, got.body)
	}
	select {
	case <-done:
		t.Error("a call was answered before its record could be written")
	default:
	}
	unlock()
	if got := wait(t, "the slow rollout", done); got.body != s.unary {
		t.Errorf("the slow rollout got %d %q", got.status, got.body)
	}
}

func TestStoreThatCannotBeOpened_isAnErrorAtTheStart(t *testing.T) {
	cfg := testConfig(t, "http://127.0.0.1:1")
	if err := os.WriteFile(cfg.Store, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg, Deps{}); err == nil || !strings.Contains(err.Error(), ErrStore.Error()) {
		t.Errorf("Open said %v", err)
	}
}

// What was never captured does not care for the store.
func TestStoreThatFails_isNothingToOtherRequests(t *testing.T) {
	up := newUpstream(t, answerBySample)
	r := start(t, up.url(), func(c *Config) { c.Capture = CaptureRequired })
	defer r.breakStore()()
	s := chatSample()
	for _, path := range []string{s.path, "/ng-rollout/r/v1/models", "/ng-rollout/r/v1/messages/count_tokens"} {
		if res, _ := r.post(path, s.ask); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	if r.marked("r") {
		t.Error("a rollout was marked without a loss")
	}
}
