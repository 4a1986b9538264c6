package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// maxAside is the longest answer of the upstream to a question of ours.
const maxAside = 64 << 20

// ask asks the upstream something for this exchange that is no model call of its client, with the client's headers.
func (x *exchange) ask(ctx context.Context, method, path string, body []byte) (head *http.Response, answer []byte, err error) {
	u := *x.h.upstream
	u.RawPath = u.EscapedPath() + path
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	named := strings.Split(strings.Join(x.in.Header["Connection"], ","), ",")
	for name, values := range x.in.Header {
		if slices.ContainsFunc(named, func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), name) }) {
			continue
		}
		switch name {
		case "Connection", "Upgrade", "Te", "Trailer", "Transfer-Encoding", "Keep-Alive", "Proxy-Connection", "Content-Length", "Expect":
		default:
			r.Header[name] = append([]string(nil), values...)
		}
	}
	x.outHeaders(x.in.Header, r.Header)
	x.translatedHeaders(r.Header)
	x.watch.begin()
	defer x.watch.end()
	res, err := x.h.askUpstream(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	defer func() {
		if errors.Is(err, errUndecodable) {
			err = &localError{situationInvalid, http.StatusBadGateway, codeUpstreamInvalid, err.Error()}
		}
	}()
	plain, err := plainBody(res)
	if err != nil {
		return nil, nil, err
	}
	defer plain.Close()
	answer, err = io.ReadAll(io.LimitReader(plain, maxAside+1))
	if err == nil && len(answer) > maxAside {
		err = fmt.Errorf("the upstream's answer to %s is too long", path)
	}
	return res, answer, err
}

// countTokens answers how long a prompt is, for an upstream that cannot count in the client's dialect: translated, and counted in the first
// way that the upstream has.
func (x *exchange) countTokens() {
	body, ok := x.wholeBody()
	if !ok {
		return
	}
	x.notAlone() // the upstream may take its time
	counter, ok := x.dialect.(dialect.Counter)
	if !ok {
		x.refuse(http.StatusNotImplemented, codeNotSupported, "this dialect has no count of tokens")
		return
	}
	if jsonx.Valid(body) {
		body = counter.CountedCall(body)
	}
	var asked []string
	var said func() // relays the first 404 that may be about the model
	for _, way := range rewrite.CountsOf(x.upstreamDialect()) {
		answered, relay := x.countBy(way, counter, body)
		if answered {
			return
		}
		if said == nil {
			said = relay
		}
		asked = append(asked, way.Path)
	}
	if said != nil {
		said()
		return
	}
	x.refuse(http.StatusNotImplemented, codeNotSupported,
		"the upstream has no "+strings.Join(asked, " and no ")+", so the tokens of a prompt cannot be counted")
}

// countBy answers by one way to count, unless the upstream does not have it: then nothing was answered. Some say with an error object that they do
// not know a path, others that they do not know the model; relay, when it is not nil, would answer by it.
func (x *exchange) countBy(way rewrite.Count, counter dialect.Counter, body []byte) (answered bool, relay func()) {
	t := rewrite.NewTranslation(x.dialect, rewrite.DialectOf(way.As), &x.h.cfg.Rewrite, x.translationCall())
	sent, err := t.Request(body)
	if err != nil {
		x.refuseProblem(err)
		return true, nil
	}
	head, answer, err := x.ask(x.ctx, http.MethodPost, way.Path, way.AppendBody(nil, sent))
	if err != nil {
		x.fail(nil, nil, err)
		return true, nil
	}
	tell := func() {
		p := t.Problem(head.StatusCode, answer)
		x.relay(head, p.Status, t.AppendProblem(nil, p))
	}
	switch status := head.StatusCode; {
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return false, nil
	case status == http.StatusNotFound && jsonx.KindOf(jsonx.Get(answer, "error")) == jsonx.KindObject:
		return false, tell
	case status == http.StatusNotFound:
		return false, nil
	case status >= 400:
		tell()
	default:
		n, ok := int64(0), false
		if d, err := jsonx.Parse(answer); err == nil {
			n, ok = d.Root().Get(way.Member).Int()
			d.Release()
		}
		if status != http.StatusOK || !ok || n < 0 {
			x.answerLocal(situationInvalid, http.StatusBadGateway, codeUpstreamInvalid, "the upstream's answer to "+way.Path+" has no count")
			return true, nil
		}
		x.relay(head, http.StatusOK, counter.AppendCount(nil, n))
	}
	return true, nil
}

// listModels answers which models there are in the shape of the client's dialect, which the upstream does not speak.
func (x *exchange) listModels() {
	head, answer, err := x.ask(x.ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		x.fail(nil, nil, err)
		return
	}
	if head.StatusCode >= 400 {
		p := rewrite.DialectOf(x.upstreamDialect()).ReadError(head.StatusCode, answer)
		x.relay(head, p.Status, rewrite.DialectOf(canon.Messages).AppendError(nil, *p))
		return
	}
	list, ok := appendModels(nil, answer)
	if !ok {
		x.answerLocal(situationInvalid, http.StatusBadGateway, codeUpstreamInvalid, "the upstream's list of models cannot be read")
		return
	}
	x.relay(head, http.StatusOK, list)
}

// relay gives the client what the upstream said in other words; it leaves no record.
func (x *exchange) relay(head *http.Response, status int, body []byte) {
	x.settled, x.source = true, sourceUpstream
	x.situation = situationWhole
	x.ending = x.situation.end(answerFacts{status: status})
	h := x.out.Header()
	keepHeaders(h, head.Header)
	h.Set("Content-Type", "application/json")
	x.out.WriteHeader(status)
	x.out.Write(body) // a client that has left is told by answer.failed
}

// window is how many tokens a model of the upstream can hold, 0 unknown. It is asked for when nobody has for a minute.
func (x *exchange) window(model string) int64 {
	if x.h.cfg.Rewrite.MaxTokensLimit >= 0 {
		return 0
	}
	return x.h.windows.of(model, func() ([]byte, error) {
		// For all who wait: this client may leave.
		ctx, cancel := context.WithTimeout(context.Background(), windowPatience)
		defer cancel()
		head, answer, err := x.ask(ctx, http.MethodGet, "/v1/models", nil)
		switch {
		case err != nil:
			return nil, err
		case head.StatusCode == http.StatusUnauthorized, head.StatusCode == http.StatusForbidden:
			return nil, errNotAllowed
		case head.StatusCode != http.StatusOK:
			return nil, errNoModels
		}
		return answer, nil
	})
}

var (
	errNoModels   = errors.New("the upstream lists no models")
	errNotAllowed = errors.New("this client may not list models")
)
