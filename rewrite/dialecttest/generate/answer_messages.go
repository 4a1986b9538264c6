package generate

import (
	"fmt"
	"strings"

	"rolltap/rewrite/canon"
)

func (a *said) messagesUsage() string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`,
		a.prompt-a.cached, a.cached, a.completion, a.reasoning)
}

func (a *said) stopSequence() string {
	if a.sequence {
		return `"END"`
	}
	return "null"
}

func (a *said) messages() string {
	var blocks []string
	for i := range a.parts {
		switch p := &a.parts[i]; p.kind {
		case canon.ReasoningPart:
			blocks = append(blocks, fmt.Sprintf(`{"type":"thinking","thinking":"%s","signature":"%s"}`, p.text(), p.signature))
		case canon.RedactedPart:
			blocks = append(blocks, fmt.Sprintf(`{"type":"redacted_thinking","data":"%s"}`, p.signature))
		case canon.TextPart:
			blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":"%s"}`, p.text()))
		case canon.CallPart:
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"%s","name":"%s","input":%s}`, p.id, p.name, p.input()))
		}
	}
	return fmt.Sprintf(`{"id":"msg_9","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":"%s","stop_sequence":%s,"usage":%s}`,
		strings.Join(blocks, ","), a.finish(false), a.stopSequence(), a.messagesUsage())
}

func (a *said) messagesStream() string {
	var out strings.Builder
	send := func(kind, members string) {
		out.WriteString(event(kind, `{"type":"`+kind+`"`+members+`}`))
	}
	send("message_start", `,"message":{"id":"msg_9","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":`+
		fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":1}}`, a.prompt-a.cached, a.cached))
	for i := range a.parts {
		p := &a.parts[i]
		start, kind, member := "", "", ""
		switch p.kind {
		case canon.ReasoningPart:
			start, kind, member = `{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking"
		case canon.RedactedPart:
			start = fmt.Sprintf(`{"type":"redacted_thinking","data":"%s"}`, p.signature)
		case canon.TextPart:
			start, kind, member = `{"type":"text","text":""}`, "text_delta", "text"
		case canon.CallPart:
			start, kind, member = fmt.Sprintf(`{"type":"tool_use","id":"%s","name":"%s","input":{}}`, p.id, p.name), "input_json_delta", "partial_json"
		}
		send("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, start))
		for _, piece := range p.pieces {
			send("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"%s","%s":"%s"}`, i, kind, member, piece))
		}
		if p.kind == canon.ReasoningPart {
			send("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"signature_delta","signature":"%s"}`, i, p.signature))
		}
		send("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
	}
	send("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"%s","stop_sequence":%s},"usage":{"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`,
		a.finish(false), a.stopSequence(), a.completion, a.reasoning))
	send("message_stop", "")
	return out.String()
}
