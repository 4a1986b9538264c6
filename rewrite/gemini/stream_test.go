package gemini

import (
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// chunk is an event with these parts.
func chunk(parts string) string {
	return `data: {"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}` + "\r\n\r\n"
}

// whole is what chunks with these parts fold to.
func whole(parts string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}`
}

const stop = `data: {"candidates":[{"finishReason":"STOP","index":0}]}` + "\r\n\r\n"

var streams = []struct {
	name, stream string
	verdict      dialect.Verdict
	want         string
}{
	{"texts go on", chunk(`{"text":"a"}`) + chunk(`{"text":"b\ud83d"}`) + chunk(`{"text":"\ude00"}`), dialect.None, whole(`{"text":"ab\ud83d\ude00"}`)},
	{"thoughts and texts are apart", chunk(`{"text":"t","thought":true}`) + chunk(`{"thought":true,"text":"u"}`) + chunk(`{"text":"a"}`), dialect.None,
		whole(`{"text":"tu","thought":true},{"text":"a"}`)},
	{"a signature begins a part", chunk(`{"text":"a"}`) + chunk(`{"text":"b","thoughtSignature":"S"}`) + chunk(`{"text":"c"}`), dialect.None,
		whole(`{"text":"a"},{"text":"bc","thoughtSignature":"S"}`)},
	{"calls are whole", chunk(`{"text":"a"}`) + chunk(`{"functionCall":{"name":"f","args":{"a": 1e3}}}`) + chunk(`{"text":"b"}`), dialect.None,
		whole(`{"text":"a"},{"functionCall":{"name":"f","args":{"a":1e3}}},{"text":"b"}`)},
	{"what nobody knows is kept", chunk(`{"hologram":{"x":[1.0]}}`) + chunk(`{"text":"a","y":1}`) + chunk(`{"text":"b"}`), dialect.None,
		whole(`{"hologram":{"x":[1.0]}},{"text":"a","y":1},{"text":"b"}`)},
	{"the finish reason is the end, and usage is the last", chunk(`{"text":"a"}`) + `data: {"candidates":[{"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3}}` + "\n\n", dialect.Complete,
		`{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0,"finishReason":"STOP"}],"modelVersion":"m","responseId":"r","usageMetadata":{"promptTokenCount":3}}`},
	{"only an end", stop, dialect.Complete, `{"candidates":[{"content":{},"index":0,"finishReason":"STOP"}]}`},
	{"a blocked prompt", `data: {"promptFeedback":{"blockReason":"SAFETY"}}` + "\n\n", dialect.Complete, `{"promptFeedback":{"blockReason":"SAFETY"}}`},
	{"an error keeps what was said", chunk(`{"text":"a"}`) + `data: {"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}` + "\n\n", dialect.Failed, whole(`{"text":"a"}`)},
	{"an error beside an end", `data: {"error":{"code":500},"candidates":[{"finishReason":"STOP"}]}` + "\n\n", dialect.Failed, `{"candidates":[{"content":{},"index":0,"finishReason":"STOP"}]}`},
	{"other candidates end for themselves", `data: {"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP","index":1}]}` + "\n\n", dialect.None,
		`{"candidates":[{"content":{"parts":[{"text":"b"}]},"index":1,"finishReason":"STOP"}]}`},
	{"a chunk that says nothing", `data: {"modelVersion":"m"}` + "\n\n", dialect.None, ""},
	{"text that quotes an end is text", chunk(`{"text":"{\"finishReason\":\"STOP\"}"}`), dialect.None, whole(`{"text":"{\"finishReason\":\"STOP\"}"}`)},
	{"names in snake case", `data: {"candidates":[{"finish_reason":"STOP"}],"usage_metadata":{}}` + "\n\n", dialect.Complete, `{"candidates":[{"content":{},"index":0,"finishReason":"STOP"}],"usageMetadata":{}}`},
	{"done is not the end", "data: [DONE]\n\n", dialect.None, ""},
	{"members of the wrong type", `data: {"candidates":[1,{"content":[],"index":"x"}],"promptFeedback":7}` + "\n\ndata: [1]\n\ndata: x\n\n", dialect.None,
		`{"candidates":[{"content":{},"index":0}],"promptFeedback":7}`},
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

func TestReadResponse(t *testing.T) {
	no := canon.NoUsage()
	for _, c := range []struct {
		name, body string
		want       dialect.Summary
	}{
		{"an answer", `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"modelVersion":"m","usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":2,"cachedContentTokenCount":1,"totalTokenCount":10}}`,
			dialect.Summary{Model: "m", Finish: "stop", Usage: canon.Usage{Prompt: 5, Completion: 5, Cached: 1, CacheWrite: canon.Unknown, Reasoning: 2}}},
		{"a call", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`, dialect.Summary{Finish: "tool_calls", Usage: no}},
		{"a cut", `{"candidates":[{"finishReason":"MAX_TOKENS"}]}`, dialect.Summary{Finish: "length", Usage: no}},
		{"a blocked prompt", `{"promptFeedback":{"blockReason":"OTHER"}}`, dialect.Summary{Finish: "content_filter", Usage: no}},
		{"another word", `{"candidates":[{"finishReason":"OTHER"}]}`, dialect.Summary{Finish: "OTHER", Usage: no}},
		{"an error", `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`, dialect.Summary{HasError: true, ErrorStatus: 429, Usage: no}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New().ReadResponse([]byte(c.body)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
