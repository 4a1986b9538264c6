package proxy

import (
	"bytes"
	"context"
	"io"
	"time"

	"rolltap/capture"
	"rolltap/capture/protocol"
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// maxSummary bounds the JSON body that is read for what the record says of it: model, usage, finish reason.
const maxSummary = 16 << 20

// commit is called once, by the gate or on the way out: it settles what became of the exchange and makes its record
// durable. It returns an error only when the end of the answer must not be shown.
func (x *exchange) commit(s situation) error {
	if x.settled {
		return nil
	}
	x.giveBack() // of a request that was refused while it was being read
	x.situation, x.making = s, true
	x.endAt = x.elapsed()
	x.settle()
	defer func() {
		x.doneAt = x.elapsed()
		x.giveWay() // a client that has seen the end may send its next call before this exchange is over
	}()
	if x.callID == "" {
		x.settled = true
		x.release()
		return nil
	}
	entry := x.settleTokens()
	r := x.record()
	x.settled = true // not before: what has panicked so far is tried once more, without looking into the bodies
	// The client's context may be over already; the record's wait is its own.
	ctx, cancel := context.WithTimeout(context.Background(), x.h.cfg.CaptureDeadline)
	defer cancel()
	declined := x.declineLow(ctx, r)
	if declined {
		entry = x.declineTokens()
	}
	kept := x.keepTokens(ctx, entry)
	if declined {
		x.tokensKept(kept)
		return nil
	}
	err := x.h.store.Append(ctx, r)
	x.tokensKept(kept)
	policy := protocol.BestEffort
	if x.h.cfg.Capture == CaptureRequired {
		policy = protocol.Required
	}
	if protocol.Release(policy, err == nil) {
		return nil
	}
	x.situation = situationNotDurable
	x.ending = situationNotDurable.end(answerFacts{})
	x.cause = err
	return errNotDurable
}

// settle decodes what was encoded and finds the ending.
func (x *exchange) settle() {
	x.summary = dialect.Summary{Usage: canon.NoUsage()}
	f := answerFacts{status: x.out.status}
	if f.status == 0 {
		f.status = x.upstreamStatus
	}
	f.status = max(f.status, x.lateStatus)
	if x.response != nil {
		if !x.streamed && !x.faulty {
			x.response = decodeCopy(x.response, x.coding, x.h.copyOptions)
		}
		f.bodySeen = x.streamed || x.response.Total() > 0
		f.object = x.response.Truncated() // a cut copy is no evidence against the answer
	}
	switch {
	case x.faulty:
	case x.streamed:
		x.folded, x.summary = x.foldAnswer()
		f.verdict = x.gate.verdict
		f.object = f.object || x.folded != nil
	case x.response != nil && x.response.IsObject():
		f.object = true
		if x.translated == nil {
			x.h.whole(x.response, maxSummary, func(body []byte) { x.summary = x.dialect.ReadResponse(body) })
		}
	}
	if x.translated != nil && !x.faulty { // what the upstream said counts, which the answer to the client says in other words
		x.summary = x.translated.summary()
		x.remember()
	}
	x.ending = x.situation.end(f)
}

// remember keeps items of the answer that the client may only refer to in its next call.
func (x *exchange) remember() {
	if x.dialect.Name() != canon.Responses || !x.route.Prefixed || x.response == nil {
		return
	}
	x.readAnswer(func(answer []byte) { x.h.memory.keep(x.route.Rollout, answer) })
}

// record is what the store gets. It owns the copies from then on.
func (x *exchange) record() *capture.Record {
	h := x.in.Header
	if x.request != nil && !x.faulty {
		o := x.h.copyOptions
		o.Max = x.maxRequest() // counted after decoding
		x.request = decodeCopy(x.request, contentCoding(h), o)
	}
	asked, stream := x.asked()
	r := &capture.Record{
		Rollout: x.route.Rollout, CallID: x.callID, Dialect: string(x.dialect.Name()), ModelRef: x.h.cfg.ModelRef,
		Started: x.start, Completed: x.start.Add(x.endAt), Latency: x.endAt, TTFT: x.ttft(),
		StatusCode: x.out.status, ErrorCategory: x.ending.category,
		Request: x.request, Response: x.response, Folded: x.folded, Streamed: x.streamed, Raw: x.h.rawPolicy,
		ClientSessionID:   oneValue(h, "X-Session-Id"),
		UpstreamAttempted: x.attempted, ResponseSource: x.source, UpstreamStatus: x.upstreamStatus, LocalReason: x.localReason,
		Method: x.in.Method, Path: x.route.Path, Query: redactQuery(x.in.URL.RawQuery), Stream: stream,
		Outcome: x.ending.outcome, Finish: x.summary.Finish,
		Client:       clientOf(h),
		RequestBytes: x.requestBytes.Load(), ResponseBytes: x.responseBytes(),
	}
	if x.attempted {
		model := x.summary.Model
		if x.renamer != nil {
			if name, replaced := x.renamer.Served(); replaced { // what was observed has the client's name
				model = name
			}
		}
		if model == "" && x.sent != nil {
			x.h.whole(x.sent, x.sent.Len(), func(body []byte) { model, _ = jsonx.Text(jsonx.Get(body, "model")) })
		}
		if model == "" {
			model = asked
		}
		r.Upstream = &capture.Upstream{Dialect: string(x.upstreamDialect()), Path: x.upstreamPath(), Status: x.upstreamStatus, Model: model}
		x.recordTranslation(r)
	}
	for _, l := range x.losses() {
		r.Losses = append(r.Losses, capture.Loss{Path: l.Path, Reason: string(l.Reason)})
	}
	if u := x.summary.Usage; u != canon.NoUsage() {
		r.Usage = &capture.Usage{Prompt: u.Prompt, Completion: u.Completion, Cached: u.Cached, Reasoning: u.Reasoning}
	}
	if x.request != nil && !x.uploaded.Load() && !x.request.Truncated() {
		r.Truncated = append(r.Truncated, "request") // the client broke off, or was answered before it was done
	}
	if x.gate != nil && x.gate.decoded != nil && x.gate.decoded.blind || x.unfolded {
		r.Truncated = append(r.Truncated, "response") // what could not be decoded is missing, or what it adds up to
	}
	if x.taught != nil && x.taught.result != "" {
		r.Tokens = x.appendTokenFacts(nil)
	}
	if r.Upstream != nil && r.Upstream.Request != nil {
		x.sent = nil
	}
	if r.Upstream != nil && r.Upstream.Response != nil {
		x.said = nil
	}
	x.request, x.response, x.folded = nil, nil, nil
	return r
}

// asked reads from the request which model was asked for, and whether for a stream.
func (x *exchange) asked() (model string, stream bool) {
	if x.translation != nil {
		if model, stream, ok := x.translation.Asked(); ok {
			return model, stream
		}
	}
	if x.request == nil || x.faulty || !x.request.IsObject() {
		return x.route.Target.Model, x.route.Target.Stream
	}
	stream = x.streamed // of a request that is too long to be looked into
	x.h.whole(x.request, maxSummary, func(body []byte) {
		model, stream = x.route.Asked(x.dialect, bytes.TrimPrefix(body, []byte("\ufeff")))
	})
	return model, stream
}

// whole hands a copy to use in one piece, unless it is longer than most. Those that have moved to a file come back
// one at a time, so that they do not fill the memory together that they left; use keeps nothing of the body.
func (h *Handler) whole(c *capture.Copy, most int64, use func(body []byte)) {
	if body, ok := c.Bytes(); ok {
		use(body)
		return
	}
	if c.Len() > most {
		return
	}
	h.reading.Lock()
	defer h.reading.Unlock()
	if body, err := readBack(c, c.Len()); err == nil {
		use(body)
	}
}

// readBack is the n bytes of a copy in one piece, which is the copy's own where it is in memory. It is an error when it has fewer.
func readBack(c *capture.Copy, n int64) ([]byte, error) {
	if body, ok := c.Bytes(); ok && int64(len(body)) == n {
		return body, nil
	}
	body := make([]byte, n)
	_, err := io.ReadFull(c.NewReader(), body)
	return body, err
}

// ttft is the time to the first content of a stream, to the first byte of anything else; negative when there was none.
func (x *exchange) ttft() time.Duration {
	at := x.firstByte
	if x.streamed {
		at = x.firstWord
	}
	if at == 0 {
		return -1
	}
	return at
}

// responseBytes is what the client was sent of the body, or will have been once the held end is released.
func (x *exchange) responseBytes() int64 {
	if x.gate != nil && x.situation != situationClientGone {
		return x.gate.total
	}
	return x.out.bytes + x.localBytes
}

// release gives the copies back where no record takes them.
func (x *exchange) release() {
	for _, c := range []*capture.Copy{x.request, x.response, x.folded, x.sent, x.said} {
		if c != nil {
			c.Release()
		}
	}
	x.request, x.response, x.folded, x.sent, x.said = nil, nil, nil, nil, nil
	x.growing.Release()
	x.relax()
}

// giveBack ends the loan of the request to its translation.
func (x *exchange) giveBack() {
	if x.lent != nil {
		x.lent.Return()
		x.lent = nil
	}
	if x.room != nil {
		x.room.Release()
		x.room = nil
	}
	x.notAlone()
}
