package trajectory

import (
	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// contents visits the contents of a request. Those of the model behind each other are one: SDKs keep the chunks of a stream so.
func contents(list []byte, visit func(raw []byte)) {
	var first, joined []byte // of the model's run at hand: its first content, and what all say if there are more
	flush := func() {
		switch {
		case joined != nil:
			visit(append(joined, "]}"...))
		case first != nil:
			visit(first)
		}
		first, joined = nil, nil
	}
	for it := jsonx.Array(list); it.Next(); {
		raw := it.Value()
		switch {
		case text(raw, "role") != "model":
			flush()
			visit(raw)
		case first == nil:
			first = raw
		default:
			if joined == nil {
				joined = appendParts([]byte(`{"role":"model","parts":[`), first)
			}
			joined = appendParts(joined, raw)
		}
	}
	flush()
}

// appendParts appends the parts of a content to a list of them.
func appendParts(dst, content []byte) []byte {
	for it := jsonx.Array(jsonx.Get(content, "parts")); it.Next(); {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(dst, it.Value()...)
	}
	return dst
}

// content reads a content of Gemini: {"role", "parts"}, or a text in its place. Role is whose it is where that is clear. Texts behind each other that
// are of one kind are one item, as the model wrote them: SDKs keep the pieces of a stream apart.
func content(items []Item, role string, raw []byte) []Item {
	if s, ok := capture.Text(raw); ok {
		return append(items, Item{Role: role, Text: s})
	}
	if role == "" {
		if role = text(raw, "role"); role == "model" {
			role = "assistant"
		} else {
			role = "user"
		}
	}
	open := -1 // the item that a text may go on with
	for it := jsonx.Array(jsonx.Get(raw, "parts")); it.Next(); {
		p := it.Value()
		call, result := either(p, "functionCall", "function_call"), either(p, "functionResponse", "function_response")
		said, isText := capture.Text(jsonx.Get(p, "text"))
		kind := Said
		if role == "assistant" && jsonx.Truthy(jsonx.Get(p, "thought")) {
			kind = Thought
		}
		switch {
		case !jsonx.IsNull(call):
			items, open = append(items, Item{Role: role, Kind: Called, ID: text(call, "id"), Name: text(call, "name"), Text: args(call)}), -1
		case !jsonx.IsNull(result):
			items, open = append(items, returned(result)), -1
		case isText && said == "":
		case isText && role == "assistant" && open >= 0 && items[open].Kind == kind:
			items[open].Text += said
		case isText:
			items, open = append(items, Item{Role: role, Kind: kind, Text: said}), len(items)
		default:
			items, open = other(items, role, p), -1
		}
	}
	return items
}

func args(call []byte) string {
	if raw := jsonx.Get(call, "args"); !jsonx.IsNull(raw) {
		return string(raw)
	}
	return "{}"
}

// returned is the result of a call: what its response has as output or error, else all of it.
func returned(result []byte) Item {
	item := Item{Role: "tool", Kind: Returned, ID: text(result, "id"), Name: text(result, "name")}
	response := jsonx.Get(result, "response")
	said, n := response, 0
	for it := jsonx.Object(response); it.Next(); {
		switch n++; string(it.Key()) {
		case "output":
			said = it.Value()
		case "error":
			said, item.Bad = it.Value(), true
		}
	}
	if n != 1 {
		said, item.Bad = response, false
	}
	var ok bool
	if item.Text, ok = capture.Text(said); !ok {
		item.Text = string(said)
	}
	for it := jsonx.Array(jsonx.Get(result, "parts")); it.Next(); {
		item.Files++
		for _, inner := range other(nil, "tool", it.Value()) {
			item.Text += "\n[" + inner.Text + "]"
		}
	}
	return item
}

// other reads a part that is neither text nor call.
func other(items []Item, role string, p []byte) []Item {
	inline, file := either(p, "inlineData", "inline_data"), either(p, "fileData", "file_data")
	switch {
	case !jsonx.IsNull(inline):
		kind, _ := capture.Text(either(inline, "mimeType", "mime_type"))
		return append(items, Item{Role: role, Kind: Attached, Text: kind + ", " + Size(capture.AtMost(text(inline, "data"))*3/4), Raw: p})
	case !jsonx.IsNull(file):
		uri, _ := capture.Text(either(file, "fileUri", "file_uri"))
		return append(items, Item{Role: role, Kind: Attached, Text: "file " + uri, Raw: p})
	}
	for it := jsonx.Object(p); it.Next(); {
		switch key := string(it.Key()); key {
		case "text", "thought", "thoughtSignature", "thought_signature":
		default:
			return append(items, Item{Role: role, Kind: Strange, Text: key})
		}
	}
	return items
}

// either is the member of an object under one name or the other.
func either(object []byte, name, other string) []byte {
	if found := jsonx.Get(object, name); found != nil {
		return found
	}
	return jsonx.Get(object, other)
}
