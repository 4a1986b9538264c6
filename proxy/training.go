package proxy

import (
	"context"
	"errors"
	"io/fs"
	"net/http"

	"go.uber.org/zap"

	"rolltap/capture"
	"rolltap/capture/training"
	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/lineage"
	"rolltap/rewrite/tokens"
)

// Why a call under token capture has no tokens in the store, beside the reasons of package tokens.
const (
	tokensOK       = "ok"
	tokensFailed   = "failed"           // it was refused or has failed before its first words: there is nothing that a later prompt could hold
	tokensLeft     = "client_gone"      // the client left inside of the answer, and may go on from what it has seen
	tokensOverflow = "context_overflow" // the client was given an empty turn
	tokensUnasked  = "not_asked"        // the request was none that could be made to ask for tokens, and was answered all the same
	tokensStore    = "store"            // the store did not take them
)

// maxTokenBytes bounds what is held of the token ids and log probabilities of one answer: those of a prompt of some ten million tokens.
const maxTokenBytes = 128 << 20

// taught is what an exchange under token capture keeps of it: the upstream is asked for token ids and log probabilities, they are taken out
// of its answer before the client sees it, and are made durable together with the record.
//
// It belongs to the exchange's goroutine.
type taught struct {
	collector *tokens.Collector
	hider     *tokens.Hider  // feeds the collector; nil: nothing could be asked for
	sampling  []byte         // how the tokens are drawn, as far as the request that was sent says so: a JSON object
	turns     *lineage.Turns // nil: the request has none that can be read
	refers    bool           // the request refers to an earlier answer by its id
	parent    lineage.Decision
	intent    bool // durable: the call may generate

	before, after string // version of the weights when the call was sent and behind its answer, "" unknown
	result        string // ok, or why there are no tokens; "" not settled
	found         tokens.Result
	generated     int
}

// wantsTokens reports whether token capture is asked for, of a call that is recorded.
func (x *exchange) wantsTokens() bool {
	switch x.h.cfg.TokenCapture {
	case tokenCaptureAlways:
		return true
	case tokenCaptureAuto:
		return x.route.Training
	}
	return false
}

// askTokens makes the upstream's request ask for tokens. It reports whether the exchange goes on.
func (x *exchange) askTokens(sent []byte) ([]byte, bool) {
	t := x.taught
	if t == nil {
		return sent, true
	}
	sent, wish, err := tokens.Ask(sent)
	if err != nil {
		x.refuseProblem(err)
		return nil, false
	}
	t.collector = tokens.NewCollector(maxTokenBytes, wish)
	t.collector.SpoolLong(spoolLong)
	t.hider = tokens.NewHider(wish, t.collector)
	t.sampling = tokens.AppendSampling(nil, sent)
	if x.plan == rewrite.PassThrough {
		x.editors = append(x.editors, t.hider)
	}
	return sent, true
}

// readTurns reads from the client's request, a JSON object, what the call may continue.
func (x *exchange) readTurns(body []byte) {
	if t := x.taught; t != nil {
		t.turns, _ = lineage.Read(body) // what has no turns is unresolved, and the record says so
		t.refers = !jsonx.IsNull(jsonx.Get(body, "previous_response_id"))
	}
}

// beginTokens finds the call that this one continues, and makes durable that it may generate, before it is sent: a call of which nothing is
// heard any more then leaves a trace. It reports whether the exchange goes on.
func (x *exchange) beginTokens() bool {
	t := x.taught
	if t == nil {
		return true
	}
	t.parent = lineage.Resolve(t.turns, x.candidates)
	if t.refers && t.parent.Resolution == lineage.Root {
		t.parent = lineage.Decision{Resolution: lineage.Unresolved, Reason: lineage.NotAttempted} // the turns are in what it refers to
	}
	ctx, cancel := context.WithTimeout(context.Background(), x.h.cfg.CaptureDeadline)
	defer cancel()
	err := x.h.training.Begin(ctx, x.route.Rollout, x.callID)
	switch {
	case err == nil:
		t.intent = true
		t.before = x.h.weights.before(x.askVersion)
		return true
	case errors.Is(err, training.ErrFrozen), errors.Is(err, training.ErrRetired):
		x.refuse(http.StatusConflict, codeSealed, "the tokens of the rollout are frozen: no further call belongs to it")
		return false
	}
	x.cause = err
	if ctx.Err() != nil {
		x.withdraw(ctx) // it may become durable yet
	}
	x.h.store.Mark(x.route.Rollout, x.callID, "intent", err)
	x.callID = ""
	x.reject(http.StatusInsufficientStorage, codeStoreUnavailable, "that a call under token capture begins could not be made durable, so it was not sent")
	return false
}

// candidates are the calls of the rollout that ended with these turns of the model.
func (x *exchange) candidates(fingerprint string) ([]lineage.Candidate, error) {
	found, err := x.h.training.Candidates(x.route.Rollout, fingerprint)
	if err != nil {
		x.h.log.Warn("the calls that this one may continue cannot be looked up", zap.String("rollout", x.route.Rollout), zap.String("call_id", x.callID), zap.Error(err))
		return nil, err
	}
	list := make([]lineage.Candidate, len(found))
	for i, c := range found {
		list[i] = lineage.Candidate{
			CallID: c.CallID, CumLen: c.CumLen, Digest: c.Digest,
			Stamp: lineage.Stamp{Fingerprint: c.Fingerprint, ContextLen: c.ContextLen, ContextDigest: c.ContextDigest},
		}
	}
	return list, nil
}

// settleTokens says what became of the tokens of the call, once its ending is known, and returns what the store is to keep of them; nil:
// nothing.
func (x *exchange) settleTokens() *training.Entry {
	t := x.taught
	if t == nil || !t.intent {
		return nil
	}
	if t.collector != nil {
		t.found = t.collector.Result()
	}
	if x.summary.Usage.Prompt == canon.Unknown {
		x.summary.Usage.Prompt = t.found.PromptTokens // which the client did not ask to see
	}
	if x.summary.Usage.Completion == canon.Unknown {
		x.summary.Usage.Completion = t.found.Completion
	}
	answered := x.ending.outcome == outcomeOK || x.ending.outcome == outcomeClientGone
	switch {
	case x.situation == situationOverflow:
		t.result = tokensOverflow
	case !answered && x.streamed && x.firstWord != 0: // the client may go on from what it has seen
		t.result = x.brokenTokens()
	case !answered || x.upstreamStatus >= 400 || x.upstreamStatus == 0:
		t.result = tokensFailed
	case t.collector == nil:
		t.result = tokensUnasked
	case x.ending.outcome == outcomeClientGone && t.found.Reason != "":
		t.result = tokensLeft
		if x.firstWord == 0 && x.out.bytes == 0 {
			t.result = tokensFailed // it has seen nothing of it
		}
	default:
		x.askPrompt()
		t.result = string(t.found.Reason)
	}
	t.after = x.h.weights.after(x.askVersion)
	if t.result != "" {
		return nil
	}
	e, err := x.entry()
	if err != nil {
		t.result = string(tokens.Unreadable)
		x.h.log.Warn("the tokens of a call cannot be kept", zap.String("rollout", x.route.Rollout), zap.String("call_id", x.callID), zap.Error(err))
		return nil
	}
	t.result, t.generated = tokensOK, t.found.GeneratedLen
	return e
}

// brokenTokens is why there are no tokens of an answer that broke off behind its first words: whatever the engine told of it, they are not
// those of a turn that has ended.
func (x *exchange) brokenTokens() string {
	reason := x.taught.found.Reason
	if reason == "" || reason == tokens.Truncated { // how far the engine's stream was read when the answer broke off is chance
		reason = tokens.Truncated
		if x.ending.outcome == outcomeUpstreamError {
			reason = tokens.UpstreamError
		}
	}
	return string(reason)
}

// askPrompt asks the engine's tokenizer for the ids of a prompt that an engine without them has answered (capture.md 5.4).
func (x *exchange) askPrompt() {
	t := x.taught
	if !t.found.NeedsPrompt {
		return
	}
	t.found.Reason = tokens.NoPromptIDs
	sent := x.sent
	if sent == nil { // it went as it came
		sent = x.request
	}
	var body []byte
	if sent != nil {
		x.h.whole(sent, sent.Len(), func(sent []byte) { body = tokens.TokenizeRequest(sent) })
	}
	if body == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), x.h.cfg.CaptureDeadline) // this client may have left
	defer cancel()
	head, answer, err := x.ask(ctx, http.MethodPost, "/tokenize", body)
	if err != nil || head.StatusCode != http.StatusOK || !jsonx.Valid(answer) {
		return
	}
	if ids, n, ok := tokens.TokenizeAnswer(answer); ok {
		t.found.Reason = ""
		t.found.SetPrompt(ids, n)
	}
}

// entry is what the store keeps of the call's tokens.
func (x *exchange) entry() (*training.Entry, error) {
	t := x.taught
	e := &training.Entry{
		Rollout: x.route.Rollout, CallID: x.callID, Model: x.summary.Model, CreatedAt: float64(x.start.Add(x.endAt).UnixMicro()) / 1e6,
		PromptTokenIDs: t.found.Prompt, GenerationTokenIDs: t.found.Generated, GenerationLogProbs: t.found.Logprobs, RoutedExperts: t.found.Experts,
		RoutedExpertsFrom: copyFrom(t.found.LongExperts), TokenItem: training.NoItem,
		Parent: training.Resolution(t.parent.Resolution), ParentCallID: t.parent.Parent.CallID, ParentReason: t.parent.Reason,
		Rolltap: x.appendTokenFacts(nil),
	}
	if err := e.Stamp(); err != nil {
		return nil, err
	}
	x.readAnswer(func(answer []byte) {
		id := jsonx.Get(answer, "id")
		if id == nil {
			id = jsonx.Get(answer, "responseId") // Gemini
		}
		e.ResponseID, _ = jsonx.Text(id)
		var n int
		if e.OutputItems, n = rewrite.AppendOutputItems(nil, answer, x.dialect.Name()); n > 0 {
			e.TokenItem = n - 1
		}
		if t.turns == nil {
			return
		}
		stamp, err := t.turns.Stamp(answer)
		if err != nil {
			return // nothing continues a call whose answer cannot be read
		}
		e.Fingerprint, e.ContextLen, e.ContextDigest = stamp.Fingerprint, stamp.ContextLen, stamp.ContextDigest
		e.FingerprintVersion = lineage.FingerprintVersion
	})
	return e, t.shorten(e)
}

// shorten keeps of a prompt only what is behind its parent's tokens, where it is proven that it begins with them.
func (t *taught) shorten(e *training.Entry) error {
	parent := t.parent.Parent
	if t.parent.Resolution != lineage.Resolved || parent.CumLen == 0 || parent.CumLen > t.found.PromptLen {
		return nil
	}
	digest, err := lineage.PrefixDigest(e.PromptTokenIDs, parent.CumLen)
	if err != nil || digest != parent.Digest {
		return err
	}
	rest, err := lineage.Suffix(e.PromptTokenIDs, parent.CumLen)
	if err == nil {
		e.PromptTokenIDs, e.PromptIsDelta = rest, true
	}
	return err
}

// readAnswer hands the answer as the client saw it to use, a JSON object; not at all when it is none.
func (x *exchange) readAnswer(use func(answer []byte)) {
	answer, most := x.response, int64(maxSummary)
	if x.streamed {
		if answer = x.folded; answer != nil {
			most = answer.Len()
		}
	}
	if answer != nil && answer.IsObject() {
		x.h.whole(answer, most, use)
	}
}

// keepTokens makes the tokens of a call durable, or what there is to say instead. It returns at once; the channel tells when that is done, and
// whether the tokens are kept.
func (x *exchange) keepTokens(ctx context.Context, e *training.Entry) <-chan bool {
	t := x.taught
	if t == nil || !t.intent {
		return nil
	}
	done := make(chan bool, 1)
	if e == nil {
		go func() {
			defer close(done)
			if t.result == tokensFailed {
				x.withdraw(ctx)
			} else {
				x.h.markTokens(ctx, x.route.Rollout, x.callID, t.result)
			}
		}()
		return done
	}
	go func() {
		err := x.h.training.Put(ctx, e)
		if long := t.found.LongExperts; long != nil && ctx.Err() == nil { // else the store may still read it
			long.Release()
		}
		if err != nil {
			x.h.log.Error("the tokens of a call are lost", zap.String("rollout", e.Rollout), zap.String("call_id", e.CallID), zap.Error(err))
			if !errors.Is(err, training.ErrConflict) { // which has marked it
				x.h.markTokens(ctx, e.Rollout, e.CallID, tokensStore)
			}
		}
		done <- err == nil
	}()
	return done
}

// declineTokens gives tokens up together with the record that they would be joined to.
func (x *exchange) declineTokens() *training.Entry {
	if t := x.taught; t != nil && t.result == tokensOK {
		t.result, t.generated = tokensStore, 0
	}
	return nil
}

// tokensKept waits until what there is to say of the call's tokens is durable.
func (x *exchange) tokensKept(done <-chan bool) {
	if done != nil && !<-done && x.taught.result == tokensOK {
		x.taught.result, x.taught.generated = tokensStore, 0
	}
}

// withdraw takes back that the call may generate. When that fails the rollout is masked, as after a crash.
func (x *exchange) withdraw(ctx context.Context) {
	if err := x.h.training.Withdraw(ctx, x.route.Rollout, x.callID, x.ending.outcome); err != nil {
		x.h.log.Warn("a call that failed stays a call without tokens", zap.String("rollout", x.route.Rollout), zap.String("call_id", x.callID), zap.Error(err))
	}
}

// markTokens says durably that the rollout lacks tokens. When ctx ends first, that has been begun.
func (h *Handler) markTokens(ctx context.Context, rollout, callID, reason string) {
	if err := h.training.Mark(ctx, rollout, callID, reason); err != nil {
		h.log.Error("a rollout that lacks tokens cannot be marked", zap.String("rollout", rollout), zap.String("call_id", callID), zap.String("reason", reason), zap.Error(err))
	}
}

// countTokenCall moves the metrics.
func (x *exchange) countTokenCall() {
	if t := x.taught; t != nil && t.result != "" {
		x.h.metrics.TokenCall(t.result, int64(t.generated), t.parent.Resolution != lineage.Unresolved)
	}
}

// sawAside looks at a request under the training prefix that is no model call, once the status of its answer is known: 0, none came. What may
// have generated something that nobody captured marks its rollout, before the client sees the answer. An upstream that does not know the path
// has generated nothing.
func (x *exchange) sawAside(status int) {
	if x.h.training == nil || !x.route.Prefixed || x.unseen || !x.route.Training && x.h.cfg.TokenCapture != tokenCaptureAlways ||
		status == http.StatusNotFound || status == http.StatusMethodNotAllowed || x.route.Endpoint != rewrite.Other || x.h.side.has(x.in.Method, x.route) {
		return
	}
	x.unseen = true
	x.h.metrics.TokenUnseen()
	ctx, cancel := context.WithTimeout(context.Background(), x.h.cfg.CaptureDeadline)
	defer cancel()
	x.h.markTokens(ctx, x.route.Rollout, "", "unseen_request")
}

// newTraining opens the token files of the store. They become durable as its records do.
func newTraining(cfg *Config, store *capture.Store, log *zap.Logger) (*training.Store, error) {
	if cfg.TokenCapture != tokenCaptureAuto && cfg.TokenCapture != tokenCaptureAlways {
		return nil, nil
	}
	return training.Open(training.Options{
		Dir: cfg.Store, Mode: fs.FileMode(cfg.StoreMode), Secure: secureIn(store),
		Observe: training.Observe{
			Trouble: func(rollout string, err error) {
				log.Error("token files", zap.String("rollout", rollout), zap.Error(err))
			},
		},
	})
}

// secureIn lets what is appended to token files rest on what records rest on.
func secureIn(store *capture.Store) training.Secure {
	return func(appended []training.Appended) error {
		files := make([]capture.Appended, len(appended))
		for i, a := range appended {
			part := capture.PartTokens
			if a.Intents {
				part = capture.PartIntents
			}
			files[i] = capture.Appended{
				Rollout: a.Rollout, Part: part, File: a.File, Offset: a.Offset, Data: a.Data, Lines: a.Lines, New: a.New, Sync: a.Sync,
			}
		}
		return store.Secure(files)
	}
}
