package generate

import (
	"fmt"
	"strings"

	"rolltap/rewrite/canon"
)

// item is a part as an output item, with what it holds or, as it begins, without.
func (p *saidPart) item(i int, whole bool) string {
	status, text := "in_progress", ""
	if whole {
		status, text = "completed", p.text()
	}
	switch p.kind {
	case canon.ReasoningPart:
		summary, sealed := "", ""
		if whole {
			summary = fmt.Sprintf(`{"type":"summary_text","text":"%s"}`, text)
		}
		if p.signature != "" {
			sealed = fmt.Sprintf(`,"encrypted_content":"%s"`, p.signature)
		}
		return fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[%s]%s}`, i, summary, sealed)
	case canon.CallPart:
		return fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"%s","call_id":"%s","name":"%s","arguments":"%s"}`, i, status, p.id, p.name, text)
	}
	content := ""
	if whole {
		content = outputText(text)
	}
	return fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"%s","role":"assistant","content":[%s]}`, i, status, content)
}

func outputText(text string) string {
	return fmt.Sprintf(`{"type":"output_text","text":"%s","annotations":[],"logprobs":[]}`, text)
}

// response is the object, as it is at the end or, without parts, at the beginning.
func (a *said) response(end bool) string {
	var items []string
	status, details, usage := "in_progress", "null", "null"
	if end {
		for i := range a.parts {
			items = append(items, a.parts[i].item(i, true))
		}
		switch {
		case a.cut:
			status, details = "incomplete", `{"reason":"max_output_tokens"}`
		case a.filtered:
			status, details = "incomplete", `{"reason":"content_filter"}`
		default:
			status = "completed"
		}
		usage = fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
			a.prompt, a.cached, a.completion, a.reasoning, a.prompt+a.completion)
	}
	return fmt.Sprintf(`{"id":"resp_9","object":"response","created_at":1700000000,"status":"%s","error":null,"incomplete_details":%s,"model":"m","output":[%s],`+
		`"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":%s}`, status, details, strings.Join(items, ","), usage)
}

func (a *said) responses() string { return a.response(true) }

func (a *said) responsesStream() string {
	var out strings.Builder
	n := 0
	send := func(kind, format string, args ...any) {
		out.WriteString(event(kind, fmt.Sprintf(`{"type":"%s","sequence_number":%d,`, kind, n)+fmt.Sprintf(format, args...)+`}`))
		n++
	}
	send("response.created", `"response":%s`, a.response(false))
	for i := range a.parts {
		p := &a.parts[i]
		send("response.output_item.added", `"output_index":%d,"item":%s`, i, p.item(i, false))
		switch p.kind {
		case canon.ReasoningPart:
			at := fmt.Sprintf(`"item_id":"rs_%d","output_index":%d,"summary_index":0`, i, i)
			send("response.reasoning_summary_part.added", `%s,"part":{"type":"summary_text","text":""}`, at)
			for _, piece := range p.pieces {
				send("response.reasoning_summary_text.delta", `%s,"delta":"%s"`, at, piece)
			}
			send("response.reasoning_summary_text.done", `%s,"text":"%s"`, at, p.text())
			send("response.reasoning_summary_part.done", `%s,"part":{"type":"summary_text","text":"%s"}`, at, p.text())
		case canon.TextPart:
			at := fmt.Sprintf(`"item_id":"msg_%d","output_index":%d,"content_index":0`, i, i)
			send("response.content_part.added", `%s,"part":%s`, at, outputText(""))
			for _, piece := range p.pieces {
				send("response.output_text.delta", `%s,"delta":"%s","logprobs":[]`, at, piece)
			}
			send("response.output_text.done", `%s,"text":"%s","logprobs":[]`, at, p.text())
			send("response.content_part.done", `%s,"part":%s`, at, outputText(p.text()))
		case canon.CallPart:
			at := fmt.Sprintf(`"item_id":"fc_%d","output_index":%d`, i, i)
			for _, piece := range p.pieces {
				send("response.function_call_arguments.delta", `%s,"delta":"%s"`, at, piece)
			}
			send("response.function_call_arguments.done", `%s,"arguments":"%s"`, at, p.text())
		}
		send("response.output_item.done", `"output_index":%d,"item":%s`, i, p.item(i, true))
	}
	end := "response.completed"
	if a.cut || a.filtered {
		end = "response.incomplete"
	}
	send(end, `"response":%s`, a.response(true))
	return out.String()
}
