package chat

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// asked is a request that wants everything shown.
func asked() *canon.Request {
	return &canon.Request{From: canon.Chat, Model: canon.Text("mine"), Show: canon.Show{Usage: true, Logprobs: true}}
}

func encode(asked *canon.Request, o dialect.Options, events ...canon.Event) string {
	var out []byte
	w := chat{}.NewEncoder(asked, o)
	for i := range events {
		out = w.Append(out, &events[i])
	}
	return string(out)
}

// reencode decodes a stream and encodes it again.
func reencode(tb testing.TB, stream []byte, o dialect.Options) []byte {
	tb.Helper()
	d, w := chat{}.NewDecoder(testOptions(nil)), chat{}.NewEncoder(asked(), o)
	var events []canon.Event
	var out []byte
	for _, frame := range frames(tb, stream) {
		var err error
		if events, err = d.Frame(events[:0], frame.Name, frame.Data); err != nil {
			tb.Fatal(err)
		}
		for i := range events {
			out = w.Append(out, &events[i])
		}
	}
	return out
}

func TestEncodedStreams(t *testing.T) {
	all := recordings(t)
	for _, name := range []string{"chat-stream-plain", "chat-stream-tool-auto-bare", "chat-stream-stop", "chat-stream-tool-parallel", "chat-stream-engine-death", "rust-chat-stream-tool-length"} {
		t.Run(name, func(t *testing.T) {
			compareGolden(t, filepath.Join("testdata", "streams", name+".encoded"), string(reencode(t, all[name], testOptions(nil))))
		})
	}
}

// sameKinds joins the parts of an answer as Chat's message does: texts of one kind are one.
func sameKinds(parts []canon.Part) string {
	var said [canon.CallPart + 1]string
	for _, p := range parts {
		switch p.Type {
		case canon.CallPart:
			said[p.Type] += fmt.Sprintf("[%s %s %v %s]", p.Call.ID, p.Call.Name, p.Call.Custom, p.Call.Arguments)
		default:
			said[p.Type] += string(p.Text)
		}
		for _, raw := range p.Cites {
			said[p.Type] += fmt.Sprintf("{%s}", raw)
		}
	}
	return strings.Join(said[:], "\n")
}

func TestEncodingLosesNothingOfARecordedStream(t *testing.T) {
	for name, stream := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			var losses canon.Losses
			one, two := decode(t, stream), decode(t, reencode(t, stream, testOptions(&losses)))
			if two.err != nil || fmt.Sprint(two.finish) != fmt.Sprint(one.finish) && one.answer.Failed == nil {
				t.Fatalf("%v, %v and %v", two.err, one.finish, two.finish)
			}
			if a, b := sameKinds(one.answer.Parts), sameKinds(two.answer.Parts); a != b {
				t.Errorf("got  %s\nwant %s", b, a)
			}
			if a, b := one.answer, two.answer; a.Stop.Reason != 0 && (finishReason(a.Stop, a.Called()) != string(b.Stop.Native) || !bytes.Equal(a.Logprobs, b.Logprobs)) {
				t.Errorf("%+v became %+v", a.Stop, b.Stop)
			}
			if len(losses.List()) > 0 {
				t.Errorf("lost %v", losses.List())
			}
		})
	}
}

// TestStreamAndUnarySayTheSame: what AppendAnswer writes reads as what the encoder's frames fold to.
func TestStreamAndUnarySayTheSame(t *testing.T) {
	for name, stream := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			answer := decode(t, stream).answer
			if answer.Stop.Reason == 0 {
				t.Skip("no answer")
			}
			unary, err := chat{}.AppendAnswer(nil, answer, asked(), testOptions(nil))
			if err != nil || !jsonx.Valid(unary) {
				t.Fatalf("%v %s", err, unary)
			}
			streamed := chat{}.NewFolder()
			for _, frame := range frames(t, reencode(t, stream, testOptions(nil))) {
				streamed.Event(frame.Name, frame.Data)
			}
			one, err := chat{}.ReadAnswer(unary, testOptions(nil))
			if err != nil {
				t.Fatal(err)
			}
			two, err := chat{}.ReadAnswer(streamed.AppendResponse(nil), testOptions(nil))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprintf("%+v", one) != fmt.Sprintf("%+v", two) {
				t.Errorf("unary  %s\nstream %s", unary, streamed.AppendResponse(nil))
			}
		})
	}
}

func text(s string) canon.Text { return canon.Text(s) }

func start() canon.Event {
	return canon.Event{Kind: canon.Start, ID: text("u"), Model: text("theirs"), Created: canon.Raw("5"), Usage: canon.NoUsage()}
}

func TestEncode(t *testing.T) {
	const head = `data: {"id":"chatcmpl-x1","object":"chat.completion.chunk","created":1700000000,"model":"mine","choices":[`
	frame := func(delta string) string {
		return head + `{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
	}
	role := frame(`{"role":"assistant","content":""}`)
	open := func(kind canon.PartType) canon.Event { return canon.Event{Kind: canon.Open, Type: kind} }
	call := open(canon.CallPart)
	call.Call = canon.Call{ID: text("i"), Name: text("f")}
	second := call
	second.Part, second.Call.ID = 1, text("j")
	custom := open(canon.CallPart)
	custom.Call = canon.Call{ID: text("i"), Name: text("f"), Custom: true, Namespace: text("n")}
	ended := canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: canon.StopEnd}}
	for _, c := range []struct {
		name   string
		events []canon.Event
		want   string
		lost   []canon.Loss
	}{
		{"text", []canon.Event{start(), open(canon.TextPart), {Kind: canon.Delta, Text: text(`a\u00e9`), Logprobs: canon.Raw("[1]")}, {Kind: canon.Close}}, role + frame(`{"content":"a\u00e9"}`), nil},
		{"a refusal", []canon.Event{start(), open(canon.RefusalPart), {Kind: canon.Delta, Text: text("no")}}, role + frame(`{"refusal":"no"}`), nil},
		{"reasoning", []canon.Event{start(), open(canon.ReasoningPart), {Kind: canon.Delta, Text: text("r")}, {Kind: canon.Seal, Text: text("s")}}, role + frame(`{"reasoning_content":"r"}`), nil},
		{"a summary of reasoning", []canon.Event{start(), open(canon.ReasoningPart), {Kind: canon.Delta, Summary: true, Text: text("r")}, {Kind: canon.Delta, Text: text("x")}, {Kind: canon.Seal, SignedBy: canon.Messages}},
			role + frame(`{"reasoning_content":"r"}`), []canon.Loss{{Path: "choices[0].message.reasoning_content.content", Reason: canon.NoEquivalent}, {Path: "choices[0].message.reasoning_content.signature", Reason: canon.Foreign}}},
		{"calls count by their opening", []canon.Event{start(), call, second, {Kind: canon.Delta, Part: 1, Text: text("{")}, {Kind: canon.Delta, Text: text("[")}}, role +
			frame(`{"tool_calls":[{"index":0,"id":"i","type":"function","function":{"name":"f","arguments":""}}]}`) + frame(`{"tool_calls":[{"index":1,"id":"j","type":"function","function":{"name":"f","arguments":""}}]}`) +
			frame(`{"tool_calls":[{"index":1,"function":{"arguments":"{"}}]}`) + frame(`{"tool_calls":[{"index":0,"function":{"arguments":"["}}]}`), nil},
		{"a custom call", []canon.Event{start(), custom, {Kind: canon.Delta, Text: text("ls")}}, role + frame(`{"tool_calls":[{"index":0,"id":"i","type":"custom","custom":{"name":"f","input":""}}]}`) +
			frame(`{"tool_calls":[{"index":0,"custom":{"input":"ls"}}]}`), []canon.Loss{{Path: "choices[0].message.tool_calls[0].namespace", Reason: canon.NoEquivalent}}},
		{"what Chat has no place for", []canon.Event{start(), open(canon.RedactedPart), {Kind: canon.Close},
			{Kind: canon.Open, Part: 1, Type: canon.HostedPart, Raw: canon.Raw(`{"type":"web_search_call"}`)}, {Kind: canon.Delta, Part: 1, Text: text("x")}}, role,
			[]canon.Loss{{Path: "choices[0].message.redacted_thinking", Reason: canon.Foreign}, {Path: "choices[0].message.web_search_call", Reason: canon.NoEquivalent}}},
		{"annotations of Chat's own", []canon.Event{start(), open(canon.TextPart), {Kind: canon.Cite, Raw: canon.Raw(`{"type":"url_citation","url_citation":{}}`)}}, role + frame(`{"annotations":[{"type":"url_citation","url_citation":{}}]}`), nil},
		{"citations of others", []canon.Event{start(), open(canon.TextPart), {Kind: canon.Cite, Raw: canon.Raw(`{"type":"char_location"}`)}, {Kind: canon.Cite, Raw: canon.Raw(`{"type":"url_citation","url":"x"}`)}}, role,
			[]canon.Loss{{Path: "choices[0].message.citations", Reason: canon.NoEquivalent}, {Path: "choices[0].message.annotations", Reason: canon.NoEquivalent}}},
		{"an end", []canon.Event{start(), {Kind: canon.Counted}, ended}, role + head + `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", nil},
		{"a failure ends without the end mark", []canon.Event{start(), {Kind: canon.Fail, Problem: &canon.Problem{Message: "m"}}}, role + `data: {"error":{"message":"m","type":"server_error","param":null,"code":null}}` + "\n\n", nil},
		{"a failure first", []canon.Event{{Kind: canon.Fail, Problem: &canon.Problem{Status: 400, Code: canon.CodeOverflow, Message: "m", Param: "p"}}},
			`data: {"error":{"message":"the model's maximum context length is exceeded: m","type":"invalid_request_error","param":"p","code":"context_length_exceeded"}}` + "\n\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var losses canon.Losses
			if got := encode(&canon.Request{Model: text("mine")}, testOptions(&losses), c.events...); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if !slices.Equal(losses.List(), c.lost) {
				t.Errorf("lost %v", losses.List())
			}
		})
	}
}

func TestEncodeShowsWhatWasAskedFor(t *testing.T) {
	usage := canon.Usage{Prompt: 5, Completion: 3, Cached: 2, CacheWrite: canon.Unknown, Reasoning: canon.Unknown}
	got := encode(asked(), testOptions(nil), start(), canon.Event{Kind: canon.Open, Type: canon.TextPart},
		canon.Event{Kind: canon.Delta, Text: text("a"), Logprobs: canon.Raw(`[{"token":"a"}]`)}, canon.Event{Kind: canon.Close},
		canon.Event{Kind: canon.Counted, Usage: usage}, canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: canon.StopLength}})
	for _, want := range []string{`"logprobs":{"content":[{"token":"a"}],"refusal":null},"finish_reason":null}],"usage":null}`, `"finish_reason":"length"}],"usage":null}`,
		`"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\ndata: [DONE]\n\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
}

func TestFinishReason(t *testing.T) {
	for _, c := range []struct {
		reason canon.StopReason
		called bool
		want   string
	}{
		{canon.StopEnd, false, "stop"}, {canon.StopEnd, true, "tool_calls"}, {canon.StopSequence, false, "stop"}, {canon.StopPause, false, "stop"},
		{canon.StopLength, true, "length"}, {canon.StopContext, false, "length"}, {canon.StopFilter, true, "content_filter"},
	} {
		if got := finishReason(canon.Stop{Reason: c.reason}, c.called); got != c.want {
			t.Errorf("%v: got %s", c, got)
		}
	}
}

func TestKeepAliveIsAComment(t *testing.T) {
	w := chat{}.NewEncoder(asked(), testOptions(nil))
	if got := string(w.AppendKeepAlive(nil)); got != ": keepalive\n\n" || w.Overlap() {
		t.Errorf("got %q", got)
	}
}

func BenchmarkEncode(b *testing.B) {
	var events []canon.Event
	events = append(events, start(), canon.Event{Kind: canon.Open, Type: canon.TextPart})
	for range 100 {
		events = append(events, canon.Event{Kind: canon.Delta, Text: text(" some")})
	}
	o, request := testOptions(nil), asked()
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		w := chat{}.NewEncoder(request, o)
		for i := range events {
			out = w.Append(out[:0], &events[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}

func TestTheTotalIsWrittenAsItWasTold(t *testing.T) {
	for usage, want := range map[string]string{
		`{"prompt_tokens":11,"completion_tokens":5,"total_tokens":19}`:                                    `"total_tokens":19`,
		`{"prompt_tokens":11,"completion_tokens":5}`:                                                      `"total_tokens":16`,
		`{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`:                   `"total_tokens":9223372036854775807`,
		`{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807,"total_tokens":-2}`: `"total_tokens":9223372036854775807`,
	} {
		if got := string(appendUsage(nil, readUsage([]byte(usage)))); !strings.Contains(got, want+",") {
			t.Errorf("%s became %s", usage, got)
		}
	}
}
