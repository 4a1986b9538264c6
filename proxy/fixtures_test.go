package proxy

import (
	"encoding/json"
	"strings"
	"testing"
)

// sample is what a dialect looks like on the wire.
type sample struct {
	dialect, path   string
	ask, askStream  string   // requests
	unary           string   // a JSON answer
	events          []string // a stream, one event each; the last one is terminal
	incomplete      string   // a terminal event that says cut short, where the dialect has one
	failure         string   // an error event
	foldedText      string   // path in the folded answer to its text
	text            string   // what the stream says
	contentBearing  int      // index of the first event with content
	nativeErrorBody string
}

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
func data(s string) string           { return "data: " + s + "\n\n" }

// spaced is the JSON answer with white space behind it that makes it longer than what a server gathers before it sends.
func (s sample) spaced() string { return s.unary + strings.Repeat(" ", 8<<10) }

func (s sample) stream() string   { return strings.Join(s.events, "") }
func (s sample) terminal() string { return s.events[len(s.events)-1] }
func (s sample) before() string   { return strings.Join(s.events[:len(s.events)-1], "") }

func chatSample() sample {
	chunk := func(delta, finish string) string {
		return data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`)
	}
	return sample{
		dialect: "chat", path: "/v1/chat/completions",
		ask:       `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
		askStream: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		unary:     `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		events: []string{
			chunk(`{"role":"assistant","content":""}`, "null"), chunk(`{"content":"Hello"}`, "null"), chunk(`{"content":" there"}`, "null"), chunk(`{}`, `"stop"`),
			data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`),
			data("[DONE]"),
		},
		failure:    data(`{"error":{"message":"boom","type":"server_error","code":500}}`),
		foldedText: "choices.0.message.content", text: "Hello there", contentBearing: 1,
		nativeErrorBody: `{"error":{"message":"no such model","type":"NotFoundError","param":null,"code":404}}`,
	}
}

func messagesSample() sample {
	return sample{
		dialect: "messages", path: "/v1/messages",
		ask:       `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`,
		askStream: `{"model":"m","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		unary:     `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello there"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}`,
		events: []string{
			event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":0}}}`),
			event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			event("ping", `{"type":"ping"}`),
			event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`),
			event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}`),
			event("content_block_stop", `{"type":"content_block_stop","index":0}`),
			event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}`),
			event("message_stop", `{"type":"message_stop"}`),
		},
		failure:    event("error", `{"type":"error","error":{"type":"overloaded_error","message":"boom"}}`),
		foldedText: "content.0.text", text: "Hello there", contentBearing: 3,
		nativeErrorBody: `{"type":"error","error":{"type":"not_found_error","message":"no such model"}}`,
	}
}

func responsesSample() sample {
	const item = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello there","annotations":[]}]}`
	answer := func(status, output string) string {
		return `{"id":"resp_1","object":"response","created_at":1,"status":"` + status + `","model":"m","output":[` + output + `],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`
	}
	return sample{
		dialect: "responses", path: "/v1/responses",
		ask:       `{"model":"m","input":"hi"}`,
		askStream: `{"model":"m","stream":true,"input":"hi"}`,
		unary:     answer("completed", item),
		events: []string{
			event("response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`),
			event("response.output_item.added", `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`),
			event("response.content_part.added", `{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`),
			event("response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"}`),
			event("response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" there"}`),
			event("response.output_item.done", `{"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":`+item+`}`),
			event("response.completed", `{"type":"response.completed","sequence_number":6,"response":`+answer("completed", item)+`}`),
		},
		incomplete: event("response.incomplete", `{"type":"response.incomplete","sequence_number":6,"response":`+strings.Replace(answer("incomplete", item), `"model"`, `"incomplete_details":{"reason":"max_output_tokens"},"model"`, 1)+`}`),
		failure:    event("error", `{"type":"error","sequence_number":6,"code":"server_error","message":"boom","param":null}`),
		foldedText: "output.0.content.0.text", text: "Hello there", contentBearing: 3,
		nativeErrorBody: `{"error":{"message":"no such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`,
	}
}

func samples() []sample { return []sample{chatSample(), messagesSample(), responsesSample()} }

func sampleOf(dialect string) sample {
	for _, s := range samples() {
		if s.dialect == dialect {
			return s
		}
	}
	panic("no sample of " + dialect)
}

// checkError says whether body is an error in the dialect's own shape that carries code.
func (s sample) checkError(t testing.TB, body, code string) {
	t.Helper()
	var e struct {
		Type  string
		Error struct{ Type, Message, Code string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Errorf("the error is no JSON object: %v: %q", err, body)
		return
	}
	if e.Error.Type == "" || e.Error.Message == "" {
		t.Errorf("the error has no type or no message: %s", body)
	}
	if s.dialect == "messages" {
		if e.Type != "error" || e.Error.Code != "" {
			t.Errorf("no error in the Messages shape: %s", body)
		}
	} else if e.Error.Code != code || e.Type != "" {
		t.Errorf("no error in OpenAI's shape with code %q: %s", code, body)
	}
}
