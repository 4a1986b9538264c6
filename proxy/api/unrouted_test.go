package api

import (
	"net/http"
	"testing"
)

// TestUnrouted: what is no request of the API is refused in its own form.
func TestUnrouted(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/api/nope", "/api/", "/api/rollouts/", "/api/rollouts/r/nope", "/api/rollouts/r/calls/1/x", "/"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			s.wantError(method, path, http.StatusNotFound, "no_such_path")
		}
	}
	for path, methods := range map[string]struct{ refused, allowed string }{
		"/api/rollouts":                 {"POST", "GET, HEAD"},
		"/api/aggregates":               {"DELETE", "GET, HEAD"},
		"/api/rollouts/r":               {"PUT", "DELETE, GET, HEAD"},
		"/api/rollouts/r/seal":          {"GET", "POST"},
		"/api/rollouts/r/tokens":        {"POST", "DELETE, GET, HEAD"},
		"/api/rollouts/r/tokens/freeze": {"GET", "POST"},
	} {
		s.wantError(methods.refused, path, http.StatusMethodNotAllowed, "method_not_allowed")
		req, err := http.NewRequestWithContext(t.Context(), methods.refused, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("Allow"); got != methods.allowed || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: allowed %q as %s", methods.refused, path, got, res.Header.Get("Content-Type"))
		}
	}
}
