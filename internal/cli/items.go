package cli

import (
	"strings"

	"rolltap/internal/jsonx"
)

// kind is what an item of a conversation is.
type kind uint8

const (
	said     kind = iota // text
	thought              // reasoning
	called               // a tool call; text is its arguments
	returned             // a tool's result
	attached             // an image, a file: text says which
	strange              // anything this reader has no word for: text is its type
)

// item is one thing in a conversation, whichever dialect it was said in. Its strings are as sent, not inert.
type item struct {
	role string // system, user, assistant, tool
	kind kind
	name string // of the tool
	text string
	bad  bool // a result that is an error
}

// requestItems is the conversation that a request holds, oldest first.
func requestItems(dialect string, request []byte) []item {
	var items []item
	switch dialect {
	case "messages":
		items = blocks(items, "system", jsonx.Get(request, "system"))
		for it := jsonx.Array(jsonx.Get(request, "messages")); it.Next(); {
			items = blocks(items, text(it.Value(), "role"), jsonx.Get(it.Value(), "content"))
		}
	case "responses":
		if s, ok := jsonx.Text(jsonx.Get(request, "instructions")); ok {
			items = append(items, item{role: "system", text: s})
		}
		input := jsonx.Get(request, "input")
		if s, ok := jsonx.Text(input); ok {
			return append(items, item{role: "user", text: s})
		}
		for it := jsonx.Array(input); it.Next(); {
			items = outputItem(items, it.Value())
		}
	default:
		for it := jsonx.Array(jsonx.Get(request, "messages")); it.Next(); {
			items = chatMessage(items, it.Value())
		}
	}
	return items
}

// responseItems is what an answer says.
func responseItems(dialect string, response []byte) []item {
	var items []item
	switch dialect {
	case "messages":
		return blocks(items, "assistant", jsonx.Get(response, "content"))
	case "responses":
		for it := jsonx.Array(jsonx.Get(response, "output")); it.Next(); {
			items = outputItem(items, it.Value())
		}
	default:
		for it := jsonx.Array(jsonx.Get(response, "choices")); it.Next(); {
			items = chatMessage(items, jsonx.Get(it.Value(), "message"))
		}
	}
	return items
}

// errorText is what an error answer of any dialect says; "" when it is none.
func errorText(response []byte) string {
	e := jsonx.Get(response, "error")
	if jsonx.IsNull(e) {
		if text(response, "object") == "error" { // vLLM before its errors moved into a member
			return text(response, "message")
		}
		return ""
	}
	if s, ok := jsonx.Text(e); ok {
		return s
	}
	for _, key := range []string{"message", "type", "code"} {
		if s := text(e, key); s != "" {
			return s
		}
	}
	return string(e)
}

func chatMessage(items []item, m []byte) []item {
	role := text(m, "role")
	switch role {
	case "developer":
		role = "system"
	case "function":
		role = "tool"
	case "":
		role = "assistant"
	}
	for _, key := range []string{"reasoning", "reasoning_content"} {
		if s := text(m, key); s != "" {
			items = append(items, item{role: role, kind: thought, text: s})
			break // servers that changed the name send both
		}
	}
	start := len(items)
	items = blocks(items, role, jsonx.Get(m, "content"))
	if role == "tool" {
		return asResult(items, start, text(m, "name"), false)
	}
	if s := text(m, "refusal"); s != "" {
		items = append(items, item{role: role, text: s, bad: true})
	}
	call := func(f []byte) {
		items = append(items, item{role: role, kind: called, name: text(f, "name"), text: text(f, "arguments")})
	}
	if f := jsonx.Get(m, "function_call"); !jsonx.IsNull(f) {
		call(f)
	}
	for it := jsonx.Array(jsonx.Get(m, "tool_calls")); it.Next(); {
		if custom := jsonx.Get(it.Value(), "custom"); !jsonx.IsNull(custom) {
			items = append(items, item{role: role, kind: called, name: text(custom, "name"), text: text(custom, "input")})
			continue
		}
		call(jsonx.Get(it.Value(), "function"))
	}
	return items
}

// blocks reads content: a string, or a list of parts or blocks of any dialect.
func blocks(items []item, role string, content []byte) []item {
	if role == "developer" {
		role = "system"
	}
	if s, ok := jsonx.Text(content); ok {
		if s != "" {
			items = append(items, item{role: role, text: s})
		}
		return items
	}
	for it := jsonx.Array(content); it.Next(); {
		b := it.Value()
		switch t := text(b, "type"); t {
		case "text", "input_text", "output_text", "summary_text", "reasoning_text":
			if s := text(b, "text"); s != "" {
				items = append(items, item{role: role, text: s})
			}
		case "refusal":
			items = append(items, item{role: role, text: text(b, "refusal"), bad: true})
		case "thinking":
			items = append(items, item{role: role, kind: thought, text: text(b, "thinking")})
		case "redacted_thinking":
			items = append(items, item{role: role, kind: thought, text: "(redacted by the provider)"})
		case "tool_use", "server_tool_use", "mcp_tool_use":
			items = append(items, item{role: role, kind: called, name: text(b, "name"), text: string(jsonx.Get(b, "input"))})
		case "tool_result", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_result":
			start := len(items)
			items = blocks(items, "tool", jsonx.Get(b, "content"))
			items = asResult(items, start, "", jsonx.Truthy(jsonx.Get(b, "is_error")))
		case "image", "document", "image_url", "input_image", "file", "input_file", "input_audio", "audio", "video_url":
			items = append(items, item{role: role, kind: attached, text: attachment(t, b)})
		default:
			if s, ok := jsonx.Text(b); ok { // a list of bare strings
				items = append(items, item{role: role, text: s})
				continue
			}
			items = append(items, item{role: role, kind: strange, text: typeOf(t)})
		}
	}
	return items
}

// asResult turns what stands behind start into the result of one tool call: its texts joined, anything else named in them.
func asResult(items []item, start int, name string, bad bool) []item {
	var parts []string
	for _, it := range items[start:] {
		switch it.kind {
		case attached, strange:
			parts = append(parts, "["+it.text+"]")
		default:
			parts = append(parts, it.text)
		}
	}
	return append(items[:start], item{role: "tool", kind: returned, name: name, text: strings.Join(parts, "\n"), bad: bad})
}

// outputItem reads an item of a Responses input or output.
func outputItem(items []item, raw []byte) []item {
	switch t := text(raw, "type"); t {
	case "message", "":
		role := text(raw, "role")
		if role == "" {
			role = "assistant"
		}
		return blocks(items, role, jsonx.Get(raw, "content"))
	case "reasoning":
		var parts []string
		for _, key := range []string{"content", "summary"} {
			for _, it := range blocks(nil, "", jsonx.Get(raw, key)) {
				parts = append(parts, it.text)
			}
			if parts != nil {
				break // the summary of what is told in full says nothing new
			}
		}
		if parts == nil && !jsonx.IsNull(jsonx.Get(raw, "encrypted_content")) {
			parts = []string{"(encrypted)"}
		}
		return append(items, item{role: "assistant", kind: thought, text: strings.Join(parts, "\n")})
	case "function_call", "custom_tool_call", "mcp_call":
		args := text(raw, "arguments")
		if t == "custom_tool_call" {
			args = text(raw, "input")
		}
		return append(items, item{role: "assistant", kind: called, name: text(raw, "name"), text: args})
	case "local_shell_call", "shell_call", "computer_call", "web_search_call", "file_search_call", "code_interpreter_call",
		"image_generation_call", "apply_patch_call", "tool_search_call":
		return append(items, item{role: "assistant", kind: called, name: strings.TrimSuffix(t, "_call"), text: string(jsonx.Get(raw, "action"))})
	}
	if strings.HasSuffix(text(raw, "type"), "_output") {
		start := len(items)
		items = blocks(items, "tool", jsonx.Get(raw, "output"))
		return asResult(items, start, "", text(raw, "status") == "failed")
	}
	return append(items, item{role: "assistant", kind: strange, text: typeOf(text(raw, "type"))})
}

// attachment says what an image or file is without showing its bytes.
func attachment(t string, b []byte) string {
	for _, path := range [][]string{{"image_url", "url"}, {"image_url"}, {"video_url", "url"}, {"source", "url"}, {"file_url"}, {"filename"}, {"file", "filename"}} {
		v := b
		for _, key := range path {
			v = jsonx.Get(v, key)
		}
		s, ok := jsonx.Text(v)
		if !ok {
			continue
		}
		if data, isData := strings.CutPrefix(s, "data:"); isData {
			media, _, _ := strings.Cut(data, ",")
			return t + " " + strings.TrimSuffix(media, ";base64") + ", " + size(int64(len(data)-len(media))*3/4)
		}
		return t + " " + s
	}
	source := jsonx.Get(b, "source")
	if media := text(source, "media_type"); media != "" {
		return t + " " + media + ", " + size(int64(len(text(source, "data")))*3/4)
	}
	return t
}

func typeOf(t string) string {
	if t == "" {
		return "without a type"
	}
	return t
}

// text is a string member, "" when it is absent or no string.
func text(obj []byte, key string) string {
	s, _ := jsonx.Text(jsonx.Get(obj, key))
	return s
}
