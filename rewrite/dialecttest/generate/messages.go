package generate

import "fmt"

// messagesCall is a request of the Messages API (wire.md 3.1.1).
func (g *gen) messagesCall() string {
	tools := g.messagesTools()
	var turns []string
	for range 1 + g.times("rounds", 2) {
		turns = append(turns, g.object("role", `"user"`, "content", g.messagesUser()))
		if g.flip("late system", 12) {
			turns = append(turns, g.object("role", `"system"`, "content", g.quoted("late")))
		}
		turns = append(turns, g.object("role", `"assistant"`, "content", g.messagesAssistant()))
	}
	if len(g.calls) > 0 || !g.flip("prefill", 6) {
		turns = append(turns, g.object("role", `"user"`, "content", g.messagesUser()))
	}
	maxTokens := g.pick("max_tokens", "4096", "7", "32000")
	thinking, temperature := "", g.maybe("temperature", g.fraction("temperature"), "0", "1")
	switch g.one("thinking", 6) {
	case 1:
		maxTokens, temperature = "32000", ""
		thinking = g.object("type", `"enabled"`, "budget_tokens", "1024")
	case 2:
		thinking = g.object("type", `"disabled"`)
	case 3:
		thinking = g.object("type", `"adaptive"`)
	}
	return g.object(
		"model", `"claude-x"`,
		"max_tokens", maxTokens,
		"system", g.messagesSystem(),
		"messages", g.list(turns...),
		"tools", tools,
		"tool_choice", g.messagesChoice(),
		"temperature", temperature,
		"top_p", g.maybe("top_p", g.fraction("top_p")),
		"top_k", g.maybe("top_k", "5", "40"),
		"stop_sequences", g.maybe("stop", `["\n\nHuman:"]`, `["a","\u2028"]`),
		"thinking", thinking,
		"output_config", g.maybe("output_config", `{"effort":"high"}`, `{"effort":"max"}`,
			`{"format":{"type":"json_schema","schema":`+g.schema()+`}}`),
		"metadata", g.maybe("metadata", `{"user_id":"u_1"}`, `{"user_id":"{\"device\":\"x\"}"}`),
		"service_tier", g.maybe("service_tier", `"standard_only"`),
		"stream", g.maybe("stream", "true"),
		"cache_control", g.cacheControl(),
		"context_management", g.maybe("context_management", `{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}`),
	)
}

func (g *gen) cacheControl() string {
	if !g.flip("cache_control", 8) {
		return ""
	}
	return g.pick("cache_control", `{"type":"ephemeral"}`, `{"type":"ephemeral","ttl":"1h"}`)
}

func (g *gen) messagesSystem() string {
	switch g.one("system", 4) {
	case 1:
		return g.quoted("system")
	case 2, 3:
		var blocks []string
		for range 1 + g.times("system blocks", 2) {
			blocks = append(blocks, g.messagesText())
		}
		return g.list(blocks...)
	}
	return ""
}

func (g *gen) messagesText() string {
	return g.object("type", `"text"`, "text", g.quoted("text"), "cache_control", g.cacheControl())
}

func (g *gen) messagesTools() string {
	var tools []string
	for i := range g.times("tools", 3) {
		t := tool{name: g.toolName(i)}
		if g.flip("long name", 10) {
			t.name += "_" + fmt.Sprintf("%060d", i)
		}
		g.tools = append(g.tools, t)
		tools = append(tools, g.object("name", quote(t.name), "description", g.maybe("description", g.quoted("description")), "input_schema", g.schema(),
			"type", g.maybe("tool type", `"custom"`), "strict", g.maybe("strict", "true"), "cache_control", g.cacheControl(),
			"defer_loading", g.maybe("defer", "true"), "input_examples", g.maybe("examples", `[{"a":1}]`)))
	}
	if g.flip("hosted", 8) {
		tools = append(tools, g.object("type", `"web_search_20250305"`, "name", `"web_search"`, "max_uses", "5"))
	}
	if len(tools) == 0 {
		return ""
	}
	return g.list(tools...)
}

func (g *gen) messagesChoice() string {
	if len(g.tools) == 0 {
		return ""
	}
	once := g.maybe("once", "true")
	switch g.one("tool_choice", 5) {
	case 1:
		return g.object("type", `"auto"`, "disable_parallel_tool_use", once)
	case 2:
		return g.object("type", `"any"`, "disable_parallel_tool_use", once)
	case 3:
		return g.object("type", `"tool"`, "name", quote(g.tools[0].name), "disable_parallel_tool_use", once)
	case 4:
		return g.object("type", `"none"`)
	}
	return ""
}

// messagesUser is the content of a user's turn: the results of what was called, and what the user says.
func (g *gen) messagesUser() string {
	if len(g.calls) == 0 && g.flip("plain", 2) {
		return g.quoted("user")
	}
	var blocks []string
	for _, c := range g.calls {
		blocks = append(blocks, g.object("type", `"tool_result"`, "tool_use_id", quote(c.id), "content", g.messagesResult(),
			"is_error", g.maybe("is_error", "true"), "cache_control", g.cacheControl()))
	}
	n := g.times("blocks", 3)
	if g.calls = nil; len(blocks) == 0 {
		n++
	}
	for range n {
		blocks = append(blocks, g.messagesUserBlock())
	}
	return g.list(blocks...)
}

func (g *gen) messagesUserBlock() string {
	cache := g.cacheControl()
	switch g.one("user block", 8) {
	case 0, 1, 2:
		return g.messagesText()
	case 3:
		return g.object("type", `"document"`, "source", g.object("type", `"text"`, "media_type", `"text/plain"`, "data", g.quoted("document")),
			"title", g.maybe("title", `"T"`), "cache_control", cache)
	case 4:
		return g.object("type", `"document"`, "source", g.object("type", `"base64"`, "media_type", `"application/pdf"`, "data", quote(pdf)), "cache_control", cache)
	case 5:
		return g.object("type", `"search_result"`, "source", `"https://h/s"`, "title", g.quoted("title"), "content", g.list(g.messagesText()))
	}
	return g.messagesImage()
}

func (g *gen) messagesImage() string {
	source := g.object("type", `"base64"`, "media_type", `"image/png"`, "data", quote(png))
	if g.flip("image url", 2) {
		source = g.object("type", `"url"`, "url", `"https://h/x.png?a=1&b=2"`)
	}
	return g.object("type", `"image"`, "source", source, "cache_control", g.cacheControl())
}

// messagesResult is what a tool gave.
func (g *gen) messagesResult() string {
	switch g.one("result", 5) {
	case 1:
		return ""
	case 2, 3, 4:
		var blocks []string
		for range 1 + g.times("result blocks", 2) {
			if g.flip("result image", 3) {
				blocks = append(blocks, g.messagesImage())
			} else {
				blocks = append(blocks, g.messagesText())
			}
		}
		return g.list(blocks...)
	}
	return g.quoted("result")
}

// messagesAssistant is the content of an earlier answer; its calls wait for their results.
func (g *gen) messagesAssistant() string {
	if g.flip("plain answer", 4) {
		return g.quoted("assistant")
	}
	var blocks []string
	for range g.times("thoughts", 2) {
		if g.flip("redacted", 4) {
			blocks = append(blocks, g.object("type", `"redacted_thinking"`, "data", `"EmwKAhgB+/=="`))
		} else {
			blocks = append(blocks, g.object("type", `"thinking"`, "thinking", g.quoted("thinking"), "signature", quote(g.pick("signature", "", "EqQBCgIYAhIM+/A=="))))
		}
	}
	for range g.times("texts", 2) {
		blocks = append(blocks, g.object("type", `"text"`, "text", g.quoted("answer"), "cache_control", g.cacheControl()))
	}
	for range g.times("calls", 3) {
		c := call{id: g.id(true), name: g.tool().name}
		g.calls = append(g.calls, c)
		blocks = append(blocks, g.object("type", `"tool_use"`, "id", quote(c.id), "name", quote(c.name), "input", g.input(), "cache_control", g.cacheControl()))
	}
	if len(blocks) == 0 {
		return g.list(g.object("type", `"text"`, "text", g.quoted("answer")))
	}
	return g.list(blocks...)
}
