package responses

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// kinds are the types of the events of a stream, without "response.".
func kinds(stream []byte) string {
	var all []string
	frames(stream, func(name, _ []byte) { all = append(all, strings.TrimPrefix(string(name), "response.")) })
	return strings.Join(all, " ")
}

// memberOf is what the events of one type say in the member at a path.
func memberOf(stream []byte, kind string, path ...string) (all []string) {
	frames(stream, func(name, data []byte) {
		if string(name) == kind {
			for _, member := range path {
				data = jsonx.Get(data, member)
			}
			all = append(all, string(data))
		}
	})
	return all
}

func TestTheEventsOfItems(t *testing.T) {
	for name, want := range map[string]string{
		"nothing":     "output_item.added content_part.added output_text.done content_part.done output_item.done incomplete",
		"refusal":     "output_item.added content_part.added refusal.delta refusal.delta refusal.done content_part.done output_item.done incomplete",
		"only sealed": "output_item.added output_item.done completed",
		"hosted":      "output_item.added output_item.done incomplete",
		"left out":    "output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done completed",
		"calls": "output_item.added output_item.added function_call_arguments.delta custom_tool_call_input.delta function_call_arguments.delta " +
			"custom_tool_call_input.done output_item.done function_call_arguments.delta function_call_arguments.done output_item.done completed",
		"cited": "output_item.added content_part.added output_text.delta output_text.annotation.added output_text.annotation.added output_text.done " +
			"content_part.done output_item.done completed",
		"summary too": "output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.delta " +
			"reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done completed",
	} {
		t.Run(name, func(t *testing.T) {
			stream := encode(sayings()[name], everything(), options("summary"))
			if got := kinds(stream); got != "created in_progress "+want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestAnAnsweredItem(t *testing.T) {
	for _, c := range []struct{ name, kind, want string }{
		{"calls", "response.output_item.done", `{"id":"ctc_x7_1","type":"custom_tool_call","status":"completed","call_id":"c2","name":"exec","input":"let\n"} ` +
			`{"id":"fc_x7_0","type":"function_call","status":"completed","call_id":"c1","namespace":"mcp__weather","name":"get_weather","arguments":"{\"a\":1} "}`},
		{"broken call", "response.output_item.done", `{"id":"fc_x7_0","type":"function_call","status":"completed","call_id":"c1","namespace":"mcp__weather","name":"get_weather","arguments":"{\"a\":\""}`},
		{"sealed", "response.output_item.done", `{"id":"rs_x7_0","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null}`},
		{"only sealed", "response.output_item.done", `{"id":"rs_x7_0","type":"reasoning","status":"completed","summary":[],"encrypted_content":"SEAL"}`},
		{"summary too", "response.output_item.done", `{"id":"rs_x7_0","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":"long\n\nin short"}],"encrypted_content":null}`},
		{"refusal", "response.output_item.done", `{"id":"msg_x7_0","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"nope"}]}`},
		{"surrogates", "response.output_item.done", `{"id":"msg_x7_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"\ud83d\ude00","annotations":[],"logprobs":[]}]}`},
		{"hosted", "response.output_item.added", `{"type":"web_search_call","id":"ws_1"}`},
		{"left out", "response.output_item.done", `{"id":"msg_x7_3","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]}`},
		{"cited", "response.output_item.done", `{"id":"msg_x7_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"see","annotations":[` +
			`{"type":"url_citation","url":"https://a.example","start_index":0},{"type":"file_citation","file_id":"f"}],"logprobs":[]}]}`},
		{"scored", "response.output_item.done", `{"id":"msg_x7_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[` +
			`{"token":"Hi","logprob":-0.10,"bytes":[72,105],"top_logprobs":[{"token":"Hi","logprob":-1e-1,"bytes":[72,105]}]},{"token":"","logprob":-2,"bytes":[],"top_logprobs":[]}]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := encode(sayings()[c.name], everything(), options("summary"))
			if got := strings.Join(memberOf(stream, c.kind, "item"), " "); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestLogprobsOnlyForWhoAsked(t *testing.T) {
	events := sayings()["scored"]
	asked := everything()
	stream := encode(events, asked, options("summary"))
	want := `[{"token":"Hi","logprob":-0.10,"top_logprobs":[{"token":"Hi","logprob":-1e-1}]}] [{"token":"","logprob":-2,"top_logprobs":[]}]`
	if got := strings.Join(memberOf(stream, "response.output_text.delta", "logprobs"), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want = `[{"token":"Hi","logprob":-0.10,"top_logprobs":[{"token":"Hi","logprob":-1e-1}]},{"token":"","logprob":-2,"top_logprobs":[]}]`
	if got := strings.Join(memberOf(stream, "response.output_text.done", "logprobs"), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	asked.Show.Logprobs = false
	if stream = encode(events, asked, options("summary")); bytes.Contains(stream, []byte("-0.10")) || len(memberOf(stream, "response.output_text.delta")) != 1 {
		t.Errorf("%s", stream)
	}
}

func TestEncryptedContentOnlyForWhoAsked(t *testing.T) {
	asked := everything()
	asked.Show.Encrypted = false
	o := options("summary")
	if stream := encode(sayings()["only sealed"], asked, o); bytes.Contains(stream, []byte("SEAL")) || len(o.Losses.List()) != 0 {
		t.Errorf("%s %v", stream, o.Losses.List())
	}
}

func TestLossesOfAnAnswer(t *testing.T) {
	for name, want := range map[string]string{
		"left out": "[{output[0].redacted_thinking foreign} {output[1].server_tool_use no_equivalent} {output[2].x unknown}]",
		"cited":    "[{output[0].citations no_equivalent}]",
		"sealed":   "[{output[0].signature foreign}]",
		"calls":    "[]",
	} {
		o := options("summary")
		encode(sayings()[name], everything(), o)
		if got := fmt.Sprint(o.Losses.List()); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestTheEndOfAStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason canon.StopReason
		policy string
		codex  bool
		want   string
	}{
		{"by itself", canon.StopEnd, "auto", false, "response.completed completed null"},
		{"a stop sequence", canon.StopSequence, "auto", false, "response.completed completed null"},
		{"length", canon.StopLength, "auto", false, `response.incomplete incomplete {"reason":"max_output_tokens"}`},
		{"a full context", canon.StopContext, "incomplete", true, `response.incomplete incomplete {"reason":"max_output_tokens"}`},
		{"a filter", canon.StopFilter, "auto", false, `response.incomplete incomplete {"reason":"content_filter"}`},
		{"length, Codex", canon.StopLength, "auto", true, `response.completed incomplete {"reason":"max_output_tokens"}`},
		{"length, always completed", canon.StopLength, "completed", false, `response.completed incomplete {"reason":"max_output_tokens"}`},
		{"a paused turn", canon.StopPause, "auto", false, "response.incomplete incomplete null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options("summary")
			o.Policy.IncompleteEvent, o.Codex = c.policy, c.codex
			stream := encode([]canon.Event{{Kind: canon.Start, Usage: canon.NoUsage()}, {Kind: canon.Ended, Stop: canon.Stop{Reason: c.reason}}}, everything(), o)
			checkStream(t, stream)
			var got string
			frames(stream, func(name, data []byte) {
				r := jsonx.Get(data, "response")
				status, _ := jsonx.Text(jsonx.Get(r, "status"))
				got = fmt.Sprintf("%s %s %s", name, status, jsonx.Get(r, "incomplete_details"))
			})
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAFailure(t *testing.T) {
	problem := func(status int, code string) *canon.Problem {
		return &canon.Problem{Status: status, Code: code, Message: "no \"more\""}
	}
	start := canon.Event{Kind: canon.Start, Usage: canon.NoUsage()}
	open := canon.Event{Kind: canon.Open, Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("f")}}
	for _, c := range []struct {
		name   string
		before []canon.Event
		p      *canon.Problem
		want   string
	}{
		{"a code that Codex knows", nil, problem(400, "context_length_exceeded"), "context_length_exceeded"},
		{"a quota", []canon.Event{start}, problem(429, "insufficient_quota"), "insufficient_quota"},
		{"a rate limit without a code", nil, problem(429, ""), "rate_limit_exceeded"},
		{"an open call is not done", []canon.Event{start, open}, problem(502, "upstream_cut"), "server_error"},
		{"the client's fault", nil, problem(422, "invalid_request"), "invalid_prompt"},
		{"nothing known", nil, problem(0, ""), "server_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := responses{}.NewEncoder(everything(), options("summary"))
			var stream []byte
			for i := range c.before {
				stream = e.Append(stream, &c.before[i])
			}
			stream = e.Append(stream, &canon.Event{Kind: canon.Fail, Problem: c.p})
			checkStream(t, stream)
			if more := e.AppendKeepAlive(e.Append(nil, &start)); more != nil {
				t.Errorf("behind the end: %s", more)
			}
			words := `no \"more\"`
			if c.p.Code == canon.CodeOverflow {
				words = "the model's maximum context length is exceeded: " + words
			}
			want := `{"code":"` + c.want + `","message":"` + words + `"}`
			if got := memberOf(stream, "response.failed", "response", "error"); len(got) != 1 || got[0] != want {
				t.Errorf("got %v, want %s", got, want)
			}
			if bytes.Contains(stream, []byte("output_item.done")) {
				t.Errorf("Codex would run the call: %s", stream)
			}
			if s := dialecttest.Fold(New(), stream); s.Verdict != dialect.Failed || !s.Summary.HasError {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestKeepAlive(t *testing.T) {
	e := responses{}.NewEncoder(everything(), options("summary"))
	stream := e.Append(nil, &canon.Event{Kind: canon.Ping})
	if len(stream) != 0 {
		t.Fatalf("what comes before the start must not open the stream: %s", stream)
	}
	for range 2 {
		stream = e.AppendKeepAlive(stream)
	}
	events := worked()
	for i := range events {
		stream = e.Append(stream, &events[i])
		if events[i].Kind == canon.Start {
			stream = e.Append(stream, &canon.Event{Kind: canon.Ping})
		}
	}
	checkStream(t, stream)
	if got := kinds(stream); !strings.HasPrefix(got, "created in_progress in_progress in_progress output_item.added ") || strings.Count(got, "created") != 1 {
		t.Errorf("%s", got)
	}
	for _, output := range memberOf(stream, "response.in_progress", "response", "output") {
		if output != "[]" {
			t.Errorf("in progress with %s", output)
		}
	}
}

func TestTheEchoOfARequest(t *testing.T) {
	asked := everything()
	asked.Body = canon.Raw(`{"model":"m","tools":[{"type":"custom","name":"exec"}],"metadata":{"a":"b"},"parallel_tool_calls":false,"temperature":0.70,"store":false,` +
		`"reasoning":{"effort":"high"},"instructions":"a\u0022b","user":null,"input":"x","stream":true,"max_output_tokens":96}`)
	unary, _ := responses{}.AppendAnswer(nil, &canon.Answer{Stop: canon.Stop{Reason: canon.StopEnd}, Usage: canon.NoUsage()}, asked, options("summary"))
	for name, want := range map[string]string{
		"tools": `[{"type":"custom","name":"exec"}]`, "metadata": `{"a":"b"}`, "parallel_tool_calls": "false", "temperature": "0.70", "store": "false",
		"reasoning": `{"effort":"high"}`, "instructions": `"a\u0022b"`, "user": "null", "max_output_tokens": "96", "tool_choice": `"auto"`, "top_p": "null",
		"model": `"m"`, "id": `"resp_x7"`, "created_at": "1700000000", "object": `"response"`, "input": "", "stream": "", "error": "null",
		"previous_response_id": "null", "background": "false", "truncation": `"disabled"`,
	} {
		if got := string(jsonx.Get(unary, name)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	asked.From = canon.Chat // whose members mean something else
	unary, _ = responses{}.AppendAnswer(nil, &canon.Answer{Usage: canon.NoUsage()}, asked, options("summary"))
	if got := string(jsonx.Get(unary, "tools")); got != "[]" {
		t.Errorf("tools %s", got)
	}
}

func TestARecordedAnswerComesBackTheSame(t *testing.T) {
	files, err := filepath.Glob("testdata/unary/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d answers, %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := options("content")
		first, err := responses{}.ReadAnswer(body, o)
		if err != nil || len(first.Parts) == 0 || first.Stop.Reason == 0 {
			t.Fatalf("%s: %v %+v", file, err, first)
		}
		again, _ := responses{}.AppendAnswer(nil, first, everything(), o)
		second, err := responses{}.ReadAnswer(again, o)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		describe := func(a *canon.Answer) string {
			var b strings.Builder
			if err := a.Replay(func(e *canon.Event) error { b.WriteString(describeEvent(*e) + "\n"); return nil }); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if got, want := describe(second), describe(first); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

// What is replayed from a unary answer must be folded to what the unary answer is.
func TestAReplayedAnswerSaysTheSame(t *testing.T) {
	for name, events := range sayings() {
		for _, output := range []string{"summary", "content", "both"} {
			a := folded(t, events)
			e := responses{}.NewEncoder(everything(), options(output))
			var stream []byte
			if err := a.Replay(func(ev *canon.Event) error { stream = e.Append(stream, ev); return nil }); err != nil {
				t.Fatal(err)
			}
			checkStream(t, stream)
			unary, _ := responses{}.AppendAnswer(nil, a, everything(), options(output))
			if got := dialecttest.Fold(New(), stream).Response; got != string(unary) {
				t.Errorf("%s %s: got\n%s\nwant\n%s", name, output, got, unary)
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, c := range []struct {
		name string
		kind canon.PartType
	}{{"text", canon.TextPart}, {"reasoning", canon.ReasoningPart}, {"call", canon.CallPart}} {
		b.Run(c.name, func(b *testing.B) {
			const deltas = 1000
			events := []canon.Event{{Kind: canon.Start, Usage: canon.NoUsage()}, {Kind: canon.Open, Type: c.kind}}
			for range deltas {
				events = append(events, canon.Event{Kind: canon.Delta, Text: canon.Text(" word")})
			}
			events = append(events, canon.Event{Kind: canon.Close}, canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: canon.StopEnd}})
			asked, o := everything(), options("summary")
			asked.Show = canon.Show{}
			out := make([]byte, 0, 4096)
			b.ReportAllocs()
			n := 0
			for e := (responses{}).NewEncoder(asked, o); b.Loop(); n++ {
				if n == len(events) {
					n, e = 0, responses{}.NewEncoder(asked, o)
				}
				out = e.Append(out[:0], &events[n])
			}
		})
	}
}
