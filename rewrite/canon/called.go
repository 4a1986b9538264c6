package canon

// Called is what clients of a dialect call what Chat calls name, with the path to it where it is no member of the request itself. It is for
// losses and refusals of what a Request keeps no path of: parameters, stop sequences, the choice of a tool, members of reasoning.
func (d Dialect) Called(name string) string {
	var known string
	switch d {
	case Messages:
		known = calledInMessages(name)
	case Responses:
		switch name {
		case "verbosity":
			known = "text.verbosity"
		case "logprobs":
			known = "include.message.output_text.logprobs"
		}
	case Gemini:
		known = calledInGemini(name)
	}
	if known == "" {
		return name
	}
	return known
}

func calledInMessages(name string) string {
	switch name {
	case "stop":
		return "stop_sequences"
	case "encrypted_content":
		return "signature"
	}
	return ""
}

// Sampling stands in an object of its own there.
func calledInGemini(name string) string {
	switch name {
	case "max_tokens":
		return "generationConfig.maxOutputTokens"
	case "temperature", "seed":
		return "generationConfig." + name
	case "top_p":
		return "generationConfig.topP"
	case "top_k":
		return "generationConfig.topK"
	case "frequency_penalty":
		return "generationConfig.frequencyPenalty"
	case "presence_penalty":
		return "generationConfig.presencePenalty"
	case "stop":
		return "generationConfig.stopSequences"
	case "tool_choice":
		return "toolConfig.functionCallingConfig"
	case "budget_tokens":
		return "thinkingBudget"
	case "effort":
		return "thinkingLevel"
	case "encrypted_content":
		return "thoughtSignature"
	case "arguments":
		return "functionCall.args"
	}
	return ""
}
