package rewrite

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// AppendOutputItems appends the items of an answer of dialect d, a valid JSON object, as token capture keeps them: a JSON array of items in
// the shape of Responses (capture.md 5.3, 5.2).
//
//	Responses   the objects of output
//	Chat        the message of each choice, with type message and role assistant where it does not say another
//	Messages    thinking and redacted_thinking as reasoning items, all the rest as one message
//	Gemini      thoughts as reasoning items, the other parts of a candidate as one message
//
// n is how many they are.
func AppendOutputItems(dst, answer []byte, d canon.Dialect) (out []byte, n int) {
	dst = append(dst, '[')
	item := func(raw ...[]byte) {
		if n > 0 {
			dst = append(dst, ',')
		}
		for _, b := range raw {
			dst = append(dst, b...)
		}
		n++
	}
	switch d {
	case canon.Responses:
		for it := jsonx.Array(jsonx.Get(answer, "output")); it.Next(); {
			if jsonx.KindOf(it.Value()) == jsonx.KindObject {
				item(it.Value())
			}
		}
	case canon.Chat:
		for it := jsonx.Array(jsonx.Get(answer, "choices")); it.Next(); {
			message := jsonx.Get(it.Value(), "message")
			if jsonx.KindOf(message) != jsonx.KindObject {
				continue
			}
			if jsonx.Get(message, "type") == nil {
				message = SetMember(message, "type", []byte(`"message"`))
			}
			if jsonx.Get(message, "role") == nil {
				message = SetMember(message, "role", []byte(`"assistant"`))
			}
			item(message)
		}
	case canon.Gemini:
		geminiItems(item, answer)
	case canon.Messages:
		var rest []byte
		for it := jsonx.Array(jsonx.Get(answer, "content")); it.Next(); {
			block := it.Value()
			switch kind, _ := jsonx.Text(jsonx.Get(block, "type")); kind {
			case "thinking":
				text := jsonx.Get(block, "thinking")
				if jsonx.KindOf(text) != jsonx.KindString {
					text = []byte(`""`)
				}
				item([]byte(`{"type":"reasoning","summary":[{"type":"summary_text","text":`), text, []byte(`}]}`))
			case "redacted_thinking":
				data := jsonx.Get(block, "data")
				if data == nil {
					data = []byte("null")
				}
				item([]byte(`{"type":"reasoning","summary":[],"encrypted_content":`), data, []byte(`}`))
			default:
				if rest != nil {
					rest = append(rest, ',')
				}
				rest = append(rest, block...)
			}
		}
		if rest != nil {
			item([]byte(`{"type":"message","role":"assistant","content":[`), rest, []byte(`]}`))
		}
	}
	return append(dst, ']'), n
}

// geminiItems makes items of the candidates.
func geminiItems(item func(raw ...[]byte), answer []byte) {
	for it := jsonx.Array(jsonx.Get(answer, "candidates")); it.Next(); {
		var rest []byte
		for parts := jsonx.Array(jsonx.Get(jsonx.Get(it.Value(), "content"), "parts")); parts.Next(); {
			part := parts.Value()
			text := jsonx.Get(part, "text")
			if string(jsonx.Get(part, "thought")) == "true" && jsonx.KindOf(text) == jsonx.KindString {
				item([]byte(`{"type":"reasoning","summary":[{"type":"summary_text","text":`), text, []byte(`}]}`))
				continue
			}
			if rest != nil {
				rest = append(rest, ',')
			}
			rest = append(rest, part...)
		}
		if rest != nil {
			item([]byte(`{"type":"message","role":"assistant","content":[`), rest, []byte(`]}`))
		}
	}
}
