package responses

import (
	"strconv"
	"testing"

	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// frame is one event with its name, its type last in the object as vLLM writes it.
func frame(kind, members string) string {
	return "event: " + kind + "\n" + dataOnly(kind, members)
}

func dataOnly(kind, members string) string {
	if members != "" {
		members += ","
	}
	return "data: {" + members + `"type":"` + kind + `"}` + "\n\n"
}

func added(index, item string) string {
	return frame("response.output_item.added", `"output_index":`+index+`,"item":`+item)
}

func deltaOf(kind, index, part, delta string) string {
	return frame("response."+kind+".delta", `"output_index":`+index+`,"content_index":`+part+`,"item_id":"i`+index+`","delta":"`+delta+`"`)
}

func answer(output string) string {
	return `{"id":"r1","status":"in_progress","output":[` + output + `],"model":"m"}`
}

var (
	created = frame("response.created", `"response":{"id":"r1","status":"in_progress","output":[],"model":"m"},"sequence_number":0`)
	message = `{"id":"i0","type":"message","status":"in_progress","role":"assistant","content":[]}`
	call    = `{"id":"i1","type":"function_call","call_id":"c1","name":"f","arguments":"","status":"in_progress"}`
)

var streams = []struct {
	name    string
	stream  string
	verdict dialect.Verdict
	want    string
}{
	{"the response of the terminal event, verbatim", created + frame("response.output_item.done", `"output_index":0,"item":{"id":"x"}`) +
		frame("response.completed", `"response":{"id":"r1","status":"completed","output":[{"n":1.0}]}`), dialect.Complete, `{"id":"r1","status":"completed","output":[{"n":1.0}]}`},
	{"without event names", dataOnly("response.created", `"response":{"id":"r1"}`) + dataOnly("response.completed", `"response":{"id":"r1","status":"completed"}`), dialect.Complete,
		`{"id":"r1","status":"completed"}`},
	{"by name alone", "event: response.completed\ndata: {\"response\":{\"id\":\"r1\"}}\n\n", dialect.Complete, `{"id":"r1"}`},
	{"at the end of the body, without a blank line", "event: response.completed\ndata: {\"response\":{\"id\":\"r1\"}}", dialect.Complete, `{"id":"r1"}`},
	{"incomplete", frame("response.incomplete", `"response":{"status":"incomplete"}`), dialect.Incomplete, `{"status":"incomplete"}`},
	{"failed", frame("response.failed", `"response":{"status":"failed","error":{"code":"server_error"}}`), dialect.Failed, `{"status":"failed","error":{"code":"server_error"}}`},
	{"an error event keeps what was said", created + deltaOf("output_text", "0", "0", "A") + frame("error", `"code":"server_error","message":"m","param":null`), dialect.Failed,
		answer(`{"id":"i0","type":"message","content":[{"type":"output_text","text":"A"}]}`)},
	{"a terminal event without a response", created + added("0", message) + frame("response.completed", ""), dialect.Complete, answer(message)},
	{"a terminal event whose data is broken", created + "event: response.completed\ndata: {\n\n", dialect.Complete, answer("")},
	{"a snapshot and then nothing", created, dialect.None, answer("")},
	{"the last of several snapshots", created + frame("response.in_progress", `"response":{"id":"r2"}`), dialect.None, `{"id":"r2"}`},
	{"one delta and nothing else", deltaOf("output_text", "0", "0", "A"), dialect.None,
		`{"object":"response","output":[{"id":"i0","type":"message","content":[{"type":"output_text","text":"A"}]}]}`},
	{"pings and unknown events say nothing", frame("keepalive", "") + frame("response.web_search_call.searching", `"output_index":0`), dialect.None, ""},
	{"done is not the end of this dialect", "data: [DONE]\n\n", dialect.None, ""},
	{"a cut in the middle of a message", created + added("0", message) + frame("response.content_part.added", `"output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`) +
		deltaOf("output_text", "0", "0", "Hel") + deltaOf("output_text", "0", "0", "lo"), dialect.None,
		answer(`{"id":"i0","type":"message","status":"in_progress","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}`)},
	{"text, annotations and logprobs", created + added("0", message) +
		frame("response.output_text.delta", `"output_index":0,"content_index":0,"delta":"A","logprobs":[{"logprob":-1.50}]`) +
		frame("response.output_text.annotation.added", `"output_index":0,"content_index":0,"annotation":{"a":1}`) +
		frame("response.output_text.delta", `"output_index":0,"content_index":0,"delta":"B","logprobs":[{"logprob":-2e-6}]`) +
		frame("response.output_text.done", `"output_index":0,"content_index":0,"text":"AB","logprobs":[]`) +
		frame("response.content_part.done", `"output_index":0,"content_index":0,"part":{"type":"output_text","text":"AB","logprobs":null}`), dialect.None,
		answer(`{"id":"i0","type":"message","status":"in_progress","role":"assistant","content":[{"type":"output_text","text":"AB","logprobs":[{"logprob":-1.50},{"logprob":-2e-6}],"annotations":[{"a":1}]}]}`)},
	{"parallel calls, interleaved", created + added("2", call) + added("1", call) + deltaOf("function_call_arguments", "1", "0", `{\"a\"`) +
		deltaOf("function_call_arguments", "2", "0", "[") + deltaOf("function_call_arguments", "1", "0", ":1}") + deltaOf("function_call_arguments", "2", "0", "]"), dialect.None,
		answer(`{"id":"i1","type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}","status":"in_progress"},` +
			`{"id":"i1","type":"function_call","call_id":"c1","name":"f","arguments":"[]","status":"in_progress"}`)},
	{"the done events of a call repeat the whole", created + added("1", call) + deltaOf("function_call_arguments", "1", "0", "{") +
		frame("response.function_call_arguments.done", `"output_index":1,"name":"g","arguments":"{}"`), dialect.None,
		answer(`{"id":"i1","type":"function_call","call_id":"c1","name":"g","arguments":"{}","status":"in_progress"}`)},
	{"an item that is done is as its done event says", created + added("1", call) + deltaOf("function_call_arguments", "1", "0", "{") +
		frame("response.output_item.done", `"output_index":1,"item":{"id":"i1","arguments":"{}","x":1.0}`) + deltaOf("function_call_arguments", "1", "0", "late"), dialect.None,
		answer(`{"id":"i1","arguments":"{}","x":1.0}`)},
	{"reasoning with text and summary", created + added("0", `{"id":"i0","type":"reasoning","summary":[],"content":null,"encrypted_content":null}`) +
		frame("response.content_part.added", `"output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":""}`) + deltaOf("reasoning_text", "0", "0", "hm") +
		frame("response.reasoning_summary_part.added", `"output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}`) +
		frame("response.reasoning_summary_text.delta", `"output_index":0,"summary_index":0,"delta":"s"`) +
		frame("response.reasoning_summary_text.delta", `"output_index":0,"summary_index":1,"delta":"t"`), dialect.None,
		answer(`{"id":"i0","type":"reasoning","summary":[{"type":"summary_text","text":"s"},{"type":"summary_text","text":"t"}],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null}`)},
	{"a refusal", created + deltaOf("refusal", "0", "0", "no"), dialect.None, answer(`{"id":"i0","type":"message","content":[{"type":"refusal","refusal":"no"}]}`)},
	{"custom, MCP and code calls", created + deltaOf("custom_tool_call_input", "0", "0", "ls") + deltaOf("mcp_call_arguments", "1", "0", "{}") + deltaOf("code_interpreter_call_code", "2", "0", "x=1"), dialect.None,
		answer(`{"id":"i0","type":"custom_tool_call","input":"ls"},{"id":"i1","type":"mcp_call","arguments":"{}"},{"id":"i2","type":"code_interpreter_call","code":"x=1"}`)},
	{"text that quotes ends is text", created + deltaOf("output_text", "0", "0", `event: response.completed\n{\"type\":\"error\"}`), dialect.None,
		answer(`{"id":"i0","type":"message","content":[{"type":"output_text","text":"event: response.completed\n{\"type\":\"error\"}"}]}`)},
	{"a surrogate pair split over two deltas, U+2028 and ANSI escapes", created + deltaOf("output_text", "0", "0", `\ud83d`) + deltaOf("output_text", "0", "0", "\\ude00\u2028\\u001b[0m"), dialect.None,
		answer("{\"id\":\"i0\",\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"\\ud83d\\ude00\u2028\\u001b[0m\"}]}")},
	{"hostile indices cost nothing", created + deltaOf("output_text", "1000000000", "-7", "b") + deltaOf("output_text", "-1", "1000000000", "a"), dialect.None,
		answer(`{"id":"i-1","type":"message","content":[{"type":"output_text","text":"a"}]},{"id":"i1000000000","type":"message","content":[{"type":"output_text","text":"b"}]}`)},
	{"without output indices an event belongs to the last item", created + frame("response.output_item.added", `"item":`+call) + frame("response.function_call_arguments.delta", `"delta":"{}"`), dialect.None,
		answer(`{"id":"i1","type":"function_call","call_id":"c1","name":"f","arguments":"{}","status":"in_progress"}`)},
	{"members of the wrong type change nothing", frame("response.created", `"response":1`) + frame("response.output_item.added", `"item":[]`) +
		frame("response.content_part.added", `"part":2`) + "data: [1]\n\ndata: x\n\n", dialect.None, ""},
}

func TestStreamsFoldToWhatTheySay(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			r := dialecttest.Fold(New(), []byte(c.stream))
			if r.Verdict != c.verdict || r.Response != c.want {
				t.Errorf("got  %v %s\nwant %v %s", r.Verdict, r.Response, c.verdict, c.want)
			}
			dialecttest.CheckFold(t, New(), []byte(c.stream), 1, 1, 1, 2, 3, 5, 8, 13)
		})
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name, event, data string
		want              dialect.Signal
	}{
		{"created is no content", "response.created", `{"type":"response.created","response":{"output":[]}}`, dialect.Signal{}},
		{"in_progress is no content", "response.in_progress", `{"type":"response.in_progress","response":{}}`, dialect.Signal{}},
		{"a message that opens is no content", "", `{"type":"response.output_item.added","item":{"type":"message","content":[]}}`, dialect.Signal{}},
		{"a call that opens is content", "", `{"type":"response.output_item.added","item":{"type":"function_call"}}`, dialect.Signal{Content: true}},
		{"a custom call too", "", `{"type":"response.output_item.added","item":{"type":"custom_tool_call"}}`, dialect.Signal{Content: true}},
		{"text is content", "", `{"type":"response.output_text.delta","delta":"a"}`, dialect.Signal{Content: true}},
		{"no text is none", "", `{"type":"response.output_text.delta","delta":""}`, dialect.Signal{}},
		{"any delta is content", "response.reasoning_summary_text.delta", `{"delta":"a"}`, dialect.Signal{Content: true}},
		{"an item at once is content", "", `{"type":"response.output_item.done","item":{"type":"message"}}`, dialect.Signal{Content: true}},
		{"a cut answer of vLLM is complete", "response.completed", `{"type":"response.completed","response":{"status":"incomplete"}}`, dialect.Signal{Verdict: dialect.Complete}},
		{"no JSON is invalid", "", `x`, dialect.Signal{Invalid: true}},
		{"a broken failure fails all the same", "response.failed", `{`, dialect.Signal{Verdict: dialect.Failed, Invalid: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New().Judge([]byte(c.event), []byte(c.data)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestMoreIndicesThanAnybodyKeepsGiveNoFold(t *testing.T) {
	f := New().NewFolder()
	for i := range 20000 {
		f.Event(nil, []byte(`{"type":"response.output_text.delta","output_index":`+strconv.Itoa(i*99991)+`,"delta":"a"}`))
	}
	if got := f.AppendResponse(nil); got != nil {
		t.Errorf("a short fold must not pass for a whole one: %d bytes", len(got))
	}
}
