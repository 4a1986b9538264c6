package rewrite

// Words that several cases share.
const (
	allSame  = "chat messages responses"
	chatOnly = "a member of Chat's, or one that only Chat servers take"
)

func actCases() []actCase {
	return append(append(requestCases(), conversationCases()...), append(toolCases(), answerCases()...)...)
}

// requestCases are of keys about the members of a request.
func requestCases() []actCase {
	extras := saying(`{"metadata":{"extra_body":"{\"min_p\":0.05}"}}`, `{"metadata":{"extra_body":"{\"min_p\":0.05}"}}`, `{"metadata":{"extra_body":"{\"min_p\":0.05}"}}`, "")
	warm := saying(`{"temperature":0.5}`, `{"temperature":0.5}`, `{"temperature":0.5}`, `{"generationConfig":{"temperature":0.5}}`)
	long := saying(`{"max_tokens":3000}`, `{"max_tokens":3000}`, `{"max_output_tokens":3000}`, `{"generationConfig":{"maxOutputTokens":3000}}`)
	thinking := saying(`{"reasoning_effort":"high","max_tokens":9000}`, `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000}}`,
		`{"reasoning":{"effort":"high"}}`, `{"generationConfig":{"thinkingConfig":{"thinkingBudget":2000}}}`)
	const forMessages = "it is for what Messages upstreams need"
	return []actCase{
		{key: "extra_body", value: `{"min_p":0.05,"model":"never"}`, same: allSame},
		{key: "override", value: `{"seed":7,"model":"other"}`, same: allSame},
		{key: "metadata_extras", value: `false`, requests: extras, clients: allSame, idle: "Gemini has no metadata"},
		{key: "sampling", value: `[{"model":"M","forbid":["temperature","top_k"],"action":"error"}]`, requests: warm, upstreams: "messages", idle: forMessages},
		{key: "sampling", value: `[{"model":"M","forbid":["temperature","top_k"],"action":"drop"}]`, requests: warm, upstreams: "messages", idle: forMessages},
		{key: "chat_extensions", value: `false`, upstreams: "chat", idle: chatOnly, requests: saying("", `{"top_k":5}`,
			`{"input":[{"role":"user","content":"hi"},{"role":"assistant","content":"The"}]}`, `{"generationConfig":{"topK":5,"thinkingConfig":{"thinkingBudget":0}}}`)},
		{key: "sampling", value: `[{"model":"M","forbid":["stop_sequences"],"action":"drop"}]`, upstreams: "messages", idle: forMessages,
			requests: saying(`{"stop":["x"]}`, `{"stop_sequences":["x"]}`, `{"input":"hi"}`, `{"generationConfig":{"stopSequences":["x"]}}`), clients: "chat gemini"},
		{key: "default_max_tokens", value: `100`, upstreams: "messages", idle: forMessages},
		{key: "max_tokens_limit", value: `100`, requests: long},
		{key: "max_tokens_limit", value: `0`, requests: long, call: Call{Window: func(string) int64 { return 2000 }}},
		{key: "max_tokens_name", value: `"max_completion_tokens"`, requests: long, upstreams: "chat", idle: chatOnly},
		{key: "thinking", value: `"off"`, requests: thinking},
		{key: "thinking_budget_tokens", value: `2048`, upstreams: "messages", idle: forMessages},
	}
}

// conversationCases are of keys about messages and their parts.
func conversationCases() []actCase {
	const late = "a Responses upstream takes such messages where they are; Gemini clients have none"
	return []actCase{
		{key: "unsigned_thinking", value: `"drop"`, requests: pastReasoningRequests(), upstreams: "messages", same: "messages", idle: "nobody else verifies signatures of Messages"},
		{key: "reasoning_replay", value: `"reasoning"`, requests: pastReasoningRequests(), upstreams: "chat", idle: chatOnly},
		{key: "reasoning_replay", value: `"reasoning_content"`, requests: pastReasoningRequests(), upstreams: "chat", idle: chatOnly},
		{key: "reasoning_replay", value: `"none"`, requests: pastReasoningRequests(), upstreams: "chat", idle: chatOnly},
		{key: "late_system", value: `"system"`, requests: lateSystemRequests(), clients: allSame, upstreams: "chat messages", idle: late},
		{key: "late_system", value: `"merge"`, requests: lateSystemRequests(), clients: allSame, idle: late},
		{key: "developer_role", value: `"keep"`, clients: "responses", upstreams: "chat", idle: "Messages and Gemini have no developers",
			requests: by("", "", `{"model":"m","input":[{"role":"developer","content":"D"},{"role":"user","content":"hi"}]}`, "")},
		{key: "billing_line", value: `"keep"`, clients: "messages", idle: "Claude Code speaks Messages",
			requests: saying("", `{"system":[{"type":"text","text":"x-anthropic-billing-header: v"},{"type":"text","text":"A"}]}`, "", "")},
		{key: "prefill", value: `"pass"`, requests: prefilledRequests(), upstreams: "chat", idle: "other upstreams are sent it as it is anyway"},
		{key: "prefill", value: `"error"`, requests: prefilledRequests()},
		{key: "images", value: `"drop"`, requests: imageRequests()},
		{key: "images", value: `"error"`, requests: imageRequests()},
		{key: "images", value: `"drop"`, requests: resultImageRequests(), clients: "messages responses gemini", idle: "Chat's results are texts"},
		{key: "images", value: `"error"`, requests: resultImageRequests(), clients: "messages responses gemini", idle: "Chat's results are texts"},
		{key: "tool_result_images", value: `"inline"`, requests: resultImageRequests(), upstreams: "chat", idle: "others have images in results"},
		{key: "tool_result_images", value: `"placeholder"`, requests: resultImageRequests(), upstreams: "chat", idle: "others have images in results"},
	}
}

// toolCases are of keys about tools.
func toolCases() []actCase {
	const openAI = "OpenAI's dialects alone have custom tools"
	return []actCase{
		{key: "custom_tools", value: `"native"`, requests: customToolRequests(), clients: "chat responses", upstreams: "chat messages", idle: openAI + ", and a Responses upstream has its own"},
		{key: "custom_tools", value: `"drop"`, requests: customToolRequests(), clients: "chat responses", idle: openAI},
		{key: "custom_tools", value: `"error"`, requests: customToolRequests(), clients: "chat responses", idle: openAI},
		{key: "hosted_tools", value: `"pass"`, requests: hostedToolRequests()},
		{key: "hosted_tools", value: `"error"`, requests: hostedToolRequests()},
		{key: "hosted_history", value: `"drop"`, requests: hostedHistoryRequests()},
		{key: "strict_tools", value: `"drop"`, requests: strictToolRequests(), clients: allSame, idle: "Gemini has no such member"},
	}
}

// answerCases are of keys about answers.
func answerCases() []actCase {
	const forResponses = "it is for what Responses clients read"
	sealed := saying("", "", `{"include":["reasoning.encrypted_content"]}`, `{"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`)
	key := func(p *Policy) { p.SealKey = []byte("a key of sixteen") }
	return []actCase{
		{key: "reasoning_output", value: `"content"`, answers: answering("a", "T", "stop"), clients: "responses", idle: forResponses},
		{key: "reasoning_output", value: `"both"`, answers: answering("a", "T", "stop"), clients: "responses", idle: forResponses},
		{key: "reasoning_seal_key_file", value: `"key"`, answers: answering("a", "T", "stop"), requests: sealed, clients: "messages responses gemini", policy: key,
			idle: "Chat has no place for seals"},
		{key: "reasoning_seal_key_file", value: `"key"`, requests: pastReasoningRequests(), upstreams: "messages", policy: key,
			idle: "only Messages upstreams are sent a seal"},
		{key: "think_tags", value: `"parse"`, answers: answering("<think>T</think>a", "", "stop")},
		{key: "context_overflow", value: `"length"`, refusal: `{"error":{"message":"This model's maximum context length is 10 tokens","type":"BadRequestError","code":400}}`},
		{key: "incomplete_event", value: `"completed"`, answers: answering("a", "", "length"), clients: "responses", idle: forResponses},
		{key: "incomplete_event", value: `"incomplete"`, answers: answering("a", "", "length"), clients: "responses", call: Call{Codex: true}, idle: forResponses},
	}
}
