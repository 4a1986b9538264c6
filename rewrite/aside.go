package rewrite

import (
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Count is one way to ask an upstream how long a prompt is.
type Count struct {
	Path   string
	As     canon.Dialect // of the request whose prompt is counted
	Member string        // of the answer, a number
	keeps  []string      // members of the request that a prompt is made of; others may be refused
}

// CountsOf are the ways of an upstream that speaks d, in the order to try them: what one does not have, the next may. The official services
// count in their own dialect (wire.md 3.1.5 and 3.2.5), vLLM has its tokenizer whatever is spoken (vllm.md 1).
func CountsOf(d canon.Dialect) []Count {
	tokenize := Count{"/tokenize", canon.Chat, "count", []string{
		"model", "messages", "tools", "chat_template_kwargs", "mm_processor_kwargs", "add_generation_prompt", "continue_final_message"}}
	switch d {
	case canon.Messages:
		return []Count{{"/v1/messages/count_tokens", canon.Messages, "input_tokens", []string{
			"model", "messages", "system", "tools", "tool_choice", "thinking", "mcp_servers", "output_config"}}, tokenize}
	case canon.Responses:
		return []Count{{"/v1/responses/input_tokens", canon.Responses, "input_tokens", []string{
			"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "previous_response_id", "conversation",
			"truncation"}}, tokenize}
	}
	return []Count{tokenize}
}

// AppendBody appends the body that asks for the count of a request's prompt.
func (c Count) AppendBody(dst, request []byte) []byte {
	start := len(dst)
	dst = append(dst, '{')
	for it := jsonx.Object(request); it.Next(); {
		if !slices.Contains(c.keeps, string(it.Key())) {
			continue
		}
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, it.Key()...)
		dst = append(dst, '"', ':')
		dst = append(dst, it.Value()...)
	}
	return append(dst, '}')
}

// ReadItem reads an item of a Responses answer as the part of a conversation that it is; false: it is none.
func ReadItem(item []byte) (canon.Part, bool) {
	d := DialectOf(canon.Responses)
	body := append(append([]byte(`{"model":"","input":[`), item...), "]}"...)
	policy := dialect.DefaultPolicy()
	r, err := d.ReadCall(body, dialect.Options{Policy: &policy})
	if err != nil || len(r.Messages) != 1 || len(r.Messages[0].Parts) != 1 {
		return canon.Part{}, false
	}
	return r.Messages[0].Parts[0], true
}
