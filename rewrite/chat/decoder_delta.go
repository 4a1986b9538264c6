package chat

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// said is what a delta or a message holds, raw.
type said struct {
	content, refusal, reasoning, annotations, calls, function []byte

	twice bool // reasoning stands under both its names
}

// readSaid collects the members of a delta or message; lose hears of those that say something which has no place.
func readSaid(raw []byte, lose func(name, value []byte)) (s said, err error) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return s, canon.Unreadable("the upstream sent a message that is no object")
	}
	var older []byte
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if len(value) == 4 && value[0] == 'n' {
			continue // null
		}
		switch string(name) {
		case "content":
			s.content = value
		case "refusal":
			s.refusal = value
		case "reasoning":
			s.reasoning = value
		case "reasoning_content":
			older = value
		case "annotations":
			s.annotations = value
		case "tool_calls":
			s.calls = value
		case "function_call":
			s.function = value
		default:
			if !isHarmlessInMessage(name) {
				lose(name, value)
			}
		}
	}
	// Two names of the same thing; some send both (wire.md 2.5).
	if fold.Blank(s.reasoning) {
		s.reasoning = older
	} else if !fold.Blank(older) {
		if s.twice = true; !bytes.Equal(older, s.reasoning) {
			lose([]byte("reasoning_content"), older)
		}
	}
	if s.calls != nil && s.calls[0] != '[' {
		return s, canon.Unreadable("the upstream sent tool calls that are no array")
	}
	return s, nil
}

// delta tells what one delta says. A whole message may stand in its place: each of its calls is one of its own then.
func (d *decoder) delta(dst []canon.Event, raw, logprobs []byte, whole bool) ([]canon.Event, error) {
	const at = "choices[0].message." // of which a delta is a part: a loss is the same however the answer comes
	s, err := readSaid(raw, func(name, value []byte) { d.lose(at, name, value) })
	if err != nil {
		return dst, err
	}
	d.odd = s.twice || s.annotations != nil || s.function != nil
	if s.reasoning != nil {
		if dst, err = d.texts(dst, canon.ReasoningPart, s.reasoning, at); err != nil {
			return dst, err
		}
	}
	if s.content != nil {
		before := len(dst)
		if dst, err = d.texts(dst, canon.TextPart, s.content, at); err != nil {
			return dst, err
		}
		if len(dst) > before && d.open == canon.TextPart {
			dst[len(dst)-1].Logprobs = textLogprobs(logprobs)
		}
	}
	if s.refusal != nil {
		if dst, err = d.texts(dst, canon.RefusalPart, s.refusal, at); err != nil {
			return dst, err
		}
	}
	if s.annotations != nil {
		dst = d.cites(dst, at, s.annotations)
	}
	for it := jsonx.Array(s.calls); it.Next(); {
		if dst, err = d.call(dst, it.Value(), whole); err != nil {
			return dst, err
		}
	}
	if s.function != nil && s.function[0] == '{' {
		return d.function(dst, s.function)
	}
	return dst, nil
}

// texts tells a text: a string, or the list of text and refusal parts that some send in its place. An empty text says nothing.
func (d *decoder) texts(dst []canon.Event, kind canon.PartType, raw []byte, at string) ([]canon.Event, error) {
	switch raw[0] {
	case '"':
		return d.text(dst, kind, raw[1:len(raw)-1]), nil
	case '[':
		if kind != canon.TextPart {
			break
		}
		eachPart(raw, func(kind canon.PartType, text canon.Text) { dst = d.text(dst, kind, text) },
			func(name, value []byte) { d.lose(at+"content.", name, value) })
		return dst, nil
	}
	return dst, canon.Unreadable("the upstream sent a text that is no string")
}

func (d *decoder) text(dst []canon.Event, kind canon.PartType, text canon.Text) []canon.Event {
	if len(text) == 0 {
		return dst
	}
	if d.open != kind {
		dst = d.begin(d.openHeld(dst))
		d.open, d.at = kind, d.parts
		d.parts++
		var e *canon.Event
		dst, e = event(dst, canon.Open, d.at)
		e.Type = kind
	}
	dst, e := event(dst, canon.Delta, d.at)
	e.Text = text
	return dst
}

// cites tells annotations (OpenAI's web search) of the text that is open; those of a text that is over have lost what they are about.
func (d *decoder) cites(dst []canon.Event, at string, annotations []byte) []canon.Event {
	if d.open != canon.TextPart {
		d.lose(at, []byte("annotations"), annotations)
		return dst
	}
	for it := jsonx.Array(annotations); it.Next(); {
		var e *canon.Event
		dst, e = event(dst, canon.Cite, d.at)
		e.Raw = it.Value()
	}
	return dst
}

// eachPart walks content that is a list of parts.
func eachPart(content []byte, tell func(canon.PartType, canon.Text), lose func(name, value []byte)) {
	for it := jsonx.Array(content); it.Next(); {
		part := it.Value()
		kind := readText(jsonx.Get(part, "type"))
		switch string(kind) {
		case "text", "output_text":
			tell(canon.TextPart, readText(jsonx.Get(part, "text")))
		case "refusal":
			tell(canon.RefusalPart, readText(jsonx.Get(part, "refusal")))
		case "":
			lose([]byte("part"), part)
		default:
			lose(kind, part)
		}
	}
}

// textLogprobs is the list of entries inside logprobs, nil when there is none.
func textLogprobs(logprobs []byte) canon.Raw { return someEntries(logprobEntries(logprobs)) }

// logprobEntries is what logprobs has as its content, nil when it has none.
func logprobEntries(logprobs []byte) []byte {
	if len(logprobs) < 2 || logprobs[0] != '{' {
		return nil
	}
	return jsonx.Get(logprobs, "content")
}

// someEntries is the content of logprobs if it is a list that is not empty, else nil.
func someEntries(content []byte) canon.Raw {
	if len(content) > 2 && content[0] == '[' {
		return content
	}
	return nil
}
