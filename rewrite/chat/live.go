package chat

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// liveCall is a call that is being told. It is opened once its id and name are known. It stays open until something else has begun and its
// arguments are complete, else until the end: engines tell parallel calls one after the other, but nothing makes them.
type liveCall struct {
	index  int64 // the upstream's, or one of those below
	part   int
	opened bool
	closed bool
	custom bool
	id     []byte
	name   []byte
	held   []byte // arguments that came before it was opened
	extent extent
}

const (
	noIndex  = -1 - iota
	function // the only one of function_call, which had no ids
)

// maxCalls bounds what is searched for each new index.
const maxCalls = 4096

// call takes one element of tool_calls. One array may hold two elements of one index (wire.md 1.6); whole says that each is a call of its own.
func (d *decoder) call(dst []canon.Event, raw []byte, whole bool) ([]canon.Event, error) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return dst, canon.Unreadable("the upstream sent a tool call that is no object")
	}
	var piece callPiece
	var index []byte
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch string(name) {
		case "index":
			index = value
		case "id":
			piece.id = readText(value)
		case "type":
		case "function":
			d.readPiece(&piece, value, "arguments", "choices[0].message.tool_calls.function.")
		case "custom":
			if value[0] == '{' {
				piece.custom = true
				d.readPiece(&piece, value, "input", "choices[0].message.tool_calls.custom.")
			}
		default:
			d.lose("choices[0].message.tool_calls.", name, value)
		}
	}
	at, indexed := jsonx.Int(index)
	switch {
	case whole:
		at = noIndex
	case !indexed:
		at = noIndex
		if c := d.current; c != nil && (len(piece.id) == 0 || bytes.Equal(piece.id, c.id)) && !another(c, &piece) {
			return d.grow(dst, c, &piece)
		}
	case at < 0:
		return dst, canon.Unreadable("the upstream sent a tool call whose index is below 0")
	default:
		if c := d.find(at); c != nil && !another(c, &piece) {
			return d.grow(dst, c, &piece)
		}
	}
	return d.add(dst, at, &piece)
}

// function takes a function_call, the form before tool_calls.
func (d *decoder) function(dst []canon.Event, raw []byte) ([]canon.Event, error) {
	var piece callPiece
	d.readPiece(&piece, raw, "arguments", "choices[0].message.function_call.")
	if c := d.find(function); c != nil {
		return d.grow(dst, c, &piece)
	}
	if len(piece.name) == 0 && len(piece.text) == 0 {
		return dst, nil
	}
	return d.add(dst, function, &piece)
}

// callPiece is what one delta tells of a call.
type callPiece struct {
	id, name, text canon.Text
	custom         bool
}

// readPiece reads {"name", text}, which stands at the path. Arguments that are no string, as some send them, become the text of what they are.
func (d *decoder) readPiece(p *callPiece, raw []byte, text, at string) {
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch string(name) {
		case "name":
			p.name = readText(value)
			d.named = d.named || len(p.name) > 0
		case text:
			switch value[0] {
			case '"':
				p.text = value[1 : len(value)-1]
			case 'n':
			default:
				from := len(d.scratch)
				d.scratch = jsonx.AppendEscaped(d.scratch, value)
				p.text = d.scratch[from:]
			}
		default:
			d.lose(at, name, value)
		}
	}
}

// another tells that a piece begins a new call although its place is taken: some number every whole call 0. A new id alone is none, old
// engines made one up for every delta.
func another(c *liveCall, p *callPiece) bool {
	return len(p.name) > 0 && len(c.name) > 0 && c.extent.complete() &&
		(len(p.id) > 0 && !bytes.Equal(p.id, c.id) || !bytes.Equal(p.name, c.name) || len(p.text) > 0)
}

// find is the latest call of an index.
func (d *decoder) find(index int64) *liveCall {
	for i := len(d.calls) - 1; i >= 0; i-- {
		if d.calls[i].index == index {
			return d.calls[i]
		}
	}
	return nil
}

func (d *decoder) add(dst []canon.Event, index int64, p *callPiece) ([]canon.Event, error) {
	if len(d.calls) == maxCalls {
		return dst, canon.Unreadable("the upstream sent more tool calls than anybody makes")
	}
	// What waits for an id waits no longer, so that calls are opened in their order.
	dst = d.openHeld(dst)
	c := &liveCall{index: index, custom: p.custom}
	d.calls = append(d.calls, c)
	d.live++
	return d.grow(dst, c, p)
}

func (d *decoder) grow(dst []canon.Event, c *liveCall, p *callPiece) ([]canon.Event, error) {
	d.current = c
	d.touched++
	if c.opened {
		if len(p.name) > 0 && !bytes.Equal(p.name, c.name) {
			return dst, canon.Unreadable("the upstream changed the name of a tool call")
		}
		return d.argue(dst, c, p.text)
	}
	c.custom = c.custom || p.custom
	if len(c.id) == 0 {
		c.id = append(c.id, p.id...)
	}
	if !bytes.Equal(p.name, c.name) {
		c.name = append(c.name, p.name...)
	}
	c.held = append(c.held, p.text...)
	// Without an id one is made only when it is clear that none comes: ids stand in front of the arguments.
	if len(c.name) > 0 && (len(c.id) > 0 || len(c.held) > 0 || c.index == function) {
		dst = d.openCall(dst, c)
	}
	return dst, nil
}

func (d *decoder) openCall(dst []canon.Event, c *liveCall) []canon.Event {
	c.opened = true
	dst = d.begin(dst)
	c.part = d.parts
	d.parts++
	if len(c.id) == 0 {
		c.id = dialect.AppendCallID(c.id, d.o.ID, c.part)
	}
	dst, e := event(dst, canon.Open, c.part)
	e.Type = canon.CallPart
	e.Call.ID, e.Call.Name, e.Call.Custom = c.id, c.name, c.custom
	if len(c.held) > 0 {
		dst, e = event(dst, canon.Delta, c.part)
		e.Text = c.held
		c.follow(c.held)
	}
	return dst
}

func (c *liveCall) follow(text []byte) {
	if !c.custom {
		c.extent.add(text)
	}
}

// argue tells more arguments. White space behind those that are complete changes nothing.
func (d *decoder) argue(dst []canon.Event, c *liveCall, text canon.Text) ([]canon.Event, error) {
	if len(text) == 0 {
		return dst, nil
	}
	if c.closed && text.Blank() {
		return dst, nil
	}
	if c.closed { // never silence (wire.md 5.5)
		return dst, canon.Unreadable("the upstream continued a tool call that was over")
	}
	dst, e := event(dst, canon.Delta, c.part)
	e.Text = text
	c.follow(text)
	if c.part < d.parts-1 && c.extent.complete() {
		dst = d.closeCall(dst, c)
	}
	return dst, nil
}

// begin closes what a new part ends: the open text, and the calls whose arguments are complete.
func (d *decoder) begin(dst []canon.Event) []canon.Event {
	dst = d.closeText(dst)
	if d.live == 0 {
		return dst
	}
	for _, c := range d.calls {
		if c.opened && !c.closed && c.extent.complete() {
			dst = d.closeCall(dst, c)
		}
	}
	return dst
}

func (d *decoder) closeText(dst []canon.Event) []canon.Event {
	if d.open == 0 {
		return dst
	}
	d.open = 0
	dst, _ = event(dst, canon.Close, d.at)
	return dst
}

func (d *decoder) closeCall(dst []canon.Event, c *liveCall) []canon.Event {
	c.closed = true
	d.live--
	dst, _ = event(dst, canon.Close, c.part)
	return dst
}

// openHeld opens the calls that have a name and wait for an id that does not come.
func (d *decoder) openHeld(dst []canon.Event) []canon.Event {
	if d.live == 0 {
		return dst
	}
	for _, c := range d.calls {
		if !c.opened && len(c.name) > 0 {
			dst = d.openCall(dst, c)
		}
	}
	return dst
}

// closeAll closes everything at the end. A call that never got a name cannot be called: the answer fails, unless it is cut anyway or the
// call says nothing at all.
func (d *decoder) closeAll(dst []canon.Event) []canon.Event {
	dst = d.closeText(d.openHeld(dst))
	for _, c := range d.calls {
		switch {
		case c.closed:
		case c.opened:
			dst = d.closeCall(dst, c)
		case !cut(d.stop) && (len(c.id) > 0 || !canon.Text(c.held).Blank()):
			return d.fail(dst, dialect.Nameless())
		default:
			c.closed = true
			d.live--
			d.o.Losses.Add("choices[0].message.tool_calls.name", canon.NotKnown)
		}
	}
	return dst
}
