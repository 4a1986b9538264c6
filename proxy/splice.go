package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"rolltap/internal/grow"
	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// reshapes reports whether requests of the upstream's own dialect may be changed: then they are held whole to be looked into.
func (h *Handler) reshapes() bool {
	return h.renames() || h.cfg.Rewrite.Reshapes()
}

// renames reports whether the upstream may be asked for another model than the client asks for.
func (h *Handler) renames() bool { return h.cfg.Model != "" || len(h.cfg.ModelMap) > 0 }

// renameCount lets a count of tokens that passes ask for the model that a call would. It reports whether the exchange goes on.
func (x *exchange) renameCount() bool {
	body, ok := x.wholeBody()
	if !ok {
		return false
	}
	defer x.giveBack()
	if !x.isObject(body) {
		return true // the upstream has its own words for that
	}
	asked, _ := jsonx.Text(jsonx.Get(body, "model"))
	if model := x.h.cfg.upstreamModel(asked); model != "" && model != asked {
		x.send(rewrite.SetMember(body, "model", jsonx.AppendString(nil, model)))
		x.spliced = true
	}
	return true
}

// spliceRequest replaces the members of a request that settings replace where no dialect is translated, and asks for tokens; every other
// byte stays. One in which nothing changes passes through as it came. It reports whether the exchange goes on.
func (x *exchange) spliceRequest() bool {
	body, ok := x.wholeBody()
	if !ok {
		return false
	}
	if !x.isObject(body) {
		x.giveBack()
		return x.beginTokens() // the upstream has its own words for that
	}
	name := jsonx.Get(body, "model")
	asked, _ := jsonx.Text(name)
	model := x.h.cfg.upstreamModel(asked)
	sent, err := x.h.cfg.Rewrite.Splice(body, model, x.dialect.Name(), &x.spliceLosses)
	if err != nil {
		x.refuseProblem(err)
		return false
	}
	if sent, ok = x.askTokens(sent); !ok {
		return false
	}
	x.readTurns(body)
	if !bytes.Equal(sent, body) {
		x.send(sent)
		x.spliced = true
		if model != "" && model != asked && name != nil {
			x.renamer = rewrite.NewRenamer(name)
			x.editors = append(x.editors, x.renamer)
		}
	}
	x.giveBack() // nobody keeps anything of the body
	return x.beginTokens()
}

// losses is what did not reach the upstream, or the client, of this exchange.
func (x *exchange) losses() []canon.Loss {
	if x.translation != nil {
		return x.translation.Losses()
	}
	return x.spliceLosses.List()
}

// editor changes an answer of the client's own dialect in a few places; every other byte stays where it is. Of a stream it appends what may go on
// now that p has come, and what is left behind its end; of anything else the whole.
type editor interface {
	AppendStream(dst, p []byte) []byte
	AppendRest(dst []byte) []byte
	AppendWhole(dst, body []byte) []byte
}

// edited is the body of an answer behind its editors.
type edited struct {
	x       *exchange
	src     io.ReadCloser
	editors []editor
	stream  bool
	whole   []byte    // of an answer that is no stream
	buf     []byte    // for reading; nil behind Close
	between [2][]byte // what one editor hands to the next
	out     []byte    // edited and not read yet
	err     error
}

// edit lets the client see what it asked for, and no more.
func (x *exchange) edit(res *http.Response) {
	e := &edited{x: x, src: res.Body, editors: x.editors, stream: isEventStream(res.Header), buf: x.h.buffers.Get()}
	x.edited = e
	res.Body = e
	res.ContentLength = -1
	res.Header.Del("Content-Length")
}

func (e *edited) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		n, err := e.src.Read(e.buf)
		e.err = err
		switch {
		case e.stream:
			e.out = e.some(e.buf[:n], err != nil)
		case len(e.whole)+n > e.x.h.wholeAnswer: // no edit is worth more memory
			e.out, e.stream = append(e.whole, e.buf[:n]...), true
			e.whole, e.editors = nil, nil
			if t := e.x.taught; t != nil {
				t.collector.Overflow()
			}
		default:
			e.whole = grow.Append(e.whole, e.buf[:n])
			e.x.weigh(e.buf[:n])
			if errors.Is(err, io.EOF) {
				e.out = e.all()
			} else if err != nil {
				e.out = e.whole
			}
		}
	}
	n := copy(p, e.out)
	if e.out = e.out[n:]; len(e.out) == 0 && e.err == io.EOF {
		return n, io.EOF // the gate tells the end together with the last bytes
	}
	return n, nil
}

// some is what may go on of a stream.
func (e *edited) some(p []byte, last bool) []byte {
	for i, ed := range e.editors {
		out := ed.AppendStream(e.between[i%2][:0], p)
		if last {
			out = ed.AppendRest(out)
		}
		e.between[i%2], p = out, out
	}
	return p
}

func (e *edited) all() []byte {
	e.x.brace(len(e.whole))
	whole := e.whole
	for _, ed := range e.editors {
		whole = ed.AppendWhole(nil, whole)
	}
	return whole
}

// Close is called by who reads, behind the last read.
func (e *edited) Close() error {
	if e.buf != nil {
		e.x.h.buffers.Put(e.buf)
		e.buf = nil
	}
	return e.src.Close()
}
