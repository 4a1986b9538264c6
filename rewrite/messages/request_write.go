package messages

import (
	"bytes"
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendCall writes a request (dialects.md 1.9). One that was read from this dialect keeps the division into messages and blocks, and what
// nobody knows; it is the same document but for what makes no difference: nulls, stream, is_error and disable_parallel_tool_use when false, the
// type custom, tools and system when empty, a schema that is missing, image/jpg, the name of output_format, a document's content as string,
// and where results stood in their turn. Of any other only what has a meaning here is written, messages of one role behind each other are one,
// and the rest are losses.
func (messages) AppendCall(dst []byte, r *canon.Request, o dialect.Options) ([]byte, error) {
	w := callWriter{dst: append(dst, '{'), r: r, o: o, own: r.From == canon.Messages}
	w.head()
	w.conversation()
	w.tools()
	w.sampling()
	w.thinking()
	w.outputConfig()
	w.params()
	w.unsaid()
	w.rest()
	if w.bad != nil {
		return nil, w.bad
	}
	return append(w.dst, '}'), nil
}

// callWriter writes one request. The first problem is kept.
type callWriter struct {
	dst []byte
	r   *canon.Request
	o   dialect.Options
	own bool // the request was read from this dialect
	bad *canon.Problem
}

func (w *callWriter) unsupported(path, message string) {
	if w.bad == nil {
		w.bad = canon.Unsupported(path, message)
	}
}

func (w *callWriter) lose(path string, why canon.Reason) { w.o.Losses.Add(path, why) }

// next writes the comma between two members or elements.
func (w *callWriter) next() {
	if last := w.dst[len(w.dst)-1]; last != '{' && last != '[' {
		w.dst = append(w.dst, ',')
	}
}

func (w *callWriter) key(name string) {
	w.next()
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, '"', ':')
}

// raw writes a member; an absent one is none.
func (w *callWriter) raw(name string, value []byte) {
	if value != nil {
		w.key(name)
		w.dst = append(w.dst, value...)
	}
}

func (w *callWriter) text(name string, text canon.Text) {
	w.key(name)
	w.quote(text)
}

func (w *callWriter) quote(text canon.Text) {
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, text...)
	w.dst = append(w.dst, '"')
}

// extra writes the members that nobody knows, or loses them.
func (w *callWriter) extra(members []canon.Member, path string) {
	for _, m := range members {
		if w.own {
			w.raw(string(m.Name), m.Value)
		} else {
			w.lose(m.In(path)+"."+string(m.Name), canon.NotKnown)
		}
	}
}

func (w *callWriter) head() {
	if w.r.Model != nil {
		w.text("model", w.r.Model)
	}
	limit := w.r.Params[canon.ParamMaxTokens]
	if n, ok := jsonx.Int(limit); limit == nil || ok && n == 0 && !w.own { // 0 warms the cache here and is no limit elsewhere
		limit = strconv.AppendInt(nil, w.o.Policy.DefaultMaxTokens, 10)
	}
	w.raw("max_tokens", limit)
}

func (w *callWriter) sampling() {
	if len(w.r.Stop) > 0 {
		w.key("stop_sequences")
		w.dst = append(w.dst, '[')
		for _, stop := range w.r.Stop {
			w.next()
			w.quote(stop)
		}
		w.dst = append(w.dst, ']')
	}
	w.raw("temperature", w.r.Params[canon.ParamTemperature])
	w.raw("top_p", w.r.Params[canon.ParamTopP])
	topK := w.r.Params[canon.ParamTopK]
	if n, ok := jsonx.Int(topK); ok && n <= 0 && !w.own { // engines say so that all tokens count
		topK = nil
	}
	w.raw("top_k", topK)
}

// rest writes what nobody knows, and last whether it is a stream.
func (w *callWriter) rest() {
	for _, m := range w.r.Extra {
		switch {
		case !w.own:
			w.lose(strings.TrimPrefix(m.In("")+"."+string(m.Name), "."), canon.NotKnown)
		case !within(m.Name, "output_config.") && !within(m.Name, "thinking."):
			w.raw(string(m.Name), m.Value)
		}
	}
	if w.r.Stream {
		w.raw("stream", []byte("true"))
	}
}

// within tells that an unknown member is one of the object that prefix names, and not of the request.
func within(name []byte, prefix string) bool { return bytes.HasPrefix(name, []byte(prefix)) }

// inside writes the unknown members of an object of the request.
func (w *callWriter) inside(prefix string) {
	for _, m := range w.r.Extra {
		if w.own && within(m.Name, prefix) {
			w.raw(string(m.Name[len(prefix):]), m.Value)
		}
	}
}
