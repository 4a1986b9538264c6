package responses

import (
	"errors"
	"testing"

	"rolltap/rewrite/canon"
)

func text(s string) canon.Part { return canon.Part{Type: canon.TextPart, Text: canon.Text(s)} }

func textAt(s, path string) canon.Part {
	return canon.Part{Type: canon.TextPart, Text: canon.Text(s), Path: path}
}

func turn(role canon.Role, parts ...canon.Part) canon.Message {
	return canon.Message{Role: role, Parts: parts, Path: "messages[0]"}
}

func plainTurn(role canon.Role, s string) canon.Message {
	return canon.Message{Role: role, Parts: []canon.Part{text(s)}, Plain: true, Path: "messages[0]"}
}

func callPart(id, name, arguments string) canon.Part {
	return canon.Part{Type: canon.CallPart, Path: "messages[0].tool_calls[0]", Call: canon.Call{ID: canon.Text(id), Name: canon.Text(name), Arguments: canon.Text(arguments)}}
}

func resultTurn(r canon.Result) canon.Message {
	return turn(canon.ToolRole, canon.Part{Type: canon.ResultPart, Path: "messages[0].content[0]", Result: r})
}

func media(kind canon.PartType, m canon.Media) canon.Part {
	return canon.Part{Type: kind, Path: "messages[0].content[0]", Media: m}
}

// Requests of other dialects: what they become, and what is lost on the way.
func TestAppendCallOfOtherDialects(t *testing.T) {
	chat, messages := canon.Chat, canon.Messages
	hi := plainTurn(canon.User, "hi")
	function := canon.Tool{Kind: canon.FunctionTool, Name: canon.Text("f"), Path: "tools[0]"}
	for _, c := range []struct {
		name         string
		r            canon.Request
		want, losses string
	}{
		{"the least", canon.Request{From: chat, Model: canon.Text("m"), Messages: []canon.Message{hi}},
			`{"model":"m","input":[{"type":"message","role":"user","content":"hi"}],"store":false}`, ""},
		{"leading system messages are the instructions", canon.Request{From: chat, Messages: []canon.Message{turn(canon.System, text("a"), text("b")), plainTurn(canon.System, "c"), plainTurn(canon.Developer, "d"), hi, plainTurn(canon.System, "late")}},
			`{"instructions":"ab\n\nc","input":[{"type":"message","role":"developer","content":"d"},{"type":"message","role":"user","content":"hi"},{"type":"message","role":"system","content":"late"}],"store":false}`, ""},
		{"blocks of system stand in lines", canon.Request{From: messages, Messages: []canon.Message{turn(canon.System, textAt("a", "system[0]"), canon.Part{Type: canon.TextPart, Text: canon.Text("b"), Path: "system[1]", Cache: canon.Raw("{}")}), hi}},
			`{"instructions":"a\nb","input":[{"type":"message","role":"user","content":"hi"}],"store":false}`, "system[1].cache_control no_equivalent"},
		{"nothing but system stays input", canon.Request{From: chat, Messages: []canon.Message{plainTurn(canon.System, "a")}},
			`{"input":[{"type":"message","role":"system","content":"a"}],"store":false}`, ""},
		{"reasoning, text and calls in order", canon.Request{From: messages, Messages: []canon.Message{hi, turn(canon.Assistant,
			canon.Part{Type: canon.ReasoningPart, Text: canon.Text("think"), Signature: canon.Text("sig"), SignedBy: messages, Path: "messages[1].content[0]"},
			canon.Part{Type: canon.RedactedPart, Signature: canon.Text("x"), SignedBy: messages, Path: "messages[1].content[1]"},
			text("one"), callPart("c", "f", "{}"), text("two"), text("three")), resultTurn(canon.Result{CallID: canon.Text("c"), Parts: []canon.Part{text("ok")}, Plain: true})}},
			`{"input":[{"type":"message","role":"user","content":"hi"},{"type":"reasoning","id":"rs_7_0","summary":[],"content":[{"type":"reasoning_text","text":"think"}]},{"type":"message","role":"assistant","content":"one"},` +
				`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two","annotations":[]},{"type":"output_text","text":"three","annotations":[]}]},` +
				`{"type":"function_call_output","call_id":"c","output":"ok"}],"store":false}`,
			"messages[1].content[0].signature foreign\nmessages[1].content[1].redacted_thinking foreign"},
		{"reasoning that a Responses server sealed", canon.Request{From: chat, Messages: []canon.Message{turn(canon.Assistant, canon.Part{Type: canon.ReasoningPart, Summary: canon.Text("s"), Signature: canon.Text("enc"), SignedBy: canon.Responses})}},
			`{"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"enc"}],"store":false}`, ""},
		{"reasoning that is nothing but a foreign seal", canon.Request{From: messages, Messages: []canon.Message{hi, turn(canon.Assistant, canon.Part{Type: canon.ReasoningPart, Text: canon.Text(""), Signature: canon.Text("sig"), SignedBy: messages, Path: "m"}, text("a"))}},
			`{"input":[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","content":"a"}],"store":false}`, "m.signature foreign"},
		{"a refusal", canon.Request{From: chat, Messages: []canon.Message{turn(canon.Assistant, canon.Part{Type: canon.RefusalPart, Text: canon.Text("no")})}},
			`{"input":[{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}],"store":false}`, ""},
		{"arguments that are no object are wrapped", canon.Request{From: chat, Messages: []canon.Message{turn(canon.Assistant, callPart("c", "f", `{\"a\":`), callPart("d", "f", ""), callPart("e", "f", `{\"b\": 1}`))}},
			`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"_raw\": \"{\\\"a\\\":\"}"},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"},` +
				`{"type":"function_call","call_id":"e","name":"f","arguments":"{\"b\": 1}"}],"store":false}`, "messages[0].tool_calls[0].arguments policy"},
		{"a custom call and its result", canon.Request{From: chat, Messages: []canon.Message{turn(canon.Assistant, canon.Part{Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("g"), Arguments: canon.Text(`x\ny`), Custom: true}}),
			resultTurn(canon.Result{CallID: canon.Text("c"), Custom: true, Plain: true, Parts: []canon.Part{text("o")}})}},
			`{"input":[{"type":"custom_tool_call","call_id":"c","name":"g","input":"x\ny"},{"type":"custom_tool_call_output","call_id":"c","output":"o"}],"store":false}`, ""},
		{"a result with an image", canon.Request{From: messages, Messages: []canon.Message{resultTurn(canon.Result{CallID: canon.Text("c"), Parts: []canon.Part{text("a"), media(canon.ImagePart, canon.Media{MediaType: canon.Text("image/png"), Data: canon.Text("AA")})}})}},
			`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA","detail":"auto"}]}],"store":false}`, ""},
		{"a failed result says so", canon.Request{From: messages, Messages: []canon.Message{resultTurn(canon.Result{CallID: canon.Text("c"), Failed: true, Plain: true, Parts: []canon.Part{text("bad")}}), resultTurn(canon.Result{CallID: canon.Text("d"), Failed: true})}},
			`{"input":[{"type":"function_call_output","call_id":"c","output":"Error: bad"},{"type":"function_call_output","call_id":"d","output":"Error: "}],"store":false}`, ""},
		{"files", canon.Request{From: messages, Messages: []canon.Message{turn(canon.User,
			media(canon.FilePart, canon.Media{MediaType: canon.Text("application/pdf"), Data: canon.Text("AA"), Title: canon.Text("t.pdf")}), media(canon.FilePart, canon.Media{URL: canon.Text("http://f")}),
			media(canon.FilePart, canon.Media{Inline: canon.Text("in"), Title: canon.Text("t")}), media(canon.FilePart, canon.Media{Parts: []canon.Part{text("p")}}))}},
			`{"input":[{"type":"message","role":"user","content":[{"type":"input_file","filename":"t.pdf","file_data":"data:application/pdf;base64,AA"},{"type":"input_file","file_url":"http://f"},{"type":"input_text","text":"in"},{"type":"input_text","text":"p"}]}],"store":false}`,
			"messages[0].content[0].title no_equivalent"},
		{"sound, and an image of Chat", canon.Request{From: chat, Messages: []canon.Message{turn(canon.User, media(canon.AudioPart, canon.Media{Data: canon.Text("AA"), Format: canon.Text("wav")}), media(canon.ImagePart, canon.Media{URL: canon.Text("http://i"), Detail: canon.Text("high")}))}},
			`{"input":[{"type":"message","role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"input_image","image_url":"http://i","detail":"high"}]}],"store":false}`, ""},
		{"what nobody knows, names, citations and cache marks are lost", canon.Request{From: messages, Messages: []canon.Message{
			{Role: canon.User, Name: canon.Text("n"), Path: "messages[0]", Extra: []canon.Member{{Name: canon.Text("x"), Value: canon.Raw("1")}}, Parts: []canon.Part{
				{Type: canon.TextPart, Text: canon.Text("a"), Path: "messages[0].content[0]", Cache: canon.Raw("{}"), Cites: []canon.Raw{canon.Raw("{}")}, Extra: []canon.Member{{Name: canon.Text("y"), Value: canon.Raw("1")}}},
				{Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"thing"}`), Path: "messages[0].content[1]"}}},
			turn(canon.Assistant, canon.Part{Type: canon.HostedPart, Raw: canon.Raw(`{"type":"server_tool_use"}`), Path: "messages[1].content[0]"}),
			{Role: canon.User, Path: "messages[2]", Parts: []canon.Part{{Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"thing"}`), Path: "messages[2].content[0]"}}}}},
			`{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}],"store":false}`,
			"messages[0].content[0].citations no_equivalent\nmessages[0].content[0].cache_control no_equivalent\nmessages[0].content[0].y unknown\nmessages[0].content[1].thing unknown\nmessages[0].name no_equivalent\nmessages[0].x unknown\n" +
				"messages[1].content[0].server_tool_use no_equivalent\nmessages[2].content[0].thing unknown"},
		{"tools", canon.Request{From: chat, Messages: []canon.Message{hi}, Tools: []canon.Tool{function,
			{Kind: canon.FunctionTool, Name: canon.Text("g"), Description: canon.Text("d"), Parameters: canon.Raw(`{"type":"object"}`), Strict: canon.Raw("true"), Cache: canon.Raw("{}"), Path: "tools[1]"},
			{Kind: canon.CustomTool, Name: canon.Text("x"), Grammar: canon.Raw(`{"type":"grammar","grammar":{"syntax":"lark","definition":"y"}}`), Path: "tools[2]"},
			{Kind: canon.CustomTool, Name: canon.Text("y"), Grammar: canon.Raw(`{"type":"text"}`), Path: "tools[3]"},
			{Kind: canon.HostedTool, Type: canon.Text("web_search"), Path: "tools[4]"}}, Choice: canon.Choice{Mode: canon.ChoiceAuto, Parallel: canon.Raw("true")}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false},{"type":"function","name":"g","description":"d","parameters":{"type":"object"},"strict":true},` +
				`{"type":"custom","name":"x","format":{"type":"grammar","syntax":"lark","definition":"y"}},{"type":"custom","name":"y","format":{"type":"text"}}],"tool_choice":"auto","parallel_tool_calls":true,"store":false}`,
			"tools[1].cache_control no_equivalent\ntools[4].web_search no_equivalent"},
		{"a named tool", canon.Request{From: chat, Messages: []canon.Message{hi}, Tools: []canon.Tool{function}, Choice: canon.Choice{Mode: canon.ChoiceNamed, Name: canon.Text("f")}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}],"tool_choice":{"type":"function","name":"f"},"store":false}`, ""},
		{"no tools, no choice", canon.Request{From: chat, Messages: []canon.Message{hi}, Choice: canon.Choice{Mode: canon.ChoiceAuto, Parallel: canon.Raw("false")}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"store":false}`, ""},
		{"a schema without a name", canon.Request{From: messages, Messages: []canon.Message{hi}, Format: canon.Format{Kind: canon.FormatSchema, Schema: canon.Raw("{}")}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"text":{"format":{"type":"json_schema","name":"response","schema":{},"strict":true}},"store":false}`, ""},
		{"JSON and verbosity", canon.Request{From: chat, Messages: []canon.Message{hi}, Format: canon.Format{Kind: canon.FormatJSON}, Params: [canon.NumParams]canon.Raw{canon.ParamVerbosity: canon.Raw(`"low"`)}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"text":{"format":{"type":"json_object"},"verbosity":"low"},"store":false}`, ""},
		{"effort", canon.Request{From: chat, Messages: []canon.Message{hi}, Thinking: canon.Thinking{Effort: canon.Text("high")}, Show: canon.Show{Logprobs: true, Encrypted: true, Usage: true}, Stream: true},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"reasoning":{"effort":"high"},"include":["reasoning.encrypted_content","message.output_text.logprobs"],"stream":true,"store":false}`, ""},
		{"thinking of Messages", canon.Request{From: messages, Messages: []canon.Message{hi}, Thinking: canon.Thinking{Mode: canon.ThinkingOn, Budget: canon.Raw("1024"), Path: "thinking"}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"reasoning":{"summary":"auto"},"store":false}`, "thinking.budget_tokens no_equivalent"},
		{"thinking off", canon.Request{From: messages, Messages: []canon.Message{hi}, Thinking: canon.Thinking{Mode: canon.ThinkingOff}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"reasoning":{"effort":"none"},"store":false}`, ""},
		{"parameters", canon.Request{From: chat, Messages: []canon.Message{hi}, Extra: []canon.Member{{Name: canon.Text("new"), Value: canon.Raw("1")}}, Params: [canon.NumParams]canon.Raw{canon.ParamMaxTokens: canon.Raw("9"), canon.ParamTemperature: canon.Raw("0.50"),
			canon.ParamSeed: canon.Raw("1"), canon.ParamTopK: canon.Raw("5"), canon.ParamLogitBias: canon.Raw("{}"), canon.ParamFrequencyPenalty: canon.Raw("1"), canon.ParamN: canon.Raw("1"), canon.ParamModalities: canon.Raw(`["text"]`),
			canon.ParamStore: canon.Raw("true"), canon.ParamMetadata: canon.Raw(`{"a":"b"}`)}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"max_output_tokens":9,"temperature":0.50,"metadata":{"a":"b"},"store":true}`,
			"top_k no_equivalent\nseed no_equivalent\nfrequency_penalty no_equivalent\nlogit_bias no_equivalent\nnew unknown"},
		{"parameters of Messages", canon.Request{From: messages, Messages: []canon.Message{hi}, Params: [canon.NumParams]canon.Raw{canon.ParamMetadata: canon.Raw(`{"user_id":"u"}`), canon.ParamServiceTier: canon.Raw(`"standard_only"`)}},
			`{"input":[{"type":"message","role":"user","content":"hi"}],"store":false}`, "metadata.user_id no_equivalent\nservice_tier no_equivalent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var losses canon.Losses
			got, err := responses{}.AppendCall([]byte("x"), &c.r, callOptions(&losses))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "x"+c.want {
				t.Errorf("got\n%s\nwant\n%s", got[1:], c.want)
			}
			if l := toldLosses(losses.List()); l != c.losses {
				t.Errorf("lost\n%s\nwant\n%s", l, c.losses)
			}
			if _, err := (responses{}).ReadCall(got[1:], callOptions(nil)); err != nil {
				t.Errorf("what is written is not read: %v", err)
			}
		})
	}
}

func TestAppendCallRefusesWhatWouldChangeTheMeaning(t *testing.T) {
	hi := []canon.Message{plainTurn(canon.User, "hi")}
	for _, c := range []struct {
		param string
		r     canon.Request
	}{
		{"stop", canon.Request{From: canon.Chat, Messages: hi, Stop: []canon.Text{canon.Text("x")}}},
		{"stop_sequences", canon.Request{From: canon.Messages, Messages: hi, Stop: []canon.Text{canon.Text("x")}}},
		{"n", canon.Request{From: canon.Chat, Messages: hi, Params: [canon.NumParams]canon.Raw{canon.ParamN: canon.Raw("2")}}},
		{"modalities", canon.Request{From: canon.Chat, Messages: hi, Params: [canon.NumParams]canon.Raw{canon.ParamModalities: canon.Raw(`["text","audio"]`)}}},
		{"tool_choice", canon.Request{From: canon.Chat, Messages: hi, Choice: canon.Choice{Mode: canon.ChoiceRequired}}},
		{"messages[0].content[0]", canon.Request{From: canon.Messages, Messages: []canon.Message{turn(canon.User, media(canon.ImagePart, canon.Media{FileID: canon.Text("f")}))}}},
		{"messages[0].content[0]", canon.Request{From: canon.Chat, Messages: []canon.Message{turn(canon.User, media(canon.VideoPart, canon.Media{URL: canon.Text("f")}))}}},
		{"messages[0].content[0]", canon.Request{From: canon.Chat, Messages: []canon.Message{turn(canon.User, media(canon.AudioPart, canon.Media{URL: canon.Text("f")}))}}},
		{"messages[0].content[0]", canon.Request{From: canon.Chat, Messages: []canon.Message{turn(canon.Assistant, media(canon.ImagePart, canon.Media{URL: canon.Text("f")}))}}},
	} {
		out, err := responses{}.AppendCall(nil, &c.r, callOptions(nil))
		var p *canon.Problem
		if !errors.As(err, &p) || p.Param != c.param || p.Status != 400 || out != nil {
			t.Errorf("got %v and %q, want a problem with %s", err, out, c.param)
		}
	}
}
