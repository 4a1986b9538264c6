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

	"go.uber.org/zap"

	"rolltap/internal/demomodel"
	"rolltap/proxy"
	"rolltap/rewrite"
)

// TestGenAI has Google's SDK for Node (@google/genai) judge what Gemini clients are sent: unary, a stream, a conversation with a tool, a count, a
// refusal. E2E_GENAI names a folder with the SDK in its node_modules.
func TestGenAI(t *testing.T) {
	modules := os.Getenv("E2E_GENAI")
	node, err := exec.LookPath("node")
	if modules == "" || err != nil {
		t.Skip("E2E_GENAI is not set, or there is no node")
	}
	model := httptest.NewServer(demomodel.New(demomodel.Options{}))
	t.Cleanup(model.Close)
	server, err := proxy.Open(proxy.Config{
		Listen: "127.0.0.1:0", Upstream: model.URL, UpstreamDialects: []string{"chat"}, UpstreamIdleTimeout: 10 * time.Second,
		UpstreamConnIdle: 3 * time.Second, ClientWriteTimeout: time.Minute, Store: filepath.Join(t.TempDir(), "store"), Capture: proxy.CaptureRequired,
		CaptureDeadline: 20 * time.Second, CaptureRaw: "auto", Gemini: true, Durability: "journal", CaptureMaxBytes: 64 << 20, MaxRequestBytes: 64 << 20,
		Rewrite: rewrite.DefaultPolicy(), Keepalive: 10 * time.Second, KeepaliveOpen: 45 * time.Second, DrainTimeout: 5 * time.Second,
		LogLevel: "error", LogFormat: "json", TokenCapture: "off",
	}, proxy.Deps{Log: zap.NewNop(), Version: "test", Commit: "test"})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(run) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	script, err := os.ReadFile("testdata/genai.mjs")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(modules, "rolltap-genai.mjs") // modules are looked for beside the script
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, file, "http://"+server.Addr()+"/ng-rollout/genai").CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "ok" {
		t.Errorf("%v: %s", err, got)
	}
}
