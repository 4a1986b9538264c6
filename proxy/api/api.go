package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"go.uber.org/zap"

	"rolltap/capture"
	"rolltap/capture/training"
	"rolltap/internal/jsonx"
)

// Options of the API.
type Options struct {
	Dir    string          // the store
	Mode   fs.FileMode     // of files that are made in it; 0: 0640
	Tokens *training.Store // nil: this process captures no tokens; they are read all the same
	Log    *zap.Logger
}

type api struct{ Options }

// New serves the store. The handler holds nothing and needs no Close.
func New(o Options) http.Handler {
	a := &api{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/rollouts", a.list)
	mux.HandleFunc("GET /api/aggregates", a.total)
	for _, route := range []struct {
		pattern string
		waits   bool
		serve   func(w http.ResponseWriter, r *http.Request, id string)
	}{
		{"GET /api/rollouts/{id}", true, a.rollout},
		{"DELETE /api/rollouts/{id}", true, a.clear},
		{"GET /api/rollouts/{id}/aggregates", true, a.aggregates},
		{"GET /api/rollouts/{id}/calls/{n}", true, a.call},
		{"GET /api/rollouts/{id}/tail", true, a.tail},
		{"POST /api/rollouts/{id}/seal", false, a.seal},
		{"GET /api/rollouts/{id}/tokens", true, a.tokens},
		{"POST /api/rollouts/{id}/tokens/freeze", true, a.freeze},
		{"DELETE /api/rollouts/{id}/tokens", true, a.drop},
	} {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			id := r.PathValue("id")
			if !capture.ValidID(id) {
				fail(w, http.StatusBadRequest, "invalid_rollout_id", fmt.Sprintf("%q is no rollout id", id))
				return
			}
			if route.waits {
				asked, ok := wishOf(w, r)
				if !ok || !a.waited(w, r, id, asked) {
					return
				}
			}
			route.serve(w, r, id)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if without, pattern := mux.Handler(r); pattern == "" {
			unrouted(w, r, without)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// unrouted answers what no route is for. without is what the mux has for it: a path that is none, or a method, which it says in text.
func unrouted(w http.ResponseWriter, r *http.Request, without http.Handler) {
	said := &verdict{header: http.Header{}}
	without.ServeHTTP(said, r)
	switch said.status {
	case http.StatusNotFound:
		fail(w, said.status, "no_such_path", r.URL.Path+" is no path of the reading API")
	case http.StatusMethodNotAllowed:
		allowed := said.header.Get("Allow")
		w.Header().Set("Allow", allowed)
		fail(w, said.status, "method_not_allowed", r.Method+" is none of "+allowed)
	default:
		without.ServeHTTP(w, r) // to the path as it is spelled properly
	}
}

// verdict is an answer of which only the head counts.
type verdict struct {
	header http.Header
	status int
}

func (v *verdict) Header() http.Header         { return v.header }
func (v *verdict) WriteHeader(status int)      { v.status = status }
func (v *verdict) Write(p []byte) (int, error) { return len(p), nil }

// fail answers with an error. Nothing may have been written before.
func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b := jsonx.AppendString([]byte(`{"error":{"code":`), code)
	b = jsonx.AppendString(append(b, `,"message":`...), message)
	w.Write(append(b, "}}\n"...))
}

// broken answers with what the store could not do. What has the name of a file of it and is none does not become one by asking again.
func (a *api) broken(w http.ResponseWriter, id string, err error) {
	a.Log.Error("reading API", zap.String("rollout", id), zap.Error(err))
	if errors.Is(err, capture.ErrNoRegularFile) || errors.Is(err, training.ErrNoFile) {
		fail(w, http.StatusUnprocessableEntity, "damaged", err.Error())
		return
	}
	fail(w, http.StatusInternalServerError, "store_unavailable", err.Error())
}

// cut ends an answer that cannot be finished, so that nobody takes it for whole.
func (a *api) cut(r *http.Request, id string, err error) {
	if r.Context().Err() == nil {
		a.Log.Error("reading API", zap.String("rollout", id), zap.Error(err))
	}
	panic(http.ErrAbortHandler)
}

var errWaited = errors.New("calls are still in flight")

// wish is what a request asks of waiting.
type wish struct {
	complete bool          // until nothing of the rollout is in flight
	timeout  time.Duration // 0: for ever
}

// wishOf reads the query; what it cannot mean is answered. It reports whether the request goes on, and comes before anything is changed.
func wishOf(w http.ResponseWriter, r *http.Request) (asked wish, ok bool) {
	q := r.URL.Query()
	switch q.Get("wait") {
	case "":
		return wish{}, true
	case "complete":
		asked.complete = true
	default:
		fail(w, http.StatusBadRequest, "invalid_request", "wait: the only word is complete")
		return wish{}, false
	}
	if s := q.Get("timeout"); s != "" {
		var err error
		if asked.timeout, err = time.ParseDuration(s); err != nil || asked.timeout <= 0 {
			fail(w, http.StatusBadRequest, "invalid_request", "timeout: want a duration such as 30s")
			return wish{}, false
		}
	}
	return asked, true
}

// waited holds a request back as long as it asked for. It reports whether there is an answer to give.
func (a *api) waited(w http.ResponseWriter, r *http.Request, id string, asked wish) bool {
	if !asked.complete {
		return true
	}
	ctx := r.Context()
	if asked.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, asked.timeout, errWaited)
		defer cancel()
	}
	err := capture.Idle(ctx, a.Dir, id)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errWaited):
		fail(w, http.StatusGatewayTimeout, "in_flight", "calls of the rollout are still in flight")
	case r.Context().Err() == nil:
		a.broken(w, id, err)
	}
	return false
}

// known answers 404 for a rollout of which the store has nothing.
func (a *api) known(w http.ResponseWriter, id string) bool {
	if capture.Exists(a.Dir, id) || training.Exists(a.Dir, id) {
		return true
	}
	fail(w, http.StatusNotFound, "no_such_rollout", "the store has nothing of rollout "+id)
	return false
}
