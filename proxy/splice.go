package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// reshapes reports whether requests of the upstream's own dialect may be changed: then they are held whole to be looked into.
func (h *Handler) reshapes() bool {
	return h.cfg.Model != "" || len(h.cfg.ModelMap) > 0 || h.cfg.Rewrite.Reshapes()
}

// spliceRequest replaces the members of a request that settings replace where no dialect is translated; every other byte stays. One in
// which nothing changes passes through as it came. It reports whether the exchange goes on.
func (x *exchange) spliceRequest() bool {
	body, ok := x.wholeBody()
	if !ok {
		return false
	}
	if len(body) == 0 || !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.KindObject {
		return true // the upstream has its own words for that
	}
	name := jsonx.Get(body, "model")
	asked, _ := jsonx.Text(name)
	model := x.h.cfg.upstreamModel(asked)
	sent, err := x.h.cfg.Rewrite.Splice(body, model, x.dialect.Name(), &x.spliceLosses)
	if err != nil {
		x.refuseProblem(err)
		return false
	}
	if bytes.Equal(sent, body) {
		return true
	}
	x.sent, x.spliced = sent, true
	if model != "" && model != asked && name != nil {
		x.renamer, x.servedModel = rewrite.NewRenamer(name), model
	}
	return true
}

// losses is what did not reach the upstream, or the client, of this exchange.
func (x *exchange) losses() []canon.Loss {
	if x.translation != nil {
		return x.translation.Losses()
	}
	return x.spliceLosses.List()
}

// renamed is the body of an answer in which the client sees the model's name that it asked for.
type renamed struct {
	src     io.ReadCloser
	renamer *rewrite.Renamer
	stream  bool
	whole   []byte // of an answer that is no stream
	buf     []byte
	out     []byte // renamed and not read yet
	err     error
}

// rename lets the client see the name that it asked for.
func (x *exchange) rename(res *http.Response) {
	res.Body = &renamed{src: res.Body, renamer: x.renamer, stream: isEventStream(res.Header), buf: make([]byte, 32<<10)}
	res.ContentLength = -1
	res.Header.Del("Content-Length")
}

func (r *renamed) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := r.src.Read(r.buf)
		r.err = err
		switch {
		case r.stream:
			if r.out = r.renamer.AppendStream(r.out[:0], r.buf[:n]); err != nil {
				r.out = r.renamer.AppendRest(r.out)
			}
		case len(r.whole)+n > maxAnswer: // no name is worth more memory
			r.out, r.stream = append(r.whole, r.buf[:n]...), true
			r.whole = nil
		default:
			if r.whole = append(r.whole, r.buf[:n]...); errors.Is(err, io.EOF) {
				r.out = r.renamer.AppendWhole(nil, r.whole)
			} else if err != nil {
				r.out = r.whole
			}
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *renamed) Close() error { return r.src.Close() }
