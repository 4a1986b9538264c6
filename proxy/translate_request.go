package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"rolltap/capture"
	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// errTooLarge says that a request is longer than the limit.
var errTooLarge = errors.New("the request is too large")

// errNotKept says that a request which had moved to a file could not be read back.
var errNotKept = errors.New("the request could not be read back")

// translateRequest reads the client's request and makes the upstream's of it. It reports whether the exchange goes on; if not the client
// has its answer.
func (x *exchange) translateRequest() bool {
	body, ok := x.wholeBody()
	if !ok {
		return false
	}
	if x.route.Target.Stream && x.in.URL.Query().Get("alt") != "sse" {
		x.param = "alt"
		x.refuse(http.StatusBadRequest, codeNotSupported, "alt: must be sse; a stream as one JSON array is not given here")
		return false
	}
	call := x.translationCall()
	call.Valid, call.Room = x.isObject(body), x.roomToSend(len(body))
	t := rewrite.NewTranslation(x.dialect, rewrite.DialectOf(x.upstreamDialect()), &x.h.cfg.Rewrite, call)
	sent, err := t.Request(body)
	x.translation = t // its losses are recorded, also those of a refusal
	if err != nil {
		x.refuseProblem(err)
		return false
	}
	if sent, ok = x.askTokens(sent); !ok {
		return false
	}
	x.send(sent)
	x.readTurns(body)
	x.giveBack() // nobody keeps anything of the body
	return x.beginTokens()
}

// translationCall is what a translation has to know of the exchange.
func (x *exchange) translationCall() rewrite.Call {
	c := rewrite.Call{ID: x.callID, Record: x.callID, Created: x.start.Unix(), Codex: isCodex(x.in.Header)}
	if c.ID == "" {
		c.ID = newCallID()
	}
	if x.route.Prefixed {
		c.Remembered = func(id string) (canon.Part, bool) { return x.h.memory.recall(x.route.Rollout, id) }
	}
	c.Target = x.route.Target
	c.Served = x.h.cfg.upstreamModel
	c.Window = func(model string) int64 {
		if x.alone { // the upstream may have to be asked
			x.notAlone()
			defer x.goAlone()
		}
		return x.window(model)
	}
	return c
}

// wholeBody is the client's request, content coding removed. Without it the client has its answer.
func (x *exchange) wholeBody() ([]byte, bool) {
	body, err := x.readBody()
	switch {
	case errors.Is(err, errTooLarge):
		x.refuse(http.StatusRequestEntityTooLarge, codeTooLarge, "the request is longer than "+x.h.whatIsHeld())
		return nil, false
	case errors.Is(err, errNotKept):
		x.cause = err
		x.refuse(http.StatusInsufficientStorage, codeStoreUnavailable, "the request was too long for memory, and could not be read back from its file")
		return nil, false
	case err != nil:
		x.badUpload(err)
		return nil, false
	}
	coding := contentCoding(x.in.Header)
	if !x.held && body != nil {
		x.sent = capture.Adopt(x.h.copyOptions, body) // as it came, unless something else is made of it
	}
	if coding == "" {
		return body, true
	}
	if !decodable(coding) {
		x.refuse(http.StatusUnsupportedMediaType, codeEncoding, "the request's content coding is not known here; gzip, deflate and zstd are")
		return nil, false
	}
	body, err = x.decodeBody(coding, body)
	switch {
	case errors.Is(err, errTooLarge):
		x.refuse(http.StatusRequestEntityTooLarge, codeTooLarge, "the request decodes to more than "+x.h.whatIsHeld())
		return nil, false
	case err != nil:
		x.refuse(http.StatusBadRequest, codeInvalidRequest, "the request body is not what its content coding says")
		return nil, false
	}
	return body, true
}

// whatIsHeld tells the limit of requests that are held whole, and whence it comes.
func (h *Handler) whatIsHeld() string {
	if limit := Size(h.wholeRequest); limit < h.cfg.MaxRequestBytes {
		return strconv.FormatInt(h.wholeRequest, 10) + " bytes, an eighth of the memory limit (GOMEMLIMIT), and has to be held to be read"
	}
	return h.cfg.MaxRequestBytes.String() + "; see --max-request-bytes"
}

// readBody reads the whole request and keeps a copy for the record, which lends it until giveBack. What the copy does not hold in memory comes back
// one at a time, as in whole.
func (x *exchange) readBody() ([]byte, error) {
	up := x.openBody()
	if up == nil {
		return nil, nil
	}
	began := x.elapsed()
	defer func() { x.waited += x.elapsed() - began }()
	x.upload = up
	limit := x.h.wholeRequest
	if x.in.ContentLength > limit {
		return nil, errTooLarge
	}
	held, err := up.hold(limit)
	switch {
	case err != nil:
		return nil, err
	case held:
		x.held = true
		if body, ok := x.request.Lend(); ok {
			x.lent = x.request
			return body, nil
		}
		x.goAlone()
	}
	var buf bytes.Buffer
	if x.requestBytes.Load() <= limit {
		buf.Grow(int(x.request.Len()) + bytes.MinRead)
		if _, err := buf.ReadFrom(x.request.NewReader()); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotKept, err)
		}
		buf.Write(up.rest)
		if !held {
			if _, err := buf.ReadFrom(io.LimitReader(up, limit+1-int64(buf.Len()))); err != nil {
				return nil, err
			}
		}
	}
	if x.requestBytes.Load() > limit { // its length was not announced
		return nil, errTooLarge
	}
	return buf.Bytes(), nil
}

// isObject tells whether body, the request, is one valid JSON object. Where the copy for the record holds the same it is looked through once
// for both.
func (x *exchange) isObject(body []byte) bool {
	if x.held && contentCoding(x.in.Header) == "" && len(body) > 0 && body[0] != 0xef { // a record may begin with a byte-order mark
		return x.request.IsObject()
	}
	return jsonx.ValidObject(body)
}

// roomToSend is memory, used before, for what is made of a request of n bytes; nil for a small one, or when there is none.
func (x *exchange) roomToSend(n int) []byte {
	if n <= lendFrom {
		return nil
	}
	o := x.h.copyOptions
	o.Reuse = true
	x.room = capture.NewCopy(o)
	x.room.Expect(int64(rewrite.RoomFor(n)))
	return x.room.Room()
}

// send takes what was made of the request, perhaps in that memory.
func (x *exchange) send(made []byte) {
	if len(made) <= lendFrom { // which is not lent to the transport
		x.sent = capture.Adopt(x.h.copyOptions, bytes.Clone(made))
		return
	}
	if x.room != nil {
		if room := x.room.Room(); len(room) > 0 && &room[0] == &made[0] {
			x.room.Wrote(len(made))
			x.sent, x.room = x.room, nil
			return
		}
	}
	x.sent = x.h.keepBody(made)
}

// keepBody is a copy of b, within the budget or in a file; where there is neither it is b, as long as it is no longer than a copy may be.
func (h *Handler) keepBody(b []byte) *capture.Copy {
	c := capture.NewCopy(h.copyOptions)
	if c.Write(b); !c.Truncated() {
		return c
	}
	c.Release()
	return capture.Adopt(h.copyOptions, b)
}

// decodeBody removes a content coding. What becomes long is measured first, and then decoded alone, as what comes back from a file is read: memory
// that grows to hold it would be three times as much.
func (x *exchange) decodeBody(coding string, body []byte) ([]byte, error) {
	d, err := newDecoder(coding, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	limit := x.h.wholeRequest
	var plain bytes.Buffer
	n, err := plain.ReadFrom(io.LimitReader(d, min(holdBytes, limit+1)))
	if err == nil && n == holdBytes {
		var more int64
		more, err = io.Copy(io.Discard, io.LimitReader(d, limit+1-n))
		n += more
	}
	switch {
	case n > limit:
		return nil, errTooLarge
	case err != nil:
		return nil, err
	case n <= holdBytes:
		return plain.Bytes(), nil
	}
	x.goAlone()
	plain = bytes.Buffer{}
	plain.Grow(int(n) + bytes.MinRead)
	again, err := newDecoder(coding, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer again.Close()
	_, err = plain.ReadFrom(io.LimitReader(again, n))
	return plain.Bytes(), err
}

// goAlone waits until no other exchange holds a long request, and keeps others from it until notAlone or giveBack. Meanwhile nothing may wait for a
// client or an upstream, since others cannot record their calls.
func (x *exchange) goAlone() {
	if !x.alone {
		x.h.reading.Lock()
		x.alone = true
	}
}

func (x *exchange) notAlone() {
	if x.alone {
		x.alone = false
		x.h.reading.Unlock()
	}
}

// isCodex recognises Codex, whose turn ends at response.incomplete (harness.md 2.14), by its user agent or its own headers.
func isCodex(h http.Header) bool {
	if h.Get("X-Codex-Turn-Metadata") != "" || h.Get("X-Codex-Window-Id") != "" {
		return true
	}
	return strings.Contains(strings.ToLower(h.Get("User-Agent")), "codex")
}

// translatedHeaders makes the upstream's headers where it speaks another dialect than the client: the body is ours, and the client's
// credential is in the header that the upstream's dialect has for it.
func (x *exchange) translatedHeaders(out http.Header) {
	out.Set("Content-Type", "application/json")
	out.Set("Accept-Encoding", "identity")
	for _, name := range [...]string{"Content-Encoding", "Content-Md5", "Digest", "Te", "Trailer"} {
		out.Del(name)
	}
	to := x.upstreamDialect()
	key, bearer := out.Get("X-Api-Key"), bearerToken(out.Get("Authorization"))
	if key == "" {
		key = x.googleKey(out)
	}
	for name := range out {
		if to != canon.Messages && strings.HasPrefix(name, "Anthropic-") || to == canon.Messages && strings.HasPrefix(name, "Openai-") ||
			strings.HasPrefix(name, "X-Goog-") {
			out.Del(name)
		}
	}
	switch {
	case x.h.upstreamKey != "":
	case to == canon.Messages && key == "" && bearer != "":
		out.Del("Authorization")
		setCredential(out, to, bearer)
	case to == canon.Messages && key != "":
		setCredential(out, to, key)
	case to != canon.Messages && key != "":
		out.Del("X-Api-Key")
		if bearer == "" {
			setCredential(out, to, key)
		}
	}
	if to == canon.Messages && out.Get("Anthropic-Version") == "" {
		out.Set("Anthropic-Version", "2023-06-01")
	}
}

// googleKey is the credential of a client of Google's APIs: in a header, or in the query, which does not go upstream.
func (x *exchange) googleKey(out http.Header) string {
	if key := out.Get("X-Goog-Api-Key"); key != "" || x.dialect.Name() != canon.Gemini {
		return key
	}
	key := x.in.URL.Query().Get("key")
	if isOneOf(x.tokens, key) {
		return "" // ours
	}
	return key
}

// keepHeaders takes over from the upstream's answer what clients steer by, whatever the dialect.
func keepHeaders(to, from http.Header) {
	for name, values := range from {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "retry-after") || strings.Contains(lower, "ratelimit") || lower == "x-request-id" || lower == "request-id" ||
			lower == "x-should-retry" || lower == "date" {
			to[name] = values
		}
	}
}

// recordTranslation gives the record the upstream's side of an exchange whose bodies did not pass as they were.
func (x *exchange) recordTranslation(r *capture.Record) {
	if x.sent == nil || x.translation == nil && !x.spliced {
		return
	}
	limit := int64(x.h.cfg.CaptureMaxBytes)
	x.sent.Cut(limit)
	r.Upstream.Request = x.sent
	if x.translated == nil {
		return
	}
	said, whole := x.translated.upstreamBody()
	if !whole {
		r.Truncated = append(r.Truncated, "upstream.response")
	}
	if said != nil {
		said.Cut(limit)
		r.Upstream.Response = said
	}
}
