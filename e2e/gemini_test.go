package e2e

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rolltap/internal/demomodel"
	"rolltap/rewrite/canon"
)

// demo is a sidecar in front of the demo model, which is made to speak that dialect by another one in between. It returns the root of a rollout.
func demo(t *testing.T, upstream canon.Dialect) string {
	t.Helper()
	model := httptest.NewServer(demomodel.New(demomodel.Options{}))
	t.Cleanup(model.Close)
	at := model.URL
	if upstream != canon.Chat {
		at = "http://" + listen(t, at, canon.Chat, filepath.Join(t.TempDir(), "between"))
	}
	return "http://" + listen(t, at, upstream, filepath.Join(t.TempDir(), "store")) + "/ng-rollout/genai"
}

// TestGenAI has Google's SDK for Node (@google/genai) judge what Gemini clients are sent, in front of each upstream: testdata/genai.mjs says what.
// E2E_GENAI names a folder with the SDK in its node_modules; the SDK for Go, in the other tests, needs none.
func TestGenAI(t *testing.T) {
	modules := os.Getenv("E2E_GENAI")
	node, err := exec.LookPath("node")
	if modules == "" || err != nil {
		t.Skip("E2E_GENAI is not set, or there is no node")
	}
	script, err := os.ReadFile("testdata/genai.mjs")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(modules, "rolltap-genai.mjs") // modules are looked for beside the script
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file) })
	for _, upstream := range []canon.Dialect{canon.Chat, canon.Messages, canon.Responses} {
		t.Run(string(upstream), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, node, file, demo(t, upstream), string(upstream)).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != "ok" {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}
