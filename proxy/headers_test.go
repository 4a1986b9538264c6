package proxy

import (
	"net/http"
	"testing"

	"rolltap/capture"
)

// TestClientOf_names: names are looked up as they are written, which has to be the spelling of net/http.
func TestClientOf_names(t *testing.T) {
	for _, c := range []struct {
		name string
		get  func(capture.Client) string
	}{
		{"x-session-id", func(c capture.Client) string { return c.Session }},
		{"x-claude-code-session-id", func(c capture.Client) string { return c.Session }},
		{"session-id", func(c capture.Client) string { return c.Session }},
		{"session_id", func(c capture.Client) string { return c.Session }},
		{"x-claude-code-agent-id", func(c capture.Client) string { return c.Agent }},
		{"thread-id", func(c capture.Client) string { return c.Agent }},
		{"x-claude-code-parent-agent-id", func(c capture.Client) string { return c.ParentAgent }},
		{"x-codex-parent-thread-id", func(c capture.Client) string { return c.ParentAgent }},
	} {
		h := http.Header{}
		h.Set(c.name, "v")
		if got := c.get(clientOf(h)); got != "v" {
			t.Errorf("%s: got %q, want v", c.name, got)
		}
	}
}
