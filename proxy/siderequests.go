package proxy

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"rolltap/rewrite"
)

// sideRequests are requests that a harness makes beside its model calls and whose answers no later prompt can hold: what the model says is
// not in them. Any other request under the training prefix that is not captured may be a generation of which the rollout has no tokens, so
// it marks the rollout.
type sideRequests map[string]struct{}

// newSideRequests are those that are known, and those of the settings.
func newSideRequests(more []string) sideRequests {
	s := sideRequests{}
	for _, r := range []string{
		"GET /v1/models", "POST /v1/messages/count_tokens", "POST /v1/responses/input_tokens", // discovery and counting
		"POST /tokenize", "POST /detokenize", "GET /tokenizer_info",
		"GET /", "GET /health", "GET /healthz", "GET /livez", "GET /readyz", "GET /ping", "POST /ping", "GET /version", "GET /load", "GET /metrics", "GET /server_info",
		"GET /weight_info", "GET /is_sleeping", "GET /is_paused", "GET /get_world_size",
	} {
		s[r] = struct{}{}
	}
	for _, r := range more {
		method, path, _ := parseSideRequest(r) // Validate has seen them
		s[method+" "+path] = struct{}{}
	}
	return s
}

// parseSideRequest reads "METHOD /path": letters, a blank, an absolute path without query, fragment or wildcard.
func parseSideRequest(text string) (method, path string, err error) {
	method, path, ok := strings.Cut(strings.TrimSpace(text), " ")
	path = strings.TrimSpace(path)
	switch {
	case !ok, method == "", strings.Trim(strings.ToUpper(method), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return "", "", errors.New("want a method and a path, GET /v1/things")
	case !strings.HasPrefix(path, "/"), strings.ContainsAny(path, "?#* "):
		return "", "", errors.New("want an absolute path without query, fragment or wildcard")
	}
	return strings.ToUpper(method), path, nil
}

// has tells whether it is one. GET /v1/models/<name> is, too, and whatever has no body in its answer or asks for what is allowed.
func (s sideRequests) has(method string, r rewrite.Route) bool {
	if method == http.MethodHead || method == http.MethodOptions {
		return true
	}
	path := r.Path
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	if name, ok := strings.CutPrefix(path, "/v1/models/"); ok && method == http.MethodGet && name != "" {
		return true
	}
	_, ok := s[method+" "+path]
	return ok
}
