package proxy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rolltap/capture"
	"rolltap/capture/training"
)

func TestKeep_runsBesideTheServer(t *testing.T) {
	s := chatSample()
	store := filepath.Join(t.TempDir(), "store")
	up := newUpstream(t, answerBySample)
	first := start(t, up.url(), func(c *Config) { c.Store = store })
	for _, rollout := range []string{"sealed", "open", "taught"} {
		first.post("/ng-rollout/"+rollout+s.path, s.ask)
		first.record(rollout)
	}
	first.stop()
	wait(t, "Run returns", first.ended)
	for _, rollout := range []string{"sealed", "taught"} {
		if err := capture.Seal(store, rollout, 0); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := training.Open(training.Options{Dir: store})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tokens.Begin(t.Context(), "taught", "c"), tokens.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, name := range first.stored() {
		if err := os.Chtimes(filepath.Join(store, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, up.url(), func(c *Config) { c.Store, c.Keep = store, Keep{Age: 30 * time.Minute} })
	eventually(t, "the sealed rollout is removed", func() bool { return r.metric("rolltap_store_removed_rollouts_total") == 1 })
	if got := strings.Join(r.stored(), " "); strings.Contains(got, " sealed.") || !strings.HasPrefix(got, "open.capture.jsonl taught.capture.jsonl taught.capture.sealed taught.tokens.") {
		t.Errorf("the store holds %s", got)
	}
	if got := r.metric("rolltap_store_removed_bytes_total"); got < 500 {
		t.Errorf("%v bytes were removed", got)
	}
	eventually(t, "what stays is told", func() bool { return r.logs.FilterMessageSnippet("beyond --keep stay").Len() == 1 })
	if r.logs.FilterMessageSnippet("was removed, see --keep").Len() != 1 {
		t.Error("the removal is not in the log")
	}
}

// A rollout whose token ids were dropped leaves a tombstone, so that no late call begins it anew; that goes with what is as old.
func TestKeep_tombstones(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	tokens, err := training.Open(training.Options{Dir: store})
	if err != nil {
		t.Fatal(err)
	}
	for _, rollout := range []string{"old", "young"} {
		f, err := tokens.Freeze(t.Context(), rollout)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := tokens.Drop(t.Context(), rollout, f.ID, f.Version); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if err := tokens.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(store, "old.tokens.state.json"), long, long); err != nil {
		t.Fatal(err)
	}
	r := start(t, "http://127.0.0.1:1", func(c *Config) {
		c.Store, c.Keep, c.TokenCapture = store, Keep{Age: 30 * time.Minute}, tokenCaptureAuto
	})
	eventually(t, "the old tombstone is removed", func() bool { return r.logs.FilterMessageSnippet("dropped token ids was removed").Len() == 1 })
	if got := strings.Join(r.stored(), " "); strings.Contains(got, "old.") || !strings.Contains(got, "young.tokens.state.json") {
		t.Errorf("the store holds %s", got)
	}
}

func TestKeep_isOffByDefault(t *testing.T) {
	if r := start(t, "http://127.0.0.1:1"); r.srv.sweeper != nil {
		t.Error("rollouts are removed that nobody has asked to remove")
	}
}
