package chat

import (
	"strconv"
	"strings"
	"testing"

	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// delta is one chunk of choice 0.
func delta(members string) string {
	return `data: {"choices":[{"index":0,"delta":{` + members + `}}]}` + "\n\n"
}

const done = "data: [DONE]\n\n"

// answer is what chunks without members of their own fold to.
func answer(message, finish string) string {
	return `{"choices":[{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":` + finish + `}],"object":"chat.completion"}`
}

var streams = []struct {
	name    string
	stream  string
	verdict dialect.Verdict
	want    string
}{
	{"content of two chunks, the second with its finish reason", delta(`"content":"A"`) +
		`data: {"choices":[{"index":0,"delta":{"content":"B"},"finish_reason":"stop"}]}` + "\n\n" + done, dialect.Complete,
		answer(`"content":"AB"`, `"stop"`)},
	{"done without a space", "data:[DONE]\n\n", dialect.Complete, ""},
	{"done at the end of the body, without a blank line", delta(`"content":"A"`) + "data: [DONE]", dialect.Complete, answer(`"content":"A"`, "null")},
	{"done with blanks around it", "data:   [DONE]  \n\n", dialect.Complete, ""},
	{"an error frame without an event name", `data: {"error":{"message":"boom"}}` + "\n\n", dialect.Failed, ""},
	{"an error of null is none", `data: {"error":null}` + "\n\n", dialect.None, ""},
	{"an empty error is one", `data: {"error":{}}` + "\n\n", dialect.Failed, ""},
	{"an error of false is one", `data: {"error":false}` + "\n\n", dialect.Failed, ""},
	{"an error event by name, with data that is no JSON", "event: error\ndata: oops\n\n", dialect.Failed, ""},
	{"an error event by name alone", "event: error\n\n", dialect.Failed, ""},
	{"an error over two data lines", "data: {\"error\":\ndata: {}}\n\n", dialect.Failed, ""},
	{"the error comes last in its object", `data: {"choices":[],"x":1,"error":{"code":500}}` + "\n\n", dialect.Failed, ""},
	{"the flat error of older vLLM", `data: {"object":"error","message":"m","type":"BadRequestError","code":400}` + "\n\n", dialect.Failed, ""},
	{"an error after done is not seen", done + "event: error\ndata: {}\n\n", dialect.Complete, ""},
	{"a finish reason is no end", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n", dialect.None,
		answer(`"content":null`, `"stop"`)},
	{"text that quotes ends is text", delta(`"content":"data: [DONE]\n\nevent: error\n{\"error\":1}"`), dialect.None,
		answer(`"content":"data: [DONE]\n\nevent: error\n{\"error\":1}"`, "null")},
	{"only a usage chunk says nothing", `data: {"choices":[],"usage":{"prompt_tokens":1}}` + "\n\n" + done, dialect.Complete, ""},
	{"one chunk and then nothing", delta(`"role":"assistant","content":""`), dialect.None, answer(`"content":null`, "null")},
	{"CRLF, reasoning, a tool and usage", strings.ReplaceAll(
		`data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel","reasoning":"hm"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"lo","reasoning":"m","tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}

data: {"id":"c1","choices":[],"usage":{"total_tokens":8}}

data: [DONE]

`, "\n", "\r\n"), dialect.Complete,
		`{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","reasoning":"hmm",` +
			`"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}],` +
			`"usage":{"total_tokens":8}}`},
	{"two choices, interleaved", `data: {"choices":[{"index":1,"delta":{"content":"b"}}]}

data: {"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"B"},"finish_reason":"length"}]}

data: {"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}

`, dialect.None, `{"choices":[{"index":0,"message":{"role":"assistant","content":"aA"},"finish_reason":"stop"},` +
		`{"index":1,"message":{"role":"assistant","content":"bB"},"finish_reason":"length"}],"object":"chat.completion"}`},
	{"a raw U+2028 is a part of the text", delta(`"content":"A"`) + delta("\"content\":\"B\u2028C\"") + delta(`"content":"D"`), dialect.None,
		answer("\"content\":\"AB\u2028CD\"", "null")},
	{"a surrogate pair split over two deltas meets again", delta(`"content":"\ud83d"`) + delta(`"content":"\ude00"`), dialect.None,
		answer(`"content":"\ud83d\ude00"`, "null")},
	{"a lone surrogate and ANSI escapes stay as written", delta(`"content":"\udc00\u001b[31mred\u001B[0m"`), dialect.None,
		answer(`"content":"\udc00\u001b[31mred\u001B[0m"`, "null")},
	{"reasoning keeps both of its names", delta(`"reasoning":"a","reasoning_content":"b"`) + delta(`"reasoning_content":"c"`), dialect.None,
		answer(`"content":null,"reasoning":"a","reasoning_content":"bc"`, "null")},
	{"a refusal", delta(`"refusal":"I "`) + delta(`"refusal":"won't"`), dialect.None, answer(`"content":null,"refusal":"I won't"`, "null")},
	{"parallel calls, interleaved",
		delta(`"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}]`) +
			delta(`"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}},{"index":1,"function":{"arguments":"["}}]`) +
			delta(`"tool_calls":[{"index":1,"function":{"arguments":"]"}},{"index":0,"function":{"arguments":"}"}}]`), dialect.None,
		answer(`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},`+
			`{"id":"b","type":"function","function":{"name":"g","arguments":"[]"}}]`, "null")},
	{"two elements of one index in one array", delta(`"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f"}},{"index":0,"function":{"arguments":"{}"}}]`),
		dialect.None, answer(`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`, "null")},
	{"empty ids and names do not erase", delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`) +
		delta(`"tool_calls":[{"index":0,"id":"","type":null,"function":{"name":"","arguments":"}"}}]`), dialect.None,
		answer(`"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"},"type":"function"}]`, "null")},
	{"a call cut before its arguments", delta(`"tool_calls":[{"id":"a","type":"function","index":0,"function":{"name":"f"}}],"content":null`), dialect.None,
		answer(`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]`, "null")},
	{"calls without an index begin with a new id", delta(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}},{"id":"b","function":{"name":"g","arguments":"2"}}]`) +
		delta(`"tool_calls":[{"function":{"arguments":"3"}}]`), dialect.None,
		answer(`"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"},"type":"function"},`+
			`{"id":"b","function":{"name":"g","arguments":"23"},"type":"function"}]`, "null")},
	{"a custom tool", delta(`"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":"l"}}]`) +
		delta(`"tool_calls":[{"index":0,"custom":{"input":"s"}}]`), dialect.None,
		answer(`"content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"sh","input":"ls"}}]`, "null")},
	{"the old function call", delta(`"function_call":{"name":"f","arguments":"{"}`) + delta(`"function_call":{"arguments":"}"}`), dialect.None,
		answer(`"content":null,"function_call":{"name":"f","arguments":"{}"}`, "null")},
	{"logprobs and token ids join, numbers keep their spelling", `data: {"choices":[{"index":0,"delta":{},"logprobs":{"content":[{"logprob":-1.50e-6}],"refusal":null},"token_ids":[1, 2]}]}

data: {"choices":[{"index":0,"delta":{},"logprobs":null,"token_ids":null}]}

data: {"choices":[{"index":0,"delta":{},"logprobs":{"content":[{"logprob":-0.10}]},"token_ids":[3],"stop_reason":2}]}

`, dialect.None, `{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":null,` +
		`"logprobs":{"content":[{"logprob":-1.50e-6},{"logprob":-0.10}],"refusal":null},"token_ids":[1,2,3],"stop_reason":2}],"object":"chat.completion"}`},
	{"unknown members are kept at every level", `data: {"x":{"a":1.0},"choices":[{"index":0,"y":18446744073709551616,"delta":{"z":true,"tool_calls":[{"index":0,"w":[1],"function":{"v":"1"}}]}}]}

data: {"x":{"a":2.0},"choices":[{"index":0,"y":null,"delta":{"annotations":[1]}}]}

data: {"choices":[{"index":0,"delta":{"annotations":[2]}}]}

`, dialect.None, `{"x":{"a":2.0},"choices":[{"index":0,"message":{"role":"assistant","content":null,"z":true,"tool_calls":[{"w":[1],` +
		`"function":{"v":"1","arguments":""},"type":"function"}],"annotations":[1,2]},"finish_reason":null,"y":18446744073709551616}],"object":"chat.completion"}`},
	{"the last usage that is not empty", `data: {"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":1}}

data: {"choices":[],"usage":{"prompt_tokens":2}}

data: {"choices":[],"usage":null}

data: {"choices":[],"usage":{}}

`, dialect.None, `{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":null}],"usage":{"prompt_tokens":2},"object":"chat.completion"}`},
	{"escaped member names are the same members", `data: {"\u0063hoices":[{"ind\u0065x":0,"delta":{"c\u006fntent":"A"}}]}` + "\n\n", dialect.None, answer(`"content":"A"`, "null")},
	{"white space between tokens is dropped", `data: { "choices" : [ { "index" : 0 , "delta" : { "content" : " A " , "x" : { "y" : [ 1 , 2 ] } } } ] }` + "\n\n",
		dialect.None, answer(`"content":" A ","x":{"y":[1,2]}`, "null")},
	{"a whole message inside a stream", `data: {"choices":[{"index":0,"message":{"role":"assistant","content":"A"},"finish_reason":"stop"}]}` + "\n\n", dialect.None,
		answer(`"content":"A"`, `"stop"`)},
	{"a whole message after its deltas is a repetition", delta(`"content":"A"`) + `data: {"choices":[{"index":0,"delta":{},"message":{"content":"A"}}]}` + "\n\n", dialect.None,
		answer(`"content":"A"`, "null")},
	{"hostile indices cost nothing", `data: {"choices":[{"index":1000000000,"delta":{"content":"b"}},{"index":-1,"delta":{"content":"a"}}]}` + "\n\n", dialect.None,
		`{"choices":[{"index":-1,"message":{"role":"assistant","content":"a"},"finish_reason":null},` +
			`{"index":1000000000,"message":{"role":"assistant","content":"b"},"finish_reason":null}],"object":"chat.completion"}`},
	{"choices and calls that are no objects", `data: {"choices":[1,null,{"index":0,"delta":{"tool_calls":[1,{"index":0}]}}]}` + "\n\n", dialect.None,
		answer(`"content":null,"tool_calls":[{}]`, "null")},
	{"content in parts joins", delta(`"content":[{"type":"text","text":"a"}]`) + delta(`"content":[{"type":"text","text":"b"}]`), dialect.None,
		answer(`"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "null")},
	{"events that are no JSON change nothing", "data: <html>\n\ndata: [1]\n\ndata: {\"a\":\n\n" + delta(`"content":"A"`), dialect.None, answer(`"content":"A"`, "null")},
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
		{"a role chunk opens, it says nothing", "", `{"choices":[{"delta":{"role":"assistant","content":""}}]}`, dialect.Signal{}},
		{"a usage chunk is no content", "", `{"choices":[],"usage":{"prompt_tokens":1}}`, dialect.Signal{}},
		{"text is content", "", `{"choices":[{"delta":{"content":"a"}}]}`, dialect.Signal{Content: true}},
		{"so is text of a later choice", "", `{"choices":[{"delta":{}},{"delta":{"content":"a"}}]}`, dialect.Signal{Content: true}},
		{"reasoning is content", "", `{"choices":[{"delta":{"reasoning":"a"}}]}`, dialect.Signal{Content: true}},
		{"reasoning_content is content", "", `{"choices":[{"delta":{"reasoning_content":"a"}}]}`, dialect.Signal{Content: true}},
		{"a refusal is content", "", `{"choices":[{"delta":{"refusal":"a"}}]}`, dialect.Signal{Content: true}},
		{"a tool call is content", "", `{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}`, dialect.Signal{Content: true}},
		{"no tool call is none", "", `{"choices":[{"delta":{"tool_calls":[]}}]}`, dialect.Signal{}},
		{"a function call is content", "", `{"choices":[{"delta":{"function_call":{"name":"f"}}}]}`, dialect.Signal{Content: true}},
		{"no data is not invalid", "", "", dialect.Signal{}},
		{"HTML is invalid", "", "<html>", dialect.Signal{Invalid: true}},
		{"an array is invalid", "", "[1]", dialect.Signal{Invalid: true}},
		{"a broken error event fails all the same", "error", "{", dialect.Signal{Verdict: dialect.Failed, Invalid: true}},
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
	var chunk strings.Builder
	chunk.WriteString(`{"choices":[{"index":0}`)
	for i := range 20000 {
		chunk.WriteString(`,{"index":` + strconv.Itoa(i*99991) + `}`)
	}
	chunk.WriteString("]}")
	f.Event(nil, []byte(chunk.String()))
	if got := f.AppendResponse(nil); got != nil {
		t.Errorf("a short fold must not pass for a whole one: %d bytes", len(got))
	}
}

func TestOneMegabyteOfArgumentsInOneFrame(t *testing.T) {
	text := strings.Repeat(`x\n`, 350_000)
	r := dialecttest.Fold(New(), []byte(delta(`"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"`+text+`"}}]`)+done))
	if want := answer(`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"`+text+`"}}]`, "null"); r.Response != want {
		t.Errorf("got %d bytes, want %d", len(r.Response), len(want))
	}
}
