package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// The requests here are put together by hand, as the readers of the other dialects do it.

func textPart(path, text string) canon.Part {
	return canon.Part{Type: canon.TextPart, Text: canon.Text(text), Path: path}
}

func say(role canon.Role, path string, parts ...canon.Part) canon.Message {
	return canon.Message{Role: role, Path: path, Parts: parts}
}

func callPart(path, id, name, arguments string) canon.Part {
	return canon.Part{Type: canon.CallPart, Path: path, Call: canon.Call{
		ID: canon.Text(id), Name: canon.Text(name), Arguments: jsonx.AppendEscaped(nil, []byte(arguments))}}
}

func resultPart(path, id string, parts ...canon.Part) canon.Part {
	return canon.Part{Type: canon.ResultPart, Path: path, Result: canon.Result{CallID: canon.Text(id), Parts: parts}}
}

func mediaPart(kind canon.PartType, path string, m canon.Media) canon.Part {
	return canon.Part{Type: kind, Path: path, Media: m}
}

func askFrom(from canon.Dialect, ms ...canon.Message) *canon.Request {
	return &canon.Request{From: from, Model: canon.Text("m"), Messages: ms}
}

func lossLines(o dialect.Options) string {
	var b strings.Builder
	for _, l := range o.Losses.List() {
		fmt.Fprintf(&b, "%s %s\n", l.Path, l.Reason)
	}
	return b.String()
}

const u = `{"role":"user","content":"hi"}`

func hi() canon.Message { return say(canon.User, "input[0]", textPart("input[0].content", "hi")) }

var png = canon.Media{MediaType: canon.Text("image/png"), Data: canon.Text("AA==")}

func TestConversationsOfOthersAreWritten(t *testing.T) {
	failed := resultPart("messages[2].content[0]", "t1", textPart("messages[2].content[0].content", "ok"))
	failed.Result.Failed = true
	failedImage := resultPart("x", "t1", mediaPart(canon.ImagePart, "x.content[0]", png))
	failedImage.Result.Failed = true
	signed := canon.Part{Type: canon.ReasoningPart, Text: canon.Text("r"), Signature: canon.Text("s"), SignedBy: canon.Messages, Path: "messages[1].content[0]"}
	cached := textPart("messages[0].content[0]", "x")
	cached.Cache = canon.Raw(`{"type":"ephemeral"}`)
	for _, c := range []struct {
		name   string
		ask    *canon.Request
		policy func(*dialect.Policy)
		want   string // messages
		losses string
	}{
		{"vector 1: instructions and a string", askFrom(canon.Responses, say(canon.System, "instructions", textPart("instructions", "I")), hi()), nil,
			`{"role":"system","content":"I"},` + u, ""},
		{"vector 2: the leading run is one, parts of Responses touch", askFrom(canon.Responses, say(canon.System, "instructions", textPart("instructions", "I")),
			say(canon.Developer, "input[0]", textPart("input[0].content[0]", "D1"), textPart("input[0].content[1]", "D2")), hi(),
			say(canon.User, "input[2]", textPart("input[2].content", "mid"))), nil,
			`{"role":"system","content":"I\n\nD1D2"},` + u + `,{"role":"user","content":"mid"}`, ""},
		{"vector 3: two of them without instructions", askFrom(canon.Responses, say(canon.System, "input[0]", textPart("", "a")), say(canon.Developer, "input[1]", textPart("", "b")), hi()), nil,
			`{"role":"system","content":"a\n\nb"},` + u, ""},
		{"a developer message keeps its role", askFrom(canon.Responses, say(canon.Developer, "input[0]", textPart("", "b")), hi()), func(p *dialect.Policy) { p.DeveloperRole = "keep" },
			`{"role":"developer","content":"b"},` + u, ""},
		{"a late system message stays where it is", askFrom(canon.Messages, hi(), say(canon.System, "messages[1]", textPart("", "a"), textPart("", "b"))), nil,
			u + `,{"role":"system","content":"a\nb"}`, ""},
		{"empty system texts are none", askFrom(canon.Messages, say(canon.System, "system", textPart("", ""), textPart("", "")), hi()), nil, u, ""},
		{"vector 4: reasoning is joined and is no text", askFrom(canon.Responses, hi(), say(canon.Assistant, "input[1]",
			canon.Part{Type: canon.ReasoningPart, Text: canon.Text("A")}, callPart("", "c", "f", "{}"), canon.Part{Type: canon.ReasoningPart, Summary: canon.Text("B")},
			textPart("", "after"), callPart("", "d", "g", `{"a":1}`)), say(canon.ToolRole, "input[6]", resultPart("", "c", textPart("", "1"))), say(canon.ToolRole, "input[7]", resultPart("", "d", textPart("", "2")))), nil,
			u + `,{"role":"assistant","content":"after","reasoning_content":"A\nB","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},` +
				`{"id":"d","type":"function","function":{"name":"g","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"tool","tool_call_id":"d","content":"2"}`, ""},
		{"vector 5: reasoning with a call only", askFrom(canon.Responses, hi(), say(canon.Assistant, "", canon.Part{Type: canon.ReasoningPart, Text: canon.Text("raw")}, callPart("", "c", "f", "{}"))),
			func(p *dialect.Policy) { p.ReasoningReplay = "both" },
			u + `,{"role":"assistant","content":null,"reasoning":"raw","reasoning_content":"raw","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, ""},
		{"reasoning is not replayed", askFrom(canon.Messages, hi(), say(canon.Assistant, "messages[1]", signed, textPart("", "t")), hi()), func(p *dialect.Policy) { p.ReasoningReplay = "none" },
			u + `,{"role":"assistant","content":"t"},` + u, "messages[1].content[0].reasoning policy\nmessages[1].content[0].signature foreign\n"},
		{"vector 6: a result of two texts is a list", askFrom(canon.Responses, say(canon.ToolRole, "input[0]", resultPart("", "c", textPart("", "a"), textPart("", "b")))), nil,
			`{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, ""},
		{"vectors 6 and 30: images go behind all results", askFrom(canon.Messages, hi(), say(canon.Assistant, "", callPart("", "a", "f", ""), callPart("", "b", "f", " ")),
			say(canon.ToolRole, "", resultPart("", "a", textPart("", "see"), mediaPart(canon.ImagePart, "", png))),
			say(canon.User, "", textPart("", "next")), say(canon.ToolRole, "", resultPart("", "b", mediaPart(canon.ImagePart, "", canon.Media{URL: canon.Text("https://e/x")})))), nil,
			u + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"see"},{"type":"text","text":"[image 1] is in the next user message"}]},` +
				`{"role":"tool","tool_call_id":"b","content":"[image 2] is in the next user message"},` +
				`{"role":"user","content":[{"type":"text","text":"[image 1]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"auto"}},` +
				`{"type":"text","text":"[image 2]"},{"type":"image_url","image_url":{"url":"https://e/x","detail":"auto"}}]},{"role":"user","content":"next"}`, ""},
		{"images inside of results", askFrom(canon.Messages, say(canon.ToolRole, "", failedImage)), func(p *dialect.Policy) { p.ToolResultImages = "inline" },
			`{"role":"tool","tool_call_id":"t1","content":[{"type":"text","text":"Error: "},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"auto"}}]}`, ""},
		{"placeholders of images", askFrom(canon.Messages, say(canon.ToolRole, "", failedImage)), func(p *dialect.Policy) { p.ToolResultImages = "placeholder" },
			`{"role":"tool","tool_call_id":"t1","content":"Error: [image]"}`, "x.content[0].image policy\n"},
		{"vector 15: detail is kept", askFrom(canon.Responses, say(canon.User, "", textPart("", "look"), mediaPart(canon.ImagePart, "", canon.Media{URL: canon.Text("http://e/x"), Detail: canon.Text("high")}))), nil,
			`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"http://e/x","detail":"high"}}]}`, ""},
		{"a detail that Chat does not know", askFrom(canon.Responses, say(canon.User, "", mediaPart(canon.ImagePart, "input[0].content[0]", canon.Media{URL: canon.Text("http://e/x"), Detail: canon.Text("original")}))), nil,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://e/x","detail":"high"}}]}`, "input[0].content[0].detail no_equivalent\n"},
		{"vector 16: a refusal alone is what was said", askFrom(canon.Responses, say(canon.Assistant, "", canon.Part{Type: canon.RefusalPart, Text: canon.Text("no")}), hi()), nil,
			`{"role":"assistant","content":"no"},` + u, ""},
		{"a refusal beside text", askFrom(canon.Responses, say(canon.Assistant, "", textPart("", "t"), canon.Part{Type: canon.RefusalPart, Text: canon.Text("no")}), hi()), nil,
			`{"role":"assistant","content":"t","refusal":"no"},` + u, ""},
		{"an assistant that said nothing", askFrom(canon.Messages, say(canon.Assistant, ""), hi()), nil, `{"role":"assistant","content":""},` + u, ""},
		{"vector 26: text on both sides of a call", askFrom(canon.Messages, say(canon.Assistant, "", textPart("", "hi"), callPart("", "t1", "f", `{"a":"é"}`), textPart("", "yo")), hi()), nil,
			`{"role":"assistant","content":"hiyo","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":\"é\"}"}}]},` + u, ""},
		{"vectors 27 and 28: results first, failures in words", askFrom(canon.Messages, say(canon.User, "", textPart("", "note")), say(canon.ToolRole, "", failed)), nil,
			`{"role":"tool","tool_call_id":"t1","content":"Error: ok"},{"role":"user","content":"note"}`, ""},
		{"vector 29: a result of nothing", askFrom(canon.Messages, say(canon.ToolRole, "", resultPart("", "t1"))), nil, `{"role":"tool","tool_call_id":"t1","content":""}`, ""},
		{"vector 31: sealed thinking", askFrom(canon.Messages, say(canon.Assistant, "", canon.Part{Type: canon.RedactedPart, Path: "messages[1].content[0]"}, textPart("", "t")), hi()), nil,
			`{"role":"assistant","content":"t"},` + u, "messages[1].content[0].redacted_thinking foreign\n"},
		{"arguments that were cut", askFrom(canon.Messages, hi(), say(canon.Assistant, "", callPart("input[1]", "c", "f", "{\"a\":\"\n")), hi()), nil,
			u + `,{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"_raw\": \"{\\\"a\\\":\\\"\\n\"}"}}]},` + u, "input[1].arguments policy\n"},
		{"arguments that are a list", askFrom(canon.Messages, say(canon.Assistant, "", callPart("p", "c", "f", "[1]")), hi()), nil,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"_raw\": \"[1]\"}"}}]},` + u, "p.arguments policy\n"},
		{"several texts of a user stay a list", askFrom(canon.Messages, say(canon.User, "", cached, textPart("", "y"))), nil,
			`{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`, "messages[0].content[0].cache_control no_equivalent\n"},
		{"documents", askFrom(canon.Messages, say(canon.User, "",
			mediaPart(canon.FilePart, "", canon.Media{Inline: canon.Text("text"), Title: canon.Text("T")}),
			mediaPart(canon.FilePart, "", canon.Media{Parts: []canon.Part{textPart("", "block")}}),
			mediaPart(canon.FilePart, "", canon.Media{Data: canon.Text("AA=="), MediaType: canon.Text("application/pdf")}),
			mediaPart(canon.FilePart, "messages[0].content[3]", canon.Media{URL: canon.Text("https://e/x.pdf")}))), nil,
			`{"role":"user","content":[{"type":"text","text":"T\n\ntext"},{"type":"text","text":"block"},{"type":"file","file":{"file_data":"data:application/pdf;base64,AA==","filename":"document.pdf"}},` +
				`{"type":"text","text":"https://e/x.pdf"}]}`, "messages[0].content[3].file no_equivalent\n"},
		{"a file of text is text", askFrom(canon.Responses, say(canon.User, "", mediaPart(canon.FilePart, "", canon.Media{URL: canon.Text(`data:text\/plain;base64,aGki`), Title: canon.Text("a.txt")}),
			mediaPart(canon.FilePart, "", canon.Media{Data: canon.Text("aGk="), MediaType: canon.Text("text/csv")}),
			mediaPart(canon.FilePart, "", canon.Media{Data: canon.Text("/w=="), MediaType: canon.Text("text/csv"), Title: canon.Text("b")}))), nil,
			`{"role":"user","content":[{"type":"text","text":"a.txt\n\nhi\""},{"type":"text","text":"hi"},{"type":"file","file":{"file_data":"data:text/csv;base64,/w==","filename":"b"}}]}`, ""},
		{"sound and film", askFrom(canon.Responses, say(canon.User, "", mediaPart(canon.AudioPart, "", canon.Media{Data: canon.Text("AA=="), MediaType: canon.Text("audio/mpeg")}),
			mediaPart(canon.VideoPart, "", canon.Media{URL: canon.Text("https://e/x.mp4")}))), nil,
			`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}},{"type":"video_url","video_url":{"url":"https://e/x.mp4"}}]}`, ""},
		{"what nobody knows in a result is its JSON", askFrom(canon.Messages, say(canon.ToolRole, "", resultPart("", "c", canon.Part{Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"x"}`)}))), nil,
			`{"role":"tool","tool_call_id":"c","content":"{\"type\":\"x\"}"}`, ""},
		{"what has no place", askFrom(canon.Responses, say(canon.Assistant, "", canon.Part{Type: canon.HostedPart, Raw: canon.Raw(`{"type":"web_search_call"}`), Path: "input[0]"},
			canon.Part{Type: canon.ReferencePart, Path: "input[1]"}, textPart("", "t")), say(canon.User, "", canon.Part{Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"x"}`), Path: "input[2]"})), nil,
			`{"role":"assistant","content":"t"}`, "input[0].web_search_call no_equivalent\ninput[1].item_reference foreign\ninput[2].x unknown\n"},
		{"turns of which nothing is left", askFrom(canon.Responses, hi(), say(canon.Assistant, "", canon.Part{Type: canon.RedactedPart, Path: "input[1]"}),
			say(canon.System, "", mediaPart(canon.ImagePart, "input[2].content[0]", png)), say(canon.User, "input[3]"), say(canon.Assistant, "", canon.Part{Type: canon.ReasoningPart, Text: canon.Text("r")}), hi()), nil,
			u + `,{"role":"user","content":""},{"role":"assistant","content":"","reasoning_content":"r"},` + u, "input[1].encrypted_content foreign\ninput[2].content[0].image no_equivalent\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := callOptions()
			if c.policy != nil {
				c.policy(o.Policy)
			}
			if got, want := writeRequest(t, c.ask, o), `{"model":"m","messages":[`+c.want+`]}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if got := lossLines(o); got != c.losses {
				t.Errorf("losses\ngot  %s\nwant %s", got, c.losses)
			}
		})
	}
}

func TestPrefill(t *testing.T) {
	ask := func() *canon.Request {
		return askFrom(canon.Messages, hi(), say(canon.Assistant, "messages[1]", textPart("", "{")))
	}
	for _, c := range []struct {
		name, prefill string
		extensions    bool
		ask           *canon.Request
		want, losses  string
	}{
		{"is gone on with", "continue", true, ask(), `],"continue_final_message":true,"add_generation_prompt":false}`, ""},
		{"is passed", "pass", true, ask(), `"content":"{"}]}`, ""},
		{"has no member without extensions", "continue", false, ask(), `"content":"{"}]}`, "messages[1].continue_final_message policy\n"},
		{"ends in a call", "continue", true, askFrom(canon.Messages, say(canon.Assistant, "", textPart("", "t"), callPart("", "c", "f", "{}"))), `]}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := callOptions()
			o.Policy.Prefill, o.Policy.ChatExtensions = c.prefill, c.extensions
			if got := writeRequest(t, c.ask, o); !strings.HasSuffix(got, c.want) {
				t.Errorf("got %s, want …%s", got, c.want)
			}
			if got := lossLines(o); got != c.losses {
				t.Errorf("losses %s, want %s", got, c.losses)
			}
		})
	}
}

func TestWhatCannotBeSaidIsRefused(t *testing.T) {
	kept := mediaPart(canon.ImagePart, "input[0].content[0]", canon.Media{FileID: canon.Text("file-secret")})
	foreign := mediaPart(canon.FilePart, "messages[0].content[0]", canon.Media{FileID: canon.Text("file-secret")})
	withTools := func(c canon.Choice, tools ...canon.Tool) *canon.Request {
		r := askFrom(canon.Responses, hi())
		r.Tools, r.Choice = tools, c
		return r
	}
	for _, c := range []struct {
		name, param string
		ask         *canon.Request
		policy      func(*dialect.Policy)
	}{
		{"an image by file id", "input[0].content[0]", askFrom(canon.Responses, say(canon.User, "", kept)), nil},
		{"an image by file id in a result", "input[0].content[0]", askFrom(canon.Responses, say(canon.ToolRole, "", resultPart("", "c", kept))), nil},
		{"a file that another provider keeps", "messages[0].content[0]", askFrom(canon.Messages, say(canon.User, "", foreign)), nil},
		{"vector 12: a choice without tools", "tool_choice", withTools(canon.Choice{Mode: canon.ChoiceRequired}), nil},
		{"a named choice without tools", "tool_choice", withTools(canon.Choice{Mode: canon.ChoiceNamed, Name: canon.Text("f")}), nil},
		{"a hosted tool", "tools[0]", withTools(canon.Choice{}, canon.Tool{Kind: canon.HostedTool, Path: "tools[0]", Raw: canon.Raw(`{"type":"web_search"}`)}), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := callOptions()
			if c.policy != nil {
				c.policy(o.Policy)
			}
			out, err := chat{}.AppendCall(nil, c.ask, o)
			var p *canon.Problem
			if !errors.As(err, &p) || p.Param != c.param || out != nil || strings.Contains(p.Message, "secret") {
				t.Errorf("got %s, %+v; want a problem of %s", out, err, c.param)
			}
		})
	}
}
