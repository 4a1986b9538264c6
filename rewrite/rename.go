package rewrite

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// maxRenamed is the longest line of a stream that is looked into; it is that of an event elsewhere.
const maxRenamed = 16 << 20

// Renamer puts the model's name that the client asked for into an answer of its own dialect. Every other byte stays where it is. It belongs
// to one goroutine.
type Renamer struct {
	name   []byte // quoted
	served []byte // the first one that was replaced, quoted; nil: none was
	line   []byte // the line in progress
	long   bool   // it is too long to be looked into: its rest passes as it is
}

// NewRenamer gives answers the model's name as the client wrote it, a JSON string, which is copied.
func NewRenamer(name []byte) *Renamer { return &Renamer{name: bytes.Clone(name)} }

// Served is the name that the upstream gave the model, as far as it was replaced.
func (r *Renamer) Served() (name string, replaced bool) {
	name, _ = jsonx.Text(r.served)
	return name, r.served != nil
}

// AppendStream appends what may go on of an event stream now that p has come: its whole lines.
func (r *Renamer) AppendStream(dst, p []byte) []byte {
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			if r.long {
				return append(dst, p...)
			}
			if r.line = append(r.line, p...); len(r.line) > maxRenamed {
				dst, r.long = append(dst, r.line...), true
				r.line = r.line[:0]
			}
			return dst
		}
		line := p[:end+1]
		p = p[end+1:]
		switch {
		case r.long:
			dst, r.long = append(dst, line...), false
		case len(r.line) > 0:
			r.line = append(r.line, line...)
			dst = r.appendLine(dst, r.line)
			r.line = r.line[:0]
		default:
			dst = r.appendLine(dst, line)
		}
	}
	return dst
}

// AppendRest appends the last line of a stream that ends without a line's end.
func (r *Renamer) AppendRest(dst []byte) []byte {
	dst = r.appendLine(dst, r.line)
	r.line = r.line[:0]
	return dst
}

func (r *Renamer) appendLine(dst, line []byte) []byte {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return append(dst, line...)
	}
	dst = append(dst, line[:len(line)-len(data)]...)
	end := len(bytes.TrimRight(data, "\r\n"))
	return append(r.AppendWhole(dst, data[:end]), data[end:]...)
}

// AppendWhole appends a whole answer; what is no JSON object stays as it is.
func (r *Renamer) AppendWhole(dst, body []byte) []byte {
	if !jsonx.ValidObject(body) {
		return append(dst, body...)
	}
	at := 0
	for it := jsonx.Object(body); it.Next(); {
		switch string(it.Key()) {
		case "model":
			dst, at = r.appendName(dst, body, at, it.Value())
		case "message", "response": // the answer so far inside an event of Messages and Responses
			for in := jsonx.Object(it.Value()); in.Next(); {
				if string(in.Key()) == "model" {
					dst, at = r.appendName(dst, body, at, in.Value())
				}
			}
		}
	}
	return append(dst, body[at:]...)
}

// appendName appends body from at up to the value, which is a part of it, and the name in its place.
func (r *Renamer) appendName(dst, body []byte, at int, value []byte) ([]byte, int) {
	if jsonx.KindOf(value) != jsonx.KindString {
		return dst, at
	}
	if r.served == nil {
		r.served = bytes.Clone(value)
	}
	from := cap(body) - cap(value) // both end where the array ends
	dst = append(dst, body[at:from]...)
	return append(dst, r.name...), from + len(value)
}

// Reshapes tells whether a request of the upstream's own dialect may be changed.
func (p *Policy) Reshapes() bool {
	return p.ExtraBody != nil || p.Override != nil || p.UnsignedThinking == "drop"
}

// Splice replaces in a request of the upstream's own dialect what settings replace: the model's name, unless model is empty, and what
// extra_body and override say; reasoning without a signature goes where unsigned_thinking says so. Every other byte stays. The body is a valid
// JSON object.
func (p *Policy) Splice(body []byte, model string, d canon.Dialect, l *canon.Losses) ([]byte, error) {
	if d == canon.Messages && p.UnsignedThinking == "drop" {
		body = dropUnsigned(body, l)
	}
	if model != "" {
		body = SetMember(body, "model", jsonx.AppendString(nil, model))
	}
	merged, err := p.mergeExtras(body, nil)
	if err != nil || d != canon.Messages || p.ExtraBody == nil && p.Override == nil {
		return merged, err
	}
	return p.forbid(merged, body, d, l)
}
