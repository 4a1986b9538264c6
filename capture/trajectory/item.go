package trajectory

import (
	"bytes"
	"slices"
	"strings"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// Kind is what an item of a conversation is.
type Kind uint8

// The kinds of items.
const (
	Said     Kind = iota // text
	Thought              // reasoning
	Called               // a tool call; Text is its arguments
	Returned             // a tool's result
	Attached             // an image, a file: Text says which
	Strange              // anything this reader has no word for: Text is its type
)

// Item is one thing in a conversation, whichever dialect it was said in. Its strings are as sent, not inert. Of a long line they may have
// rests (capture.Rests), where a request or an answer has none that is short.
type Item struct {
	Role string // system, user, assistant, tool
	Kind Kind
	Name string // of the tool
	ID   string // that joins a tool call and its result; "" is none
	Text string
	Bad  bool // a result that is an error, a refusal

	Files  int    // attachments that the text of a result names
	Hidden bool   // reasoning that nobody can read: Text says so
	Hosted bool   // a call that the provider runs itself, or its result
	Raw    []byte // of what is attached: the block as sent, part of the line
}

// RequestItems is the conversation that a request holds, oldest first.
func RequestItems(dialect string, request []byte) []Item {
	var items []Item
	elements(dialect, request, func(e element) { items = e.items(items) })
	return items
}

// element is a piece of a request that clients send again as it is: a message, an item, the system prompt.
type element struct {
	dialect string
	role    string // of content that is no message: system, user; "" for messages and items
	raw     []byte
}

// elements visits the pieces of a request in their order.
func elements(dialect string, request []byte, visit func(element)) {
	var got [4][]byte
	jsonx.GetAll(request, []string{"messages", "system", "input", "instructions"}, got[:])
	list := got[0]
	switch dialect {
	case "gemini":
		system := either(request, "systemInstruction", "system_instruction")
		if !jsonx.IsNull(system) {
			visit(element{dialect, "system", system})
		}
		contents(jsonx.Get(request, "contents"), func(raw []byte) { visit(element{dialect, "", raw}) })
		return
	case "messages":
		if !jsonx.IsNull(got[1]) {
			visit(element{dialect, "system", got[1]})
		}
	case "responses":
		if jsonx.KindOf(got[3]) == jsonx.KindString {
			visit(element{dialect, "system", got[3]})
		}
		if list = got[2]; jsonx.KindOf(list) == jsonx.KindString {
			visit(element{dialect, "user", list})
		}
	}
	for it := jsonx.Array(list); it.Next(); {
		visit(element{dialect, "", it.Value()})
	}
}

// items appends what an element says.
func (e element) items(items []Item) []Item {
	switch {
	case e.dialect == "gemini":
		return content(items, e.role, e.raw)
	case e.role != "":
		return blocks(items, e.role, e.raw)
	case e.dialect == "messages":
		return blocks(items, text(e.raw, "role"), jsonx.Get(e.raw, "content"))
	case e.dialect == "responses":
		return outputItem(items, e.raw)
	}
	return chatMessage(items, e.raw)
}

// ResponseItems is what an answer says.
func ResponseItems(dialect string, response []byte) []Item {
	var items []Item
	switch dialect {
	case "gemini":
		for it := jsonx.Array(jsonx.Get(response, "candidates")); it.Next(); {
			items = content(items, "assistant", jsonx.Get(it.Value(), "content"))
		}
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

// ErrorText is what an error answer of any dialect says; "" when it is none.
func ErrorText(response []byte) string {
	e := jsonx.Get(response, "error")
	if jsonx.IsNull(e) {
		if text(response, "object") == "error" { // vLLM before its errors moved into a member
			return text(response, "message")
		}
		return ""
	}
	if s, ok := capture.Text(e); ok {
		return s
	}
	for _, key := range []string{"message", "type", "code"} {
		if s := text(e, key); s != "" {
			return s
		}
	}
	return string(e)
}

func chatMessage(items []Item, m []byte) []Item {
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
			items = append(items, Item{Role: role, Kind: Thought, Text: s})
			break // servers that changed the name send both
		}
	}
	start := len(items)
	items = blocks(items, role, jsonx.Get(m, "content"))
	if role == "tool" {
		return asResult(items, start, Item{Name: text(m, "name"), ID: text(m, "tool_call_id")})
	}
	if s := text(m, "refusal"); s != "" {
		items = append(items, Item{Role: role, Text: s, Bad: true})
	}
	call := func(f []byte, id string) {
		items = append(items, Item{Role: role, Kind: Called, ID: id, Name: text(f, "name"), Text: text(f, "arguments")})
	}
	if f := jsonx.Get(m, "function_call"); !jsonx.IsNull(f) {
		call(f, "")
	}
	for it := jsonx.Array(jsonx.Get(m, "tool_calls")); it.Next(); {
		if custom := jsonx.Get(it.Value(), "custom"); !jsonx.IsNull(custom) {
			items = append(items, Item{Role: role, Kind: Called, ID: text(it.Value(), "id"), Name: text(custom, "name"), Text: text(custom, "input")})
			continue
		}
		call(jsonx.Get(it.Value(), "function"), text(it.Value(), "id"))
	}
	return items
}

// blocks reads content: a string, or a list of parts or blocks of any dialect.
func blocks(items []Item, role string, content []byte) []Item {
	if role == "developer" {
		role = "system"
	}
	if s, ok := capture.Text(content); ok {
		if s != "" {
			items = append(items, Item{Role: role, Text: s})
		}
		return items
	}
	for it := jsonx.Array(content); it.Next(); {
		b := it.Value()
		switch t := text(b, "type"); t {
		case "text", "input_text", "output_text", "summary_text", "reasoning_text":
			if s := text(b, "text"); s != "" {
				items = append(items, Item{Role: role, Text: s})
			}
		case "refusal":
			items = append(items, Item{Role: role, Text: text(b, "refusal"), Bad: true})
		case "thinking":
			items = append(items, Item{Role: role, Kind: Thought, Text: text(b, "thinking")})
		case "redacted_thinking":
			items = append(items, Item{Role: role, Kind: Thought, Text: "(redacted by the provider)", Hidden: true})
		case "tool_use", "server_tool_use", "mcp_tool_use":
			items = append(items, Item{Role: role, Kind: Called, ID: text(b, "id"), Name: text(b, "name"), Text: string(jsonx.Get(b, "input")), Hosted: t != "tool_use"})
		case "tool_result", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_result":
			start := len(items)
			items = blocks(items, "tool", jsonx.Get(b, "content"))
			items = asResult(items, start, Item{ID: text(b, "tool_use_id"), Hosted: t != "tool_result", Bad: jsonx.Truthy(jsonx.Get(b, "is_error"))})
		case "image", "document", "image_url", "input_image", "file", "input_file", "input_audio", "audio", "video_url":
			items = append(items, Item{Role: role, Kind: Attached, Text: attachment(t, b), Raw: b})
		default:
			if s, ok := capture.Text(b); ok { // a list of bare strings
				items = append(items, Item{Role: role, Text: s})
				continue
			}
			items = append(items, Item{Role: role, Kind: Strange, Text: typeOf(t)})
		}
	}
	return items
}

// asResult turns what stands behind start into the result of one tool call: its texts joined, anything else named in them.
func asResult(items []Item, start int, of Item) []Item {
	var parts []string
	for _, it := range items[start:] {
		switch it.Kind {
		case Attached, Strange:
			of.Files++
			parts = append(parts, "["+it.Text+"]")
		default:
			parts = append(parts, it.Text)
		}
	}
	of.Role, of.Kind, of.Text = "tool", Returned, strings.Join(parts, "\n")
	return append(items[:start], of)
}

// outputItem reads an item of a Responses input or output.
func outputItem(items []Item, raw []byte) []Item {
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
				parts = append(parts, it.Text)
			}
			if parts != nil {
				break // the summary of what is told in full says nothing new
			}
		}
		hidden := false
		if parts == nil && !jsonx.IsNull(jsonx.Get(raw, "encrypted_content")) {
			parts, hidden = []string{"(encrypted)"}, true
		}
		return append(items, Item{Role: "assistant", Kind: Thought, Text: strings.Join(parts, "\n"), Hidden: hidden})
	case "function_call", "custom_tool_call", "mcp_call":
		args := text(raw, "arguments")
		if t == "custom_tool_call" {
			args = text(raw, "input")
		}
		return append(items, Item{Role: "assistant", Kind: Called, ID: idOf(raw), Name: text(raw, "name"), Text: args, Hosted: t == "mcp_call"})
	case "local_shell_call", "shell_call", "computer_call", "web_search_call", "file_search_call", "code_interpreter_call",
		"image_generation_call", "apply_patch_call", "tool_search_call":
		hosted := slices.Contains([]string{"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}, t)
		return append(items, Item{Role: "assistant", Kind: Called, ID: idOf(raw), Name: strings.TrimSuffix(t, "_call"), Text: string(jsonx.Get(raw, "action")), Hosted: hosted})
	}
	if strings.HasSuffix(text(raw, "type"), "_output") {
		start := len(items)
		items = blocks(items, "tool", jsonx.Get(raw, "output"))
		return asResult(items, start, Item{ID: text(raw, "call_id"), Bad: text(raw, "status") == "failed"})
	}
	return append(items, Item{Role: "assistant", Kind: Strange, Text: typeOf(text(raw, "type"))})
}

// attachment says what an image or file is without showing its bytes, which are not copied either.
func attachment(t string, b []byte) string {
	for _, path := range [][]string{{"image_url", "url"}, {"image_url"}, {"video_url", "url"}, {"source", "url"}, {"file_url"}, {"filename"}, {"file", "filename"}} {
		v := b
		for _, key := range path {
			v = jsonx.Get(v, key)
		}
		in, ok := jsonx.Interior(v)
		if !ok {
			continue
		}
		if data, isData := bytes.CutPrefix(in, []byte("data:")); isData {
			comma := bytes.IndexByte(data, ',')
			if comma < 0 {
				comma = len(data)
			}
			media := string(jsonx.Unquoted(data[:min(comma, mediaLen)]))
			return t + " " + strings.TrimSuffix(media, ";base64") + ", " + Size((capture.AtMost(data)-int64(comma))*3/4)
		}
		return t + " " + capture.Brief(string(jsonx.Unquoted(in[:min(len(in), urlLen)])))
	}
	source := jsonx.Get(b, "source")
	if media := text(source, "media_type"); media != "" {
		data, _ := jsonx.Interior(jsonx.Get(source, "data"))
		return t + " " + media + ", " + Size(capture.AtMost(data)*3/4)
	}
	return t
}

// How much of the kind and the address of an attachment is told.
const (
	mediaLen = 100
	urlLen   = 4 << 10
)

func typeOf(t string) string {
	if t == "" {
		return "without a type"
	}
	return t
}

// text is a string member, "" when it is absent or no string.
func text(obj []byte, key string) string {
	s, _ := capture.Text(jsonx.Get(obj, key))
	return s
}

// idOf is what a result names an item of a Responses answer by.
func idOf(item []byte) string {
	if id := text(item, "call_id"); id != "" {
		return id
	}
	return text(item, "id")
}
