package messages

import (
	"strconv"
	"strings"
	"testing"

	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// Events as Anthropic writes them; at is an event of one block.
func frame(kind, members string) string {
	if members != "" {
		members = "," + members
	}
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + members + "}\n\n"
}

func open(index, block string) string {
	return frame("content_block_start", `"index":`+index+`,"content_block":`+block)
}

func delta(index, delta string) string {
	return frame("content_block_delta", `"index":`+index+`,"delta":`+delta)
}

func input(index, piece string) string {
	return delta(index, `{"type":"input_json_delta","partial_json":"`+piece+`"}`)
}

// answer is a message without a message_start.
func answer(content string) string {
	return `{"type":"message","role":"assistant","content":[` + content + `]}`
}

const (
	start = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":0}}}

`
	stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	tool = `{"type":"tool_use","id":"t1","name":"calc","input":{}}`
)

var streams = []struct {
	name    string
	stream  string
	verdict dialect.Verdict
	want    string
}{
	{"thinking, text, a tool and usage in two events", start +
		open("0", `{"type":"thinking","thinking":"","signature":""}`) + delta("0", `{"type":"thinking_delta","thinking":"let me "}`) +
		delta("0", `{"type":"thinking_delta","thinking":"think"}`) + delta("0", `{"type":"signature_delta","signature":"SIG"}`) + frame("content_block_stop", `"index":0`) +
		"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		open("1", `{"type":"text","text":""}`) + delta("1", `{"type":"text_delta","text":"Hi"}`) + frame("content_block_stop", `"index":1`) +
		open("2", tool) + input("2", "") + input("2", `{\"x\"`) + input("2", `: 1}`) + frame("content_block_stop", `"index":2`) +
		frame("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}`) + stop, dialect.Complete,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"let me think","signature":"SIG"},` +
			`{"type":"text","text":"Hi"},{"type":"tool_use","id":"t1","name":"calc","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,` +
			`"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":7}}`},
	{"only a stop says nothing", stop, dialect.Complete, ""},
	{"a stop by name alone", "event: message_stop\n\n", dialect.Complete, ""},
	{"a stop by type alone, the type last", "data: {\"a\":{\"type\":\"x\"},\"type\":\"message_stop\"}\n\n", dialect.Complete, ""},
	{"a stop at the end of the body, without a blank line", "event: message_stop\ndata: {}", dialect.Complete, ""},
	{"a stop by name whose data is broken", "event: message_stop\ndata: {\n\n", dialect.Complete, ""},
	{"a name with blanks", "event:   message_stop \ndata: {}\n\n", dialect.Complete, ""},
	{"an error event", frame("error", `"error":{"type":"overloaded_error"}`), dialect.Failed, ""},
	{"an error by type alone", "data: {\"error\":{},\"type\":\"error\"}\n\n", dialect.Failed, ""},
	{"an error keeps what was said", start + open("0", `{"type":"text","text":"A"}`) + frame("error", `"error":{}`), dialect.Failed,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"A"}],"stop_reason":null,"stop_sequence":null,` +
			`"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":0}}`},
	{"done is not the end of this dialect", "data: [DONE]\n\n", dialect.None, ""},
	{"a start and then nothing", start, dialect.None,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,` +
			`"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":0}}`},
	{"text that quotes ends is text", open("0", `{"type":"text","text":""}`) + delta("0", `{"type":"text_delta","text":"event: message_stop\n{\"type\":\"error\"}"}`), dialect.None,
		answer(`{"type":"text","text":"event: message_stop\n{\"type\":\"error\"}"}`)},
	{"a tool without input deltas", open("0", tool), dialect.None, answer(tool)},
	{"a tool with an empty input delta", open("0", tool) + input("0", ""), dialect.None, answer(tool)},
	{"arguments that are cut", open("0", tool) + input("0", `{\"a\":`), dialect.None, answer(`{"type":"tool_use","id":"t1","name":"calc","input":{"_raw":"{\"a\":"}}`)},
	{"an input that the block opened with wins", open("0", `{"type":"tool_use","input":{"x":1}}`) + input("0", `{\"y\":2}`), dialect.None, answer(`{"type":"tool_use","input":{"x":1}}`)},
	{"a server tool gets its input too", open("0", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`) + input("0", `{\"query\":\"q\"}`), dialect.None,
		answer(`{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}}`)},
	{"blocks that overlap", open("1", tool) + open("0", `{"type":"text","text":""}`) + input("1", `{\"a\"`) + delta("0", `{"type":"text_delta","text":"A"}`) +
		input("1", `:1}`) + delta("0", `{"type":"text_delta","text":"B"}`), dialect.None,
		answer(`{"type":"text","text":"AB"},{"type":"tool_use","id":"t1","name":"calc","input":{"a":1}}`)},
	{"deltas without a block open one", delta("0", `{"type":"thinking_delta","thinking":"T"}`) + delta("1", `{"type":"text_delta","text":"A"}`) + input("2", `{}`), dialect.None,
		answer(`{"type":"thinking","thinking":"T"},{"type":"text","text":"A"},{"type":"tool_use","input":{}}`)},
	{"citations are collected", open("0", `{"type":"text","text":"","citations":[{"a":1}]}`) + delta("0", `{"type":"citations_delta","citation":{"a":2}}`), dialect.None,
		answer(`{"type":"text","text":"","citations":[{"a":1},{"a":2}]}`)},
	{"citations that opened as null", open("0", `{"type":"text","text":"","citations":null}`) + delta("0", `{"type":"citations_delta","citation":{"a":2}}`), dialect.None,
		answer(`{"type":"text","text":"","citations":[{"a":2}]}`)},
	{"compaction", open("0", `{"type":"compaction","content":null}`) + delta("0", `{"type":"compaction_delta","content":"short"}`), dialect.None,
		answer(`{"type":"compaction","content":"short"}`)},
	{"deltas of an unknown kind are kept", open("0", `{"type":"text","text":""}`) + delta("0", `{"type":"new_delta","x":1.0}`) + delta("0", `{"type":"new_delta","x":2.0}`), dialect.None,
		answer(`{"type":"text","text":"","extra_deltas":[{"type":"new_delta","x":1.0},{"type":"new_delta","x":2.0}]}`)},
	{"unknown members are kept at every level", `data: {"type":"message_start","message":{"container":{"id":"c"},"content":[]}}` + "\n\n" +
		open("0", `{"type":"text","text":"","x":[1]}`) + delta("0", `{"type":"text_delta","text":"A","y":1.50}`) +
		frame("message_delta", `"delta":{"stop_details":{"z":1}},"context_management":{"applied_edits":[]}`), dialect.None,
		`{"container":{"id":"c"},"content":[{"type":"text","text":"A","x":[1],"y":1.50}],"type":"message","role":"assistant","stop_details":{"z":1},` +
			`"context_management":{"applied_edits":[]}}`},
	{"null does not overwrite a count", start + frame("message_delta", `"delta":{},"usage":{"input_tokens":null,"output_tokens":3,"server_tool_use":{"web_search_requests":1}}`), dialect.None,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,` +
			`"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":3,"server_tool_use":{"web_search_requests":1}}}`},
	{"the stop sequence is kept", frame("content_block_start", `"content_block":{"type":"text","text":"A"}`) +
		frame("message_delta", `"delta":{"stop_reason":"stop_sequence","stop_sequence":"END"}`), dialect.None,
		`{"type":"message","role":"assistant","content":[{"type":"text","text":"A"}],"stop_reason":"stop_sequence","stop_sequence":"END"}`},
	{"blocks without an index follow each other", frame("content_block_start", `"content_block":{"type":"text","text":"A"}`) +
		frame("content_block_start", `"content_block":{"type":"text","text":"B"}`) + frame("content_block_delta", `"delta":{"type":"text_delta","text":"C"}`), dialect.None,
		answer(`{"type":"text","text":"A"},{"type":"text","text":"BC"}`)},
	{"a second start keeps the counts of the first", start + `data: {"type":"message_start","message":{"id":"msg_2","usage":{"output_tokens":1}}}` + "\n\n", dialect.None,
		`{"id":"msg_2","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,` +
			`"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}`},
	{"a surrogate pair split over two deltas, U+2028 and ANSI escapes", open("0", `{"type":"text","text":""}`) + delta("0", `{"type":"text_delta","text":"\ud83d"}`) +
		delta("0", "{\"type\":\"text_delta\",\"text\":\"\\ude00\u2028\\u001b[0m\"}"), dialect.None, answer("{\"type\":\"text\",\"text\":\"\\ud83d\\ude00\u2028\\u001b[0m\"}")},
	{"a surrogate pair split inside arguments", open("0", tool) + input("0", `{\"a\":\"\ud83d`) + input("0", `\ude00\\ud800\"}`), dialect.None,
		answer(`{"type":"tool_use","id":"t1","name":"calc","input":{"a":"😀\ud800"}}`)},
	{"hostile indices cost nothing", open("1000000000", `{"type":"text","text":"b"}`) + open("-5", `{"type":"text","text":"a"}`), dialect.None,
		answer(`{"type":"text","text":"a"},{"type":"text","text":"b"}`)},
	{"members of the wrong type change nothing", frame("content_block_start", `"content_block":1`) + frame("content_block_delta", `"delta":[]`) +
		frame("message_start", `"message":null`) + "data: [1]\n\ndata: x\n\n", dialect.None, ""},
	{"CR line ends", strings.ReplaceAll(open("0", `{"type":"text","text":"A"}`)+stop, "\n", "\r"), dialect.Complete, answer(`{"type":"text","text":"A"}`)},
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
		{"a start is no content", "message_start", `{"type":"message_start","message":{"content":[]}}`, dialect.Signal{}},
		{"a ping is nothing", "ping", `{"type":"ping"}`, dialect.Signal{}},
		{"an empty block is no content", "content_block_start", `{"type":"content_block_start","content_block":{"type":"text","text":""}}`, dialect.Signal{}},
		{"a tool is content", "content_block_start", `{"type":"content_block_start","content_block":{"type":"tool_use","input":{}}}`, dialect.Signal{Content: true}},
		{"a server tool is content", "", `{"type":"content_block_start","content_block":{"type":"server_tool_use"}}`, dialect.Signal{Content: true}},
		{"redacted thinking arrives whole", "", `{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"x"}}`, dialect.Signal{Content: true}},
		{"text is content", "", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`, dialect.Signal{Content: true}},
		{"no text is none", "", `{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}`, dialect.Signal{}},
		{"thinking is content", "", `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}`, dialect.Signal{Content: true}},
		{"arguments are content", "", `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`, dialect.Signal{Content: true}},
		{"the kind is told by the name alone", "content_block_delta", `{"delta":{"type":"text_delta","text":"a"}}`, dialect.Signal{Content: true}},
		{"usage is no content", "message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, dialect.Signal{}},
		{"no JSON is invalid", "ping", `x`, dialect.Signal{Invalid: true}},
		{"a broken stop stops all the same", "message_stop", `[`, dialect.Signal{Verdict: dialect.Complete, Invalid: true}},
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
		f.Event(nil, []byte(`{"type":"content_block_delta","index":`+strconv.Itoa(i*99991)+`,"delta":{"type":"text_delta","text":"a"}}`))
	}
	if got := f.AppendResponse(nil); got != nil {
		t.Errorf("a short fold must not pass for a whole one: %d bytes", len(got))
	}
}
