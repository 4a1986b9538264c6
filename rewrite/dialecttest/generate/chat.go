package generate

// chatCall is a request of Chat Completions with what vLLM adds to it (wire.md 1.3, 3.3).
func (g *gen) chatCall() string {
	tools := g.chatTools()
	var messages []string
	for range g.times("system", 2) {
		messages = append(messages, g.object("role", g.pick("system role", `"system"`, `"developer"`), "content", g.chatTexts("system")))
	}
	for range 1 + g.times("rounds", 2) {
		messages = append(messages, g.chatUser()...)
		messages = append(messages, g.chatAssistant())
	}
	if len(g.calls) > 0 || !g.flip("prefill", 6) {
		messages = append(messages, g.chatUser()...)
	}
	stream := g.maybe("stream", "true")
	topLogprobs := g.maybe("top_logprobs", "2")
	logprobs := ""
	if topLogprobs != "" {
		logprobs = "true"
	}
	return g.object(
		"model", `"m"`,
		"messages", g.list(messages...),
		"tools", tools,
		"tool_choice", g.chatChoice(),
		"parallel_tool_calls", g.maybeWith(len(g.tools) > 0, "parallel", "true", "false"),
		g.pick("max name", "max_tokens", "max_completion_tokens"), g.maybe("max", "4096", "7"),
		"temperature", g.maybe("temperature", g.fraction("temperature"), "0", "1.50"),
		"top_p", g.maybe("top_p", g.fraction("top_p")),
		"top_k", g.maybe("top_k", "5"),
		"min_p", g.maybe("min_p", "0.05"),
		"seed", g.maybe("seed", "42", "-1"),
		"frequency_penalty", g.maybe("frequency_penalty", "0.50"),
		"presence_penalty", g.maybe("presence_penalty", "-1.5"),
		"repetition_penalty", g.maybe("repetition_penalty", "1.10"),
		"logit_bias", g.maybe("logit_bias", `{"50256":-100}`),
		"stop", g.maybe("stop", `"\n\n"`, `["a","\u2028"]`),
		"logprobs", logprobs,
		"top_logprobs", topLogprobs,
		"response_format", g.maybe("response_format", `{"type":"json_object"}`,
			`{"type":"json_schema","json_schema":{"name":"n","schema":`+g.schema()+`,"strict":true,"description":"d"}}`),
		"reasoning_effort", g.maybe("reasoning_effort", `"high"`, `"none"`, `"minimal"`),
		"verbosity", g.maybe("verbosity", `"low"`),
		"stream", stream,
		"stream_options", g.maybeWith(stream != "", "stream_options", `{"include_usage":true}`),
		"user", g.maybe("user", `"u"`),
		"metadata", g.maybe("metadata", `{"k":"\u00e9"}`),
		"store", g.maybe("store", "true", "false"),
		"service_tier", g.maybe("service_tier", `"flex"`),
		"prompt_cache_key", g.maybe("prompt_cache_key", `"k"`),
		"safety_identifier", g.maybe("safety_identifier", `"s"`),
	)
}

func (g *gen) chatTools() string {
	var tools []string
	for i := range g.times("tools", 3) {
		t := tool{name: g.toolName(i), custom: g.flip("custom", 4)}
		g.tools = append(g.tools, t)
		about := g.maybe("description", g.quoted("description"))
		if t.custom {
			tools = append(tools, g.object("type", `"custom"`, "custom", g.object("name", quote(t.name), "description", about,
				"format", g.maybe("format", `{"type":"text"}`, `{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /.+/"}}`))))
			continue
		}
		tools = append(tools, g.object("type", `"function"`, "function", g.object("name", quote(t.name), "description", about, "parameters", g.schema(),
			"strict", g.maybe("strict", "true"))))
	}
	if len(tools) == 0 {
		return ""
	}
	return g.list(tools...)
}

func (g *gen) chatChoice() string {
	if len(g.tools) == 0 {
		return ""
	}
	kind := "function"
	if g.tools[0].custom {
		kind = "custom"
	}
	named := g.object("type", quote(kind), kind, g.object("name", quote(g.tools[0].name)))
	switch g.one("tool_choice", 6) {
	case 1:
		return `"auto"`
	case 2:
		return `"required"`
	case 3:
		return `"none"`
	case 4:
		return named
	case 5:
		return g.object("type", `"allowed_tools"`, "allowed_tools", g.object("mode", `"auto"`, "tools", g.list(named)))
	}
	return ""
}

// chatTexts is a content of texts alone.
func (g *gen) chatTexts(label string) string {
	if g.flip("plain", 2) {
		return g.quoted(label)
	}
	var parts []string
	for range 1 + g.times("parts", 2) {
		parts = append(parts, g.object("type", `"text"`, "text", g.quoted(label)))
	}
	return g.list(parts...)
}

// chatUser are the results of what was called, and what the user says.
func (g *gen) chatUser() []string {
	var messages []string
	for _, c := range g.calls {
		messages = append(messages, g.object("role", `"tool"`, "tool_call_id", quote(c.id), "content", g.chatTexts("result")))
	}
	if g.calls != nil && g.flip("results alone", 2) {
		g.calls = nil
		return messages
	}
	g.calls = nil
	content := g.chatTexts("user")
	if g.flip("media", 3) {
		var parts []string
		for range 1 + g.times("parts", 2) {
			switch g.one("part", 3) {
			case 0:
				parts = append(parts, g.object("type", `"text"`, "text", g.quoted("text")))
			case 1:
				parts = append(parts, g.object("type", `"image_url"`, "image_url", g.object("url", quote(g.imageURL()), "detail", g.maybe("detail", `"low"`, `"high"`))))
			case 2:
				parts = append(parts, g.object("type", `"file"`, "file", g.object("filename", `"a.pdf"`, "file_data", quote("data:application/pdf;base64,"+pdf))))
			}
		}
		content = g.list(parts...)
	}
	return append(messages, g.object("role", `"user"`, "content", content, "name", g.maybe("name", `"n"`)))
}

// chatAssistant is an earlier answer; its calls wait for their results.
func (g *gen) chatAssistant() string {
	var calls []string
	for range g.times("calls", 3) {
		t := g.tool()
		c := call{id: g.id(false), name: t.name, custom: t.custom}
		g.calls = append(g.calls, c)
		if c.custom {
			calls = append(calls, g.object("id", quote(c.id), "type", `"custom"`, "custom", g.object("name", quote(c.name), "input", g.quoted("free"))))
		} else {
			calls = append(calls, g.object("id", quote(c.id), "type", `"function"`, "function", g.object("name", quote(c.name), "arguments", quote(escaped(g.input())))))
		}
	}
	content, list := g.chatTexts("assistant"), ""
	if len(calls) > 0 {
		list = g.list(calls...)
		content = g.pick("content", content, "null", `""`)
	}
	reasoning, refusal := g.maybe("reasoning", g.quoted("reasoning")), ""
	if g.flip("refusal", 8) {
		refusal = g.quoted("refusal")
	}
	return g.object("role", `"assistant"`, "content", content, g.pick("reasoning name", "reasoning_content", "reasoning"), reasoning, "refusal", refusal, "tool_calls", list)
}
