package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/semaphore"

	"rolltap/capture"
	"rolltap/capture/training"
	"rolltap/metrics"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Handler serves the proxy port. It serves exactly one exchange per call, and every way out runs finish once.
type Handler struct {
	cfg          Config
	log          *zap.Logger
	stdLog       *log.Logger // what net/http has to say
	metrics      *metrics.Metrics
	store        *capture.Store // nil: capture is off
	upstream     *url.URL       // root, without a last /v1
	upstreamKey  string
	dialects     []canon.Dialect
	transport    http.RoundTripper
	dialled      *dialled // by transport, and for readiness
	windows      windows
	memory       memory
	slots        *semaphore.Weighted // nil: no bound
	bursts       *capture.Budget     // see brace
	buffers      *bufferPool
	small        *bufferPool // of pumps: a translated stream holds two as long as it lasts
	copyOptions  capture.CopyOptions
	foldOptions  capture.CopyOptions // of what is made here, and is no longer than what it is made of
	wholeRequest int64               // the longest request that is held whole: of making another of it two or three times as much is taken
	wholeAnswer  int                 // the longest unary answer that is
	unserved     []canon.Dialect     // of clients, whose paths pass through
	rawPolicy    capture.RawPolicy
	tokens       *reloaded[[]string] // nil: nobody is asked
	training     *training.Store     // nil: no tokens are captured
	weights      weights
	side         sideRequests
	inFlight     atomic.Int64
	flight       flight

	uploadSilence time.Duration // the longest that a client may stop sending inside its request body
	reading       sync.Mutex    // held by the one exchange that has a long body back in memory, see whole and goAlone
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{h: h, in: r, out: newAnswer(w, r), start: time.Now(), growing: capture.Loan{Budget: h.foldOptions.Budget}, turn: capture.Loan{Budget: h.bursts}}
	h.inFlight.Add(1)
	h.metrics.InFlight(1)
	x.ctx, x.cancel = context.WithCancelCause(r.Context())
	x.watch.arm(h.cfg.UpstreamIdleTimeout, x.start, x.cancel)
	defer x.finish()
	x.run()
}

// idle returns when nothing is in flight, or the error of ctx.
func (h *Handler) idle(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for h.inFlight.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// accept routes the request and answers what rolltap refuses at the door. It reports whether the exchange goes on.
func (x *exchange) accept() bool {
	r := x.in
	target := r.URL.EscapedPath()
	if strings.HasPrefix(r.RequestURI, "/") {
		target, _, _ = strings.Cut(r.RequestURI, "?") // as it was sent; url may write escapes in its own way
	}
	x.route = rewrite.ParseRoute(target, x.h.unserved...)
	x.dialect = rewrite.DialectOf(x.route.Dialect)
	switch {
	case x.h.dialled.carries(r):
		x.reject(http.StatusLoopDetected, codeLoop, "--upstream leads back to this very proxy: set it to the address of the model server")
		return false
	case r.Method == http.MethodConnect, target != "" && !strings.HasPrefix(target, "/"):
		x.reject(http.StatusBadRequest, codeInvalidRequest, "the request target has to be a path")
		return false
	case x.route.Prefixed && !capture.ValidID(x.route.Rollout):
		x.h.metrics.Uncaptured("invalid_rollout_id")
		x.reject(http.StatusBadRequest, codeInvalidRolloutID, "the rollout id in the path has to match [A-Za-z0-9][A-Za-z0-9._-]{0,199}")
		return false
	}
	if x.h.tokens != nil {
		if x.tokens = x.h.tokens.get(); !presents(r.Header, x.tokens) {
			x.reject(http.StatusUnauthorized, codeUnauthorized, "a bearer token of this proxy is needed, in Authorization, x-api-key or x-goog-api-key")
			return false
		}
	}
	if x.route.Endpoint == rewrite.Model && r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		x.reject(http.StatusUpgradeRequired, codeUpgradeRequired, "websockets are not spoken here; send a POST")
		return false
	}
	x.plan = rewrite.NewPlan(r.Method, x.route, x.h.dialects)
	if x.route.Endpoint == rewrite.Models && r.Method == http.MethodGet && r.Header.Get("Anthropic-Version") != "" &&
		!slices.Contains(x.h.dialects, canon.Messages) {
		x.plan, x.dialect = rewrite.Translate, rewrite.DialectOf(canon.Messages)
	}
	if x.model() {
		switch {
		case !x.route.Prefixed:
			x.h.metrics.Uncaptured("no_prefix")
		case x.h.store == nil:
			x.h.metrics.Uncaptured("capture_off")
		default:
			x.callID = newCallID()
			x.enter()
			if x.h.training != nil && x.wantsTokens() {
				x.taught = new(taught)
				x.plan = rewrite.NewPlan(r.Method, x.route, []canon.Dialect{canon.Chat})
			}
		}
		if x.refuseLow() {
			return false
		}
		x.admit()
	}
	return true
}

// enter says that a call of the rollout is in flight, until finish, and then looks whether it is sealed, in this order: whoever seals a
// rollout and waits until nothing is in flight then misses no call.
func (x *exchange) enter() {
	var err error
	if x.leave, err = x.h.store.Enter(x.route.Rollout); err != nil {
		x.h.log.Warn("other processes cannot see that a call is in flight", zap.String("rollout", x.route.Rollout), zap.Error(err))
	}
	if x.sealed, err = capture.Sealed(x.h.cfg.Store, x.route.Rollout); err != nil {
		x.h.log.Warn("a seal cannot be looked for", zap.String("rollout", x.route.Rollout), zap.Error(err))
	}
}

// reject refuses a request that leaves no record.
func (x *exchange) reject(status int, code, message string) {
	x.settled = true
	x.plan = rewrite.Opaque
	x.ending = ending{outcome: outcomeRefused}
	x.summary = dialect.Summary{Usage: canon.NoUsage()}
	x.answer(status, code, message)
}

// refuse refuses a call that is recorded.
func (x *exchange) refuse(status int, code, message string) {
	x.answerLocal(situationRefused, status, code, message)
}

// refuseProblem refuses a call whose request cannot be translated.
func (x *exchange) refuseProblem(err error) {
	var p *canon.Problem
	if !errors.As(err, &p) {
		p = &canon.Problem{Status: http.StatusBadRequest, Code: codeInvalidRequest, Message: err.Error()}
	}
	x.param = p.Param
	x.refuse(p.Status, p.Code, p.Error()) // the field in words, too: not every envelope has a place for it
}

// answerLocal answers a model call instead of the upstream, once its record is durable.
func (x *exchange) answerLocal(s situation, status int, code, message string) {
	if !x.model() {
		x.situation, x.ending = s, s.end(answerFacts{status: status})
		x.settled = true
		x.answer(status, code, message)
		return
	}
	x.source, x.localReason, x.detail = sourceLocal, code, message
	x.out.status = status // the record tells what will be sent
	body := x.problem(status, code, message)
	x.localBytes = int64(len(body))
	err := x.commit(s)
	x.localBytes = 0
	if err != nil {
		x.out.status = 0
		panic(http.ErrAbortHandler)
	}
	x.write(status, code, body)
}

func (x *exchange) answer(status int, code, message string) {
	x.source, x.localReason = sourceLocal, code
	x.write(status, code, x.problem(status, code, message))
}

// problem is the body of an error in the client's dialect, or in OpenAI's shape where the path names none.
func (x *exchange) problem(status int, code, message string) []byte {
	d := x.dialect
	if d == nil {
		d = rewrite.DialectOf(canon.Chat)
	}
	return d.AppendError(nil, canon.Problem{Status: status, Code: code, Message: message, Param: x.param, Request: x.callID})
}

func (x *exchange) write(status int, code string, body []byte) {
	x.closeBehind()
	h := x.out.Header()
	h.Set("Content-Type", "application/json")
	h.Set(headerError, code)
	if x.callID != "" {
		h.Set(headerCallID, x.callID)
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	x.out.WriteHeader(status)
	if x.in.Method != http.MethodHead {
		x.out.Write(body) // a client that has left is told by answer.failed
	}
}

// finish runs on every way out.
func (x *exchange) finish() {
	fault := recover()
	x.watch.stop()
	x.giveBack()
	if fault != nil && fault != http.ErrAbortHandler {
		x.caught(fault)
		fault = http.ErrAbortHandler
		if x.out.status == 0 && !x.settled && x.answerPanic() {
			fault = nil
		}
	}
	if !x.settled {
		s := x.situation
		switch {
		case s != situationNone:
		case fault == nil:
			s = situationWhole
		default:
			s = x.classify(situationCut)
		}
		x.commitLate(s)
	}
	if fault != nil && x.out.status != 0 && x.out.failed == nil {
		// What the client was given before the answer broke may still lie in the server's buffer, which an abort throws away.
		x.out.control.Flush()
	}
	if x.gate != nil && x.gate.decoded != nil {
		x.gate.decoded.close()
	}
	x.release()
	if x.slot {
		x.h.slots.Release(1)
	}
	x.giveWay()
	x.cancel(errEnded)
	if x.upload != nil && !x.uploaded.Load() {
		linger := x.h.uploadSilence
		if fault != nil {
			linger = 0 // the connection is closed behind it, and an abort is to be seen at once
		}
		x.upload.stop(linger)
	}
	if !x.call() {
		x.sawAside(x.upstreamStatus)
	}
	if x.leave != nil {
		x.leave()
	}
	x.report()
	x.h.inFlight.Add(-1)
	x.h.metrics.InFlight(-1)
	if fault != nil {
		panic(fault)
	}
}

// caught takes a panic. One in making the record came from looking into the bodies, which is not tried again.
func (x *exchange) caught(fault any) {
	x.h.log.Error("panic while serving an exchange", append(x.logFields(), zap.Any("panic", fault), zap.Stack("stack"))...)
	x.situation, x.faulty = situationPanicked, x.making
}

// commitLate records an exchange that is over already; nobody waits for its answer.
func (x *exchange) commitLate(s situation) {
	defer func() {
		switch fault := recover(); {
		case fault == nil:
		case x.faulty: // nothing is left to be tried
			x.settled, x.ending = true, situationPanicked.end(answerFacts{})
		default:
			x.caught(fault)
			x.commitLate(situationPanicked)
		}
	}()
	if !x.model() {
		x.settled, x.situation, x.ending = true, s, s.end(answerFacts{status: x.out.status})
		return
	}
	if err := x.commit(s); err != nil && x.cause == nil {
		x.cause = err
	}
}

// answerPanic reports whether the client has its answer; the way out may panic too, or have to abort.
func (x *exchange) answerPanic() (answered bool) {
	defer func() { answered = recover() == nil }()
	x.answerLocal(situationPanicked, http.StatusInternalServerError, codeInternal, "internal error")
	return true
}

// report moves the metrics and writes the exchange's one log line.
func (x *exchange) report() {
	took := x.elapsed()
	if x.call() {
		x.countTokenCall()
		e := metrics.Exchange{
			Dialect: string(x.dialect.Name()), Outcome: x.ending.outcome, Duration: took, TTFT: x.ttft(), Overhead: x.overhead(),
			Stream: x.streamed, PromptTokens: x.summary.Usage.Prompt, GenerationTokens: x.summary.Usage.Completion, Finish: x.summary.Finish,
		}
		if x.attempted {
			e.UpstreamDialect = string(x.upstreamDialect())
		}
		for _, l := range x.losses() {
			e.Losses = append(e.Losses, string(l.Reason))
		}
		x.h.metrics.Exchange(e)
	}
	level := zap.DebugLevel
	if x.call() {
		level = logLevel(x.ending)
	}
	if ce := x.h.log.Check(level, "exchange"); ce != nil {
		ce.Write(x.logFields()...)
	}
}

// logLevel is warn where somebody may have to look after upstream or store; that a client leaves or errs is ordinary.
func logLevel(e ending) zapcore.Level {
	switch e.outcome {
	case outcomeAborted, outcomeUpstreamCut, outcomeUpstreamTimeout:
		return zap.WarnLevel
	case outcomeUpstreamError:
		switch e.category {
		case "connection", "upstream_error", "timeout", "auth":
			return zap.WarnLevel
		}
	}
	return zap.InfoLevel
}

// overhead is the time that rolltap added: before the upstream was asked, and between its end and the answer's. Waiting for
// the client's body or for a slot is no work of ours.
func (x *exchange) overhead() time.Duration {
	if !x.attempted {
		return -1
	}
	return x.sentAt - x.waited + max(0, x.doneAt-x.endAt)
}

func (x *exchange) logFields() []zap.Field {
	f := make([]zap.Field, 0, 20)
	f = append(f, zap.String("outcome", x.ending.outcome), zap.String("method", x.in.Method), zap.String("path", x.route.Path))
	if x.in.URL.RawQuery != "" {
		f = append(f, zap.String("query", redactQuery(x.in.URL.RawQuery)))
	}
	if x.route.Prefixed {
		f = append(f, zap.String("rollout", x.route.Rollout))
	}
	if x.dialect != nil {
		f = append(f, zap.String("dialect", string(x.dialect.Name())))
	}
	if x.route.Training {
		f = append(f, zap.Bool("training", true)) // asked for token capture
	}
	if x.callID != "" {
		f = append(f, zap.String("call_id", x.callID))
	}
	f = append(f, zap.Int("status", x.out.status), zap.Duration("duration", x.elapsed()))
	if x.ending.category != "" {
		f = append(f, zap.String("error_category", x.ending.category))
	}
	if x.localReason != "" {
		f = append(f, zap.String("reason", x.localReason))
	}
	if x.detail != "" {
		f = append(f, zap.String("detail", x.detail))
	}
	if t := x.ttft(); t >= 0 {
		f = append(f, zap.Duration("ttft", t))
	}
	if x.call() {
		f = append(f, zap.Int64("request_bytes", x.requestBytes.Load()), zap.Int64("response_bytes", x.out.bytes),
			zap.Int64("prompt_tokens", x.summary.Usage.Prompt), zap.Int64("completion_tokens", x.summary.Usage.Completion))
	}
	if x.cause != nil {
		f = append(f, zap.Error(x.cause))
	}
	return f
}

// brokenOff reports whether reading from the client failed because it has left or stopped, not because of what it sent.
func brokenOff(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, context.Canceled) || errors.As(err, &timeout) && timeout.Timeout()
}

// newHandler makes the handler of a validated configuration. The store may be nil only when capture is off.
func newHandler(cfg Config, log *zap.Logger, m *metrics.Metrics, store *capture.Store, tokens *training.Store) (*Handler, error) {
	root, err := parseUpstream(cfg.Upstream)
	if err != nil {
		return nil, err
	}
	ours := new(dialled)
	h := &Handler{
		cfg: cfg, log: log, metrics: m, store: store, training: tokens, side: newSideRequests(cfg.SideRequests), upstream: root,
		transport: newTransport(cfg.UpstreamConnIdle, ours),
		dialled:   ours,
		buffers:   newBufferPool(32 << 10), small: newBufferPool(8 << 10),
		flight:    flight{most: cfg.MaxInFlight, mostOfOne: cfg.MaxInFlightPerRollout},
		rawPolicy: capture.RawPolicy(cfg.CaptureRaw), uploadSilence: uploadSilence,
		copyOptions: capture.CopyOptions{
			Memory: holdBytes, Max: int64(cfg.CaptureMaxBytes), Budget: capture.NewBudget(memoryFor(copyBudget)),
		},
		foldOptions: capture.CopyOptions{
			Max: math.MaxInt64, Budget: capture.NewBudget(memoryFor(foldBudget)),
		},
		bursts:       capture.NewBudget(memoryFor(burstBudget)),
		wholeRequest: memoryFor(int64(cfg.MaxRequestBytes)),
		wholeAnswer:  int(memoryFor(maxAnswer)),
	}
	if !cfg.Gemini {
		h.unserved = []canon.Dialect{canon.Gemini}
	}
	for _, d := range cfg.UpstreamDialects {
		h.dialects = append(h.dialects, canon.Dialect(d))
	}
	if h.stdLog, err = zap.NewStdLogAt(log.Named("http"), zap.DebugLevel); err != nil {
		return nil, err
	}
	if cfg.UpstreamConcurrency > 0 {
		h.slots = semaphore.NewWeighted(cfg.UpstreamConcurrency)
	}
	if cfg.UpstreamAPIKeyFile != "" {
		keys, err := readTokens(cfg.UpstreamAPIKeyFile)
		if err != nil || len(keys) == 0 {
			return nil, fmt.Errorf("read the upstream's key: %w", errors.Join(err, errNoToken))
		}
		h.upstreamKey = keys[0]
	}
	if f := cfg.Rewrite.SealKeyFile; f != "" {
		key, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read the key for reasoning: %w", err)
		}
		h.cfg.Rewrite.SealKey = bytes.TrimSpace(key)
	}
	if cfg.AuthTokenFile != "" {
		if h.tokens, err = openTokenFile(cfg.AuthTokenFile, log); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// What may be held in memory at once where the process has enough; see memoryFor.
const (
	copyBudget  = 64 << 20  // copies of all exchanges; beyond it they move to spool files
	foldBudget  = 512 << 20 // what grows with answers beside their copies, see weigh
	burstBudget = 128 << 20 // what ends of translated answers take for a moment, see brace
	lineBudget  = 256 << 20 // encoded records that wait for the disk; beyond it they are streamed from the copies
)

// memoryFor is a budget that leaves room for everything else: an eighth of the process's memory limit, if it has one, and at most as much as
// given.
func memoryFor(most int64) int64 { return min(most, debug.SetMemoryLimit(-1)/8) }
