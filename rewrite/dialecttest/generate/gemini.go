package generate

// geminiCall is a GenerateContentRequest; its model is in the path.
func (g *gen) geminiCall() string {
	tools := g.geminiTools()
	var contents []string
	for range 1 + g.times("rounds", 2) {
		contents = append(contents, g.object("role", `"user"`, "parts", g.geminiUser()))
		contents = append(contents, g.object("role", `"model"`, "parts", g.geminiModel()))
	}
	if len(g.calls) > 0 || !g.flip("prefill", 6) {
		contents = append(contents, g.object("role", `"user"`, "parts", g.geminiUser()))
	}
	system := ""
	if g.flip("system", 2) {
		system = g.object("parts", g.list(g.geminiText(), g.geminiText()))
	}
	mime, schema := "", ""
	switch g.one("format", 4) {
	case 2:
		mime = `"application/json"`
	case 3:
		mime, schema = `"application/json"`, g.schema()
	}
	config := g.object(
		"temperature", g.maybe("temperature", g.fraction("temperature"), "0", "1.50"),
		"topP", g.maybe("topP", g.fraction("topP")),
		"topK", g.maybe("topK", "5"),
		"seed", g.maybe("seed", "7"),
		"presencePenalty", g.maybe("presencePenalty", "0.25"),
		"frequencyPenalty", g.maybe("frequencyPenalty", "0.50"),
		"maxOutputTokens", g.maybe("max", "4096", "7"),
		"stopSequences", g.maybe("stop", `["a","\u2028"]`),
		"responseMimeType", mime,
		"responseJsonSchema", schema,
		"thinkingConfig", g.maybe("thinking", `{"includeThoughts":true,"thinkingBudget":1024}`, `{"thinkingBudget":0}`, `{"thinkingLevel":"HIGH"}`),
	)
	if config == "{}" {
		config = ""
	}
	return g.object(
		"contents", g.list(contents...),
		"systemInstruction", system,
		"tools", tools,
		"toolConfig", g.geminiChoice(),
		"generationConfig", config,
		"safetySettings", g.maybe("safety", `[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]`),
	)
}

func (g *gen) geminiText() string { return g.object("text", g.quoted("text")) }

func (g *gen) geminiTools() string {
	var declarations, tools []string
	for i := range g.times("tools", 3) {
		t := tool{name: g.toolName(i)}
		g.tools = append(g.tools, t)
		declarations = append(declarations, g.object("name", quote(t.name), "description", g.maybe("description", g.quoted("description")),
			"parametersJsonSchema", g.schema()))
	}
	if len(declarations) > 0 {
		tools = append(tools, g.object("functionDeclarations", g.list(declarations...)))
	}
	if g.flip("hosted", 8) {
		tools = append(tools, `{"googleSearch":{}}`)
	}
	if len(tools) == 0 {
		return ""
	}
	return g.list(tools...)
}

func (g *gen) geminiChoice() string {
	if len(g.tools) == 0 {
		return ""
	}
	mode, names := g.pick("mode", "", `"AUTO"`, `"NONE"`, `"ANY"`), ""
	if mode == "" {
		return ""
	}
	if mode == `"ANY"` {
		names = g.maybe("allowed", g.list(quote(g.tools[0].name)))
	}
	return g.object("functionCallingConfig", g.object("mode", mode, "allowedFunctionNames", names))
}

// geminiUser are the parts of a user's turn: the responses to what was called, and what the user says.
func (g *gen) geminiUser() string {
	var parts []string
	for _, c := range g.calls {
		id := ""
		if c.id != "" {
			id = quote(c.id)
		}
		response := g.object(g.pick("response", "output", "result", "error"), g.quoted("response"))
		parts = append(parts, g.object("functionResponse", g.object("id", id, "name", quote(c.name), "response", response)))
	}
	n := g.times("parts", 2)
	if g.calls = nil; len(parts) == 0 {
		n++
	}
	for range n {
		if g.flip("media", 4) {
			parts = append(parts, g.object("inlineData", g.object("mimeType", `"image/png"`, "data", quote(png))))
		} else {
			parts = append(parts, g.geminiText())
		}
	}
	return g.list(parts...)
}

// geminiModel are the parts of an earlier answer; its calls wait for their responses, all of them with an id or none.
func (g *gen) geminiModel() string {
	var parts []string
	if g.flip("thought", 3) {
		parts = append(parts, g.object("text", g.quoted("thought"), "thought", "true"))
	}
	for range g.times("texts", 2) {
		parts = append(parts, g.geminiText())
	}
	withIDs := g.flip("ids", 2)
	for range g.times("calls", 3) {
		c, id := call{name: g.tool().name}, ""
		if withIDs {
			c.id = g.id(false)
			id = quote(c.id)
		}
		g.calls = append(g.calls, c)
		parts = append(parts, g.object("functionCall", g.object("id", id, "name", quote(c.name), "args", g.input()),
			"thoughtSignature", g.maybe("signature", `"Eq0B+/=="`)))
	}
	if len(parts) == 0 {
		parts = append(parts, g.geminiText())
	}
	return g.list(parts...)
}
