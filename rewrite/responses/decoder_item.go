package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// arriving is an output item that was begun. Items are told apart by output_index: older vLLM gives one item several ids (wire.md 1.10). Only
// in the final response they have none (final.go).
type arriving struct {
	index    int64
	kind     string
	id, call string // its id and call_id as they were told first, "" none
	done     bool
	final    bool // it was found in the final response
	pieces   []piece
}

// piece is a part that an item has become: one for each content part of a message, else one.
type piece struct {
	part    int // its number, unopened when its item has yet to tell what it is
	kind    canon.PartType
	content int64 // content_index
	said    bool  // something came that done events need not repeat
	summary int64 // summary_index of the last piece of summary, -1 none
	cites   int
	closed  bool
}

const unopened = -1

// maxPieces bounds what one message may hold, so that looking for a part stays cheap.
const maxPieces = 4096

// item begins to keep an item.
func (d *decoder) item(index int64, raw []byte) *arriving {
	it := &arriving{index: index}
	d.name(it, raw)
	d.items[index], d.last = it, it
	d.order = append(d.order, it)
	d.next = max(d.next, index+1)
	return it
}

// name notes what an item may be known by.
func (d *decoder) name(it *arriving, raw []byte) {
	kind, id, call := itemNames(raw)
	if it.kind == "" {
		it.kind = kind
	}
	if it.id == "" && id != "" {
		it.id, d.named[id] = id, it
	}
	if it.call == "" && call != "" {
		it.call, d.named[call] = call, it
	}
}

// find is the item that an event belongs to, nil when there is none; without an index it is the last.
func (d *decoder) find(ev event) *arriving {
	index, ok := jsonx.Int(ev.outputIndex)
	if !ok || d.last != nil && d.last.index == index {
		return d.last
	}
	if it := d.items[index]; it != nil {
		d.last = it
		return it
	}
	return nil
}

// open is the item that an event adds to.
func (d *decoder) open(ev event) (*arriving, error) {
	switch it := d.find(ev); {
	case it == nil:
		return nil, canon.Unreadable("the upstream sent a part of an output item that it has not added")
	case it.done:
		return nil, canon.Unreadable("the upstream sent a part of an output item that was done")
	default:
		return it, nil
	}
}

// only is the one piece of an item that is no message.
func (d *decoder) only(ev event, kind canon.PartType) (*piece, error) {
	it, err := d.open(ev)
	if err != nil {
		return nil, err
	}
	if len(it.pieces) != 1 || it.pieces[0].kind != kind {
		return nil, canon.Unreadable("the upstream sent an event that does not fit its output item")
	}
	return &it.pieces[0], nil
}

// piece is the piece at a content_index, nil when there is none.
func (it *arriving) piece(index []byte) *piece {
	n, ok := jsonx.Int(index)
	for i := len(it.pieces) - 1; i >= 0; i-- {
		if !ok || it.pieces[i].content == n {
			return &it.pieces[i]
		}
	}
	return nil
}

// opened opens a part and notes it as the next piece of its item.
func (d *decoder) opened(dst []canon.Event, it *arriving, p *canon.Part, content int64) ([]canon.Event, *piece) {
	it.pieces = append(it.pieces, piece{part: unopened, kind: p.Type, content: content, summary: -1})
	at := &it.pieces[len(it.pieces)-1]
	// An unknown part has to be whole, and a call that has no name yet cannot be told to anybody.
	if p.Type == canon.UnknownPart || p.Type == canon.HostedPart || p.Type == canon.CallPart && len(p.Call.Name) == 0 {
		return dst, at
	}
	return d.tell(dst, at, p), at
}

// tell opens the part of a piece.
func (d *decoder) tell(dst []canon.Event, at *piece, p *canon.Part) []canon.Event {
	at.part = d.parts
	d.parts++
	e := canon.Event{Kind: canon.Open, Part: at.part, Type: p.Type, ItemID: p.ItemID, Call: p.Call}
	if p.Type == canon.CallPart && len(p.Call.ID) == 0 {
		e.Call.ID = dialect.AppendCallID(nil, d.o.ID, at.part)
	}
	e.Call.Arguments = nil
	if p.Type == canon.HostedPart || p.Type == canon.UnknownPart {
		e.Raw = p.Raw
	}
	return append(dst, e)
}

func (d *decoder) added(dst []canon.Event, ev event) ([]canon.Event, error) {
	if jsonx.KindOf(ev.item) != jsonx.KindObject {
		return dst, canon.Unreadable("the upstream added an output item that is no object")
	}
	index, ok := jsonx.Int(ev.outputIndex)
	if !ok {
		index = d.next
	}
	if before := d.items[index]; before != nil && !before.done {
		if dst = d.finish(dst, before, nil); d.ended {
			return dst, nil
		}
	}
	it := d.item(index, ev.item)
	d.whole = d.output(ev.item, index)
	for i := range d.whole {
		var at *piece
		dst, at = d.opened(dst, it, &d.whole[i], int64(i))
		dst = d.rest(dst, at, &d.whole[i])
	}
	return dst, nil
}

// rest tells what a whole part holds and no event told before.
func (d *decoder) rest(dst []canon.Event, at *piece, p *canon.Part) []canon.Event {
	if at.part == unopened {
		return dst
	}
	text := p.Text
	if p.Type == canon.CallPart {
		text = p.Call.Arguments
	}
	if !at.said && len(text) > 0 {
		at.said = true
		dst = append(dst, canon.Event{Kind: canon.Delta, Part: at.part, Text: text, Logprobs: d.entriesOf(partLogprobs(p))})
	}
	if at.summary < 0 && len(p.Summary) > 0 {
		at.summary = 0
		for it := jsonx.Array(jsonx.Get(p.Raw, "summary")); it.Next(); {
			at.summary++
		}
		at.summary--
		dst = append(dst, canon.Event{Kind: canon.Delta, Part: at.part, Text: p.Summary, Summary: true})
	}
	for ; at.cites < len(p.Cites); at.cites++ {
		dst = append(dst, canon.Event{Kind: canon.Cite, Part: at.part, Raw: p.Cites[at.cites]})
	}
	return dst
}

func (d *decoder) itemDone(dst []canon.Event, ev event) ([]canon.Event, error) {
	if jsonx.KindOf(ev.item) != jsonx.KindObject {
		return dst, canon.Unreadable("the upstream ended an output item that is no object")
	}
	index, ok := jsonx.Int(ev.outputIndex)
	it := d.items[index]
	if !ok {
		if it = d.last; it == nil || it.done {
			it, index = nil, d.next
		}
	}
	if _, id, _ := itemNames(ev.item); it == nil {
		it = d.named[id] // added under another index
	}
	switch {
	case it == nil:
		it = d.item(index, ev.item)
	case it.done:
		return dst, nil
	default:
		d.name(it, ev.item)
	}
	return d.finish(dst, it, ev.item), nil
}

// finish ends an item: what its whole holds and no event told, then every part. A nil whole is an item that the upstream never ended. A call
// without a name fails the answer, unless it is cut.
func (d *decoder) finish(dst []canon.Event, it *arriving, whole []byte) []canon.Event {
	if d.ended {
		return dst
	}
	it.done = true
	cut := d.cut || unended(whole)
	from := len(d.whole)
	if whole != nil {
		d.whole = d.output(whole, it.index)
	}
	parts := d.whole[from:]
	for i := range parts {
		p := &parts[i]
		if i == len(it.pieces) {
			it.pieces = append(it.pieces, piece{part: unopened, kind: p.Type, summary: -1})
		}
		at := &it.pieces[i]
		if at.closed {
			continue
		}
		if at.part == unopened {
			at.kind = p.Type
			if nameless(p) {
				break
			}
			dst = d.tell(dst, at, p)
		}
		if at.kind != p.Type {
			continue
		}
		dst = d.rest(dst, at, p)
		if p.Type == canon.ReasoningPart && len(p.Signature) > 0 {
			dst = append(dst, canon.Event{Kind: canon.Seal, Part: at.part, Text: p.Signature, SignedBy: canon.Responses})
		}
	}
	for i := range it.pieces {
		if at := &it.pieces[i]; at.part == unopened && at.kind == canon.CallPart && !cut {
			return d.fail(dst, dialect.Nameless())
		} else if at.part == unopened { // never whole: nothing can be told of it
			d.o.Losses.Add(canon.At("output", int(it.index)), canon.NotKnown)
		}
		dst = d.close(dst, &it.pieces[i])
	}
	return dst
}

func (d *decoder) close(dst []canon.Event, at *piece) []canon.Event {
	if at.closed || at.part == unopened {
		return dst
	}
	at.closed = true
	return append(dst, canon.Event{Kind: canon.Close, Part: at.part})
}
