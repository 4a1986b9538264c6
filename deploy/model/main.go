// Command model serves the embedded demo model as a process of its own, in vLLM's place beside a sidecar: in compose.yaml and in
// the acceptance run. To the series of the demo model it adds three of vLLM's latency histograms, timed here, at the engine's edge,
// so that a dashboard has an engine view to subtract. It needs no weights and is no engine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rolltap/internal/demomodel"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	listen := flags.String("listen", ":8000", "address to serve on")
	delay := flags.Duration("token-delay", 3*time.Millisecond, "time that each token takes")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{
		Addr:              *listen,
		Handler:           newEngine(demomodel.New(demomodel.Options{TokenDelay: *delay}), demomodel.DefaultModel),
		ReadHeaderTimeout: 30 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Close() // running answers are cut, as vLLM does without a shutdown timeout
	}
}

// engine is the model with a stopwatch. Its histograms are safe for concurrent use; nothing else changes after newEngine.
type engine struct {
	model                http.Handler
	ours                 http.Handler
	first, gap, duration prometheus.Observer
}

func newEngine(model http.Handler, name string) *engine {
	registry := prometheus.NewRegistry()
	histogram := func(series, help string, buckets []float64) prometheus.Observer {
		vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "vllm:" + series, Help: help, Buckets: buckets}, []string{"engine", "model_name"})
		if err := registry.Register(vec); err != nil {
			panic("internal error: " + err.Error())
		}
		return vec.WithLabelValues("0", name)
	}
	return &engine{
		model: model,
		ours:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}),
		// vLLM's own bounds.
		first: histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.",
			[]float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}),
		gap: histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
			[]float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}),
		duration: histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
			[]float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}),
	}
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/metrics":
		e.model.ServeHTTP(w, r)
		r.Header.Del("Accept") // the model writes the text format, so the rest has to be text, too
		e.ours.ServeHTTP(w, r)
	case "/v1/chat/completions":
		watch := &stopwatch{ResponseWriter: w, e: e, started: time.Now()}
		e.model.ServeHTTP(watch, r)
		if watch.status < http.StatusBadRequest { // vLLM counts requests that finished; a cut answer does not get here
			e.duration.Observe(time.Since(watch.started).Seconds())
		}
	default:
		e.model.ServeHTTP(w, r)
	}
}

// stopwatch times the events of one answer. The model writes a stream one event at a time, the one with the role first; a whole
// answer is one write and has no first token to time.
type stopwatch struct {
	http.ResponseWriter
	e             *engine
	started, last time.Time
	status        int
	writes        int
}

func (s *stopwatch) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *stopwatch) Write(b []byte) (int, error) {
	now := time.Now()
	switch s.writes++; {
	case s.writes == 2:
		s.e.first.Observe(now.Sub(s.started).Seconds())
	case s.writes > 2:
		s.e.gap.Observe(now.Sub(s.last).Seconds())
	}
	s.last = now
	return s.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the rest.
func (s *stopwatch) Unwrap() http.ResponseWriter { return s.ResponseWriter }
