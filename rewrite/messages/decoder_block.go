package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// openBlock is a content block that is open.
type openBlock struct {
	index int64
	part  int
	kind  canon.PartType
	input source  // of a tool_use
	fold  *folder // of a block that is passed on whole: its part opens when the block is complete
}

// source is where the input of a tool_use came from.
type source uint8

const (
	noInput source = iota
	wholeInput
	pieces
)

// find is the open block of an index; without one it is the block that was opened last.
func (d *decoder) find(rawIndex []byte) *openBlock {
	index, ok := jsonx.Int(rawIndex)
	for i := len(d.open) - 1; i >= 0; i-- {
		if !ok && jsonx.IsNull(rawIndex) || ok && d.open[i].index == index {
			return &d.open[i]
		}
	}
	return nil
}

// openBlock opens a block, and says what it holds already. Indices rise, so one that does not is opened twice.
func (d *decoder) openBlock(dst []canon.Event, rawIndex, raw []byte) ([]canon.Event, error) {
	index, ok := jsonx.Int(rawIndex)
	switch {
	case jsonx.IsNull(rawIndex):
		index = d.next
	case !ok || index < 0:
		return dst, canon.Unreadable("a content block with an index that is none")
	case index < d.next:
		return dst, canon.Unreadable("a content block opens twice")
	}
	if len(d.open) == maxOpen {
		return dst, canon.Unreadable("too many content blocks are open")
	}
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return dst, canon.Unreadable("a content block is no object")
	}
	p, err := readPart(raw)
	if err != nil {
		return dst, err
	}
	d.next = index + 1
	b := openBlock{index: index, kind: p.Type}
	if p.Type == canon.HostedPart || p.Type == canon.UnknownPart {
		b.fold = new(folder)
		b.fold.openAt(0, raw)
		d.open = append(d.open, b)
		return dst, nil
	}
	b.part = d.parts
	d.parts++
	for i := range p.Extra {
		d.losses.Add(blockPath(b.part, dialect.LossName(p.Extra[i].Name)), canon.NotKnown)
	}
	opening := canon.Event{Kind: canon.Open, Part: b.part, Type: p.Type}
	said := p.Text
	switch p.Type {
	case canon.CallPart:
		opening.Call = canon.Call{ID: p.Call.ID, Name: p.Call.Name}
		if len(p.Call.ID) == 0 {
			opening.Call.ID = dialect.AppendCallID(nil, d.id, b.part)
		}
		if said = p.Call.Arguments; said != nil {
			b.input = wholeInput
		}
	case canon.RedactedPart:
		opening.Text, opening.SignedBy = p.Signature, p.SignedBy
	}
	dst = append(dst, opening)
	if len(said) > 0 {
		dst = append(dst, canon.Event{Kind: canon.Delta, Part: b.part, Text: said})
	}
	if p.Type == canon.ReasoningPart && len(p.Signature) > 0 {
		dst = append(dst, canon.Event{Kind: canon.Seal, Part: b.part, Text: p.Signature, SignedBy: p.SignedBy})
	}
	for _, cite := range p.Cites {
		dst = append(dst, canon.Event{Kind: canon.Cite, Part: b.part, Raw: cite})
	}
	d.open = append(d.open, b)
	return dst, nil
}

// delta reads what a delta brings to its block. An empty piece says nothing.
func (d *decoder) delta(dst []canon.Event, ev *event) ([]canon.Event, error) {
	b := d.find(ev.index)
	if b == nil {
		if d.late(ev) {
			return dst, nil
		}
		return dst, canon.Unreadable("a delta for a content block that is not open")
	}
	if b.fold != nil {
		b.fold.delta(event{delta: ev.delta})
		return dst, nil
	}
	says := canon.Event{Kind: canon.Delta, Part: b.part}
	p := readDelta(ev.delta)
	switch p.brings {
	case bringsNothing:
		d.losses.Add(blockPath(b.part, dialect.LossName(p.kind)), canon.NotKnown)
		return dst, nil
	case bringsSignature:
		says.Kind, says.SignedBy = canon.Seal, canon.Messages
	case bringsCitation:
		says.Kind, says.Raw = canon.Cite, p.value
	}
	if p.other != nil {
		d.losses.Add(blockPath(b.part, dialect.LossName(p.other)), canon.NotKnown)
	}
	if !p.fits(b.kind) {
		return dst, canon.Unreadable("a delta that does not fit its content block")
	}
	if jsonx.IsNull(p.value) {
		return dst, nil
	}
	if says.Kind == canon.Cite {
		return append(dst, says), nil
	}
	var ok bool
	if says.Text, ok = textOf(p.value); !ok {
		return dst, canon.Unreadable("a delta whose text is none")
	}
	if len(says.Text) == 0 || b.input == wholeInput && says.Text.Blank() {
		return dst, nil
	}
	if b.kind == canon.CallPart {
		if b.input == wholeInput {
			return dst, canon.Unreadable("a second input of a tool_use block")
		}
		b.input = pieces
	}
	return append(dst, says), nil
}

// late tells a delta of white space for the input of a block that is over: it changes nothing.
func (d *decoder) late(ev *event) bool {
	index, ok := jsonx.Int(ev.index)
	p := readDelta(ev.delta)
	text, isText := textOf(p.value)
	known := jsonx.IsNull(ev.index) && d.next > 0 || ok && index >= 0 && index < d.next
	return known && p.brings == bringsInput && isText && text.Blank()
}

// closeBlock closes an open block. A call without any input is one without arguments, which are an empty object here.
func (d *decoder) closeBlock(dst []canon.Event, b *openBlock) []canon.Event {
	switch {
	case b.fold != nil:
		b.part = d.parts
		d.parts++
		raw := b.fold.blocks.At(0).append(nil)
		dst = append(dst, canon.Event{Kind: canon.Open, Part: b.part, Type: b.kind, Raw: raw})
	case b.kind == canon.CallPart && b.input == noInput:
		dst = append(dst, canon.Event{Kind: canon.Delta, Part: b.part, Text: canon.Text("{}")})
	}
	dst = append(dst, canon.Event{Kind: canon.Close, Part: b.part})
	for i := range d.open {
		if d.open[i].index == b.index {
			d.open = append(d.open[:i], d.open[i+1:]...)
			break
		}
	}
	return dst
}

// piece is the delta of a block, raw.
type piece struct {
	kind   []byte
	brings brings
	value  []byte // nil when it is not there
	other  []byte // name of a member that nobody knows, or that is of other deltas; nil none
}

// brings is what a delta adds to.
type brings uint8

const (
	bringsText brings = iota
	bringsThinking
	bringsInput
	bringsSignature
	bringsCitation
	bringsNothing // that is known here
)

func readDelta(raw []byte) (p piece) {
	var values [bringsNothing][]byte
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch string(name) {
		case "type":
			p.kind, _ = jsonx.Interior(value)
		case "text":
			values[bringsText] = value
		case "thinking":
			values[bringsThinking] = value
		case "partial_json":
			values[bringsInput] = value
		case "signature":
			values[bringsSignature] = value
		case "citation":
			values[bringsCitation] = value
		default:
			if !jsonx.IsNull(value) {
				p.other = name
			}
		}
	}
	switch string(p.kind) {
	case "text_delta":
		p.brings = bringsText
	case "thinking_delta":
		p.brings = bringsThinking
	case "input_json_delta":
		p.brings = bringsInput
	case "signature_delta":
		p.brings = bringsSignature
	case "citations_delta":
		p.brings = bringsCitation
	default:
		p.brings = bringsNothing
		return p
	}
	p.value = values[p.brings]
	return p
}

// fits tells whether a delta may be of a block of this kind.
func (p *piece) fits(kind canon.PartType) bool {
	switch p.brings {
	case bringsText, bringsCitation:
		return kind == canon.TextPart
	case bringsThinking, bringsSignature:
		return kind == canon.ReasoningPart
	case bringsInput:
		return kind == canon.CallPart
	}
	return false
}
