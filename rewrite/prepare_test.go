package rewrite

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/rewrite/canon"
)

func textPart(s string) canon.Part { return canon.Part{Type: canon.TextPart, Text: canon.Text(s)} }

func message(role canon.Role, path string, parts ...canon.Part) canon.Message {
	return canon.Message{Role: role, Path: path, Parts: parts}
}

// prepareFor prepares r as a client of dialect from would have sent it.
func prepareFor(t *testing.T, p Policy, from, to canon.Dialect, r *canon.Request, c Call) (*toolNames, []canon.Loss, *canon.Problem) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	r.From = from
	var l canon.Losses
	names, err := p.prepare(r, to, c, &l)
	if err == nil {
		return names, l.List(), nil
	}
	var problem *canon.Problem
	if !errors.As(err, &problem) || problem.Status != 400 || problem.Param == "" {
		t.Fatalf("an error that is no refusal of a field: %v", err)
	}
	return nil, l.List(), problem
}

// policyWith is the default policy with a change.
func policyWith(change func(*Policy)) Policy {
	p := DefaultPolicy()
	change(&p)
	return p
}

// roles are the roles and texts of messages in short.
func roles(messages []canon.Message) (all []string) {
	for _, m := range messages {
		s := [...]string{"?", "system", "developer", "user", "assistant", "tool"}[m.Role] + ":"
		for _, p := range m.Parts {
			switch p.Type {
			case canon.TextPart:
				s += string(p.Text)
			case canon.CallPart:
				s += "call " + string(p.Call.Name) + string(p.Call.Arguments)
			case canon.ResultPart:
				s += "result"
				for _, p := range p.Result.Parts {
					s += " " + string(p.Text)
				}
			case canon.ReasoningPart:
				s += "thinks " + string(p.Text)
			default:
				s += "part"
			}
			s += "|"
		}
		all = append(all, s)
	}
	return all
}

func TestLateSystem(t *testing.T) {
	conversation := func() *canon.Request { // vectors 2, 3 and 25
		return &canon.Request{Messages: []canon.Message{
			message(canon.System, "instructions", textPart("I")), message(canon.Developer, "input[0]", textPart("D1"), textPart("D2")),
			message(canon.User, "input[1]", textPart("hi")), message(canon.System, "input[2]", textPart("mid")),
			message(canon.Assistant, "input[3]", textPart("ok")), message(canon.Developer, "input[4]", textPart("end")),
		}}
	}
	lead := []string{"system:I|", "developer:D1|D2|"}
	for _, tc := range []struct {
		policy string
		to     canon.Dialect
		want   []string
		losses []canon.Loss
	}{
		{"user", canon.Chat, append(lead, "user:hi|", "user:mid|", "assistant:ok|", "user:end|"), []canon.Loss{{Path: "input[2].role", Reason: canon.ByPolicy}, {Path: "input[4].role", Reason: canon.ByPolicy}}},
		{"system", canon.Chat, append(lead, "user:hi|", "system:mid|", "assistant:ok|", "system:end|"), []canon.Loss{{Path: "input[4].role", Reason: canon.ByPolicy}}},
		{"merge", canon.Chat, append(lead, "system:mid|", "developer:end|", "user:hi|", "assistant:ok|"), nil},
		{"user", canon.Messages, append(lead, "user:hi|", "user:mid|", "assistant:ok|", "user:end|"), []canon.Loss{{Path: "input[2].role", Reason: canon.ByPolicy}, {Path: "input[4].role", Reason: canon.ByPolicy}}},
	} {
		r := conversation()
		was := r.Messages
		_, losses, _ := prepareFor(t, policyWith(func(p *Policy) { p.LateSystem = tc.policy }), canon.Responses, tc.to, r, Call{})
		if d := cmp.Diff(tc.want, roles(r.Messages)); d != "" {
			t.Errorf("%s: %s", tc.policy, d)
		}
		if d := cmp.Diff(tc.losses, losses); d != "" {
			t.Errorf("%s: %s", tc.policy, d)
		}
		if d := cmp.Diff(conversation().Messages, was); d != "" {
			t.Errorf("%s: what was asked for has changed: %s", tc.policy, d)
		}
	}
	r := conversation()
	if _, losses, _ := prepareFor(t, DefaultPolicy(), canon.Messages, canon.Responses, r, Call{}); len(losses) > 0 || r.Messages[3].Role != canon.System {
		t.Errorf("a Responses upstream takes late messages as they are: %v %v", roles(r.Messages), losses)
	}
}

func TestBillingLine(t *testing.T) {
	const line = "x-anthropic-billing-header: cc_version=2.1.332.0b8; cc_entrypoint=sdk-cli;"
	request := func(plain bool, texts ...string) *canon.Request {
		m := canon.Message{Role: canon.System, Path: "system", Plain: plain}
		for _, s := range texts {
			m.Parts = append(m.Parts, canon.Part{Type: canon.TextPart, Text: canon.Text(s), Path: "system[0]"})
		}
		return &canon.Request{Messages: []canon.Message{m, message(canon.User, "messages[0]", textPart("hi"))}}
	}
	for _, tc := range []struct {
		name, policy string
		from         canon.Dialect
		r            *canon.Request
		want         []string
		lost         bool
	}{
		{"stripped", "strip", canon.Messages, request(false, line, "A"), []string{"system:A|", "user:hi|"}, true},
		{"alone", "strip", canon.Messages, request(false, line), []string{"user:hi|"}, true},
		{"as a line", "strip", canon.Messages, request(true, line+`\nA`), []string{"system:A|", "user:hi|"}, true},
		{"kept", "keep", canon.Messages, request(false, line, "A"), []string{"system:" + line + "|A|", "user:hi|"}, false},
		{"not the first", "strip", canon.Messages, request(false, "A", line), []string{"system:A|" + line + "|", "user:hi|"}, false},
		{"of another client", "strip", canon.Chat, request(false, line), []string{"system:" + line + "|", "user:hi|"}, false},
	} {
		to := canon.Chat
		if tc.from == to {
			to = canon.Messages
		}
		_, losses, _ := prepareFor(t, policyWith(func(p *Policy) { p.BillingLine = tc.policy }), tc.from, to, tc.r, Call{})
		if d := cmp.Diff(tc.want, roles(tc.r.Messages)); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
		if tc.lost != cmp.Equal(losses, []canon.Loss{{Path: "system[0].x-anthropic-billing-header", Reason: canon.ByPolicy}}) {
			t.Errorf("%s: %v", tc.name, losses)
		}
	}
}

func TestMaxTokensLimit(t *testing.T) {
	const asksUpstream = -1
	for _, tc := range []struct {
		name        string
		limit, told int64
		from, to    canon.Dialect
		body, asked string
		want, lost  string
	}{
		{"fixed", 100, 0, canon.Messages, canon.Chat, `{}`, "32000", "100", "max_tokens"},
		{"auto", -1, 4096, canon.Responses, canon.Chat, `{}`, "32000", "4096", "max_output_tokens"},
		{"auto and nothing told", -1, 0, canon.Messages, canon.Chat, `{}`, "32000", "32000", ""},
		{"never", 0, 4096, canon.Messages, canon.Chat, `{}`, "32000", "32000", ""},
		{"small enough", 100, 0, canon.Messages, canon.Chat, `{}`, "100", "100", ""},
		{"by its newer name", 100, 0, canon.Chat, canon.Messages, `{"max_completion_tokens":101}`, "101", "100", "max_completion_tokens"},
		{"not asked for", 100, 0, canon.Responses, canon.Chat, `{}`, "", "", ""},
		{"not asked for, so that nobody asks the upstream", -1, asksUpstream, canon.Responses, canon.Chat, `{}`, "", "", ""},
		{"no number", -1, 4096, canon.Chat, canon.Messages, `{}`, "1e9", "1e9", ""},
		{"the default is too much", 100, 0, canon.Chat, canon.Messages, `{}`, "", "100", ""},
		{"the default is too much for who asks for none", 100, 0, canon.Chat, canon.Messages, `{}`, "0", "100", ""},
	} {
		r := &canon.Request{Body: canon.Raw(tc.body)}
		if tc.asked != "" {
			r.Params[canon.ParamMaxTokens] = canon.Raw(tc.asked)
		}
		_, losses, _ := prepareFor(t, policyWith(func(p *Policy) { p.MaxTokensLimit = tc.limit }), tc.from, tc.to, r, Call{Window: func(string) int64 {
			if tc.told == asksUpstream {
				t.Errorf("%s: the upstream is asked", tc.name)
			}
			return tc.told
		}})
		var want []canon.Loss
		if tc.lost != "" {
			want = []canon.Loss{{Path: tc.lost, Reason: canon.ByPolicy}}
		}
		if got := string(r.Params[canon.ParamMaxTokens]); got != tc.want || !cmp.Equal(want, losses) {
			t.Errorf("%s: %s %v; want %s %v", tc.name, got, losses, tc.want, want)
		}
	}
}

func TestThinking(t *testing.T) {
	on := func(budget string) canon.Thinking {
		return canon.Thinking{Mode: canon.ThinkingOn, Budget: canon.Raw(budget), Path: "thinking"}
	}
	for _, tc := range []struct {
		name   string
		change func(*Policy)
		from   canon.Dialect
		to     canon.Dialect
		max    string
		in     canon.Thinking
		want   canon.Thinking
		lost   string
	}{
		{"mapped as it is", nil, canon.Messages, canon.Chat, "4096", on("2048"), on("2048"), ""},
		{"lowered below max_tokens", nil, canon.Messages, canon.Chat, "2048", on("2048"), on("2047"), "thinking.budget_tokens"},
		{"lowered below the default", nil, canon.Chat, canon.Messages, "", canon.Thinking{Budget: canon.Raw("9000"), Path: "reasoning_effort"}, canon.Thinking{Budget: canon.Raw("8191"), Path: "reasoning_effort"}, "thinking_token_budget"},
		{"no room for a budget", nil, canon.Chat, canon.Messages, "512", canon.Thinking{Budget: canon.Raw("2000")}, canon.Thinking{}, "thinking_token_budget"},
		{"unlimited", nil, canon.Chat, canon.Messages, "512", canon.Thinking{Budget: canon.Raw("-1")}, canon.Thinking{Budget: canon.Raw("-1")}, ""},
		{"off", func(p *Policy) { p.Thinking = "off" }, canon.Messages, canon.Chat, "4096", on("2048"), canon.Thinking{}, "thinking"},
		{"off, effort", func(p *Policy) { p.Thinking = "off" }, canon.Chat, canon.Messages, "", canon.Thinking{Effort: canon.Text("high"), Path: "reasoning_effort"}, canon.Thinking{}, "reasoning_effort"},
		{"off, nothing asked", func(p *Policy) { p.Thinking = "off" }, canon.Chat, canon.Messages, "", canon.Thinking{}, canon.Thinking{}, ""},
		{"a budget of ours", func(p *Policy) { p.ThinkingBudgetTokens = 1024 }, canon.Chat, canon.Messages, "", canon.Thinking{}, canon.Thinking{Mode: canon.ThinkingOn, Budget: canon.Raw("1024")}, ""},
		{"a budget of ours without room", func(p *Policy) { p.ThinkingBudgetTokens = 1024 }, canon.Chat, canon.Messages, "256", canon.Thinking{}, canon.Thinking{}, ""},
		{"the client has asked", func(p *Policy) { p.ThinkingBudgetTokens = 1024 }, canon.Chat, canon.Messages, "", canon.Thinking{Effort: canon.Text("low")}, canon.Thinking{Effort: canon.Text("low")}, ""},
		{"a budget of ours is for Messages", func(p *Policy) { p.ThinkingBudgetTokens = 1024 }, canon.Messages, canon.Chat, "", canon.Thinking{}, canon.Thinking{}, ""},
	} {
		r := &canon.Request{Thinking: tc.in}
		if tc.max != "" {
			r.Params[canon.ParamMaxTokens] = canon.Raw(tc.max)
		}
		p := DefaultPolicy()
		if tc.change != nil {
			tc.change(&p)
		}
		_, losses, _ := prepareFor(t, p, tc.from, tc.to, r, Call{})
		var want []canon.Loss
		if tc.lost != "" {
			want = []canon.Loss{{Path: tc.lost, Reason: canon.ByPolicy}}
		}
		if d := cmp.Diff(tc.want, r.Thinking) + cmp.Diff(want, losses); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

func TestMetadataTextsAreNotLost(t *testing.T) {
	for _, tc := range []struct {
		to       canon.Dialect
		extras   bool
		in, want string
	}{
		{canon.Messages, true, `{"extra_body":"{}","chat_template_kwargs":"{}"}`, ``},
		{canon.Messages, true, `{"extra_body":"{}","user_id":"u"}`, `{"user_id":"u"}`},
		{canon.Messages, false, `{"extra_body":"{}"}`, `{"extra_body":"{}"}`},
		{canon.Chat, true, `{"extra_body":"{}"}`, `{"extra_body":"{}"}`}, // OpenAI's dialects have a place for it
	} {
		r := &canon.Request{}
		r.Params[canon.ParamMetadata] = canon.Raw(tc.in)
		prepareFor(t, policyWith(func(p *Policy) { p.MetadataExtras = tc.extras }), canon.Responses, tc.to, r, Call{})
		if got := string(r.Params[canon.ParamMetadata]); got != tc.want {
			t.Errorf("%s to %s: %s; want %s", tc.in, tc.to, got, tc.want)
		}
	}
}

func TestPrepareLeavesTheSameDialectAlone(t *testing.T) {
	r := &canon.Request{From: canon.Responses, Tools: []canon.Tool{{Kind: canon.HostedTool, Type: canon.Text("web_search")}}, Choice: canon.Choice{Mode: canon.ChoiceNamed},
		Messages: []canon.Message{message(canon.User, "input[0]", canon.Part{Type: canon.UnknownPart})}}
	want := *r
	p := DefaultPolicy()
	if names, err := p.prepare(r, canon.Responses, Call{}, nil); names != nil || err != nil || !cmp.Equal(want, *r) {
		t.Errorf("%v %v %s", names, err, cmp.Diff(want, *r))
	}
}
