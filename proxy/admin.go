package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rolltap/metrics"
	"rolltap/proxy/api"
)

const (
	// probeFresh is how long a look at the upstream is believed; /readyz is never older than a few seconds.
	probeFresh = 2 * time.Second
	// probeTime bounds one look.
	probeTime = 2 * time.Second
)

// health answers whether the sidecar should get traffic.
type health struct {
	h        *Handler
	strict   bool // the store counts
	client   *http.Client
	url      string
	draining atomic.Bool

	mu      sync.Mutex // guards what follows; held while the upstream is looked at, so that one look serves all who ask
	looked  time.Time
	problem error
}

func newHealth(h *Handler, strict bool) (*health, error) {
	c := &health{h: h, strict: strict, url: h.upstream.String() + "/health"}
	t := newTransport(probeFresh, h.dialled)
	t.DisableKeepAlives = true // a probe must not find a connection that the upstream is just closing
	c.client = &http.Client{Transport: t, Timeout: probeTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if _, err := http.NewRequest(http.MethodGet, c.url, nil); err != nil {
		return nil, fmt.Errorf("health address: %w", err)
	}
	return c, nil
}

func (c *health) drain() { c.draining.Store(true) }
func (c *health) close() { c.client.CloseIdleConnections() }

// check says why the sidecar is not ready, nil when it is.
func (c *health) check(ctx context.Context) error {
	if c.draining.Load() {
		return errDraining
	}
	if c.strict {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		if err := c.h.store.Low(ctx); err != nil {
			return fmt.Errorf("the store takes no records: %w", err)
		}
		if err := c.h.store.Trouble(); err != nil {
			// Nobody sends records to a sidecar that is not ready, so the store has to be tried here.
			if err := c.h.store.Probe(ctx); err != nil {
				return fmt.Errorf("the store takes no records: %w", err)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= probeFresh {
		c.problem = c.look(ctx)
		c.looked = time.Now()
	}
	return c.problem
}

func (c *health) look(ctx context.Context) error {
	r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	if c.h.upstreamKey != "" {
		setCredential(r.Header, c.h.dialects[0], c.h.upstreamKey)
	}
	res, err := c.client.Do(r)
	if err != nil {
		return fmt.Errorf("the upstream does not answer: %w", err)
	}
	res.Body.Close()
	if res.StatusCode >= 500 {
		return fmt.Errorf("the upstream says %s", res.Status)
	}
	return nil
}

// adminMux serves the admin port.
func (s *Server) adminMux(m *metrics.Metrics, deps Deps) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.health.check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("/metrics", m.Handler())
	mux.HandleFunc("/drain", s.serveDrain)
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"version": deps.Version, "commit": deps.Commit, "go": runtime.Version()})
	})
	if !s.cfg.Debug && s.cfg.APITokenFile == "" {
		return mux, nil
	}
	guard := noWebPage
	if s.cfg.APITokenFile != "" {
		tokens, err := openTokenFile(s.cfg.APITokenFile, s.log)
		if err != nil {
			return nil, err
		}
		guard = func(h http.HandlerFunc) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !presents(r.Header, tokens.get()) {
					w.Header().Set("WWW-Authenticate", "Bearer")
					http.Error(w, "a token of --api-token-file is needed", http.StatusUnauthorized)
					return
				}
				h(w, r)
			})
		}
	}
	if s.store != nil {
		mux.Handle("/api/", guard(api.New(api.Options{Dir: s.cfg.Store, Mode: fs.FileMode(s.cfg.StoreMode), Tokens: s.tokens, Log: s.log}).ServeHTTP))
	}
	mux.Handle("/debug/pprof/", guard(pprof.Index))
	mux.Handle("/debug/pprof/cmdline", guard(pprof.Cmdline))
	mux.Handle("/debug/pprof/profile", guard(pprof.Profile))
	mux.Handle("/debug/pprof/symbol", guard(pprof.Symbol))
	mux.Handle("/debug/pprof/trace", guard(pprof.Trace))
	return mux, nil
}

// noWebPage keeps a browser on this host from doing what a page of somebody else says, where no token is asked for: such a page
// can send requests to loopback, and read their answers once the name that it came from leads there.
func noWebPage(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if r.Header.Get("Origin") != "" || !loopback(net.JoinHostPort(host, "0")) {
			http.Error(w, "without --api-token-file this is for programs that ask for it by a loopback address", http.StatusForbidden)
			return
		}
		h(w, r)
	})
}

// serveDrain turns readiness off and returns when nothing is in flight: a preStop hook calls it. New requests are still
// served, since routing needs a while to learn that this sidecar is not ready.
func (s *Server) serveDrain(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "GET or POST", http.StatusMethodNotAllowed)
		return
	}
	s.health.drain()
	if s.handler.idle(r.Context()) == nil {
		fmt.Fprintln(w, "drained")
	}
}
