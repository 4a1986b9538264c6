package rewrite

import (
	"fmt"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// thinkingRemoved stands in a message that was nothing but unsigned thinking.
const thinkingRemoved = `{"type":"text","text":"(thinking removed)"}`

// dropUnsigned takes the thinking blocks without a signature out of the history of a Messages request, for an upstream that verifies
// signatures. Every other byte stays; body is not written to.
func dropUnsigned(body []byte, l *canon.Losses) []byte {
	var out []byte
	at := 0                                                         // body is in out up to here
	place := func(part []byte) int { return cap(body) - cap(part) } // both end where the array ends
	m := -1
	for messages := jsonx.Array(jsonx.Get(body, "messages")); messages.Next(); {
		m++
		content := jsonx.Get(messages.Value(), "content")
		block, kept, begins := -1, 0, 0
		for blocks := jsonx.Array(content); blocks.Next(); {
			if block++; block == 0 {
				begins = place(blocks.Value())
			}
			end := place(blocks.Value()) + len(blocks.Value())
			switch {
			case !isUnsigned(blocks.Value()):
				if kept == 0 && block > 0 { // all in front of it have gone, and the comma between with them
					out, at = append(out, body[at:begins]...), place(blocks.Value())
				}
				kept++
				begins = end // a block that goes from here on takes the comma in front of it along
			case kept > 0:
				out, at = append(out, body[at:begins]...), end
				begins = end
				l.Add(fmt.Sprintf("messages[%d].content[%d].thinking", m, block), canon.ByPolicy)
			default:
				l.Add(fmt.Sprintf("messages[%d].content[%d].thinking", m, block), canon.ByPolicy)
			}
		}
		if block >= 0 && kept == 0 { // nothing is left, and a message without content is refused
			out = append(out, body[at:place(content)+1]...)
			out = append(out, thinkingRemoved...)
			at = place(content) + len(content) - 1
		}
	}
	if at == 0 {
		return body
	}
	return append(out, body[at:]...)
}

func isUnsigned(block []byte) bool {
	if kind, _ := jsonx.Text(jsonx.Get(block, "type")); kind != "thinking" {
		return false
	}
	signature, _ := jsonx.Text(jsonx.Get(block, "signature"))
	return signature == ""
}
