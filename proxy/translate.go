package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"rolltap/capture"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

const (
	maxAnswer    = 64 << 20 // the longest unary answer that is translated, where there is memory for it; it is held whole
	maxErrorBody = 1 << 20  // what is read of an error
)

// upstreamError begins what is said of an upstream that failed without words of its own. Harnesses that see only the words of a failure event
// (OpenClaw) try again when these are among them.
const upstreamError = "upstream error: "

// errFailed ends the body of a stream behind its failure event: the connection is aborted, so that it never looks complete.
var errFailed = errors.New("the translated stream has failed")

// localError ends a round trip with an answer of our own.
type localError struct {
	s             situation
	status        int
	code, message string
}

func (e *localError) Error() string { return e.message }

// translated is the round trip of an exchange whose dialects differ, and the body of its answer.
//
// ReverseProxy writes the head before it reads of the body, and no hook of it runs while the upstream has sent no head. So the round trip
// itself waits until the answer's status is certain: for the first event of a stream that is no error, for the whole of any other answer,
// or for keepalive-open. From then on it is the body: one reader that selects over what the upstream sends, the next keep-alive and
// the exchange's context, so that there is one writer and no keep-alive gets into a frame. The pump feeds it.
//
// It belongs to the exchange's goroutine.
type translated struct {
	x      *exchange
	t      *rewrite.Translation
	stream *rewrite.Stream // what the client gets, frame by frame; nil until the upstream's head is here or the client was kept alive
	pump   *pump
	timer  *time.Timer // the next keep-alive; nil: none is due
	every  time.Duration

	head *http.Response // of the upstream, its body the pump's; nil: not here yet
	sse  bool           // that is an event stream
	told []byte         // a piece of a stream without its token ids

	drained bool // the upstream's body has ended, so that there is no tail

	given   bool   // the client has its head
	pending []byte // for the client; in the stream's buffer, so nothing is asked of the stream before it is empty
	end     error  // behind pending
}

// RoundTrip is the exchange's own seam between ReverseProxy and the shared transport.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	if x.translation != nil {
		tr := &translated{x: x, t: x.translation, pump: newPump(x)}
		x.translated = tr
		return tr.roundTrip(r)
	}
	if x.h.slots != nil && x.model() {
		began := x.elapsed()
		err := x.h.takeSlot(r.Context())
		x.waited += x.elapsed() - began
		if err != nil {
			return nil, err
		}
		x.slot = true // given back by finish
	}
	x.attempted = true
	x.sentAt = x.elapsed()
	x.watch.begin()
	res, err := x.h.transport.RoundTrip(r)
	x.watch.end()
	return res, err
}

func (tr *translated) roundTrip(r *http.Request) (*http.Response, error) {
	go tr.pump.run(r)
	if tr.t.Streamed() && tr.x.h.cfg.KeepaliveOpen > 0 {
		tr.timer = time.NewTimer(tr.x.h.cfg.KeepaliveOpen)
	}
	for {
		res, err := tr.step()
		if err != nil {
			tr.Close()
			return nil, err
		}
		if res != nil {
			tr.given = true
			res.Request = r
			tr.every = tr.x.h.cfg.Keepalive
			tr.rearm(tr.every)
			return res, nil
		}
	}
}

// rearm lets the next keep-alive be due after d, or never.
func (tr *translated) rearm(d time.Duration) {
	switch {
	case d <= 0 || !tr.t.Streamed():
		if tr.timer != nil {
			tr.timer.Stop()
			tr.timer = nil
		}
	case tr.timer == nil:
		tr.timer = time.NewTimer(d)
	default:
		tr.timer.Reset(d)
	}
}

// step waits for one thing to happen. Before the head was given it returns the answer once its status is certain, or the error that stands
// for it; behind that it only fills pending and end.
func (tr *translated) step() (*http.Response, error) {
	var due <-chan time.Time
	if tr.timer != nil {
		due = tr.timer.C
	}
	select {
	case c := <-tr.pump.full:
		return tr.take(c)
	case <-due:
		return tr.keepAlive()
	case <-tr.x.ctx.Done():
		return tr.over()
	}
}

// Read implements io.Reader for the gate.
func (tr *translated) Read(p []byte) (int, error) {
	for len(tr.pending) == 0 {
		if tr.end != nil {
			return 0, tr.end
		}
		tr.x.relax()
		if _, err := tr.step(); err != nil {
			tr.end = err
		}
	}
	n := copy(p, tr.pending)
	if tr.pending = tr.pending[n:]; len(tr.pending) == 0 && tr.end == io.EOF {
		return n, io.EOF
	}
	return n, nil
}

// Close ends the round trip: the pump has ended when it returns, and the exchange knows what it did.
func (tr *translated) Close() error {
	if tr.timer != nil {
		tr.timer.Stop()
	}
	if tr.end == io.EOF && !tr.drained {
		_ = tr.x.out.control.Flush() // the client has all of it, and need not wait for the tail
	}
	tr.pump.stop(tr.end == io.EOF)
	return nil
}

// keepAlive keeps the client waiting; the first one gives it the head.
func (tr *translated) keepAlive() (*http.Response, error) {
	x := tr.x
	if tr.given {
		if quiet := x.elapsed() - x.lastChunk; quiet < tr.every {
			tr.rearm(tr.every - quiet)
			return nil, nil
		}
		tr.rearm(tr.every)
	}
	tr.begin()
	tr.pending = tr.stream.KeepAlive()
	if len(tr.pending) == 0 {
		return nil, nil
	}
	x.h.metrics.Keepalive(string(x.dialect.Name()))
	if tr.given {
		return nil, nil
	}
	return tr.response(http.StatusOK, true, -1), nil
}

// begin makes the stream that the client gets.
func (tr *translated) begin() {
	if tr.stream == nil {
		tr.stream = tr.t.NewStream(int64(tr.x.h.cfg.CaptureMaxBytes))
		tr.stream.BeforeRepeat(tr.x.brace)
	}
}

// take handles what the pump brings.
func (tr *translated) take(c chunk) (*http.Response, error) {
	defer tr.pump.give(c.data)
	tr.pump.tell()
	tr.drained = c.err != nil
	if c.res != nil {
		tr.head = c.res
		tr.x.upstreamStatus = c.res.StatusCode
		if tr.given {
			tr.x.cameFrom(sourceUpstream, "")
		}
		tr.sse = c.res.StatusCode < 300 && isEventStream(c.res.Header)
		if tr.sse {
			tr.begin()
		}
		return nil, nil
	}
	switch {
	case tr.head == nil: // it never came
		return tr.lost(situationUnavailable, c.err)
	case !tr.sse:
		had := 0
		if tr.x.said != nil {
			had = int(tr.x.said.Total())
		}
		if tr.head.StatusCode >= 400 && had+len(c.data) > maxErrorBody {
			tr.x.hear(c.data[:maxErrorBody-had]) // whatever comes behind it are no more words
			return tr.answer()
		}
		if had+len(c.data) > tr.x.h.wholeAnswer {
			return tr.invalid("the upstream's answer is too long to be translated")
		}
		tr.x.hear(c.data)
		switch {
		case c.err == nil:
			return nil, nil
		case errors.Is(c.err, errUndecodable):
			if tr.head.StatusCode < 400 { // the status of an error says enough
				return tr.invalid(c.err.Error())
			}
		case !errors.Is(c.err, io.EOF):
			return tr.lost(situationCut, c.err)
		}
		return tr.answer()
	}
	out := tr.stream.Push(tr.hide(c.data, c.err != nil))
	tr.x.weigh(c.data)
	if errors.Is(c.err, io.EOF) && !tr.stream.Ended() {
		out = append(bytes.Clone(out), tr.stream.Finish()...) // Finish writes where Push wrote
	}
	return tr.advance(out, c.err)
}

// hide takes the token ids out of a piece of the upstream's stream: they are kept apart, and nobody behind has to look at them.
func (tr *translated) hide(p []byte, last bool) []byte {
	t := tr.x.taught
	if t == nil {
		return p
	}
	tr.told = t.hider.AppendStream(tr.told[:0], p)
	if last {
		tr.told = t.hider.AppendRest(tr.told)
	}
	return tr.told
}

// advance gives the client what a piece of the upstream's stream has become.
func (tr *translated) advance(out []byte, err error) (*http.Response, error) {
	s := tr.stream
	switch p := s.Failed(); {
	case p != nil && (!s.Opened() || tr.t.Overflows(p) && !s.Content()):
		if s.Misunderstood() {
			return nil, &localError{situationInvalid, http.StatusBadGateway, codeUpstreamInvalid, p.Message}
		}
		tr.pending = bytes.Clone(out)
		return tr.problem(p)
	case p != nil:
		tr.x.trouble = situationErrorFrame
		tr.pending, tr.end = out, errFailed
	case s.Ended():
		if !tr.t.Streamed() {
			body, err := s.Answer()
			if err != nil {
				return tr.failed(err)
			}
			return tr.body(http.StatusOK, body), nil
		}
		tr.pending, tr.end = out, io.EOF
	case err != nil:
		tr.pending = bytes.Clone(out)
		if errors.Is(err, io.EOF) {
			return tr.broken(situationTruncated, http.StatusBadGateway, codeUpstreamCut, upstreamError+"it ended its stream without an end")
		}
		if errors.Is(err, errUndecodable) {
			return tr.invalid(err.Error())
		}
		return tr.lost(situationCut, err)
	default:
		tr.pending = out
	}
	if tr.given || len(tr.pending) == 0 {
		return nil, nil
	}
	return tr.response(http.StatusOK, true, -1), nil
}

// failed ends the answer with what its translation says went wrong: an error of the upstream in disguise, or no answer at all.
func (tr *translated) failed(err error) (*http.Response, error) {
	var p *canon.Problem
	if !errors.As(err, &p) || p.Code == codeUpstreamInvalid {
		return tr.invalid(err.Error())
	}
	return tr.problem(p)
}

// problem ends the answer with an error of the upstream of which the client was told nothing yet, or the empty turn that stands for it.
func (tr *translated) problem(p *canon.Problem) (*http.Response, error) {
	if tr.t.Overflows(p) {
		tr.x.trouble = situationOverflow
		tr.x.source, tr.x.localReason = sourceLocal, canon.CodeOverflow
	}
	switch {
	case tr.t.Overflows(p) && !tr.t.Streamed():
		body, err := tr.t.EmptyTurn()
		if err != nil {
			return tr.failed(err)
		}
		return tr.body(http.StatusOK, body), nil
	case tr.t.Overflows(p):
		tr.begin()
		tr.pending, tr.end = append(tr.pending, tr.stream.EmptyTurn()...), io.EOF
		if tr.given {
			return nil, nil
		}
		return tr.response(http.StatusOK, true, -1), nil
	}
	tr.x.trouble = situationErrorFrame
	if tr.given {
		tr.pending, tr.end = append(tr.pending, tr.stream.Fail(p)...), errFailed
		return nil, nil
	}
	status := p.Status
	if status < 400 || status > 599 {
		status = http.StatusBadGateway
	}
	q := *p
	q.Status = status
	return tr.body(status, tr.t.AppendProblem(nil, &q)), nil
}

// broken ends an answer for a reason that is not the upstream's own words: as an answer of ours, or as a failure event.
func (tr *translated) broken(s situation, status int, code, message string) (*http.Response, error) {
	if !tr.given && (tr.stream == nil || !tr.stream.Opened()) {
		return nil, &localError{s, status, code, message}
	}
	tr.x.trouble = s
	if tr.head == nil {
		tr.x.cameFrom(sourceLocal, code)
	}
	tr.pending = append(tr.pending, tr.stream.Fail(&canon.Problem{Status: status, Code: code, Message: message})...)
	tr.end = errFailed
	if tr.given {
		return nil, nil
	}
	return tr.response(http.StatusOK, true, -1), nil
}

// invalid ends an answer that came and is none that can be translated, behind what of it was.
func (tr *translated) invalid(message string) (*http.Response, error) {
	return tr.broken(situationInvalid, http.StatusBadGateway, codeUpstreamInvalid, message)
}

// lost ends an answer whose upstream broke off.
func (tr *translated) lost(s situation, err error) (*http.Response, error) {
	tr.x.cause = err
	if tr.x.ctx.Err() != nil {
		return tr.over()
	}
	if s == situationUnavailable {
		return tr.broken(s, http.StatusBadGateway, codeUpstreamUnavailable, upstreamError+"it could not be reached or closed the connection before it answered")
	}
	return tr.broken(s, http.StatusBadGateway, codeUpstreamCut, upstreamError+"it broke off its answer")
}

// over ends an exchange whose context has.
func (tr *translated) over() (*http.Response, error) {
	tr.pump.stop(false)
	cause := context.Cause(tr.x.ctx)
	if errors.Is(cause, errSilence) && tr.given {
		return tr.broken(situationSilent, http.StatusGatewayTimeout, codeUpstreamTimeout,
			upstreamError+"it was silent for longer than "+tr.x.h.cfg.UpstreamIdleTimeout.String())
	}
	return nil, cause
}

// body is an answer whose body is whole.
func (tr *translated) body(status int, body []byte) *http.Response {
	tr.pending, tr.end = body, io.EOF
	return tr.response(status, false, int64(len(body)))
}

// response is the head of the client's answer; its body is tr.
func (tr *translated) response(status int, stream bool, length int64) *http.Response {
	h := http.Header{}
	if tr.head != nil {
		keepHeaders(h, tr.head.Header)
	}
	h.Set("Content-Type", "application/json")
	if stream {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
	}
	if length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(length, 10)) // head and body are then one write
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: tr, ContentLength: length,
	}
}

// summary tells what the upstream said in a few words.
func (tr *translated) summary() dialect.Summary {
	switch {
	case tr.sse && tr.stream != nil:
		return tr.stream.Summary()
	case tr.x.said != nil && tr.x.said.IsObject():
		var s dialect.Summary
		tr.x.h.whole(tr.x.said, tr.x.said.Len(), func(said []byte) { s = rewrite.DialectOf(tr.x.upstreamDialect()).ReadResponse(said) })
		return s
	}
	return dialect.Summary{Usage: canon.NoUsage()}
}

// upstreamBody is what the upstream said, for the record: an object of its dialect, or its text; nil when it said nothing, or there was no memory
// for it, which is when it is not whole. The exchange has it until the record does.
func (tr *translated) upstreamBody() (body *capture.Copy, whole bool) {
	whole = tr.stream == nil || !tr.stream.GaveUp()
	if tr.x.said == nil && tr.stream != nil && tr.sse {
		if said := tr.stream.AppendUpstream(nil); len(said) > 0 {
			tr.stream.Drop()
			tr.x.said = capture.Fold(tr.x.h.foldOptions, said)
		}
	}
	return tr.x.said, whole
}
