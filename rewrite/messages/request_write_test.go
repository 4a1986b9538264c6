package messages

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

func plainPart(s string) canon.Part { return canon.Part{Type: canon.TextPart, Text: canon.Text(s)} }

// said is a message of one text.
func said(role canon.Role, text string) canon.Message {
	return canon.Message{Role: role, Plain: true, Parts: []canon.Part{plainPart(text)}}
}

// result is the message that answers a call.
func result(id string, parts ...canon.Part) canon.Message {
	return canon.Message{Role: canon.ToolRole, Parts: []canon.Part{{Type: canon.ResultPart, Result: canon.Result{CallID: canon.Text(id), Parts: parts}}}}
}

func called(id, arguments string) canon.Part {
	return canon.Part{Type: canon.CallPart, Path: "p", Call: canon.Call{ID: canon.Text(id), Name: canon.Text("f"), Arguments: canon.Text(arguments)}}
}

func image(url string) canon.Part {
	return canon.Part{Type: canon.ImagePart, Path: "p", Media: canon.Media{URL: canon.Text(url)}}
}

func file(m canon.Media) canon.Part { return canon.Part{Type: canon.FilePart, Path: "p", Media: m} }

func of(role canon.Role, parts ...canon.Part) canon.Message {
	return canon.Message{Role: role, Parts: parts, Path: "m"}
}

func TestConversationsOfOthers(t *testing.T) {
	const before, after = `{"max_tokens":8192,`, `}`
	for _, c := range []struct {
		name     string
		messages []canon.Message
		want     string
		losses   []canon.Loss
	}{
		{"nobody says anything", nil, `"messages":[]`, nil},
		{"system and developer messages in front are the system prompt",
			[]canon.Message{said(canon.System, "You are helpful."), said(canon.Developer, `Be \"concise\".`), said(canon.System, ""), said(canon.User, "Q")},
			`"system":[{"type":"text","text":"You are helpful."},{"type":"text","text":"Be \"concise\"."}],"messages":[{"role":"user","content":[{"type":"text","text":"Q"}]}]`, nil},
		{"an empty system prompt is none", []canon.Message{said(canon.System, ""), said(canon.User, "Q")}, `"messages":[{"role":"user","content":[{"type":"text","text":"Q"}]}]`, nil},
		{"a late one keeps its place", []canon.Message{said(canon.User, "a"), said(canon.Developer, "b"), said(canon.User, "c")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"system","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c"}]}]`, nil},
		{"a turn of thinking and calls and its results",
			[]canon.Message{said(canon.User, "Q"), of(canon.Assistant, canon.Part{Type: canon.ReasoningPart, Text: canon.Text("N"), Signature: canon.Text("sig"), SignedBy: canon.Messages}, called("t", `{\"a\":\"\\u00e9\", \"b\":1.50}`), called("u", "")),
				result("t", plainPart("r")), result("u", plainPart("s")), said(canon.User, "go on")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"Q"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"N","signature":"sig"},` +
				`{"type":"tool_use","id":"t","name":"f","input":{"a":"\u00e9", "b":1.50}},{"type":"tool_use","id":"u","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"}]},{"type":"tool_result","tool_use_id":"u","content":[{"type":"text","text":"s"}]},{"type":"text","text":"go on"}]}]`, nil},
		{"results come first", []canon.Message{said(canon.User, "note"), result("t"), said(canon.User, "more")},
			`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"note"},{"type":"text","text":"more"}]}]`, nil},
		{"who says nothing does not divide", []canon.Message{said(canon.User, "a"), said(canon.Assistant, ""), said(canon.User, "b"), said(canon.Assistant, "")},
			`"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`, nil},
		{"a call that was cut", []canon.Message{of(canon.Assistant, called("t", `{\"a\": \"b`))},
			`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"_raw":"{\"a\": \"b"}}]}]`, []canon.Loss{{Path: "p.arguments", Reason: canon.ByPolicy}}},
		{"arguments that are no object", []canon.Message{of(canon.Assistant, called("t", `[1]`))},
			`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"_raw":"[1]"}}]}]`, []canon.Loss{{Path: "p.arguments", Reason: canon.ByPolicy}}},
		{"a custom call", []canon.Message{of(canon.Assistant, canon.Part{Type: canon.CallPart, Call: canon.Call{ID: canon.Text("t"), Name: canon.Text("f"), Arguments: canon.Text(`a\n`), Custom: true}})},
			`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"input":"a\n"}}]}]`, nil},
		{"reasoning that nobody signed, or another", []canon.Message{of(canon.Assistant,
			canon.Part{Type: canon.ReasoningPart, Path: "p", Summary: canon.Text("S")},
			canon.Part{Type: canon.ReasoningPart, Path: "q", Text: canon.Text("T"), Summary: canon.Text("S"), Signature: canon.Text("e"), SignedBy: canon.Responses},
			canon.Part{Type: canon.ReasoningPart, Path: "r", Signature: canon.Text("e"), SignedBy: canon.Responses},
			canon.Part{Type: canon.ReasoningPart, Signature: canon.Text("s"), SignedBy: canon.Messages})},
			`"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"S","signature":""},{"type":"thinking","thinking":"T","signature":""},{"type":"thinking","thinking":"","signature":"s"}]}]`,
			[]canon.Loss{{Path: "q.encrypted_content", Reason: canon.Foreign}, {Path: "q.summary", Reason: canon.NoEquivalent}, {Path: "r.encrypted_content", Reason: canon.Foreign}}},
		{"sealed reasoning", []canon.Message{of(canon.Assistant, canon.Part{Type: canon.RedactedPart, Signature: canon.Text("D"), SignedBy: canon.Messages},
			canon.Part{Type: canon.RedactedPart, Path: "p", Raw: canon.Raw(`{"type":"reasoning"}`), Signature: canon.Text("D"), SignedBy: canon.Responses})},
			`"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"D"}]}]`, []canon.Loss{{Path: "p.reasoning", Reason: canon.Foreign}}},
		{"a refusal", []canon.Message{of(canon.Assistant, canon.Part{Type: canon.RefusalPart, Text: canon.Text("No.")})}, `"messages":[{"role":"assistant","content":[{"type":"text","text":"No."}]}]`, nil},
		{"images and files", []canon.Message{of(canon.User, image("https://h/i.png"), image(`data:image\/jpg;base64,aGVs\/G8=`), image("data:image/png;base64,aA=="),
			file(canon.Media{URL: canon.Text("data:application/pdf;base64,aA=="), Title: canon.Text("a.pdf")}), file(canon.Media{Data: canon.Text("aA==")}),
			file(canon.Media{MediaType: canon.Text("text/csv"), Data: canon.Text("YSJiCg==")}), file(canon.Media{Inline: canon.Text("x")}), file(canon.Media{URL: canon.Text("http://h/d")}),
			file(canon.Media{Parts: []canon.Part{plainPart("x")}}))},
			`"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://h/i.png"}},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"aGVs/G8="}},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aA=="}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aA=="},"title":"a.pdf"},` +
				`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aA=="}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a\"b\n"}},` +
				`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}},{"type":"document","source":{"type":"url","url":"http://h/d"}},` +
				`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"}]}}]}]`, nil},
		{"a result with an image that failed", []canon.Message{{Role: canon.ToolRole, Parts: []canon.Part{{Type: canon.ResultPart, Result: canon.Result{CallID: canon.Text("t"), Failed: true, Parts: []canon.Part{plainPart("no"), plainPart(""), image("https://h/i")}}}}}},
			`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"url","url":"https://h/i"}}],"is_error":true}]}]`, nil},
		{"a result as text", []canon.Message{{Role: canon.ToolRole, Parts: []canon.Part{{Type: canon.ResultPart, Result: canon.Result{CallID: canon.Text("t"), Plain: true, Parts: []canon.Part{plainPart("")}}}}}},
			`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":""}]}]`, nil},
		{"what only others know", []canon.Message{
			{Role: canon.System, Parts: []canon.Part{plainPart("s"), {Type: canon.ImagePart, Path: "s1", Raw: canon.Raw(`{"type":"input_image"}`)}}},
			{Role: canon.User, Name: canon.Text("bob"), Path: "u", Extra: []canon.Member{{Name: canon.Text("x")}}, Parts: []canon.Part{
				{Type: canon.TextPart, Text: canon.Text("a"), Path: "u0", Cites: []canon.Raw{canon.Raw("{}")}, Cache: canon.Raw(`{"type":"ephemeral"}`), Extra: []canon.Member{{Name: canon.Text("y")}}},
				{Type: canon.ImagePart, Path: "u1", Media: canon.Media{URL: canon.Text("https://h/"), Detail: canon.Text("low")}}}},
			{Role: canon.Assistant, Parts: []canon.Part{{Type: canon.HostedPart, Path: "a0", Raw: canon.Raw(`{"type":"web_search_call"}`)}, {Type: canon.UnknownPart, Path: "a1", Raw: canon.Raw(`{}`)},
				{Type: canon.ReferencePart, Path: "a2", Raw: canon.Raw(`{"type":"item_reference"}`)}, {Type: canon.AudioPart, Path: "a3"}, {Type: canon.ImagePart, Path: "a4"}}}},
			`"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"url","url":"https://h/"}}]}]`,
			[]canon.Loss{{Path: "s1.input_image", Reason: canon.NoEquivalent}, {Path: "u0.annotations", Reason: canon.NoEquivalent}, {Path: "u0.y", Reason: canon.NotKnown},
				{Path: "u1.detail", Reason: canon.NoEquivalent}, {Path: "u.x", Reason: canon.NotKnown}, {Path: "u.name", Reason: canon.NoEquivalent},
				{Path: "a0.web_search_call", Reason: canon.NoEquivalent}, {Path: "a1", Reason: canon.NotKnown}, {Path: "a2.item_reference", Reason: canon.Foreign},
				{Path: "a3", Reason: canon.Foreign}, {Path: "a4", Reason: canon.NoEquivalent}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantCall(t, &canon.Request{From: canon.Responses, Messages: c.messages}, before+c.want+after, c.losses)
		})
	}
}

func wantCall(t *testing.T, r *canon.Request, want string, losses []canon.Loss) {
	t.Helper()
	var l canon.Losses
	out, err := messages{}.AppendCall([]byte("kept"), r, callOptions(&l))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimPrefix(string(out), "kept"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.Equal(l.List(), losses) {
		t.Errorf("losses %v\nwant   %v", l.List(), losses)
	}
}

// parameters builds a request of another dialect with them.
func parameters(from canon.Dialect, set map[canon.Param]string) *canon.Request {
	r := &canon.Request{From: from}
	for p, v := range set {
		r.Params[p] = canon.Raw(v)
	}
	return r
}

func TestMembersOfOthers(t *testing.T) {
	function := canon.Tool{Kind: canon.FunctionTool, Name: canon.Text("f"), Path: "tools[0]"}
	rich := canon.Tool{Kind: canon.FunctionTool, Name: canon.Text("g"), Description: canon.Text("d"), Parameters: canon.Raw(`{"type":"object"}`), Strict: canon.Raw("true"), Path: "tools[1]",
		Extra: []canon.Member{{Name: canon.Text("defer_loading"), Value: canon.Raw("true")}}}
	hosted := canon.Tool{Kind: canon.HostedTool, Type: canon.Text("web_search"), Path: "tools[2]"}
	const f = `{"name":"f","input_schema":{"type":"object","properties":{}}}`
	for _, c := range []struct {
		name   string
		call   *canon.Request
		want   string
		losses []canon.Loss
	}{
		{"sampling", &canon.Request{Model: canon.Text("m"), Stream: true, Stop: []canon.Text{canon.Text(`a\n`), canon.Text("b")},
			Params: [canon.NumParams]canon.Raw{canon.ParamMaxTokens: canon.Raw("7"), canon.ParamTemperature: canon.Raw("1.50"), canon.ParamTopP: canon.Raw("0.5"), canon.ParamTopK: canon.Raw("5")}},
			`{"model":"m","max_tokens":7,"messages":[],"stop_sequences":["a\n","b"],"temperature":1.50,"top_p":0.5,"top_k":5,"stream":true}`, nil},
		{"values that say nothing", parameters(canon.Chat, map[canon.Param]string{canon.ParamMaxTokens: "0", canon.ParamTopK: "-1", canon.ParamN: "1", canon.ParamFrequencyPenalty: "0.0", canon.ParamRepetitionPenalty: "1.0",
			canon.ParamLogitBias: "{}", canon.ParamModalities: `["text"]`, canon.ParamStore: "true", canon.ParamVerbosity: `"medium"`}), `{"max_tokens":8192,"messages":[]}`, nil},
		{"hints", parameters(canon.Responses, map[canon.Param]string{canon.ParamSeed: "0", canon.ParamPresencePenalty: "0.1", canon.ParamVerbosity: `"low"`, canon.ParamPromptCacheKey: `"k"`, canon.ParamServiceTier: `"flex"`,
			canon.ParamContextManagement: "[1]", canon.ParamMetadata: `{"user_id":"u","run":"7"}`, canon.ParamUser: `"u"`, canon.ParamSafetyIdentifier: `"s"`}),
			`{"max_tokens":8192,"messages":[],"metadata":{"user_id":"u"}}`,
			[]canon.Loss{{Path: "metadata.run", Reason: canon.NoEquivalent}, {Path: "safety_identifier", Reason: canon.NoEquivalent}, {Path: "service_tier", Reason: canon.NoEquivalent}, {Path: "seed", Reason: canon.NoEquivalent},
				{Path: "presence_penalty", Reason: canon.NoEquivalent}, {Path: "text.verbosity", Reason: canon.NoEquivalent}, {Path: "prompt_cache_key", Reason: canon.NoEquivalent},
				{Path: "context_management", Reason: canon.NoEquivalent}}},
		{"the user", parameters(canon.Chat, map[canon.Param]string{canon.ParamUser: `"u"`, canon.ParamServiceTier: `"auto"`}), `{"max_tokens":8192,"messages":[],"metadata":{"user_id":"u"},"service_tier":"auto"}`, nil},
		{"unknown members and log probabilities", &canon.Request{Extra: []canon.Member{{Name: canon.Text("x")}}, Show: canon.Show{Logprobs: true, Usage: true}}, `{"max_tokens":8192,"messages":[]}`,
			[]canon.Loss{{Path: "logprobs", Reason: canon.NoEquivalent}, {Path: "x", Reason: canon.NotKnown}}},
		{"tools", &canon.Request{Tools: []canon.Tool{function, rich, hosted}, Choice: canon.Choice{Mode: canon.ChoiceRequired, Parallel: canon.Raw("false")}},
			`{"max_tokens":8192,"messages":[],"tools":[` + f + `,{"name":"g","description":"d","input_schema":{"type":"object"},"strict":true}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}}`,
			[]canon.Loss{{Path: "tools[1].defer_loading", Reason: canon.NotKnown}, {Path: "tools[2].web_search", Reason: canon.NoEquivalent}}},
		{"a named tool", &canon.Request{Tools: []canon.Tool{function}, Choice: canon.Choice{Mode: canon.ChoiceNamed, Name: canon.Text("f"), Parallel: canon.Raw("true")}},
			`{"max_tokens":8192,"messages":[],"tools":[` + f + `],"tool_choice":{"type":"tool","name":"f"}}`, nil},
		{"no tool", &canon.Request{Tools: []canon.Tool{function}, Choice: canon.Choice{Mode: canon.ChoiceNone, Parallel: canon.Raw("false")}}, `{"max_tokens":8192,"messages":[],"tools":[` + f + `],"tool_choice":{"type":"none"}}`, nil},
		{"one call at a time", &canon.Request{Tools: []canon.Tool{function}, Choice: canon.Choice{Parallel: canon.Raw("false")}},
			`{"max_tokens":8192,"messages":[],"tools":[` + f + `],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`, nil},
		{"a choice without tools", &canon.Request{Tools: []canon.Tool{}, Choice: canon.Choice{Mode: canon.ChoiceAuto, Parallel: canon.Raw("false")}}, `{"max_tokens":8192,"messages":[]}`, nil},
		{"effort and format", &canon.Request{Thinking: canon.Thinking{Effort: canon.Text("high")}, Format: canon.Format{Kind: canon.FormatSchema, Name: canon.Text("n"), Schema: canon.Raw("{}"), Strict: canon.Raw("true"), Path: "response_format.json_schema"}},
			`{"max_tokens":8192,"messages":[],"output_config":{"effort":"high","format":{"type":"json_schema","schema":{}}}}`, []canon.Loss{{Path: "response_format.json_schema.name", Reason: canon.NoEquivalent}}},
		{"a budget", &canon.Request{Thinking: canon.Thinking{Budget: canon.Raw("1024")}}, `{"max_tokens":8192,"messages":[],"thinking":{"type":"enabled","budget_tokens":1024}}`, nil},
		{"a budget of nothing", &canon.Request{Thinking: canon.Thinking{Budget: canon.Raw("0")}}, `{"max_tokens":8192,"messages":[],"thinking":{"type":"disabled"}}`, nil},
		{"no effort", &canon.Request{Thinking: canon.Thinking{Effort: canon.Text("none")}}, `{"max_tokens":8192,"messages":[],"thinking":{"type":"disabled"}}`, nil},
		{"the least effort", &canon.Request{From: canon.Responses, Thinking: canon.Thinking{Effort: canon.Text("minimal"), Summary: canon.Text("auto"), Path: "reasoning"}}, `{"max_tokens":8192,"messages":[],"output_config":{"effort":"low"}}`,
			[]canon.Loss{{Path: "reasoning.summary", Reason: canon.NoEquivalent}, {Path: "reasoning.effort", Reason: canon.NoEquivalent}}},
		{"a summary", &canon.Request{From: canon.Responses, Thinking: canon.Thinking{Mode: canon.ThinkingOn, Summary: canon.Text("auto"), Path: "reasoning"}},
			`{"max_tokens":8192,"messages":[],"thinking":{"type":"adaptive","display":"summarized"}}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.call.From == "" {
				c.call.From = canon.Chat
			}
			wantCall(t, c.call, c.want, c.losses)
		})
	}
}

func TestWhatCannotBeSaidIsRefused(t *testing.T) {
	parts := func(p canon.Part) *canon.Request { return &canon.Request{Messages: []canon.Message{of(canon.User, p)}} }
	function := canon.Tool{Kind: canon.FunctionTool, Name: canon.Text("f"), Path: "tools[0]"}
	for _, c := range []struct {
		name, param, code string
		call              *canon.Request
	}{
		{"two answers", "n", canon.CodeUnsupported, parameters(canon.Chat, map[canon.Param]string{canon.ParamN: "2"})},
		{"sound", "modalities", canon.CodeUnsupported, parameters(canon.Chat, map[canon.Param]string{canon.ParamModalities: `["text","audio"]`})},
		{"JSON without a schema", "response_format", canon.CodeUnsupported, &canon.Request{Format: canon.Format{Kind: canon.FormatJSON, Path: "response_format"}}},
		{"a custom tool", "tools[3]", canon.CodeUnsupported, &canon.Request{Tools: []canon.Tool{{Kind: canon.CustomTool, Path: "tools[3]"}}}},
		{"a namespace", "tools[0]", canon.CodeUnsupported, &canon.Request{Tools: []canon.Tool{{Kind: canon.FunctionTool, Namespace: canon.Text("n"), Path: "tools[0]"}}}},
		{"a choice of nothing", "tool_choice", canon.CodeUnsupported, &canon.Request{Choice: canon.Choice{Mode: canon.ChoiceRequired}}},
		{"a choice of some", "tool_choice", canon.CodeUnsupported, &canon.Request{Tools: []canon.Tool{function}, Choice: canon.Choice{Mode: canon.ChoiceAuto, Allowed: []canon.ToolRef{{}}}}},
		{"a choice that nobody knows", "tool_choice", canon.CodeUnsupported, &canon.Request{Tools: []canon.Tool{function}, Choice: canon.Choice{Mode: canon.ChoiceAuto, Raw: canon.Raw("{}")}}},
		{"a hosted choice", "tool_choice", canon.CodeUnsupported, &canon.Request{Tools: []canon.Tool{function}, Choice: canon.Choice{Mode: canon.ChoiceNamed, Hosted: canon.Text("web_search")}}},
		{"an image in no base64", "p", canon.CodeInvalid, parts(image("data:image/png;base64,!!!"))},
		{"an image that is not encoded", "p", canon.CodeInvalid, parts(image("data:image/png,xx"))},
		{"an empty image", "p", canon.CodeInvalid, parts(image("data:image/png;base64,"))},
		{"an image of another type", "p", canon.CodeUnsupported, parts(image("data:image/tiff;base64,aA=="))},
		{"an image that nobody can fetch", "p", canon.CodeUnsupported, parts(image("gs://b/i.png"))},
		{"an image that another provider keeps", "p", canon.CodeUnsupported, parts(canon.Part{Type: canon.ImagePart, Path: "p", Media: canon.Media{FileID: canon.Text("file-1")}})},
		{"a file of another type", "p", canon.CodeUnsupported, parts(file(canon.Media{MediaType: canon.Text("application/zip"), Data: canon.Text("aA==")}))},
		{"a file without anything", "p", canon.CodeUnsupported, parts(file(canon.Media{}))},
		{"speech", "p", canon.CodeUnsupported, parts(canon.Part{Type: canon.AudioPart, Path: "p"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.call.From = canon.Chat
			out, err := messages{}.AppendCall(nil, c.call, callOptions(nil))
			var p *canon.Problem
			if !errors.As(err, &p) || out != nil {
				t.Fatalf("got %s, %v", out, err)
			}
			if p.Status != 400 || p.Code != c.code || p.Param != c.param {
				t.Errorf("got %+v", *p)
			}
		})
	}
}

func TestWhatAPolicyChangedIsWrittenAsItIs(t *testing.T) {
	r, _ := mustRead(t, `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://h/"}},{"type":"search_result","source":"s","title":"t","content":[]}]},
		{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"tool_use","id":"t","name":"f","input":{}}]}]}`)
	r.Messages[0].Parts[0].Type, r.Messages[0].Parts[0].Text = canon.TextPart, canon.Text("[image]")
	r.Messages[1].Parts[0].Type, r.Messages[1].Parts[0].Text = canon.TextPart, canon.Text("[note]")
	r.Messages[1].Parts[1].Call.Name = canon.Text("g")
	wantCall(t, r, `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"[image]"},{"type":"search_result","source":"s","title":"t","content":[]}]},`+
		`{"role":"assistant","content":[{"type":"text","text":"[note]"},{"type":"tool_use","id":"t","name":"g","input":{}}]}]}`, nil)
}

func TestCallIDsStayDifferent(t *testing.T) {
	ids := []string{"call_1", "call-1", "call.1", "call_2e1", "rtid_call_2e1", "rtid_call_5f2e1", "", "rtid_", "é", `\u00e9`, "a b", `a\nb`, "functions.f:0"}
	seen := map[string]string{}
	for _, id := range ids {
		got := string(appendCallID(nil, []byte(id)))
		if strings.Trim(got, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") != "" || got == "" {
			t.Errorf("%q becomes %q", id, got)
		}
		plain := string(jsonx.AppendUnquoted(nil, []byte(id)))
		if before, ok := seen[got]; ok && before != plain {
			t.Errorf("%q and %q become %q", before, plain, got)
		}
		seen[got] = plain
		if back := string(jsonx.AppendUnquoted(nil, originalCallID(canon.Text(got)))); back != plain {
			t.Errorf("%q comes back as %q", id, back)
		}
	}
	for _, id := range []string{"rtid_", "rtid_a", "rtid_a_2", "rtid_a_zz", "rtid_a_61", "rtid_call_5f1"} {
		if back := string(originalCallID(canon.Text(id))); id != "rtid_" && back != id {
			t.Errorf("%q was never made here, and becomes %q", id, back)
		}
	}
	for id, want := range map[string]string{"toolu_01-A": "toolu_01-A", "functions.f:0": "rtid_functions_2ef_3a0", "call_x.1": "rtid_call_5fx_2e1"} {
		if got := string(appendCallID(nil, []byte(id))); got != want {
			t.Errorf("%q becomes %q, want %q", id, got, want)
		}
	}
}

// FuzzCall: what can be read can be written, and reading that again changes nothing more; as a request of another dialect it is written or refused.
func FuzzCall(f *testing.F) {
	for _, body := range recordedCalls(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.KindObject || repeats(body) {
			return
		}
		r, err := messages{}.ReadCall(body, callOptions(nil))
		if err != nil {
			return
		}
		first, err := messages{}.AppendCall(nil, r, callOptions(nil))
		if err != nil {
			return
		}
		if !jsonx.Valid(first) {
			t.Fatalf("no JSON: %s", first)
		}
		again, err := messages{}.ReadCall(first, callOptions(nil))
		if err != nil {
			t.Fatalf("%v in %s", err, first)
		}
		second, err := messages{}.AppendCall(nil, again, callOptions(nil))
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v\n%s\n%s", err, first, second)
		}
		r.From = canon.Chat
		if foreign, err := (messages{}).AppendCall(nil, r, callOptions(&canon.Losses{})); err == nil && !jsonx.Valid(foreign) {
			t.Fatalf("no JSON: %s", foreign)
		}
	})
}

// repeats tells whether a member of the request is there twice.
func repeats(body []byte) bool {
	seen := map[string]bool{}
	for it := jsonx.Object(body); it.Next(); {
		name := string(jsonx.AppendUnquoted(nil, it.Key()))
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

// agentCall is what a coding agent sends late in its work, about size bytes.
func agentCall(size int) []byte {
	code := strings.Repeat(`func (s *Store) Append(r *Record) error {\n\tif r == nil {\n\t\treturn errors.New(\"no record\")\n\t}\n}\n`, 12)
	b := []byte(`{"model":"m","max_tokens":32000,"stream":true,"system":[{"type":"text","text":"` + code + `","cache_control":{"type":"ephemeral"}}],"tools":[`)
	for i := range 24 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"tool_%d","description":"%s","input_schema":{"type":"object","properties":{"path":{"type":"string","description":"absolute path"},"limit":{"type":"integer"}},"required":["path"]}}`, i, code[:800])
	}
	b = append(b, `],"messages":[{"role":"user","content":"begin"}`...)
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, `,{"role":"assistant","content":[{"type":"text","text":"I read it."},{"type":"tool_use","id":"toolu_%d","name":"tool_1","input":{"path":"/src/file_%d.go","patch":"%s"}}]}`, i, i, code[:400])
		b = fmt.Appendf(b, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":[{"type":"text","text":"%s"}]}]}`, i, code)
	}
	return append(b, ']', '}')
}

func BenchmarkReadCall(b *testing.B) {
	body := agentCall(400 << 10)
	o := callOptions(&canon.Losses{})
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (messages{}).ReadCall(body, o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendCall(b *testing.B) {
	body := agentCall(400 << 10)
	o := callOptions(&canon.Losses{})
	r, err := messages{}.ReadCall(body, o)
	if err != nil {
		b.Fatal(err)
	}
	r.From = canon.Chat
	var dst []byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = (messages{}).AppendCall(dst[:0], r, o); err != nil {
			b.Fatal(err)
		}
	}
}
