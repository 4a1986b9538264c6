package chat

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// familiar is what the decoder has learned of its stream, for nearly all chunks are alike. It changes how fast a chunk is read, not what is
// read.
//
// A chunk that differs from an earlier one in nothing but the text of its only delta, its logprobs and its ids need not be taken apart: only
// what stands in those holes is looked at. A chunk that begins as the ones before it, up to its choice, and holds nothing behind the choice,
// is read from there on.
type familiar struct {
	head []byte // of a chunk that was valid, up to the first element of its choices

	said template // one delta was all that it said
	part int      // that the delta was of
	call *liveCall

	silent template // it said nothing
}

// again decodes a chunk that differs in its holes only.
func (d *decoder) again(dst []canon.Event, data []byte) ([]canon.Event, bool) {
	f := &d.known
	var in found
	if f.call != nil && !f.call.closed || f.call == nil && d.open != 0 && d.at == f.part {
		if f.said.match(data, &in) && len(in.text) > 0 {
			d.count(&in)
			if f.call != nil {
				d.current = f.call
				dst, d.err = d.argue(dst, f.call, in.text)
				return dst, true
			}
			dst, e := event(dst, canon.Delta, f.part)
			e.Text = in.text
			if d.open == canon.TextPart {
				e.Logprobs = someEntries(in.entries)
			}
			return dst, true
		}
	}
	if !f.silent.match(data, &in) {
		return dst, false
	}
	d.count(&in)
	return dst, true
}

func (d *decoder) count(in *found) {
	d.ids += in.ids
	d.keepUsage(in.usage)
}

// near decodes a chunk that begins as those before it and ends with its one choice, or with the usage behind it.
func (d *decoder) near(dst []canon.Event, data []byte) ([]canon.Event, bool) {
	const usage = `],"usage":`
	f := &d.known
	if len(f.head) == 0 || !bytes.HasPrefix(data, f.head) {
		return dst, false
	}
	var c choiceMembers
	end := jsonx.ValueEnd(data, len(f.head), choiceDepth)
	switch {
	case end < 0:
		return dst, false
	case string(data[end:]) == "]}":
	case bytes.HasPrefix(data[end:], []byte(usage)):
		from := end + len(usage)
		to := jsonx.ValueEnd(data, from, usageDepth)
		if to < 0 || string(data[to:]) != "}" {
			return dst, false
		}
		c.usage = data[from:to]
		d.keepUsage(c.usage)
	default:
		return dst, false
	}
	d.readChoice(data[len(f.head):end], &c)
	before, ids := len(dst), d.ids
	if dst, d.err = d.choice(dst, &c); d.err == nil {
		d.learn(data, &c, dst[before:], d.ids-ids)
	}
	return dst, true
}

// learnHead keeps how a chunk begins, whose first choice is this.
func (d *decoder) learnHead(data, first []byte) {
	f := &d.known
	if at := offset(data, first); at > 0 && !(len(f.head) == at && bytes.HasPrefix(data, f.head)) {
		f.head = append(f.head[:0], data[:at]...)
	}
}

// learn takes what other chunks may have in common with this one, which gave events, and whose only choice is c.
func (d *decoder) learn(data []byte, c *choiceMembers, events []canon.Event, ids int64) {
	f := &d.known
	if len(events) == 0 && d.touched == 0 { // nothing has changed: what is known holds on
		if !d.odd && !c.other && fold.Blank(c.finish) {
			f.silent.learn(data, c, nil, ids)
		}
		return
	}
	f.said.forget()
	if len(events) != 1 || events[0].Kind != canon.Delta || d.odd {
		return
	}
	// Of calls the chunk may say no more than this one piece of one that is open: what it says of others may be told later.
	e := &events[0]
	f.call, f.part = nil, e.Part
	switch {
	case d.open != 0 && d.at == e.Part && d.touched == 0:
	case d.current != nil && d.current.opened && d.current.part == e.Part && d.touched == 1 && !d.named:
		f.call = d.current
	default:
		return
	}
	if offset(data, e.Text) > 0 {
		f.said.learn(data, c, e.Text, ids)
	}
}
