package responses

import (
	"strconv"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// encoder writes the stream that a Responses client reads (dialects.md 2.2.3): created, in_progress, item by item added, parts, deltas, done,
// and one terminal event with the whole response. Several items may be open. It keeps what was said, which the done events repeat.
type encoder struct {
	object
	sequence int64
	opened   bool
	ended    bool
	entries  []byte // room to write logprobs in
}

func (responses) NewEncoder(asked *canon.Request, o dialect.Options) dialect.Encoder {
	return &encoder{object: newObject(asked, o)}
}

func (e *encoder) Overlap() bool { return true }

var _ dialect.Keeper = (*encoder)(nil)

// Keeps implements dialect.Keeper.
func (e *encoder) Keeps() {}

func (e *encoder) AppendKeepAlive(dst []byte) []byte {
	switch {
	case e.ended:
		return dst
	case !e.opened:
		return e.open(dst)
	}
	return e.response(dst, "response.in_progress", outcome{status: "in_progress", again: len(e.items) > 0})
}

func (e *encoder) Append(dst []byte, ev *canon.Event) []byte {
	if e.ended {
		return dst
	}
	switch ev.Kind {
	case canon.Start:
		e.usage = ev.Usage
		if len(e.asked.Model) == 0 && len(ev.Model) > 0 {
			e.served, e.echo = clone(ev.Model), nil
		}
		return e.open(dst)
	case canon.Ping:
		if e.opened { // what comes before the start must not decide that this is a stream
			return e.AppendKeepAlive(dst)
		}
	case canon.Open:
		return e.add(dst, ev)
	case canon.Counted:
		e.usage = ev.Usage
	case canon.Ended:
		return e.end(dst, ev.Stop.Reason)
	case canon.Fail:
		dst = e.open(dst)
		e.ended = true
		return e.response(dst, "response.failed", outcome{status: "failed", failed: ev.Problem})
	default:
		if s := e.at(ev.Part); s != nil {
			return e.said(dst, s, ev)
		}
	}
	return dst
}

// at is the open item of a part, nil when the client is not told of it.
func (e *encoder) at(part int) *spoken {
	if part < 0 || part >= len(e.places) || e.places[part] == notSaid {
		return nil
	}
	if s := &e.items[e.places[part]]; !s.closed {
		return s
	}
	return nil
}

func (e *encoder) open(dst []byte) []byte {
	if e.opened {
		return dst
	}
	e.opened = true
	dst = e.response(dst, "response.created", outcome{status: "in_progress"})
	return e.response(dst, "response.in_progress", outcome{status: "in_progress"})
}

// end: response.incomplete is fatal to Codex (harness.md 2.14), which reads the status in the response as well.
func (e *encoder) end(dst []byte, reason canon.StopReason) []byte {
	if s := e.atLeastOne(); s != nil {
		dst = e.itemAdded(dst, s)
		dst = e.partAdded(dst, s)
		dst = e.done(dst, s)
	}
	e.ended = true
	how := outcomeOf(reason)
	kind := "response.completed"
	if how.status == "incomplete" {
		switch e.o.Policy.IncompleteEvent {
		case "incomplete":
			kind = "response.incomplete"
		case "completed":
		default:
			if !e.o.Codex {
				kind = "response.incomplete"
			}
		}
	}
	return e.response(dst, kind, how)
}

// frame begins an event: type, sequence number. Its members follow, then close.
func (e *encoder) frame(dst []byte, kind string) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, kind...)
	dst = append(dst, "\ndata: {\"type\":\""...)
	dst = append(dst, kind...)
	dst = append(dst, `","sequence_number":`...)
	dst = strconv.AppendInt(dst, e.sequence, 10)
	e.sequence++
	return dst
}

func closeFrame(dst []byte) []byte { return append(dst, "}\n\n"...) }

func (e *encoder) response(dst []byte, kind string, how outcome) []byte {
	dst = append(e.frame(dst, kind), `,"response":`...)
	return closeFrame(e.object.append(dst, how))
}
