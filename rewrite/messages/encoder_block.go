package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// openBlock writes the start of a part's block: empty, as its text comes in deltas (wire.md 3.1.3).
func (e *encoder) openBlock(dst []byte, ev *canon.Event) []byte {
	e.part, e.mode, e.channel, e.begun, e.skipped = ev.Part, lostMode, noChannel, false, false
	e.seal, e.foreign = e.seal[:0], false
	from := len(dst)
	dst = e.start(dst, blockStart, `,"content_block":`)
	member := "" // of a delta, with the type of the delta in front
	switch ev.Type {
	case canon.TextPart, canon.RefusalPart:
		e.mode, member = textMode, `text_delta","text":"`
		dst = append(dst, emptyText...)
	case canon.ReasoningPart:
		e.mode, member = thinkingMode, `thinking_delta","thinking":"`
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case canon.CallPart:
		e.mode, e.called, member = inputMode, true, `input_json_delta","partial_json":"`
		if ev.Call.Custom {
			e.mode = customMode
		}
		dst = append(appendToolUse(dst, &ev.Call, ev.Part, e.o.Losses), `{}}`...)
	case canon.RedactedPart:
		if readable(ev.SignedBy) {
			e.mode = wholeMode
			dst = appendRedacted(dst, ev.Text)
		}
	case canon.HostedPart, canon.UnknownPart:
		if ownBlock(ev.Raw) {
			dst, e.mode = jsonx.AppendCompact(dst, ev.Raw), wholeMode
		}
	}
	if e.mode == lostMode {
		losePart(ev.Type, ev.Raw, ev.Part, e.o.Losses)
		return dst[:from]
	}
	if member != "" {
		e.front = append(e.start(e.front[:0], blockDelta, `,"delta":{"type":"`), member...)
	}
	return append(dst, frameEnd...)
}

func (e *encoder) delta(dst []byte, ev *canon.Event) []byte {
	if len(ev.Text) == 0 {
		return dst
	}
	switch e.mode {
	case lostMode, wholeMode:
		return dst
	case thinkingMode:
		if !e.shows(ev.Summary) {
			return dst
		}
	case customMode:
		dst = append(dst, e.front...)
		if !e.begun {
			e.begun = true
			dst = append(dst, customFront...)
		}
		// The text is the inside of a JSON string already, in a JSON text that is one itself.
		dst = jsonx.AppendEscaped(dst, ev.Text)
		return append(dst, deltaEnd...)
	}
	dst = append(dst, e.front...)
	dst = append(dst, ev.Text...)
	return append(dst, deltaEnd...)
}

// What stands around the text of a custom call in the input that it becomes, {"input":"…"}, inside the string of a delta.
const (
	customFront = `{\"input\":\"`
	customBack  = `\"}`
)

// shows tells whether a delta is of the text of the reasoning that came first; of the other one nothing is shown.
func (e *encoder) shows(summary bool) bool {
	c := textChannel
	if summary {
		c = summaryChannel
	}
	if e.channel == noChannel {
		e.channel = c
	}
	if e.channel == c {
		return true
	}
	if !e.skipped {
		e.skipped = true
		name := "text"
		if summary {
			name = "summary"
		}
		e.o.Losses.Add(blockPath(e.part, name), canon.NoEquivalent)
	}
	return false
}

// hold keeps a signature until its block ends: the last one counts.
func (e *encoder) hold(ev *canon.Event) {
	e.seal, e.foreign = e.seal[:0], false
	if readable(ev.SignedBy) {
		e.seal = append(e.seal, ev.Text...)
	} else {
		e.foreign = len(ev.Text) > 0
	}
}

func (e *encoder) cite(dst []byte, ev *canon.Event) []byte {
	if e.mode == textMode && ownCite(ev.Raw) {
		dst = e.start(dst, blockDelta, `,"delta":{"type":"citations_delta","citation":`)
		return append(append(jsonx.AppendCompact(dst, ev.Raw), '}'), frameEnd...)
	}
	e.o.Losses.Add(blockPath(e.part, "annotations"), canon.NoEquivalent)
	return dst
}

func (e *encoder) closeBlock(dst []byte) []byte {
	switch {
	case e.mode == lostMode:
		return dst
	case e.mode == thinkingMode && e.foreign:
		e.o.Losses.Add(blockPath(e.part, "signature"), canon.Foreign)
	case e.mode == thinkingMode && len(e.seal) > 0:
		dst = e.start(dst, blockDelta, `,"delta":{"type":"signature_delta","signature":"`)
		dst = append(dst, e.seal...)
		dst = append(dst, deltaEnd...)
	case e.mode == customMode:
		dst = append(dst, e.front...)
		if !e.begun {
			dst = append(dst, customFront...)
		}
		dst = append(dst, customBack...)
		dst = append(dst, deltaEnd...)
	}
	dst = e.start(dst, blockStop, frameEnd)
	e.next++
	e.mode = lostMode
	return dst
}
