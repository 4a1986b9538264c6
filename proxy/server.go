package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"rolltap/capture"
	"rolltap/capture/training"
	"rolltap/metrics"
)

var (
	// ErrStore says that the capture folder cannot be used: nothing was served.
	ErrStore    = errors.New("the store cannot be opened")
	errDraining = errors.New("draining")
	// ErrCut says that answers had to be cut when the drain timeout was over.
	ErrCut = errors.New("answers were cut at the end of the drain timeout")
)

const (
	// headTime is the longest that a client may take to send its headers.
	headTime = 30 * time.Second
	// clientIdle is the longest that an unused client connection is kept.
	clientIdle = 10 * time.Minute
	// headBytes is the longest head of a request; a longer one is answered with 431.
	headBytes = 1 << 20
	// closeGrace is what an answer that was told to end, and the store behind it, get to do so.
	closeGrace = 10 * time.Second
)

// Deps are what the caller has made already.
type Deps struct {
	Log             *zap.Logger
	LogDropped      func() int64 // lines that the log has lost; nil: none are
	Version, Commit string
}

// Server is the sidecar: the proxy port, the admin port and the store behind them.
type Server struct {
	cfg     Config
	log     *zap.Logger
	handler *Handler
	store   *capture.Store
	tokens  *training.Store
	health  *health
	sweeper *retention     // nil: everything is kept
	wg      sync.WaitGroup // what works beside the ports until base is done

	proxy   *http.Server
	proxyLn net.Listener
	admin   *http.Server // nil: off
	adminLn net.Listener
	base    context.Context         // of every request
	cut     context.CancelCauseFunc // ends base, and with it every exchange in flight
}

// Open validates the configuration, opens the store and binds both ports, so that whatever is wrong is an error here and
// not a line in the log later. Run, or Close, has to follow.
func Open(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := metrics.New(metrics.Build{Version: deps.Version, Commit: deps.Commit, GoVersion: runtime.Version()})
	m.LogDropped(deps.LogDropped)
	s := &Server{cfg: cfg, log: deps.Log}
	if cfg.Capture != CaptureOff {
		store, err := capture.Open(capture.Options{
			Dir: cfg.Store, Durability: capture.Durability(cfg.Durability), Mode: fs.FileMode(cfg.StoreMode), MinFree: int64(cfg.StoreMinFree),
			Lines:   capture.NewBudget(memoryFor(lineBudget)),
			Observe: observeStore(m, deps.Log),
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		s.store = store
		m.StoreFree(store.FreeBytes)
		if s.tokens, err = newTraining(&cfg, store, deps.Log); err != nil {
			s.Close()
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
		if cfg.Keep != (Keep{}) {
			s.sweeper = newRetention(&cfg, s.tokens, m, deps.Log)
		}
	}
	s.base, s.cut = context.WithCancelCause(context.Background())
	if err := s.open(deps, m); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) open(deps Deps, m *metrics.Metrics) error {
	var err error
	if s.handler, err = newHandler(s.cfg, s.log, m, s.store, s.tokens); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.proxyLn = progressListener{ln, s.cfg.ClientWriteTimeout, newBufferPool(gatherBytes)}
	if s.cfg.TLSCert != "" {
		if s.proxyLn, err = tlsListener(s.proxyLn, s.cfg.TLSCert, s.cfg.TLSKey, s.log); err != nil {
			ln.Close()
			s.proxyLn = nil
			return fmt.Errorf("tls: %w", err)
		}
	}
	s.proxy = s.httpServer(s.handler)
	if s.health, err = newHealth(s.handler, s.cfg.Capture == CaptureRequired); err != nil {
		return err
	}
	if s.cfg.AdminListen == "" {
		return nil
	}
	mux, err := s.adminMux(m, deps)
	if err != nil {
		return err
	}
	if s.adminLn, err = net.Listen("tcp", s.cfg.AdminListen); err != nil {
		return fmt.Errorf("admin listen: %w", err)
	}
	s.admin = s.httpServer(mux)
	return nil
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	var only http.Protocols
	only.SetHTTP1(true)
	return &http.Server{Handler: h, Protocols: &only, ReadHeaderTimeout: headTime, MaxHeaderBytes: headBytes, IdleTimeout: clientIdle, ErrorLog: s.handler.stdLog,
		BaseContext: func(net.Listener) context.Context { return s.base }, ConnContext: withConn}
}

// Addr is the proxy port's address.
func (s *Server) Addr() string { return s.proxyLn.Addr().String() }

// AdminAddr is the admin port's address, empty when it is off.
func (s *Server) AdminAddr() string {
	if s.adminLn == nil {
		return ""
	}
	return s.adminLn.Addr().String()
}

// Run serves until ctx is done, then drains: readiness off, no new connections, what is in flight gets the drain timeout,
// the store is closed, the admin port last. It returns ErrCut when answers had to be cut.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 2)
	serve := func(what string, srv *http.Server, ln net.Listener) {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("%s port: %w", what, err)
		}
	}
	go serve("proxy", s.proxy, s.proxyLn) // ends with Shutdown or Close in drain
	if s.admin != nil {
		go serve("admin", s.admin, s.adminLn) // ends with Close in Close
	}
	if s.sweeper != nil {
		s.wg.Go(func() { s.sweeper.run(s.base) }) // ends with Close, in drain
	}
	s.log.Info("serving", zap.String("listen", s.Addr()), zap.Bool("tls", s.cfg.TLSCert != ""), zap.String("admin_listen", s.AdminAddr()), zap.String("upstream", s.handler.upstream.String()))
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	return errors.Join(err, s.drain())
}

// drain ends the proxy port and everything behind it.
func (s *Server) drain() error {
	s.log.Info("draining", zap.Int64("in_flight", s.handler.inFlight.Load()), zap.Duration("timeout", s.cfg.DrainTimeout))
	s.health.drain()
	var err error
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	if s.quiet(ctx) != nil {
		if n := s.handler.inFlight.Load(); n > 0 {
			s.log.Warn("cutting answers", zap.Int64("in_flight", n))
			err = ErrCut
		}
		s.cut(errDrained)
		grace, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		s.quiet(grace) // what does not end by itself now is closed with the server
		s.proxy.Close()
	}
	return errors.Join(err, s.Close())
}

// quiet closes the proxy port and returns when nothing is in flight. Connections that an upgrade has taken over are in
// flight as well, and Shutdown does not know them.
func (s *Server) quiet(ctx context.Context) error {
	if err := s.proxy.Shutdown(ctx); err != nil {
		return err
	}
	return s.handler.idle(ctx)
}

// Close gives back what Open took. A server that ran is closed by Run.
func (s *Server) Close() error {
	var errs []error
	s.cut(errDrained)
	errs = append(errs, s.sweptUp())
	if s.proxyLn != nil {
		s.proxyLn.Close() // closed already after a drain
	}
	if s.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		if s.tokens != nil {
			errs = append(errs, s.tokens.Close(ctx))
		}
		errs = append(errs, s.store.Close(ctx))
	}
	if s.admin != nil {
		s.admin.Close()
	}
	if s.adminLn != nil {
		s.adminLn.Close() // the server closes only what it has begun to serve
	}
	if s.health != nil {
		s.health.close()
	}
	if s.handler != nil {
		if t, ok := s.handler.transport.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	}
	return errors.Join(errs...)
}

// sweptUp waits for what works beside the ports; a file system that hangs holds it up, and is not waited for longer than the store.
func (s *Server) sweptUp() error {
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(closeGrace):
		return errors.New("the removal of rollouts does not end")
	}
}

// observeStore lets the store report to metrics and log, neither of which it knows.
func observeStore(m *metrics.Metrics, log *zap.Logger) capture.Observe {
	return capture.Observe{
		Batch:      m.CaptureBatch,
		Fsync:      m.CaptureFsync,
		LockWait:   m.CaptureLockWait,
		Record:     func(r capture.Result) { m.CaptureRecord(string(r)) },
		Truncated:  m.CaptureTruncated,
		Incomplete: func(string) { m.CaptureIncomplete() },
		Healed: func(rollout string) {
			log.Warn("a torn tail was ended", zap.String("rollout", rollout))
		},
		Low: func(free int64) {
			m.StoreLow()
			log.Error("the space that is left for the store is below --store-min-free", zap.Int64("free_bytes", free))
		},
		Replay: func(e capture.ReplayEvent) {
			log.Warn("the journal of a dead writer", zap.String("what", string(e.Kind)), zap.String("segment", e.Segment),
				zap.String("rollout", e.Rollout), zap.String("file", e.File), zap.Int("lines", e.Lines), zap.Int64("bytes", e.Bytes), zap.Error(e.Err))
		},
		Trouble: func(rollout string, err error) {
			log.Error("the store failed", zap.String("rollout", rollout), zap.Error(err))
		},
	}
}
