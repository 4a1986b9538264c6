package messages

import (
	"strconv"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// encoder writes a stream of events (dialects.md 2.4.2):
//
//	message_start { content_block_start { content_block_delta } content_block_stop } message_delta message_stop
//
// with an error event instead of what would follow a failure. The block of a part is written as the part is told; what waits is a signature,
// which comes once and last in its block, and what message_delta says. It allocates for losses only.
type encoder struct {
	o     dialect.Options
	asked *canon.Request

	opened bool // message_start is out
	called bool
	next   int64 // index of the next block
	usage  canon.Usage

	// The part that is open.
	part    int
	mode    mode
	channel channel
	begun   bool   // the frame around a custom call's text is open
	skipped bool   // something of the other channel was
	front   []byte // a delta frame up to its text
	seal    []byte // the last signature
	foreign bool   // it is of another family, and not kept
}

// mode is what the open part is written as.
type mode uint8

const (
	lostMode  mode = iota // it has no block
	wholeMode             // its block has no deltas
	textMode
	thinkingMode
	inputMode
	customMode // the text of a custom call becomes the one member of an input
)

// channel says which of a reasoning's two texts came first; that one is shown.
type channel uint8

const (
	noChannel channel = iota
	textChannel
	summaryChannel
)

const (
	pingFrame  = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	blockStart = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"
	blockDelta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"
	blockStop  = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"
	deltaEnd   = "\"}}\n\n"
	frameEnd   = "}\n\n"
)

func (messages) NewEncoder(asked *canon.Request, o dialect.Options) dialect.Encoder {
	return &encoder{o: o, asked: asked, usage: canon.NoUsage()}
}

// Overlap: one block is open at a time (wire.md 3.1.3).
func (*encoder) Overlap() bool { return false }

func (e *encoder) Append(dst []byte, ev *canon.Event) []byte {
	switch ev.Kind {
	case canon.Delta:
		return e.delta(dst, ev)
	case canon.Start:
		e.usage = ev.Usage
		return e.open(dst, ev.Model)
	case canon.Ping:
		return append(dst, pingFrame...)
	case canon.Open:
		return e.openBlock(dst, ev)
	case canon.Seal:
		e.hold(ev)
	case canon.Cite:
		return e.cite(dst, ev)
	case canon.Close:
		return e.closeBlock(dst)
	case canon.Counted:
		e.usage = ev.Usage
	case canon.Ended:
		return e.end(dst, &ev.Stop)
	case canon.Fail:
		return appendFailure(dst, ev.Problem)
	}
	return dst
}

func (e *encoder) AppendKeepAlive(dst []byte) []byte {
	return append(e.open(dst, nil), pingFrame...)
}

// open writes message_start, which holds no final facts. A start that comes after a keep-alive tells only the usage.
func (e *encoder) open(dst []byte, served canon.Text) []byte {
	if e.opened {
		return dst
	}
	e.opened = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = appendHead(dst, e.o.ID, e.asked, served)
	dst = append(dst, `],"stop_reason":null,"stop_sequence":null,"usage":`...)
	u := e.usage
	u.Completion, u.Reasoning = 0, canon.Unknown
	dst = appendUsage(dst, &u)
	dst = append(dst, '}')
	return append(dst, frameEnd...)
}

// end writes what only the end knows.
func (e *encoder) end(dst []byte, stop *canon.Stop) []byte {
	if e.next == 0 {
		dst = append(dst, blockStart+`0,"content_block":`+emptyText+frameEnd+blockStop+"0"+frameEnd...)
	}
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	dst = appendStop(dst, stop, e.called, e.asked)
	dst = append(dst, `},"usage":`...)
	dst = appendUsage(dst, &e.usage)
	return append(dst, frameEnd+"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

// appendFailure writes an error event; nothing follows it.
func appendFailure(dst []byte, p *canon.Problem) []byte {
	dst = append(dst, "event: error\ndata: "...)
	dst = messages{}.AppendError(dst, *p)
	return append(dst, '\n', '\n')
}

// start appends a frame up to the value that follows its index.
func (e *encoder) start(dst []byte, front, member string) []byte {
	dst = append(dst, front...)
	dst = strconv.AppendInt(dst, e.next, 10)
	return append(dst, member...)
}
