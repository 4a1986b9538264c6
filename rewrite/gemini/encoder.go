package gemini

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// encoder writes a stream of chunks. Each delta of a text is one, and each call once its part closes: a chunk is an answer of its own, and holds
// no piece of a call. What waits besides is a signature, for the part behind it, and what only the end knows.
type encoder struct {
	o     dialect.Options
	asked *canon.Request
	usage canon.Usage
	back  []byte // of every chunk, behind its candidates
	seal  []byte // for the next part

	// The part that is open.
	part    int
	kind    canon.PartType
	call    canon.Call // copies; its arguments as far as they have come
	summary int8       // of reasoning the text is shown, 1, the summary, 2, or none has come yet
	skipped bool       // something of the other one was
}

const (
	chunkFront = "data: " + candidateFront
	chunkMid   = contentBack + candidateBack
	chunkEnd   = "}\n\n"
)

func (gemini) NewEncoder(asked *canon.Request, o dialect.Options) dialect.Encoder {
	return &encoder{o: o, asked: asked, usage: canon.NoUsage()}
}

var _ dialect.CallHolder = (*encoder)(nil)

// HoldsCalls implements dialect.CallHolder.
func (*encoder) HoldsCalls() {}

// Overlap: a chunk does not say which text it goes on with.
func (*encoder) Overlap() bool { return false }

func (e *encoder) Append(dst []byte, ev *canon.Event) []byte {
	switch ev.Kind {
	case canon.Delta:
		return e.delta(dst, ev)
	case canon.Start:
		e.usage = ev.Usage
		e.back = appendHead(e.back[:0], e.o.ID, e.asked, ev.Model)
	case canon.Ping:
		return e.AppendKeepAlive(dst)
	case canon.Open:
		e.open(ev)
	case canon.Seal:
		return e.hold(dst, ev)
	case canon.Cite:
		e.o.Losses.Add(partPath(e.part, "annotations"), canon.NoEquivalent)
	case canon.Close:
		return e.close(dst)
	case canon.Counted:
		e.usage = ev.Usage
	case canon.Ended:
		return e.end(dst, &ev.Stop)
	case canon.Fail:
		dst = append(dst, "data: "...)
		dst = gemini{}.AppendError(dst, *ev.Problem)
		return append(dst, '\n', '\n')
	}
	return dst
}

// AppendKeepAlive writes a chunk that says nothing: clients take no comment for one of an event stream. Chats of Google's SDKs forget the turn of a
// stream in which a chunk has no candidate, or one without a part.
func (e *encoder) AppendKeepAlive(dst []byte) []byte {
	if e.back == nil {
		e.back = appendHead(nil, e.o.ID, e.asked, nil)
	}
	dst = append(dst, chunkFront+emptyText+chunkMid...)
	return append(append(dst, e.back...), chunkEnd...)
}

func (e *encoder) open(ev *canon.Event) {
	e.part, e.kind, e.summary, e.skipped = ev.Part, ev.Type, 0, false
	switch ev.Type {
	case canon.TextPart, canon.ReasoningPart:
	case canon.RefusalPart:
		e.kind = canon.TextPart
	case canon.CallPart:
		c := &e.call
		c.ID, c.Name = append(c.ID[:0], ev.Call.ID...), append(c.Name[:0], ev.Call.Name...)
		c.Namespace, c.Arguments, c.Custom = append(c.Namespace[:0], ev.Call.Namespace...), c.Arguments[:0], ev.Call.Custom
	default:
		losePart(ev.Type, ev.Raw, ev.Part, e.o.Losses)
	}
}

func (e *encoder) delta(dst []byte, ev *canon.Event) []byte {
	if len(ev.Text) == 0 {
		return dst
	}
	switch e.kind {
	case canon.TextPart:
		dst = append(dst, chunkFront...)
		if len(e.seal) > 0 {
			dst = append(appendSignature(append(dst, `{"thoughtSignature":"`...), e.seal), `","text":"`...)
			e.seal = e.seal[:0]
		} else {
			dst = append(dst, `{"text":"`...)
		}
	case canon.ReasoningPart:
		if hides(e.asked) || !e.shows(ev.Summary) {
			return dst
		}
		dst = e.flush(dst)
		dst = append(dst, chunkFront...)
		dst = append(dst, `{"thought":true,"text":"`...)
	case canon.CallPart:
		e.call.Arguments = append(e.call.Arguments, ev.Text...)
		return dst
	default:
		return dst
	}
	dst = append(append(dst, ev.Text...), '"', '}')
	return e.shut(dst)
}

// shut ends a chunk behind its part.
func (e *encoder) shut(dst []byte) []byte {
	dst = append(dst, chunkMid...)
	return append(append(dst, e.back...), chunkEnd...)
}

// shows tells whether a delta is of the text of the reasoning that came first; of the other one nothing is shown.
func (e *encoder) shows(summary bool) bool {
	which, name := int8(1), "text"
	if summary {
		which, name = 2, "summary"
	}
	if e.summary == 0 {
		e.summary = which
	}
	if e.summary != which && !e.skipped {
		e.skipped = true
		e.o.Losses.Add(partPath(e.part, name), canon.NoEquivalent)
	}
	return e.summary == which
}

// hold keeps the signature of reasoning for the part behind it; of several of one part the last one counts.
func (e *encoder) hold(dst []byte, ev *canon.Event) []byte {
	if len(ev.Text) == 0 {
		return dst
	}
	if !readable(ev.SignedBy) {
		e.o.Losses.Add(partPath(e.part, "signature"), canon.Foreign)
		return dst
	}
	if e.sealed() {
		dst = e.flush(dst)
	}
	e.seal = append(e.seal[:0], ev.Text...)
	return dst
}

func (e *encoder) sealed() bool { return len(e.seal) > 0 }

// flush writes a signature that no part of its own follows.
func (e *encoder) flush(dst []byte) []byte {
	if !e.sealed() {
		return dst
	}
	dst = append(dst, chunkFront...)
	return e.shut(append(e.signed(append(dst, `{"text":""`...)), '}'))
}

func (e *encoder) signed(dst []byte) []byte {
	if e.sealed() {
		dst = append(appendSignature(append(dst, `,"thoughtSignature":"`...), e.seal), '"')
		e.seal = e.seal[:0]
	}
	return dst
}

func (e *encoder) close(dst []byte) []byte {
	if e.kind == canon.CallPart {
		dst = append(dst, chunkFront...)
		dst = appendCall(dst, &e.call, e.part, e.o.Losses)
		dst = e.shut(append(e.signed(dst), '}'))
	}
	e.kind = 0
	return dst
}

// end writes the chunk that only the end knows, with a part as every chunk has one.
func (e *encoder) end(dst []byte, stop *canon.Stop) []byte {
	dst = e.signed(append(dst, chunkFront+`{"text":""`...))
	dst = append(dst, `}],"role":"model"},"finishReason":"`...)
	dst = append(append(dst, finishWord(stop)...), '"')
	dst = append(append(dst, candidateBack...), e.back...)
	dst = appendUsage(dst, &e.usage)
	return append(dst, chunkEnd...)
}
