package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"rolltap/capture"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Causes with which an exchange cancels its own upstream request.
var (
	errSilence = errors.New("the upstream was silent for longer than the idle timeout")
	errDrained = errors.New("the drain timeout is over")
	errTail    = errors.New("the upstream kept the stream open behind its end")
	errEnded   = errors.New("the exchange is over")
)

// errSwitched says that the upstream's 101 is no answer to the request.
var errSwitched = errors.New("the upstream switched protocols unasked")

// errNotDurable aborts an answer under --capture required: its record could not be made durable in time.
var errNotDurable = errors.New("the record is not durable")

// exchange is the state of one request and the hooks of its ReverseProxy value. It belongs to the handler's goroutine;
// what the transport's goroutines touch is atomic.
type exchange struct {
	h   *Handler
	in  *http.Request // as it came; its context is the exchange's
	out answer

	start  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  silence
	slot   bool // a slot at the upstream is held

	route   rewrite.Route
	plan    rewrite.Plan
	dialect dialect.Dialect // nil when the path names none
	callID  string          // of a call that is recorded, else empty
	leave   func()          // the call is in flight no more; nil: nobody was told
	sealed  bool            // no call of its rollout is served
	unseen  bool            // no model call, and it has marked its rollout
	placed  bool            // the call has its place in flight
	crowd   string          // why it has none; "": it was not refused one
	tokens  []string        // of this proxy, one of which let the client in; nil: nobody is asked

	held         bool    // the whole request body is in request
	upload       *upload // the request body, or the rest of it, that streams; nil: it does not
	request      *capture.Copy
	requestBytes atomic.Int64
	uploaded     atomic.Bool           // the client's body was read to its end
	uploadErr    atomic.Pointer[error] // the client's body broke

	attempted      bool // the upstream was asked
	upstreamStatus int
	coding         string
	streamed       bool // the answer is an event stream
	response       *capture.Copy
	observer       *rewrite.Observer
	folded         *capture.Copy // the response that the stream adds up to; nil: there is none
	foldLate       bool          // it is put together at the end, from response
	unfolded       bool          // and that could not be done
	growing        capture.Loan  // of what grows with the answer
	passed         int           // bytes of the answer that were weighed, and at which they were counted last
	weighAt        int
	turn           capture.Loan  // of the bursts that may be at once
	braced         time.Duration // it has waited for that
	gate           *gate
	source         string // of the answer: upstream, local, or none yet
	localReason    string
	detail         string // what a recorded answer of our own says; never what the client sent
	param          string // the field that a refusal names
	localBytes     int64  // length of an answer of our own

	waited    time.Duration // for the client's body, and for a slot at the upstream
	sentAt    time.Duration // the upstream was asked; moments count from start
	firstByte time.Duration // 0: none
	firstWord time.Duration // first content of a stream, 0: none
	lastChunk time.Duration
	endAt     time.Duration // the end of the answer was known
	doneAt    time.Duration // the record was written, or the store had said that it cannot be

	translation  *rewrite.Translation // nil: body bytes pass as they are
	translated   *translated          // its round trip
	sent         *capture.Copy        // the request as the upstream got it, where that is not as it came
	said         *capture.Copy        // what the upstream answered to a translated call: whole as it came, or, while the record is made, what its stream adds up to
	room         *capture.Copy        // memory for sent; nil: there is none, or sent is in it
	lent         *capture.Copy        // what has lent the request to its translation; nil: nothing has
	alone        bool                 // the request has come back from a file, and no other may meanwhile
	spliceLosses canon.Losses
	spliced      bool             // sent is the client's request with some members replaced
	editors      []editor         // of the upstream's answer where its dialect is the client's; none: it passes as it is
	edited       *edited          // its body; nil: it is not edited
	taught       *taught          // what is kept of its tokens; nil: none are asked for
	lateStatus   int              // the error status of an upstream whose client was kept alive with a good one; 0: none
	renamer      *rewrite.Renamer // the editor that puts the client's name of the model in place of the upstream's; nil: they are the same
	trouble      situation        // what went wrong with the translated answer, once the client's end of it is known

	situation situation
	summary   dialect.Summary
	ending    ending
	settled   bool // the record was written, or there is none to write
	making    bool // the record is being made
	faulty    bool // that has panicked: the record takes what came as it is
	cause     error
}

func (x *exchange) elapsed() time.Duration { return time.Since(x.start) }

// call reports whether this is a model call, refused or not.
func (x *exchange) call() bool {
	return x.dialect != nil && x.route.Endpoint == rewrite.Model && x.in.Method == http.MethodPost
}

// model reports whether this is a model call that is served.
func (x *exchange) model() bool {
	return x.plan == rewrite.PassThrough || x.plan == rewrite.Translate && x.route.Endpoint == rewrite.Model
}

// upstreamPath is the path that the upstream is asked for, below its root.
func (x *exchange) upstreamPath() string {
	if x.translation != nil {
		return rewrite.DialectOf(x.upstreamDialect()).Path()
	}
	return x.route.Path
}

// upstreamDialect is the dialect spoken at the upstream.
func (x *exchange) upstreamDialect() canon.Dialect {
	if x.taught != nil {
		return canon.Chat // no other has token ids
	}
	if x.dialect != nil && slices.Contains(x.h.dialects, x.dialect.Name()) {
		return x.dialect.Name()
	}
	return x.h.dialects[0]
}

func newCallID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// run serves the exchange once its finish is deferred.
func (x *exchange) run() {
	if x.in.Body != http.NoBody {
		// Moved by each read of the body. Also behind an answer that does not need the body the server waits for the rest of it.
		x.out.control.SetReadDeadline(x.start.Add(x.h.uploadSilence))
	}
	if len(x.in.TransferEncoding) > 0 {
		// A Content-Length may have stood beside it, which net/http does not tell, and by which somebody in front of us finds
		// another request behind this one (RFC 9112 6.3).
		x.out.Header().Set("Connection", "close")
	}
	if !x.accept() {
		return
	}
	switch {
	case x.sealed:
		if err := x.takeBody(); err != nil {
			x.badUpload(err)
			return
		}
		x.refuse(http.StatusConflict, codeSealed, "the rollout is sealed: no further call belongs to it")
		return
	case x.crowd != "":
		x.refuseCrowd()
		return
	case x.plan == rewrite.Translate && x.route.Endpoint == rewrite.CountTokens:
		x.countTokens()
		return
	case x.plan == rewrite.Translate && x.route.Endpoint == rewrite.Models:
		x.listModels()
		return
	case x.plan == rewrite.Translate:
		if !x.translateRequest() {
			return
		}
	case x.plan == rewrite.PassThrough && (x.taught != nil || x.h.reshapes()):
		if !x.spliceRequest() {
			return
		}
	case x.plan == rewrite.Opaque && x.route.Endpoint == rewrite.CountTokens && x.in.Method == http.MethodPost && x.h.renames():
		if !x.renameCount() {
			return
		}
	case x.plan == rewrite.PassThrough:
		if err := x.takeBody(); err != nil {
			x.badUpload(err)
			return
		}
	}
	in := x.in.WithContext(x.ctx)
	switch {
	case x.sent != nil:
		in.Body, in.ContentLength = http.NoBody, x.sent.Len() // outBody has the one that is read
	case x.model(), x.held:
		in.Body = x.inBody()
		if x.held {
			in.ContentLength = x.request.Total()
		}
	case in.Body != nil && in.Body != http.NoBody:
		x.upload = x.newUpload(nil)
		in.Body = x.upload
		_ = x.upload.rc.EnableFullDuplex() // see takeBody; only servers that are no HTTP/1 servers refuse, and ours is one
	}
	p := httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x,
		ModifyResponse: x.modifyResponse,
		ErrorHandler:   x.fail,
		BufferPool:     x.h.buffers,
		ErrorLog:       x.h.stdLog,
		FlushInterval:  flushAfter,
	}
	p.ServeHTTP(&x.out, in)
}

// flushAfter is how long bytes of a body with a known length may lie in the server's buffer; bodies without one are
// flushed at once. Most answers are whole before it is over, and then need no write of their own for the head.
const flushAfter = 20 * time.Millisecond

// rewrite is ReverseProxy's hook: it makes the upstream's request of the client's.
func (x *exchange) rewrite(pr *httputil.ProxyRequest) {
	root := x.h.upstream
	u := pr.Out.URL
	u.Scheme, u.Host, u.User = root.Scheme, root.Host, nil
	escaped := root.EscapedPath() + x.upstreamPath()
	u.RawPath = escaped
	if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path = plain
	}
	if u.EscapedPath() != escaped && !strings.HasPrefix(escaped, "//") {
		u.Opaque = escaped // url would write these bytes in its own way; the upstream gets them as they were sent
	}
	u.RawQuery = x.in.URL.RawQuery // ReverseProxy has dropped what it could not parse
	if x.translation != nil && x.dialect.Name() == canon.Gemini {
		u.RawQuery = "" // it is to Google's servers: alt, key
	}
	pr.Out.Host = root.Host
	if x.model() {
		// Behind a switch to another protocol calls would pass that nobody records.
		pr.Out.Header.Del("Connection")
		pr.Out.Header.Del("Upgrade")
	}
	x.outHeaders(x.in.Header, pr.Out.Header)
	switch {
	case x.translation != nil:
		x.translatedHeaders(pr.Out.Header)
	case x.spliced:
		pr.Out.Header.Del("Content-Encoding")
		pr.Out.Header.Set("Accept-Encoding", "identity")
	}
	x.outBody(pr.Out)
}

// modifyResponse is ReverseProxy's hook: it takes over the upstream's answer.
func (x *exchange) modifyResponse(res *http.Response) error {
	if x.translated == nil {
		x.upstreamStatus = res.StatusCode
	}
	if x.translated == nil || x.translated.head != nil {
		x.cameFrom(sourceUpstream, "")
	}
	h := x.out.Header()
	for _, name := range [...]string{"Date", "Content-Type"} {
		if _, ok := res.Header[name]; !ok {
			h[name] = nil // else the server would make one up
		}
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		x.closeBehind()
	}
	if x.route.Prefixed && res.StatusCode >= 300 && res.StatusCode < 400 {
		x.keepPrefix(res.Header)
	}
	defer func() { x.out.flushes = res.ContentLength < 0 }()
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		if x.model() || !strings.EqualFold(res.Header.Get("Upgrade"), x.in.Header.Get("Upgrade")) {
			return errSwitched // ReverseProxy would find out too, and leave the connection open
		}
		return nil // the body is a connection from here on
	case !x.model():
		x.sawAside(res.StatusCode)
		res.Body = &watchedBody{ReadCloser: res.Body, watch: &x.watch}
		return nil
	}
	if x.callID != "" {
		res.Header.Set(headerCallID, x.callID)
	}
	x.coding = contentCoding(res.Header)
	if len(x.editors) > 0 && x.plain(res) {
		x.edit(res)
	}
	x.streamed = isEventStream(res.Header)
	o := x.h.copyOptions
	o.Reuse = true // nobody but the record reads it
	x.response = capture.NewCopy(o)
	x.response.Expect(res.ContentLength)
	g := &gate{x: x, src: res.Body, length: res.ContentLength}
	if x.streamed {
		x.observer = rewrite.NewObserver(x.dialect, int64(x.h.cfg.CaptureMaxBytes))
		switch {
		case x.coding == "":
			g.stream = x.observer
		case decodable(x.coding):
			g.decoded = newInflater(x.coding, x.observer, x.decodedChunk)
		}
	}
	x.gate, res.Body = g, g
	if res.ContentLength == 0 || res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		return x.commitEmpty(res)
	}
	return nil
}

// Who made the answer, in the words of the record.
const (
	sourceUpstream = "upstream"
	sourceLocal    = "local"
)

// cameFrom says who made the answer, if that is not known yet, and why it was made here.
func (x *exchange) cameFrom(source, reason string) {
	if x.source == "" {
		x.source, x.localReason = source, reason
	}
}

// commitEmpty settles an answer without a body before its head goes out: the head is its end, and is flushed whether or
// not anybody has read the body to its end.
func (x *exchange) commitEmpty(res *http.Response) error {
	x.out.status = res.StatusCode // the record tells what will be sent
	if _, err := x.gate.Read(make([]byte, 1)); errors.Is(err, errNotDurable) {
		x.out.status = 0
		return err
	}
	return nil
}

// keepPrefix puts the rollout prefix back into a redirect to the same host: a client that follows it stays captured.
func (x *exchange) keepPrefix(h http.Header) {
	loc := h.Get("Location")
	u, err := url.Parse(loc)
	if err != nil || !strings.HasPrefix(u.EscapedPath(), "/") || strings.HasPrefix(u.EscapedPath(), x.route.Prefix+"/") {
		return
	}
	path := u.EscapedPath()
	switch u.Host {
	case "", x.h.upstream.Host:
		// The upstream's root is put in front again when the client comes back.
		if rest, ok := strings.CutPrefix(path, x.h.upstream.EscapedPath()); ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
		u.Scheme, u.Host = "", ""
	case x.in.Host:
	default:
		return
	}
	if path == "" {
		path = "/" // a prefix counts only in front of one
	}
	u.RawPath = x.route.Prefix + path
	u.Path, _ = url.PathUnescape(u.RawPath)
	h.Set("Location", u.String())
}

// received takes a chunk of the answer's body as the upstream sent it.
func (x *exchange) received(p []byte) {
	now := x.elapsed()
	switch {
	case x.firstByte == 0:
		x.firstByte = now
	case x.streamed:
		x.h.metrics.InterChunk(now - x.lastChunk)
	}
	x.lastChunk = now
	if x.gate.decoded == nil {
		x.response.Write(p)
		x.weigh(p)
	}
}

// decodedChunk takes what a chunk of an encoded stream decodes to.
func (x *exchange) decodedChunk(plain []byte, p rewrite.Progress) {
	x.response.Write(plain)
	x.weigh(plain)
	x.sawProgress(p.Content)
}

func (x *exchange) sawProgress(content bool) {
	if content && x.firstWord == 0 {
		x.firstWord = x.lastChunk
		if x.firstWord == 0 {
			x.firstWord = x.elapsed()
		}
	}
}

// fail is ReverseProxy's hook for requests that never got an answer.
func (x *exchange) fail(_ http.ResponseWriter, _ *http.Request, err error) {
	if x.settled {
		panic(http.ErrAbortHandler) // the record could not be made durable, and not even the head may be shown
	}
	x.cause = err
	s := x.classify(situationUnavailable)
	var local *localError
	if errors.As(err, &local) && s == situationUnavailable {
		x.answerLocal(local.s, local.status, local.code, local.message)
		return
	}
	switch s {
	case situationClientGone:
		if p := x.uploadErr.Load(); p != nil && x.in.Context().Err() == nil {
			x.badUpload(*p)
			return
		}
		x.situation = s
		panic(http.ErrAbortHandler) // nobody is there to be answered, and half a client must not get an empty 200
	case situationSilent:
		x.answerLocal(s, http.StatusGatewayTimeout, codeUpstreamTimeout, "the upstream did not answer within "+x.h.cfg.UpstreamIdleTimeout.String())
	case situationDrained:
		x.answerLocal(s, http.StatusInternalServerError, codeInternal, "the proxy is shutting down")
	default:
		x.answerLocal(situationUnavailable, http.StatusBadGateway, codeUpstreamUnavailable, "the upstream could not be reached or closed the connection before it answered")
	}
}

// classify says why an exchange that broke did; broke is what it is called when the upstream did it.
func (x *exchange) classify(broke situation) situation {
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, errSilence):
		return situationSilent
	case errors.Is(cause, errDrained): // from the server's base context
		return situationDrained
	case x.in.Context().Err() != nil, x.out.failed != nil, x.uploadErr.Load() != nil:
		return situationClientGone
	}
	return broke
}

func (x *exchange) uploadFailed(err error) { x.uploadErr.Store(&err) }

// badUpload ends an exchange whose request body cannot be read: the client has left, or does not speak HTTP.
func (x *exchange) badUpload(err error) {
	x.cause = err
	if x.in.Context().Err() != nil || brokenOff(err) {
		x.situation = situationClientGone
		panic(http.ErrAbortHandler) // what is left of the body is no request
	}
	x.refuse(http.StatusBadRequest, codeInvalidRequest, "the request body cannot be read: "+err.Error())
}

// tailEnded reports whether the stream was ended by us, because the upstream kept it open behind its end.
func (x *exchange) tailEnded() bool { return errors.Is(context.Cause(x.ctx), errTail) }
