package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// partAdded opens a content part of a message. vLLM puts these events around the text of reasoning too, whose item is a part already.
func (d *decoder) partAdded(dst []canon.Event, ev event) ([]canon.Event, error) {
	it, err := d.open(ev)
	if err != nil || it.kind != "message" {
		return dst, err
	}
	index, ok := jsonx.Int(ev.contentIndex)
	if !ok {
		index = int64(len(it.pieces))
	}
	if at := it.piece(ev.contentIndex); ok && at != nil && !at.closed {
		return dst, nil // the item was added with it
	}
	if len(it.pieces) >= maxPieces {
		return dst, canon.Unreadable("the upstream sent a message of too many parts")
	}
	p := outputPart(ev.part)
	p.ItemID, _ = jsonx.Interior(ev.itemID)
	dst, at := d.opened(dst, it, &p, index)
	return d.rest(dst, at, &p), nil
}

func (d *decoder) partDone(dst []canon.Event, ev event) ([]canon.Event, error) {
	it, err := d.open(ev)
	if err != nil || it.kind != "message" {
		return dst, err
	}
	at := it.piece(ev.contentIndex)
	if at == nil || at.closed {
		return dst, nil // its item says it all
	}
	if p := outputPart(ev.part); p.Type == at.kind {
		dst = d.rest(dst, at, &p)
	}
	return d.close(dst, at), nil
}

// text is a piece of a message's text, or with whole the event that repeats all of it.
func (d *decoder) text(dst []canon.Event, ev event, kind canon.PartType, whole bool) ([]canon.Event, error) {
	it, err := d.open(ev)
	if err != nil {
		return dst, err
	}
	raw := ev.delta
	if whole {
		if raw = jsonx.Get(ev.object, "text"); kind == canon.RefusalPart {
			raw = jsonx.Get(ev.object, "refusal")
		}
	}
	text, ok := jsonx.Interior(raw)
	if !ok && !whole {
		return dst, canon.Unreadable("the upstream sent a delta that is no text")
	}
	at := it.piece(ev.contentIndex)
	switch {
	case it.kind != "message":
		return dst, canon.Unreadable("the upstream sent an event that does not fit its output item")
	case at == nil && len(it.pieces) >= maxPieces:
		return dst, canon.Unreadable("the upstream sent a message of too many parts")
	case at == nil: // a server that adds no content parts
		index, _ := jsonx.Int(ev.contentIndex)
		p := canon.Part{Type: kind}
		p.ItemID, _ = jsonx.Interior(ev.itemID)
		dst, at = d.opened(dst, it, &p, index)
	case whole && (at.closed || at.said):
		return dst, nil
	case at.closed:
		return dst, canon.Unreadable("the upstream sent text for a content part that was done")
	case at.kind != kind:
		return dst, canon.Unreadable("the upstream sent text that does not fit its content part")
	}
	logprobs := d.entriesOf(ev.logprobs)
	if len(text) == 0 && logprobs == nil {
		return dst, nil
	}
	at.said = true
	return append(dst, canon.Event{Kind: canon.Delta, Part: at.part, Text: text, Logprobs: logprobs}), nil
}

func (d *decoder) annotation(dst []canon.Event, ev event) ([]canon.Event, error) {
	it, err := d.open(ev)
	if err != nil {
		return dst, err
	}
	at := it.piece(ev.contentIndex)
	if at == nil || at.closed || at.kind != canon.TextPart || jsonx.IsNull(ev.annotation) {
		return dst, nil // the item says it all
	}
	at.cites++
	return append(dst, canon.Event{Kind: canon.Cite, Part: at.part, Raw: ev.annotation}), nil
}

// reasoning is a piece of the reasoning itself. Older vLLM counts content_index up with each piece, so it tells nothing.
func (d *decoder) reasoning(dst []canon.Event, ev event, delta []byte) ([]canon.Event, error) {
	at, err := d.only(ev, canon.ReasoningPart)
	if err != nil {
		return dst, err
	}
	return said(dst, at, delta)
}

// arguments are a piece of the arguments or of the input of a call. White space behind those of a call that is over changes nothing.
func (d *decoder) arguments(dst []canon.Event, ev event, delta []byte) ([]canon.Event, error) {
	if it := d.find(ev); it != nil && it.done && (it.kind == "function_call" || it.kind == "custom_tool_call") {
		if text, ok := jsonx.Interior(delta); ok && canon.Text(text).Blank() {
			return dst, nil
		}
	}
	at, err := d.only(ev, canon.CallPart)
	if err != nil {
		return dst, err
	}
	return said(dst, at, delta)
}

func said(dst []canon.Event, at *piece, delta []byte) ([]canon.Event, error) {
	text, ok := jsonx.Interior(delta)
	switch {
	case !ok:
		return dst, canon.Unreadable("the upstream sent a delta that is no text")
	case len(text) == 0 || at.part == unopened: // an item that told too little says it all when it is done
		return dst, nil
	}
	at.said = true
	return append(dst, canon.Event{Kind: canon.Delta, Part: at.part, Text: text}), nil
}

// summary is a piece of a summary of reasoning; between its parts stands an empty line.
func (d *decoder) summary(dst []canon.Event, ev event, delta []byte) ([]canon.Event, error) {
	at, err := d.only(ev, canon.ReasoningPart)
	if err != nil {
		return dst, err
	}
	text, ok := jsonx.Interior(delta)
	switch {
	case !ok:
		return dst, canon.Unreadable("the upstream sent a delta that is no text")
	case len(text) == 0:
		return dst, nil
	}
	index, ok := jsonx.Int(ev.summaryIndex)
	if !ok {
		index = max(at.summary, 0)
	}
	if at.summary >= 0 && index != at.summary {
		dst = append(dst, canon.Event{Kind: canon.Delta, Part: at.part, Text: canon.Text(`\n\n`), Summary: true})
	}
	at.summary = index
	return append(dst, canon.Event{Kind: canon.Delta, Part: at.part, Text: text, Summary: true}), nil
}

// missed takes from an event that repeats the whole of a text what no delta told.
func (d *decoder) missed(dst []canon.Event, ev event, member string,
	take func([]canon.Event, event, []byte) ([]canon.Event, error)) ([]canon.Event, error) {
	it, err := d.open(ev)
	if err != nil || len(it.pieces) != 1 {
		return dst, err
	}
	at := &it.pieces[0]
	told := at.said
	if string(ev.kind) == "response.reasoning_summary_text.done" {
		index, ok := jsonx.Int(ev.summaryIndex)
		told = at.summary >= 0 && (!ok || index <= at.summary)
	}
	if told {
		return dst, nil
	}
	whole := jsonx.Get(ev.object, member)
	if jsonx.IsNull(whole) {
		return dst, nil
	}
	return take(dst, ev, whole)
}
