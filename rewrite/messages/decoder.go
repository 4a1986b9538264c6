package messages

import (
	"bytes"
	"io"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// decoder reads a stream (wire.md 3.1.3). Its state is which blocks are open, and what is told in pieces: the usage, whose prompt may shrink on
// the way (vllm.md 4), and the end, of which message_delta knows the reason and message_stop that it is one.
type decoder struct {
	losses *canon.Losses
	id     string // of the exchange

	begun, done bool
	next        int64 // no index below it may open
	parts       int   // that were opened
	open        []openBlock
	usage       fold.Object
	end         ending // copies
}

// maxOpen bounds the blocks that are open at a time, of which the dialect allows one.
const maxOpen = 64

func (messages) NewDecoder(o dialect.Options) dialect.Decoder {
	return &decoder{losses: o.Losses, id: o.ID}
}

func (d *decoder) Finish() error {
	if d.done {
		return nil
	}
	return io.ErrUnexpectedEOF
}

func (d *decoder) Frame(dst []canon.Event, name, data []byte) ([]canon.Event, error) {
	if d.done {
		return dst, nil
	}
	ev, kind, invalid := readEvent(name, data)
	if kind == errorEvent {
		d.done = true
		return append(dst, canon.Event{Kind: canon.Fail, Problem: dialect.ReadError(0, data)}), nil
	}
	if invalid && kind != messageStop {
		return dst, canon.Unreadable("an event is no JSON object")
	}
	if !d.begun && kind > pingEvent {
		return dst, canon.Unreadable("the stream does not begin with message_start")
	}
	if ev.other != nil && kind != messageDelta { // of which more is known
		d.losses.Add("events."+dialect.LossName(ev.other), canon.NotKnown)
	}
	switch kind {
	case pingEvent:
		return append(dst, canon.Event{Kind: canon.Ping}), nil
	case messageStart:
		return d.start(dst, ev.message)
	case blockStarts:
		return d.openBlock(dst, ev.index, ev.block)
	case blockDeltas:
		return d.delta(dst, &ev)
	case blockStops:
		b := d.find(ev.index)
		if b == nil {
			return dst, canon.Unreadable("a content block stops that is not open")
		}
		return d.closeBlock(dst, b), nil
	case messageDelta:
		return dst, d.finish(&ev)
	case messageStop:
		return d.stop(dst), nil
	}
	if ev.object != nil {
		d.losses.Add("events."+dialect.LossName(typeOf(ev.object)), canon.NotKnown)
	}
	return dst, nil
}

// readEvent takes an event apart. Its kind is told by the name, by which clients go, or else by the type; an object that knows neither and
// has an error is one, as OpenAI's servers send it.
func readEvent(name, data []byte) (ev event, k eventType, invalid bool) {
	typ, invalid := ev.read(data)
	if k = eventTypeOf(bytes.TrimSpace(name)); k == unknownEvent {
		k = eventTypeOf(typ)
	}
	if k == unknownEvent && !jsonx.IsNull(ev.errObj) {
		k = errorEvent
	}
	return ev, k, invalid
}

func (d *decoder) start(dst []canon.Event, message []byte) ([]canon.Event, error) {
	switch {
	case d.begun:
		return dst, canon.Unreadable("a second message_start")
	case jsonx.KindOf(message) != jsonx.KindObject:
		return dst, canon.Unreadable("message_start has no message")
	}
	begin := canon.Event{Kind: canon.Start}
	var content []byte
	for it := jsonx.Object(message); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(name) {
		case "id":
			begin.ID, _ = textOf(value)
		case "model":
			begin.Model, _ = textOf(value)
		case "content":
			content = value
		case "usage":
			d.count(value)
		case "type", "role", "stop_reason", "stop_sequence": // no final facts are taken from an opening event
		default:
			d.lose(name)
		}
	}
	d.begun = true
	begin.Usage = readUsage(d.usage.Append(nil))
	dst = append(dst, begin)
	// Content in the opening event is not of the specification; its blocks are whole.
	if content != nil && jsonx.KindOf(content) != jsonx.KindArray {
		return dst, canon.Unreadable("message_start has content that is no array")
	}
	for it := jsonx.Array(content); it.Next(); {
		var err error
		if dst, err = d.openBlock(dst, nil, it.Value()); err != nil {
			return dst, err
		}
		dst = d.closeBlock(dst, &d.open[len(d.open)-1])
	}
	return dst, nil
}

// finish reads a message_delta. Of several the last word counts; what one leaves out or calls null stays.
func (d *decoder) finish(ev *event) error {
	for it := jsonx.Object(ev.delta); it.Next(); {
		if err := d.endMember(fold.Name(it.Key()), it.Value()); err != nil {
			return err
		}
	}
	for it := jsonx.Object(ev.object); it.Next(); {
		switch name := fold.Name(it.Key()); string(name) {
		case "type", "delta":
		case "usage":
			d.count(ev.usage)
		default:
			if err := d.endMember(name, it.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *decoder) endMember(name, value []byte) error {
	if jsonx.IsNull(value) {
		return nil
	}
	var e ending
	known, ok := e.member(name, value, d.losses)
	switch {
	case !ok:
		return canon.Unreadable("message_delta has a " + dialect.LossName(name) + " of the wrong type")
	case !known:
		d.lose(name)
	case e.reason != nil:
		d.end.reason = bytes.Clone(e.reason)
	case e.sequence != nil:
		d.end.sequence = bytes.Clone(e.sequence)
	}
	return nil
}

// stop ends the stream, which may have failed however ordinary the end looks.
func (d *decoder) stop(dst []canon.Event) []canon.Event {
	d.done = true
	usage := canon.Event{Kind: canon.Counted, Usage: readUsage(d.usage.Append(nil))}
	if failed := d.end.failed(); failed != nil {
		if d.usage.Len() > 0 {
			dst = append(dst, usage)
		}
		return append(dst, canon.Event{Kind: canon.Fail, Problem: failed})
	}
	for len(d.open) > 0 {
		dst = d.closeBlock(dst, &d.open[0])
	}
	if d.usage.Len() > 0 {
		dst = append(dst, usage)
	}
	return append(dst, canon.Event{Kind: canon.Ended, Stop: d.end.stop(d.losses)})
}

// count takes a usage, which is cumulative; a member that is left out or null stays as it was.
func (d *decoder) count(usage []byte) {
	d.usage.Merge(usage)
	dialect.LoseRest(usage, "usage", countPlace, d.losses)
}

func (d *decoder) lose(name []byte) { d.losses.Add(dialect.LossName(name), canon.NotKnown) }
