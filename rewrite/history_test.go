package rewrite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

func image(path, raw string) canon.Part {
	return canon.Part{Type: canon.ImagePart, Raw: canon.Raw(raw), Path: path, Media: canon.Media{URL: canon.Text("data:image/png;base64,AA==")}}
}

func TestImages(t *testing.T) {
	request := func() *canon.Request {
		return &canon.Request{Messages: []canon.Message{
			message(canon.User, "messages[0]", textPart("see"), image("messages[0].content[1]", `{"type":"image"}`)),
			message(canon.ToolRole, "messages[1]", canon.Part{Type: canon.ResultPart, Path: "messages[1].content[0]", Result: canon.Result{Parts: []canon.Part{image("messages[1].content[0].content[0]", "")}}}),
		}}
	}
	r := request()
	if _, losses, _ := prepareFor(t, DefaultPolicy(), canon.Messages, canon.Chat, r, Call{}); len(losses) > 0 || !cmp.Equal(roles(request().Messages), roles(r.Messages)) {
		t.Errorf("pass: %v", losses)
	}
	r = request()
	asked := r.Messages
	_, losses, _ := prepareFor(t, policyWith(func(p *Policy) { p.Images = "drop" }), canon.Messages, canon.Chat, r, Call{})
	if d := cmp.Diff([]string{"user:see|[image left out]|", "tool:result [image left out]|"}, roles(r.Messages)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]canon.Loss{{Path: "messages[0].content[1].image", Reason: canon.ByPolicy}, {Path: "messages[1].content[0].content[0].image", Reason: canon.ByPolicy}}, losses); d != "" {
		t.Error(d)
	}
	if !cmp.Equal(request().Messages, asked) {
		t.Error("what was asked for has changed")
	}
	refuse := policyWith(func(p *Policy) { p.Images = "error" })
	if _, _, problem := prepareFor(t, refuse, canon.Messages, canon.Chat, request(), Call{}); problem == nil || problem.Param != "messages[0].content[1]" {
		t.Errorf("error: %v", problem)
	}
	r = request()
	r.Messages = r.Messages[1:]
	if _, _, problem := prepareFor(t, refuse, canon.Messages, canon.Chat, r, Call{}); problem == nil || problem.Param != "messages[1].content[0].content[0]" {
		t.Errorf("error in a result: %v", problem)
	}
}

func TestHostedHistory(t *testing.T) {
	request := func() *canon.Request {
		return &canon.Request{Messages: []canon.Message{message(canon.Assistant, "input[1]",
			canon.Part{Type: canon.HostedPart, Path: "input[1]", Raw: canon.Raw(`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"caf\u00e9 \"x\"","sources":[{"type":"url","url":"https://a"}]}}`)},
			canon.Part{Type: canon.HostedPart, Path: "input[2]", Raw: canon.Raw(`{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":"cats"}}`)},
			canon.Part{Type: canon.HostedPart, Path: "input[3]", Raw: canon.Raw(`{"type":"image_generation_call","result":"AAAA"}`)})}}
	}
	r := request()
	_, losses, _ := prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, r, Call{})
	want := `assistant:[web_search_call: query: caf\u00e9 \"x\"; url: https://a]|[server_tool_use: name: web_search; input: cats]|[image_generation_call]|`
	if got := roles(r.Messages); len(got) != 1 || got[0] != want || len(losses) > 0 {
		t.Errorf("note: %v %v", got, losses)
	}
	r = request()
	_, losses, _ = prepareFor(t, policyWith(func(p *Policy) { p.HostedHistory = "drop" }), canon.Responses, canon.Chat, r, Call{})
	if d := cmp.Diff([]canon.Loss{{Path: "input[1].web_search_call", Reason: canon.ByPolicy}, {Path: "input[2].server_tool_use", Reason: canon.ByPolicy}, {Path: "input[3].image_generation_call", Reason: canon.ByPolicy}}, losses); d != "" || len(r.Messages) > 0 {
		t.Errorf("drop: %v %s", roles(r.Messages), d)
	}
}

func TestNotesAreShort(t *testing.T) {
	long := strings.Repeat(`\ud83d\ude00é\n`, 2000)
	note := hostedNote(canon.Raw(`{"type":"code_interpreter_call","code":"` + long + `","output":"` + long + `"}`))
	if len(note) > maxNote+100 || !jsonx.Valid([]byte(`"`+string(note)+`"`)) {
		t.Errorf("%d bytes: %s", len(note), note)
	}
	for i := range 40 {
		cut := cutText(canon.Text(long), i)
		if rest := i - len(cut); rest < 0 || rest > 11 || !isInterior(cut) || !strings.HasPrefix(long, string(cut)) || strings.HasSuffix(string(cut), `\ud83d`) {
			t.Errorf("cut at %d: %s", i, cut)
		}
	}
}

func TestUnknownParts(t *testing.T) {
	r := &canon.Request{Messages: []canon.Message{
		message(canon.User, "messages[0]", canon.Part{Type: canon.UnknownPart, Path: "messages[0].content[0]", Raw: canon.Raw(`{"type":"container_upload"}`)}),
		message(canon.ToolRole, "messages[1]", canon.Part{Type: canon.ResultPart, Path: "messages[1].content[0]", Result: canon.Result{Parts: []canon.Part{
			{Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"tool_reference","tool_name":"X"}`)}}}}),
	}}
	_, losses, _ := prepareFor(t, DefaultPolicy(), canon.Messages, canon.Chat, r, Call{})
	if d := cmp.Diff([]string{`tool:result {\"type\":\"tool_reference\",\"tool_name\":\"X\"}|`}, roles(r.Messages)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]canon.Loss{{Path: "messages[0].content[0].container_upload", Reason: canon.NotKnown}}, losses); d != "" {
		t.Error(d)
	}
}

func TestReferences(t *testing.T) {
	request := func() *canon.Request {
		return &canon.Request{Messages: []canon.Message{message(canon.Assistant, "input[1]",
			canon.Part{Type: canon.ReferencePart, Text: canon.Text("rs_1"), Path: "input[1]"}, canon.Part{Type: canon.ReferencePart, Text: canon.Text("rs_2"), Path: "input[2]"})}}
	}
	remembered := func(id string) (canon.Part, bool) {
		return canon.Part{Type: canon.ReasoningPart, Text: canon.Text("of " + id)}, id == "rs_1"
	}
	r := request()
	_, losses, _ := prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, r, Call{Remembered: remembered})
	if got := roles(r.Messages); len(got) != 1 || got[0] != "assistant:thinks of rs_1|" || !cmp.Equal(losses, []canon.Loss{{Path: "input[2].item_reference", Reason: canon.Foreign}}) {
		t.Errorf("%v %v", got, losses)
	}
	r = request()
	if _, losses, _ = prepareFor(t, DefaultPolicy(), canon.Responses, canon.Chat, r, Call{}); len(r.Messages) > 0 || len(losses) != 2 {
		t.Errorf("without a memory: %v %v", roles(r.Messages), losses)
	}
}

func TestSignaturesInTheHistory(t *testing.T) {
	p := DefaultPolicy()
	ours := p.mint(sealed{text: canon.Text(`so\u0020it is`)})
	wrapped := p.mint(sealed{summary: canon.Text("S"), signature: canon.Text("sig=="), signedBy: canon.Messages})
	broken := append(ours[:len(ours)-1:len(ours)-1], '!')
	thinks := func(text string, signature canon.Text, by canon.Dialect) canon.Part {
		return canon.Part{Type: canon.ReasoningPart, Text: canon.Text(text), Signature: signature, SignedBy: by, Path: "input[0]"}
	}
	for _, tc := range []struct {
		name   string
		from   canon.Dialect
		to     canon.Dialect
		in     canon.Part
		want   string // text/summary/signature/signer, empty: the part is gone
		losses []canon.Loss
	}{
		{"ours", canon.Messages, canon.Chat, thinks("so it is", ours, canon.Messages), `so\u0020it is///`, nil},
		{"ours, only the summary came back", canon.Responses, canon.Chat, canon.Part{Type: canon.ReasoningPart, Summary: canon.Text("x"), Signature: ours, SignedBy: canon.Responses}, `so\u0020it is///`, nil},
		{"ours, without any text", canon.Responses, canon.Chat, canon.Part{Type: canon.RedactedPart, Signature: ours, SignedBy: canon.Responses}, `so\u0020it is///`, nil},
		{"the upstream's own in ours", canon.Responses, canon.Messages, thinks("", wrapped, canon.Responses), `/S/sig==/messages`, nil},
		{"another's in ours", canon.Responses, canon.Chat, thinks("", wrapped, canon.Responses), `/S//`, []canon.Loss{{Path: "input[0].encrypted_content", Reason: canon.Foreign}}},
		{"ours, but broken", canon.Messages, canon.Chat, thinks("so", broken, canon.Messages), `so///`, []canon.Loss{{Path: "input[0].signature", Reason: canon.Foreign}}},
		{"foreign", canon.Messages, canon.Chat, thinks("so", canon.Text("sig"), canon.Messages), `so///`, []canon.Loss{{Path: "input[0].signature", Reason: canon.Foreign}}},
		{"foreign and nothing else", canon.Responses, canon.Chat, thinks("", canon.Text("enc"), canon.Responses), ``, []canon.Loss{{Path: "input[0].encrypted_content", Reason: canon.Foreign}}},
		{"an empty signature", canon.Messages, canon.Chat, thinks("so", canon.Text(""), canon.Messages), `so///`, nil},
		{"redacted", canon.Messages, canon.Responses, canon.Part{Type: canon.RedactedPart, Signature: canon.Text("d"), SignedBy: canon.Messages, Path: "input[0]"}, ``, []canon.Loss{{Path: "input[0].redacted_thinking", Reason: canon.Foreign}}},
	} {
		r := &canon.Request{Messages: []canon.Message{message(canon.Assistant, "input[0]", tc.in)}}
		_, losses, _ := prepareFor(t, p, tc.from, tc.to, r, Call{})
		got := ""
		if len(r.Messages) == 1 {
			part := r.Messages[0].Parts[0]
			got = string(part.Text) + "/" + string(part.Summary) + "/" + string(part.Signature) + "/" + string(part.SignedBy)
		}
		if d := cmp.Diff(tc.losses, losses); got != tc.want || d != "" {
			t.Errorf("%s: %s; want %s; %s", tc.name, got, tc.want, d)
		}
	}
}

func TestUnsignedThinking(t *testing.T) {
	request := func() *canon.Request {
		return &canon.Request{Messages: []canon.Message{message(canon.Assistant, "messages[1]",
			canon.Part{Type: canon.ReasoningPart, Text: canon.Text("so"), Path: "messages[1].reasoning"}, textPart("ok"))}}
	}
	r := request()
	p := DefaultPolicy()
	_, losses, _ := prepareFor(t, p, canon.Chat, canon.Messages, r, Call{})
	part := r.Messages[0].Parts[0]
	if s, ok := p.openSeal(part.Signature); !ok || string(s.text) != "so" || part.SignedBy != canon.Messages || len(losses) > 0 {
		t.Errorf("pass: %+v %v", part, losses)
	}
	r = request()
	_, losses, _ = prepareFor(t, policyWith(func(p *Policy) { p.UnsignedThinking = "drop" }), canon.Chat, canon.Messages, r, Call{})
	if got := roles(r.Messages); got[0] != "assistant:ok|" || !cmp.Equal(losses, []canon.Loss{{Path: "messages[1].reasoning", Reason: canon.ByPolicy}}) {
		t.Errorf("drop: %v %v", got, losses)
	}
	r = request()
	if prepareFor(t, policyWith(func(p *Policy) { p.UnsignedThinking = "drop" }), canon.Chat, canon.Responses, r, Call{}); len(r.Messages[0].Parts) != 2 {
		t.Error("only Messages upstreams verify signatures")
	}
}
