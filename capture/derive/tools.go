package derive

import (
	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// answerParts visits the tool calls and the reasoning of an answer. The first shape that matches decides: output (Responses),
// choices (Chat), content (Messages); an empty list matches too. id and name are raw, nil when absent; arguments are raw as
// they stand in the answer, isText when a JSON string holds them. thought gets JSON strings.
func answerParts(response []byte, tool func(id, name, arguments []byte, shape answerShape), thought func(text []byte)) {
	if output := jsonx.Get(response, "output"); jsonx.KindOf(output) == jsonx.KindArray {
		for it := jsonx.Array(output); it.Next(); {
			item := it.Value()
			switch word(jsonx.Get(item, "type")) {
			case "function_call":
				id := jsonx.Get(item, "call_id")
				if !jsonx.Truthy(id) {
					id = jsonx.Get(item, "id")
				}
				tool(id, jsonx.Get(item, "name"), jsonx.Get(item, "arguments"), shapeText)
			case "reasoning":
				for s := jsonx.Array(jsonx.Get(item, "summary")); s.Next(); {
					if t := jsonx.Get(s.Value(), "text"); jsonx.KindOf(t) == jsonx.KindString && jsonx.Truthy(t) {
						thought(t)
					}
				}
			}
		}
		return
	}
	if choices := jsonx.Get(response, "choices"); jsonx.KindOf(choices) == jsonx.KindArray {
		for it := jsonx.Array(choices); it.Next(); {
			m := jsonx.Get(it.Value(), "message")
			for c := jsonx.Array(jsonx.Get(m, "tool_calls")); c.Next(); {
				if jsonx.KindOf(c.Value()) != jsonx.KindObject {
					continue
				}
				f := jsonx.Get(c.Value(), "function")
				tool(jsonx.Get(c.Value(), "id"), jsonx.Get(f, "name"), jsonx.Get(f, "arguments"), shapeText)
			}
			t := jsonx.Get(m, "reasoning_content")
			if !jsonx.Truthy(t) {
				t = jsonx.Get(m, "reasoning")
			}
			if jsonx.KindOf(t) == jsonx.KindString && jsonx.Truthy(t) {
				thought(t)
			}
		}
		return
	}
	if candidates := jsonx.Get(response, "candidates"); jsonx.KindOf(candidates) == jsonx.KindArray {
		for it := jsonx.Array(candidates); it.Next(); {
			for p := jsonx.Array(jsonx.Get(jsonx.Get(it.Value(), "content"), "parts")); p.Next(); {
				f, t := jsonx.Get(p.Value(), "functionCall"), jsonx.Get(p.Value(), "text")
				switch {
				case jsonx.KindOf(f) == jsonx.KindObject:
					tool(jsonx.Get(f, "id"), jsonx.Get(f, "name"), jsonx.Get(f, "args"), shapeValue)
				case jsonx.Truthy(jsonx.Get(p.Value(), "thought")) && jsonx.KindOf(t) == jsonx.KindString:
					thought(t)
				}
			}
		}
		return
	}
	for it := jsonx.Array(jsonx.Get(response, "content")); it.Next(); {
		b := it.Value()
		switch word(jsonx.Get(b, "type")) {
		case "tool_use":
			tool(jsonx.Get(b, "id"), jsonx.Get(b, "name"), jsonx.Get(b, "input"), shapeValue)
		case "thinking", "redacted_thinking":
			if t := jsonx.Get(b, "thinking"); jsonx.KindOf(t) == jsonx.KindString {
				thought(t)
			}
		}
	}
}

// answerShape says how arguments stand in an answer.
type answerShape uint8

const (
	shapeText  answerShape = iota // as text that should be JSON
	shapeValue                    // as a value
)

// ToolCalls is how many tool calls the answer has.
func (c *Call) ToolCalls() int {
	n := 0
	answerParts(c.Response, func(_, _, _ []byte, _ answerShape) { n++ }, func([]byte) {})
	return n
}

// appendToolCalls appends the list of {call_id, name, arguments}.
func (c *Call) appendToolCalls(dst []byte) []byte {
	dst = append(dst, '[')
	n := 0
	answerParts(c.Response, func(id, name, arguments []byte, shape answerShape) {
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"call_id":`...)
		dst = appendRaw(dst, id)
		dst = append(dst, `,"name":`...)
		dst = appendRaw(dst, name)
		dst = append(dst, `,"arguments":`...)
		if shape == shapeValue {
			if !jsonx.Truthy(arguments) {
				arguments = []byte("{}")
			}
			dst = append(dst, arguments...)
		} else {
			dst = c.appendArguments(dst, arguments)
		}
		dst = append(dst, '}')
	}, func([]byte) {})
	return append(dst, ']')
}

// appendArguments decodes arguments: an object is itself, text is what it is JSON of, other text is {"_raw": text}, and
// anything else is {}.
func (c *Call) appendArguments(dst, arguments []byte) []byte {
	switch jsonx.KindOf(arguments) {
	case jsonx.KindObject:
		return append(dst, arguments...)
	case jsonx.KindString:
		if capture.HasRest(arguments) {
			if value, ok := c.Rests.Value(arguments); ok {
				return append(dst, value...)
			}
		} else {
			in, _ := jsonx.Interior(arguments)
			if value := jsonx.Unquoted(in); jsonx.Valid(value) {
				return jsonx.AppendCompact(dst, value)
			}
		}
		dst = append(dst, `{"_raw":`...)
		return append(append(dst, arguments...), '}')
	}
	return append(dst, "{}"...)
}

// appendReasoning appends the reasoning as one JSON string, its parts on lines of their own, or null.
func (c *Call) appendReasoning(dst []byte) []byte {
	start, parts := len(dst), 0
	dst = append(dst, '"')
	answerParts(c.Response, func(_, _, _ []byte, _ answerShape) {}, func(text []byte) {
		if parts++; parts > 1 {
			dst = append(dst, `\n`...)
		}
		in, _ := jsonx.Interior(text)
		dst = append(dst, in...)
	})
	if len(dst) == start+1 {
		return append(dst[:start], "null"...)
	}
	return append(dst, '"')
}

// word is a JSON string that is compared with known words; "" for anything else.
func word(raw []byte) string {
	s, _ := jsonx.Text(raw)
	return s
}

// appendRaw appends a raw value, null when there is none.
func appendRaw(dst, raw []byte) []byte {
	if len(raw) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}
