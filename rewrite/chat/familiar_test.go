package chat

import (
	"fmt"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

const openCall = `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{"}}]}}`

// chunked is a stream of chunks with these choices; what begins with {"id" is a whole chunk.
func chunked(choices ...string) []byte {
	var stream strings.Builder
	for _, choice := range choices {
		if !strings.HasPrefix(choice, `{"id"`) {
			choice = `{"id":"c","created":7,"model":"m","choices":[` + choice + `]}`
		}
		fmt.Fprintf(&stream, "data: %s\n\n", choice)
	}
	return []byte(stream.String())
}

// decode reads each stream a second time without what was learned; here are those in which a chunk looks like one before and says more.
func TestWhatIsLearnedChangesNothing(t *testing.T) {
	deep := func(n int) string {
		return `{"index":0,"delta":{"content":"a"},"logprobs":{"content":[` + strings.Repeat("[", n) + strings.Repeat("]", n) + `]}}`
	}
	const most = jsonx.MaxDepth - entriesDepth - 1
	for _, c := range []struct {
		name    string
		choices []string
		want    string // of the last event
		broken  bool
	}{
		{"pieces of a call that waits for its name beside a text", []string{`{"delta":{"content":"a"}}`,
			`{"delta":{"content":"b","tool_calls":[{"index":0,"id":"i","function":{"arguments":"["}}]}}`,
			`{"delta":{"content":"c","tool_calls":[{"index":0,"id":"i","function":{"arguments":"["}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}}]}}`}, "delta 1 |[[|", false},
		{"pieces of such a call beside those of another", []string{openCall,
			`{"delta":{"tool_calls":[{"index":1,"id":"j","function":{"arguments":"["}},{"index":0,"function":{"arguments":"1"}}]}}`,
			`{"delta":{"tool_calls":[{"index":1,"id":"j","function":{"arguments":"["}},{"index":0,"function":{"arguments":"2"}}]}}`,
			`{"delta":{"tool_calls":[{"index":1,"function":{"name":"g"}}]}}`}, "delta 1 |[[|", false},
		{"a piece without an index behind one that says nothing", []string{openCall, `{"delta":{"tool_calls":[{"index":1,"id":"j","function":{"name":"g"}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}`, `{"delta":{"tool_calls":[{"function":{"arguments":"1"}}]}}`,
			`{"delta":{"tool_calls":[{"index":1,"function":{"arguments":""}}]}}`, `{"delta":{"tool_calls":[{"function":{"arguments":"2"}}]}}`}, "delta 1 |2|", false},
		{"reasoning under both names", []string{`{"delta":{"reasoning":"s","reasoning_content":"s"}}`, `{"delta":{"reasoning":"s","reasoning_content":"s"}}`,
			`{"delta":{"reasoning":"r","reasoning_content":"s"}}`}, "delta 0 |r|", false},
		{"annotations before a text and of one", []string{`{"delta":{}}`, `{"delta":{"annotations":[1]}}`, `{"delta":{"annotations":[1]}}`, `{"delta":{"content":"a"}}`,
			`{"delta":{"annotations":[1]}}`}, "cite 0 1", false},
		{"a text where there was another kind", []string{`{"delta":{"reasoning":"a"}}`, `{"delta":{"reasoning":"b"}}`, `{"delta":{"content":"c"}}`,
			`{"delta":{"reasoning":"d"}}`}, "delta 2 |d|", false},
		{"an empty text", []string{`{"delta":{"content":"a"}}`, `{"delta":{"content":"b"}}`, `{"delta":{"content":""}}`}, "delta 0 |b|", false},
		{"a text that becomes null", []string{`{"delta":{"content":"a"}}`, `{"delta":{"content":"b"}}`, `{"delta":{"content":null}}`}, "delta 0 |b|", false},
		{"a text with escapes", []string{`{"delta":{"content":"a"}}`, `{"delta":{"content":"b"}}`, `{"delta":{"content":"\"},\ud800é"}}`}, `delta 0 |\"},\ud800é|`, false},
		{"a text that is none", []string{`{"delta":{"content":"a"}}`, `{"delta":{"content":"b"}}`, "{\"delta\":{\"content\":\"\x80\"}}"}, "delta 0 |b|", true},
		{"a text that goes on as a member", []string{`{"delta":{"content":"a"}}`, `{"delta":{"content":"b"}}`, `{"delta":{"content":"c","refusal":"d"}}`}, "delta 1 |d|", false},
		{"logprobs that come and go", []string{`{"delta":{"content":"a"},"logprobs":{"content":[{"bytes":[]}]}}`, `{"delta":{"content":"b"},"logprobs":{"content":[{"bytes":[]}]}}`,
			`{"delta":{"content":"c"},"logprobs":{"content":[]}}`, `{"delta":{"content":"d"},"logprobs":{"content":[ {"bytes":[]}, {"bytes":[]} ]}}`}, "delta 0 |d| logprobs=2", false},
		{"logprobs under one name twice", []string{`{"delta":{"content":"a"},"logprobs":{"content":[1],"content":[{"bytes":[]}]}}`,
			`{"delta":{"content":"b"},"logprobs":{"content":[1],"content":[{"bytes":[]}]}}`}, "delta 0 |b| logprobs=1", false},
		{"logprobs in front of the text", []string{`{"logprobs":{"content":[{"bytes":[]}]},"token_ids":[1],"delta":{"content":"a"}}`,
			`{"logprobs":{"content":[{"bytes":[]}]},"token_ids":[1],"delta":{"content":"b"}}`,
			`{"logprobs":{"content":[{"bytes":[7]}]},"token_ids":[2,3],"delta":{"content":"cd"}}`}, "delta 0 |cd| logprobs=1", false},
		{"logprobs that are broken", []string{deep(1), deep(1), strings.Replace(deep(1), "[]", "[1,]", 1)}, "delta 0 |a| logprobs=0", true},
		{"logprobs as deep as allowed", []string{deep(1), deep(1), deep(most)}, "delta 0 |a| logprobs=0", false},
		{"logprobs that are too deep", []string{deep(1), deep(1), deep(most + 1)}, "delta 0 |a| logprobs=0", true},
		{"ids of chunks that say nothing", []string{`{"delta":{},"token_ids":[1]}`, `{"delta":{},"token_ids":[1]}`, `{"delta":{},"token_ids":[2,3]}`, `{"delta":{},"token_ids":[]}`,
			`{"delta":{"content":"a"},"token_ids":[4]}`, `{"delta":{"content":"b"},"token_ids":[5,6]}`, `{"delta":{"content":"c"},"token_ids":null}`,
			`{"delta":{},"token_ids":[7]}`, `{"delta":{},"finish_reason":"stop"}`}, "close 0", false},
		{"ids that are no list", []string{`{"delta":{"content":"a"},"token_ids":[4]}`, `{"delta":{"content":"b"},"token_ids":[5]}`, `{"delta":{"content":"c"},"token_ids":{"a":[6]}}`}, "delta 0 |c|", false},
		{"two choices", []string{`{"delta":{"content":"a"}},{"index":1,"delta":{"content":"x"}}`, `{"delta":{"content":"b"}},{"index":1,"delta":{"content":"x"}}`,
			`{"delta":{"content":"c"}},{"delta":{"content":"x"}}`, `{"delta":{"content":"d"}},{"delta":{"content":"x"}}`}, "delta 0 |x|", false},
		{"ids of another choice", []string{`{"delta":{"content":"a"},"token_ids":[1]}`, `{"index":1,"delta":{"content":"x"},"token_ids":[1]}`,
			`{"index":1,"delta":{"content":"x"},"token_ids":[1]}`, `{"index":1,"delta":{"content":"x"},"token_ids":[1,2,3]}`}, "delta 0 |a|", false},
		{"ids of another choice beside the first", []string{`{"delta":{"content":"a"},"token_ids":[1]},{"index":1,"delta":{},"token_ids":[1]}`,
			`{"delta":{"content":"b"},"token_ids":[1]},{"index":1,"delta":{},"token_ids":[1]}`,
			`{"delta":{"content":"c"},"token_ids":[1]},{"index":1,"delta":{},"token_ids":[1,2,3]}`}, "delta 0 |c|", false},
		{"usage around a chunk that says nothing, which comes back", []string{`{"id":"c","usage":{"prompt_tokens":1},"choices":[{"delta":{}}]}`,
			`{"id":"c","usage":{"prompt_tokens":1},"choices":[{"delta":{}}]}`, `{"id":"c","usage":{"prompt_tokens":2},"choices":[{"delta":{"content":"a"}}]}`,
			`{"id":"c","usage":{"prompt_tokens":1},"choices":[{"delta":{}}]}`}, "delta 0 |a|", false},
		{"usage behind the choice", []string{`{"id":"c","choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			`{"id":"c","choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			`{"id":"c","choices":[{"delta":{"content":"c"}}],"usage":{"prompt_tokens":1,"completion_tokens":3}}`,
			`{"id":"c","choices":[{"delta":{}}],"usage":{"prompt_tokens":1,"completion_tokens":4}}`,
			`{"id":"c","choices":[{"delta":{}}],"usage":{"prompt_tokens":1,"completion_tokens":5}}`,
			`{"id":"c","choices":[{"delta":{"content":"d"}}],"usage":{}}`,
			`{"id":"c","choices":[{"delta":{"content":"e"}}],"usage":null}`, `{"id":"c","choices":[{"delta":{"content":"f"}}],"usage":null}`}, "delta 0 |f|", false},
		{"usage that is broken", []string{`{"id":"c","choices":[{"delta":{"content":"a"}}],"usage":{}}`, `{"id":"c","choices":[{"delta":{"content":"b"}}],"usage":{}}`,
			`{"id":"c","choices":[{"delta":{"content":"c"}}],"usage":{"a"}}`}, "delta 0 |b|", true},
		{"more behind the usage", []string{`{"id":"c","choices":[{"delta":{"content":"a"}}],"usage":{}}`, `{"id":"c","choices":[{"delta":{"content":"b"}}],"usage":{}}`,
			`{"id":"c","choices":[{"delta":{"content":"c"}}],"usage":{},"error":{"message":"m"}}`}, `fail 0 "" "" "" "m"`, false},
		{"an error behind the choice", []string{`{"id":"c","choices":[{"delta":{"content":"a"}}]}`, `{"id":"c","choices":[{"delta":{"content":"b"}}]}`,
			`{"id":"c","choices":[{"delta":{"content":"c"}}],"error":{"message":"m"}}`}, `fail 0 "" "" "" "m"`, false},
		{"a finish reason", []string{`{"delta":{},"finish_reason":null}`, `{"delta":{},"finish_reason":null}`, `{"delta":{},"finish_reason":"stop"}`, `{"delta":{},"finish_reason":"length"}`},
			"start c m 7 prompt=-1", false},
		{"usage in front of the choices that comes back", []string{`{"id":"c","usage":{"prompt_tokens":1},"choices":[{"delta":{"content":"a"}}]}`,
			`{"id":"c","usage":{"prompt_tokens":1},"choices":[{"delta":{"content":"b"}}]}`, `{"id":"c","usage":{"prompt_tokens":2},"choices":[]}`,
			`{"id":"c","usage":{"prompt_tokens":1},"choices":[{"delta":{"content":"c"}}]}`}, "delta 0 |c|", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := chunked(c.choices...)
			got := decode(t, stream)
			if last := got.lines[len(got.lines)-1]; last != c.want || (got.err != nil) != c.broken {
				t.Errorf("got %v\n%s", got.err, strings.Join(got.lines, "\n"))
			}
			if !c.broken { // what was counted is told at the end
				decode(t, append(stream, chunked(`{"delta":{},"finish_reason":"stop"}`, `{"id":"c","choices":[]}`)...))
				decode(t, append(chunked(append(c.choices, `{"delta":{},"finish_reason":"stop"}`)...), "data: [DONE]\n\n"...))
			}
		})
	}
}

// Nearly all chunks of a recorded stream are recognised, or what is learned is of no use.
func TestChunksAreRecognised(t *testing.T) {
	for name, stream := range recordings(t) {
		if !strings.HasSuffix(name, "chat-stream-tool-parallel") && !strings.HasSuffix(name, "chat-stream-reasoning") {
			continue
		}
		d := &decoder{o: testOptions(nil)}
		all, known := 0, 0
		var events []canon.Event
		for _, frame := range frames(t, stream) {
			all++
			d.scratch, d.touched, d.named, d.odd = d.scratch[:0], 0, false, false
			var ok bool
			if events, ok = d.again(events[:0], frame.Data); ok {
				known++
				continue
			}
			if _, err := d.Frame(events[:0], frame.Name, frame.Data); err != nil {
				t.Fatal(err)
			}
		}
		if known < all*7/10 {
			t.Errorf("%s: %d of %d", name, known, all)
		}
	}
}
