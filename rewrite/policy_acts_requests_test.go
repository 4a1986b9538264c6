package rewrite

import "rolltap/rewrite/canon"

// by are the texts of the dialects: of chat, messages, responses and Gemini; an empty one is none.
func by(chat, messages, responses, gemini string) map[canon.Dialect]string {
	all := map[canon.Dialect]string{}
	for d, text := range map[canon.Dialect]string{canon.Chat: chat, canon.Messages: messages, canon.Responses: responses, canon.Gemini: gemini} {
		if text != "" {
			all[d] = text
		}
	}
	return all
}

// hello is a request that says hi.
func hello(d canon.Dialect) string {
	return by(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","input":"hi"}`, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)[d]
}

// saying are requests that say hi and have these members besides.
func saying(chat, messages, responses, gemini string) map[canon.Dialect]string {
	all := by(chat, messages, responses, gemini)
	for d, members := range all {
		body := []byte(hello(d))
		all[d] = string(mergeOver(body, []byte(members)))
	}
	return all
}

// answering are answers of upstreams with this text and reasoning; Messages signs the latter.
func answering(text, reasoning, chatFinish string) map[canon.Dialect]string {
	message, blocks, items := `{"role":"assistant","content":"`+text+`"}`, `{"type":"text","text":"`+text+`"}`,
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"`+text+`","annotations":[]}]}`
	if reasoning != "" {
		message = `{"role":"assistant","content":"` + text + `","reasoning":"` + reasoning + `"}`
		blocks = `{"type":"thinking","thinking":"` + reasoning + `","signature":"sig"},` + blocks
		items = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"` + reasoning + `"}]},` + items
	}
	stop, status := "end_turn", `"status":"completed","incomplete_details":null`
	if chatFinish == "length" {
		stop, status = "max_tokens", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`
	}
	return by(
		`{"id":"c1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":`+message+`,"finish_reason":"`+chatFinish+`"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`+blocks+`],"stop_reason":"`+stop+`","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}`,
		`{"id":"resp_1","object":"response","created_at":1700000000,"model":"m",`+status+`,"error":null,"output":[`+items+`],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`,
		"")
}

// lateSystemRequests have a message of system behind the first other one. Gemini has no such message.
func lateSystemRequests() map[canon.Dialect]string {
	return by(
		`{"model":"m","messages":[{"role":"system","content":"A"},{"role":"user","content":"hi"},{"role":"assistant","content":"ok"},{"role":"system","content":"late"},{"role":"user","content":"go"}]}`,
		`{"model":"m","max_tokens":4000,"system":"A","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ok"},{"role":"system","content":"late"},{"role":"user","content":"go"}]}`,
		`{"model":"m","instructions":"A","input":[{"role":"user","content":"hi"},{"role":"assistant","content":"ok"},{"role":"system","content":"late"},{"role":"user","content":"go"}]}`,
		"")
}

// prefilledRequests end with words of the assistant.
func prefilledRequests() map[canon.Dialect]string {
	return by(
		`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"The"}]}`,
		`{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"The"}]}`,
		`{"model":"m","input":[{"role":"user","content":"hi"},{"role":"assistant","content":"The"}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"The"}]}]}`)
}

// pastReasoningRequests have reasoning in the history that nobody signed.
func pastReasoningRequests() map[canon.Dialect]string {
	return by(
		`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning":"T"},{"role":"user","content":"go"}]}`,
		`{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"T","signature":""},{"type":"text","text":"a"}]},{"role":"user","content":"go"}]}`,
		`{"model":"m","input":[{"role":"user","content":"hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"T"}]},{"role":"assistant","content":"a"},{"role":"user","content":"go"}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"T","thought":true},{"text":"a"}]},{"role":"user","parts":[{"text":"go"}]}]}`)
}

const pixel = "data:image/png;base64,AAAA"

// imageRequests show an image.
func imageRequests() map[canon.Dialect]string {
	return by(
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+pixel+`"}}]}]}`,
		`{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"`+pixel+`"}]}]}`,
		`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}]}`)
}

// resultImageRequests have one in a tool's result. Chat's results are texts.
func resultImageRequests() map[canon.Dialect]string {
	return by("",
		`{"model":"m","max_tokens":4000,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}]}`,
		`{"model":"m","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"t1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"t1","output":[{"type":"input_image","image_url":"`+pixel+`"}]}]}`,
		`{"tools":[{"functionDeclarations":[{"name":"f"}]}],"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"id":"t1","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"t1","name":"f","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]}]}`)
}

// customToolRequests offer a tool that is called with free text beside a function, and have a call of it in the history. Only OpenAI's
// dialects have such tools.
func customToolRequests() map[canon.Dialect]string {
	return by(
		`{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"custom","custom":{"name":"exec"}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"exec","input":"1+1"}}]},{"role":"tool","tool_call_id":"c1","content":"2"}]}`,
		"",
		`{"model":"m","tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"custom","name":"exec"}],"input":[{"role":"user","content":"hi"},{"type":"custom_tool_call","call_id":"c1","name":"exec","input":"1+1"},{"type":"custom_tool_call_output","call_id":"c1","output":"2"}]}`,
		"")
}

// hostedToolRequests offer one that a provider runs beside a function.
func hostedToolRequests() map[canon.Dialect]string {
	return saying(
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"web_search"}]}`,
		`{"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}]}`,
		`{"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"web_search"}]}`,
		`{"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]}`)
}

// hostedHistoryRequests have earlier calls of such tools.
func hostedHistoryRequests() map[canon.Dialect]string {
	return by(
		`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","tool_calls":[{"id":"s1","type":"web_search","web_search":{"query":"q"}}]},{"role":"user","content":"go"}]}`,
		`{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}},{"type":"text","text":"a"}]},{"role":"user","content":"go"}]}`,
		`{"model":"m","input":[{"role":"user","content":"hi"},{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},{"role":"assistant","content":"a"},{"role":"user","content":"go"}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"text":"a"}]},{"role":"user","parts":[{"text":"go"}]}]}`)
}

func strictToolRequests() map[canon.Dialect]string {
	return saying(
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":true}}]}`,
		`{"tools":[{"name":"f","input_schema":{"type":"object"},"strict":true}]}`,
		`{"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}]}`,
		"")
}
