package demomodel

import (
	"cmp"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultModel is the name that a model answers to when Options names none.
const DefaultModel = "rolltap-demo"

// Options of a model. The zero value works.
type Options struct {
	// Model is the name that requests must ask for and that answers carry.
	// Empty: DefaultModel.
	Model string
	// TokenDelay is the time that each token takes. Zero: none.
	TokenDelay time.Duration
	// StripReasoning makes the chat template drop the reasoning of turns before
	// the last user message, as the templates of some model families do. Prompts
	// then no longer start with the ids of the turns before.
	StripReasoning bool
	// APIKey is asked for on /v1 paths as a bearer token. Empty: none.
	APIKey string
}

// model is the server: options, tokenizer and the counts that /metrics shows. It
// has no other state, so it needs no Close.
type model struct {
	o      Options
	tok    *tokenizer
	routes map[string]route

	running, prompts, generated atomic.Int64
	stopped, cutShort, aborted  atomic.Int64 // answers by their end
}

type route struct {
	method string
	serve  http.HandlerFunc
}

// New returns the model's handler, safe for concurrent use. It starts no
// goroutines.
func New(o Options) http.Handler {
	o.Model = cmp.Or(o.Model, DefaultModel)
	m := &model{o: o, tok: newTokenizer()}
	m.routes = map[string]route{
		"/v1/chat/completions": {http.MethodPost, m.chat},
		"/v1/models":           {http.MethodGet, m.models},
		"/tokenize":            {http.MethodPost, m.tokenize},
		"/detokenize":          {http.MethodPost, m.detokenize},
		"/health":              {http.MethodGet, func(http.ResponseWriter, *http.Request) {}},
		"/version":             {http.MethodGet, version},
		"/metrics":             {http.MethodGet, m.metrics},
	}
	return m
}

// ServeHTTP finds the route. The standard mux would answer unknown paths and
// wrong methods in its own words; vLLM has others.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.o.APIKey != "" && strings.HasPrefix(r.URL.Path, "/v1") &&
		r.Header.Get("Authorization") != "Bearer "+m.o.APIKey {
		sendJSON(w, http.StatusUnauthorized, []byte(`{"error":"Unauthorized"}`))
		return
	}
	route, ok := m.routes[r.URL.Path]
	switch {
	case !ok:
		sendJSON(w, http.StatusNotFound, []byte(`{"detail":"Not Found"}`))
	case r.Method != route.method:
		w.Header().Set("Allow", route.method)
		sendJSON(w, http.StatusMethodNotAllowed, []byte(`{"detail":"Method Not Allowed"}`))
	default:
		route.serve(w, r)
	}
}

func version(w http.ResponseWriter, _ *http.Request) {
	sendJSON(w, http.StatusOK, []byte(`{"version":"0.32.0"}`))
}
