package generate

import "fmt"

// responsesCall is a request of the Responses API (wire.md 3.2.1, 3.2.2).
func (g *gen) responsesCall() string {
	tools := g.responsesTools()
	input := g.quoted("input")
	if !g.flip("input string", 6) {
		var items []string
		for range 1 + g.times("rounds", 2) {
			items = append(items, g.responsesUser()...)
			items = append(items, g.responsesAssistant()...)
		}
		if len(g.calls) > 0 || !g.flip("prefill", 6) {
			items = append(items, g.responsesUser()...)
		}
		input = g.list(items...)
	}
	return g.object(
		"model", `"m"`,
		"instructions", g.maybe("instructions", g.quoted("instructions")),
		"input", input,
		"tools", tools,
		"tool_choice", g.responsesChoice(),
		"parallel_tool_calls", g.maybeWith(len(g.tools) > 0, "parallel", "true", "false"),
		"max_output_tokens", g.maybe("max", "4096", "7"),
		"temperature", g.maybe("temperature", g.fraction("temperature"), "0", "1"),
		"top_p", g.maybe("top_p", g.fraction("top_p")),
		"top_logprobs", g.maybe("top_logprobs", "2"),
		"text", g.maybe("text", `{"verbosity":"low"}`, `{"format":{"type":"json_schema","name":"n","schema":`+g.schema()+`,"strict":true}}`,
			`{"format":{"type":"json_object"},"verbosity":"high"}`),
		"reasoning", g.maybe("reasoning", `{"effort":"high"}`, `{"effort":"minimal","summary":"detailed"}`, `{"effort":"none"}`),
		"include", g.maybe("include", `["reasoning.encrypted_content"]`, `["message.output_text.logprobs"]`),
		"stream", g.maybe("stream", "true"),
		"store", g.maybe("store", "true", "false"),
		"metadata", g.maybe("metadata", `{"k":"\u00e9"}`),
		"user", g.maybe("user", `"u"`),
		"service_tier", g.maybe("service_tier", `"flex"`),
		"prompt_cache_key", g.maybe("prompt_cache_key", `"k"`),
		"safety_identifier", g.maybe("safety_identifier", `"s"`),
		"truncation", g.maybe("truncation", `"auto"`),
	)
}

// maybeWith is maybe where something else is there.
func (g *gen) maybeWith(there bool, label string, words ...string) string {
	if !there {
		return ""
	}
	return g.maybe(label, words...)
}

func (g *gen) responsesTools() string {
	var tools, inside []string
	for i := range g.times("tools", 4) {
		t := tool{name: g.toolName(i)}
		switch g.one("tool kind", 5) {
		case 3:
			t.custom = true
			tools = append(tools, g.object("type", `"custom"`, "name", quote(t.name), "description", g.maybe("description", g.quoted("description")),
				"format", g.maybe("format", `{"type":"text"}`, `{"type":"grammar","syntax":"lark","definition":"start: /.+/"}`)))
		case 4:
			t.namespace = "mcp__n"
			inside = append(inside, g.responsesFunction(t.name))
		default:
			tools = append(tools, g.responsesFunction(t.name))
		}
		g.tools = append(g.tools, t)
	}
	if len(inside) > 0 {
		tools = append(tools, g.object("type", `"namespace"`, "name", `"mcp__n"`, "description", g.quoted("description"), "tools", g.list(inside...)))
	}
	if g.flip("hosted", 8) {
		tools = append(tools, g.object("type", `"web_search"`, "search_context_size", `"low"`))
	}
	if len(tools) == 0 {
		return ""
	}
	return g.list(tools...)
}

func (g *gen) responsesFunction(name string) string {
	return g.object("type", `"function"`, "name", quote(name), "description", g.maybe("description", g.quoted("description")), "parameters", g.schema(),
		"strict", g.pick("strict", "", "true", "false"), "defer_loading", g.maybe("defer", "true"))
}

func (g *gen) responsesChoice() string {
	if len(g.tools) == 0 {
		return ""
	}
	t := g.tools[0]
	kind, namespace := `"function"`, ""
	if t.custom {
		kind = `"custom"`
	}
	if t.namespace != "" {
		namespace = quote(t.namespace)
	}
	switch g.one("tool_choice", 6) {
	case 1:
		return `"auto"`
	case 2:
		return `"required"`
	case 3:
		return `"none"`
	case 4:
		return g.object("type", kind, "name", quote(t.name), "namespace", namespace)
	case 5:
		return g.object("type", `"allowed_tools"`, "mode", `"required"`, "tools", g.list(g.object("type", kind, "name", quote(t.name), "namespace", namespace)))
	}
	return ""
}

// responsesUser is what stands between two answers: the outputs of what was called, and what the user says.
func (g *gen) responsesUser() []string {
	var items []string
	for _, c := range g.calls {
		kind := `"function_call_output"`
		if c.custom {
			kind = `"custom_tool_call_output"`
		}
		items = append(items, g.object("type", kind, "call_id", quote(c.id), "output", g.responsesContent("output", false), "id", g.itemID("fco"),
			"status", g.maybe("status", `"completed"`)))
	}
	n := g.times("messages", 2)
	if g.calls = nil; len(items) == 0 {
		n++
	}
	for range n {
		role := g.pick("role", `"user"`, `"user"`, `"user"`, `"developer"`, `"system"`)
		items = append(items, g.object("type", g.pick("type", `"message"`, ""), "role", role, "content", g.responsesContent("content", role == `"user"`)))
	}
	return items
}

func (g *gen) itemID(kind string) string {
	if g.flip("no id", 2) {
		return ""
	}
	g.ids++
	return fmt.Sprintf(`"%s_%d"`, kind, g.ids)
}

// responsesContent is a text or a list of parts, media among them where that is so.
func (g *gen) responsesContent(label string, media bool) string {
	if g.flip("plain", 2) {
		return g.quoted(label)
	}
	var parts []string
	for range 1 + g.times("parts", 2) {
		switch kind := g.one("part", 6); {
		case kind == 4 && (media || label == "output"):
			parts = append(parts, g.object("type", `"input_image"`, "image_url", quote(g.imageURL()), "detail", g.pick("detail", `"auto"`, `"low"`, `"high"`)))
		case kind == 5 && media:
			parts = append(parts, g.object("type", `"input_file"`, "filename", `"a.pdf"`, "file_data", quote("data:application/pdf;base64,"+pdf)))
		default:
			parts = append(parts, g.object("type", `"input_text"`, "text", g.quoted("text")))
		}
	}
	return g.list(parts...)
}

// responsesAssistant are the items of an earlier answer; its calls wait for their outputs.
func (g *gen) responsesAssistant() []string {
	var items []string
	for range g.times("thoughts", 2) {
		items = append(items, g.responsesThought())
	}
	for range g.times("texts", 2) {
		items = append(items, g.responsesMessage())
	}
	for range g.times("calls", 3) {
		t := g.tool()
		c := call{id: g.id(false), name: t.name, custom: t.custom}
		g.calls = append(g.calls, c)
		namespace := ""
		if t.namespace != "" {
			namespace = quote(t.namespace)
		}
		if c.custom {
			items = append(items, g.object("type", `"custom_tool_call"`, "call_id", quote(c.id), "name", quote(c.name), "input", g.quoted("free"), "id", g.itemID("ctc")))
		} else {
			items = append(items, g.object("type", `"function_call"`, "call_id", quote(c.id), "name", quote(c.name), "namespace", namespace,
				"arguments", quote(escaped(g.input())), "id", g.itemID("fc"), "status", g.maybe("status", `"completed"`)))
		}
	}
	if g.flip("hosted call", 10) {
		items = append(items, `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`)
	}
	return items
}

func (g *gen) responsesMessage() string {
	if g.flip("plain answer", 4) {
		return g.object("type", g.pick("type", `"message"`, ""), "role", `"assistant"`, "content", g.quoted("assistant"))
	}
	var parts []string
	for range 1 + g.times("parts", 1) {
		if g.flip("refusal", 6) {
			parts = append(parts, g.object("type", `"refusal"`, "refusal", g.quoted("refusal")))
		} else {
			parts = append(parts, g.object("type", `"output_text"`, "text", g.quoted("answer"), "annotations", "[]"))
		}
	}
	return g.object("type", `"message"`, "role", `"assistant"`, "id", g.itemID("msg"), "status", g.maybe("status", `"completed"`), "content", g.list(parts...))
}

func (g *gen) responsesThought() string {
	var summary []string
	for range g.times("summaries", 2) {
		summary = append(summary, g.object("type", `"summary_text"`, "text", g.quoted("summary")))
	}
	content, sealed := "", g.maybe("sealed", `"gAAAAABo+/=="`)
	if len(summary) == 0 || sealed == "" && g.flip("open", 3) {
		content = g.list(g.object("type", `"reasoning_text"`, "text", g.quoted("reasoning")))
	}
	return g.object("type", `"reasoning"`, "id", g.itemID("rs"), "summary", g.list(summary...), "content", content, "encrypted_content", sealed)
}
