package chat

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
)

func TestRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded answers", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var losses canon.Losses
			a, err := chat{}.ReadAnswer(body, testOptions(&losses))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			fmt.Fprintf(&out, "%s %s %s\n", a.ID, a.Model, a.Created)
			for i, p := range a.Parts {
				fmt.Fprintf(&out, "%d %s |%s|", i, kindOf(p.Type), p.Text)
				if p.Type == canon.CallPart {
					fmt.Fprintf(&out, " %s %s |%s|", p.Call.ID, p.Call.Name, p.Call.Arguments)
				}
				out.WriteByte('\n')
			}
			fmt.Fprintf(&out, "%d %q %q\n%+v\nlogprobs %d\nlosses %v\n", a.Stop.Reason, a.Stop.Sequence, a.Stop.Native, a.Usage, bytes.Count(a.Logprobs, []byte(`"top_logprobs"`)), losses.List())
			written, err := chat{}.AppendAnswer(nil, a, asked(), testOptions(&losses))
			if err != nil {
				t.Fatal(err)
			}
			again, err := chat{}.ReadAnswer(written, testOptions(nil))
			if err != nil || sameKinds(again.Parts) != sameKinds(a.Parts) || !bytes.Equal(again.Logprobs, a.Logprobs) {
				t.Errorf("%v: written and read again %s", err, written)
			}
			if a.Logprobs != nil { // long, and compared above
				written = bytes.Replace(written, a.Logprobs, []byte("[…]"), 1)
			}
			compareGolden(t, strings.TrimSuffix(file, ".json")+".txt", out.String()+string(written)+"\n")
		})
	}
}

// TestAnswerOfAFoldedStream: reading the fold of a stream's bytes gives what folding its events gives. Chat's message has one text of a
// kind, and which logprobs are of the text only a stream tells.
func TestAnswerOfAFoldedStream(t *testing.T) {
	for name, stream := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			folder := chat{}.NewFolder()
			for _, frame := range frames(t, stream) {
				folder.Event(frame.Name, frame.Data)
			}
			want := decode(t, stream)
			got, err := chat{}.ReadAnswer(folder.AppendResponse(nil), testOptions(nil))
			if want.answer.Stop.Reason == 0 && want.answer.Failed == nil || folder.Summary().HasError {
				if err == nil {
					t.Errorf("read an answer that never ended: %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			one, two := *got, *want.answer
			if sameKinds(one.Parts) != sameKinds(two.Parts) {
				t.Errorf("got  %s\nwant %s", sameKinds(one.Parts), sameKinds(two.Parts))
			}
			if two.Failed != nil {
				if one.Failed == nil || *one.Failed != *two.Failed {
					t.Errorf("failed %v and %v", one.Failed, two.Failed)
				}
				return
			}
			one.Parts, two.Parts, one.Logprobs, two.Logprobs = nil, nil, nil, nil
			if fmt.Sprintf("%+v", one) != fmt.Sprintf("%+v", two) {
				t.Errorf("got  %+v\nwant %+v", one, two)
			}
		})
	}
}

func TestReadAnswer(t *testing.T) {
	answer := func(message, rest string) string {
		return `{"id":"c","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]` + rest + `}`
	}
	for _, c := range []struct{ name, body, want string }{
		{"both names of reasoning", answer(`{"content":"c","reasoning":"r","reasoning_content":"r"}`, ""), "reasoning |r| text |c| "},
		{"a refusal", answer(`{"content":null,"refusal":"no"}`, ""), "refusal |no| "},
		{"content that is a list", answer(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"x"}]}`, ""), "text |a| text |b| lost choices[0].message.content.x unknown "},
		{"nothing", answer(`{"content":""}`, ""), ""},
		{"a call without an id", answer(`{"content":"a","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}`, ""), `text |a| call || call_x1_1 f |{\"a\":1}| false `},
		{"a custom call", answer(`{"tool_calls":[{"id":"i","type":"custom","custom":{"name":"f","input":"ls"}}]}`, ""), `call || i f |ls| true `},
		{"a call without a name", answer(`{"tool_calls":[{"id":"i","function":{"arguments":"{}"}}]}`, ""), "error 502 the upstream sent a tool call without a name"},
		{"a call without a name in an answer that was cut", `{"choices":[{"message":{"tool_calls":[{"id":"i","function":{"arguments":""}}]},"finish_reason":"length"}]}`, "lost choices[0].message.tool_calls.name unknown "},
		{"a call that says nothing", answer(`{"content":"a","tool_calls":[{"id":"","function":{"name":"","arguments":""}}]}`, ""), "text |a| lost choices[0].message.tool_calls.name unknown "},
		{"a call with more", answer(`{"tool_calls":[{"id":"i","extra_content":{"a":1},"function":{"name":"f","arguments":"{}"}}]}`, ""), `call || i f |{}| false lost choices[0].message.tool_calls.extra_content unknown `},
		{"function_call of old", answer(`{"function_call":{"name":"f","arguments":"{}"}}`, ""), `call || call_x1_0 f |{}| false `},
		{"annotations", answer(`{"content":"a","annotations":[{"b":1}]}`, ""), `text |a| {"b":1} `},
		{"annotations of nothing", answer(`{"annotations":[{"b":1}]}`, ""), `lost choices[0].message.annotations no_equivalent `},
		{"what nobody knows", answer(`{"content":"a","audio":{"id":"x"}}`, `,"x":1,"citations":[]`), "text |a| lost x unknown lost choices[0].message.audio no_equivalent "},
		{"two choices", `{"choices":[{"index":1,"message":{},"finish_reason":"stop"},{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`, "text |a| lost choices[1] no_equivalent "},
		{"an abort", `{"choices":[{"message":{"content":"a"},"finish_reason":"abort"}]}`, "text |a| failed the upstream aborted the answer"},
		{"an error", `{"choices":[{"message":{"content":"a"},"finish_reason":"error"}]}`, "text |a| failed the upstream failed while it answered"},
		{"a finish reason that nobody knows", `{"choices":[{"message":{"content":"a"},"finish_reason":"eos"}]}`, "text |a| lost choices[0].finish_reason unknown "},
		{"choices that are a text", `{"choices":"x"}`, "error 502 the upstream's answer has no first choice"},
		{"no choices", `{"id":"c"}`, "error 502 the upstream's answer has no first choice"},
		{"empty choices", `{"choices":[]}`, "error 502 the upstream's answer has no first choice"},
		{"no end", `{"choices":[{"message":{"content":"a"},"finish_reason":null}]}`, "error 502 the upstream's answer has no finish reason"},
		{"no message", `{"choices":[{"finish_reason":"stop"}]}`, "error 502 the upstream sent a message that is no object"},
		{"content that is a number", answer(`{"content":1}`, ""), "error 502 the upstream sent a text that is no string"},
		{"reasoning that is a list", answer(`{"reasoning":[1]}`, ""), "error 502 the upstream sent a text that is no string"},
		{"calls that are an object", answer(`{"tool_calls":{}}`, ""), "error 502 the upstream sent tool calls that are no array"},
		{"a call that is a number", answer(`{"tool_calls":[1]}`, ""), "error 502 the upstream sent a tool call that is no object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var losses canon.Losses
			var got strings.Builder
			a, err := chat{}.ReadAnswer([]byte(c.body), testOptions(&losses))
			if err != nil {
				fmt.Fprintf(&got, "error %d %s", err.(*canon.Problem).Status, err)
			} else {
				for _, p := range a.Parts {
					fmt.Fprintf(&got, "%s |%s| ", kindOf(p.Type), p.Text)
					if p.Type == canon.CallPart {
						fmt.Fprintf(&got, "%s %s |%s| %v ", p.Call.ID, p.Call.Name, p.Call.Arguments, p.Call.Custom)
					}
					for _, raw := range p.Cites {
						fmt.Fprintf(&got, "%s ", raw)
					}
				}
				for _, l := range losses.List() {
					fmt.Fprintf(&got, "lost %s %s ", l.Path, l.Reason)
				}
				if a.Failed != nil {
					fmt.Fprintf(&got, "failed %v", a.Failed)
				}
			}
			if got.String() != c.want {
				t.Errorf("got  %s\nwant %s", got.String(), c.want)
			}
		})
	}
}

func TestAppendAnswer(t *testing.T) {
	var losses canon.Losses
	a := &canon.Answer{ID: text("u"), Model: text("theirs"), Usage: canon.NoUsage(), Stop: canon.Stop{Reason: canon.StopEnd}, Logprobs: canon.Raw("[1]"), Parts: []canon.Part{
		{Type: canon.ReasoningPart, Text: text("r"), Summary: text("s"), Signature: text("x"), SignedBy: canon.Messages},
		{Type: canon.RedactedPart, Signature: text("x"), SignedBy: canon.Messages},
		{Type: canon.TextPart, Text: text("a"), Cites: []canon.Raw{canon.Raw(`{"type":"url_citation","url_citation":{}}`), canon.Raw(`{"type":"char_location"}`)}},
		{Type: canon.HostedPart, Raw: canon.Raw(`{"type":"server_tool_use"}`)},
		{Type: canon.CallPart, Call: canon.Call{ID: text("i"), Name: text("f"), Arguments: text(`{\"`)}},
		{Type: canon.TextPart, Text: text("b")},
		{Type: canon.CallPart, Call: canon.Call{ID: text("j"), Name: text("g"), Arguments: text("ls"), Custom: true, Namespace: text("n")}},
	}}
	got, err := chat{}.AppendAnswer([]byte("kept"), a, &canon.Request{}, testOptions(&losses))
	const want = `kept{"id":"chatcmpl-x1","object":"chat.completion","created":1700000000,"model":"theirs","choices":[{"index":0,"message":{"role":"assistant","content":"ab","refusal":null,` +
		`"reasoning_content":"r","annotations":[{"type":"url_citation","url_citation":{}}],"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{\""}},` +
		`{"id":"j","type":"custom","custom":{"name":"g","input":"ls"}}]},"logprobs":null,"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
	const lost = `[{choices[0].message.reasoning_content.signature foreign} {choices[0].message.reasoning_content.summary no_equivalent} {choices[0].message.redacted_thinking foreign} {choices[0].message.citations no_equivalent} ` +
		`{choices[0].message.server_tool_use no_equivalent} {choices[0].message.tool_calls[1].namespace no_equivalent}]`
	if fmt.Sprint(losses.List()) != lost {
		t.Errorf("lost %v", losses.List())
	}
	a.Failed = dialect.Aborted()
	if got, err := (chat{}).AppendAnswer(nil, a, asked(), testOptions(nil)); err != a.Failed || len(got) != 0 {
		t.Errorf("a failed answer: %v %s", err, got)
	}
}

// FuzzReadAnswer: any object gives an answer or a problem, never a panic, and what is read can be written.
func FuzzReadAnswer(f *testing.F) {
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no recorded answers", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.KindObject {
			return
		}
		chat{}.IsError(body)
		a, err := chat{}.ReadAnswer(body, testOptions(nil))
		if err != nil || a.Failed != nil {
			return
		}
		written, err := chat{}.AppendAnswer(nil, a, asked(), testOptions(nil))
		if err != nil || !jsonx.Valid(written) {
			t.Fatalf("%v %s", err, written)
		}
		if again, err := (chat{}).ReadAnswer(written, testOptions(nil)); err != nil || sameKinds(again.Parts) != sameKinds(a.Parts) {
			t.Errorf("%v: %s became %s", err, body, written)
		}
	})
}
