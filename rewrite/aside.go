package rewrite

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendTokenize appends the body for vLLM's /tokenize that counts the prompt of a chat request.
func AppendTokenize(dst, chatRequest []byte) []byte {
	start := len(dst)
	dst = append(dst, '{')
	for it := jsonx.Object(chatRequest); it.Next(); {
		switch string(it.Key()) {
		case "model", "messages", "tools", "chat_template_kwargs", "mm_processor_kwargs", "add_generation_prompt", "continue_final_message":
			if len(dst) > start+1 {
				dst = append(dst, ',')
			}
			dst = append(dst, '"')
			dst = append(dst, it.Key()...)
			dst = append(dst, '"', ':')
			dst = append(dst, it.Value()...)
		}
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
