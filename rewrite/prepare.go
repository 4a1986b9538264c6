package rewrite

import (
	"bytes"
	"fmt"
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// preparation is one request on its way to an upstream of another dialect.
type preparation struct {
	p     *Policy
	r     *canon.Request
	to    canon.Dialect
	c     Call
	l     *canon.Losses
	names *toolNames

	dropped []canon.Tool // tools that the policy has taken away
}

// prepare makes of r what the policy lets an upstream of dialect to see, before that dialect encodes it. The slices of r are replaced and
// never written to, so that whoever holds a copy of the request keeps what the client asked for. An error is a *canon.Problem, and r is then
// of no use. The names are nil when every tool is called by its own; a request to an upstream of its own dialect is left alone.
func (p *Policy) prepare(r *canon.Request, to canon.Dialect, c Call, l *canon.Losses) (*toolNames, error) {
	if to == r.From {
		return nil, nil
	}
	if r.Format.Kind == canon.FormatOther {
		return nil, canon.Unsupported(r.Format.Path+".type", "the upstream's dialect has no format of this type")
	}
	x := &preparation{p: p, r: r, to: to, c: c, l: l}
	r.Messages = slices.Clone(r.Messages)
	x.billing()
	x.lateSystem()
	if err := x.tools(); err != nil {
		return nil, err
	}
	if err := x.history(); err != nil {
		return nil, err
	}
	if m := r.Prefill(); m != nil && p.Prefill == "error" {
		return nil, canon.Unsupported(m.Path, "the last message must not be of the assistant")
	}
	x.metadata()
	x.maxTokens()
	x.thinking()
	if !x.names.needed() {
		return nil, nil
	}
	return x.names, nil
}

// billing takes Claude Code's first system block away: it changes from call to call, which costs the upstream's prefix cache the whole
// prompt (harness.md 3).
func (x *preparation) billing() {
	if x.p.BillingLine != "strip" || x.r.From != canon.Messages || len(x.r.Messages) == 0 {
		return
	}
	m := &x.r.Messages[0]
	if m.Role != canon.System || len(m.Parts) == 0 || m.Parts[0].Type != canon.TextPart {
		return
	}
	const mark = "x-anthropic-billing-header"
	first := &m.Parts[0]
	if !bytes.HasPrefix(first.Text, []byte(mark)) {
		return
	}
	at := first.Path
	if at == "" {
		at = m.Path
	}
	x.l.Add(lostAt(at, mark), canon.ByPolicy)
	if end := bytes.Index(first.Text, []byte(`\n`)); m.Plain && end >= 0 {
		// A system text that somebody made one string of: the line, not the text.
		m.Parts = slices.Clone(m.Parts)
		m.Parts[0].Text = first.Text[end+len(`\n`):]
		return
	}
	if m.Parts = m.Parts[1:]; len(m.Parts) == 0 {
		x.r.Messages = x.r.Messages[1:]
	}
}

// lateSystem settles system and developer messages behind the first other message (dialects.md 1.3.5). A Responses upstream takes them where
// they are, unless they are to be merged.
func (x *preparation) lateSystem() {
	all := x.r.Messages
	lead := 0
	for lead < len(all) && isSystem(&all[lead]) {
		lead++
	}
	if x.p.LateSystem == "merge" {
		rest := all[lead:]
		if !slices.ContainsFunc(rest, func(m canon.Message) bool { return isSystem(&m) }) {
			return
		}
		merged := make([]canon.Message, 0, len(all))
		merged = append(merged, all[:lead]...)
		for i := range rest {
			if isSystem(&rest[i]) {
				merged = append(merged, rest[i])
			}
		}
		for i := range rest {
			if !isSystem(&rest[i]) {
				merged = append(merged, rest[i])
			}
		}
		x.r.Messages = merged
		return
	}
	if x.to == canon.Responses {
		return
	}
	role := canon.User
	if x.p.LateSystem == "system" {
		role = canon.System
	}
	for i := lead; i < len(all); i++ {
		if m := &all[i]; isSystem(m) && m.Role != role {
			m.Role = role
			x.l.Add(m.Path+".role", canon.ByPolicy)
		}
	}
}

func isSystem(m *canon.Message) bool { return m.Role == canon.System || m.Role == canon.Developer }

// maxTokens clamps to what the upstream can do; vLLM refuses more (harness.md 2.13).
func (x *preparation) maxTokens() {
	asked := x.r.Params[canon.ParamMaxTokens]
	n, ok := jsonx.Int(asked)
	wished := asked != nil && (n != 0 || !ok || x.to != canon.Messages) // of Messages, 0 is no wish
	switch {
	case wished && !ok, !wished && x.to != canon.Messages:
		return
	case !wished:
		n = x.p.DefaultMaxTokens
	}
	limit := x.p.MaxTokensLimit
	if limit == autoLimit {
		limit = x.window()
	}
	if limit <= 0 || n <= limit {
		return
	}
	x.r.Params[canon.ParamMaxTokens] = appendInt(limit)
	if wished {
		x.l.Add(x.maxTokensName(), canon.ByPolicy)
	}
}

// window is how many tokens the upstream says that the model holds.
func (x *preparation) window() int64 {
	if x.c.Window == nil {
		return 0
	}
	return x.c.Window(string(jsonx.Unquoted(x.r.Model)))
}

// maxTokensName is how the client calls it.
func (x *preparation) maxTokensName() string {
	switch {
	case x.r.From == canon.Responses:
		return "max_output_tokens"
	case x.r.From == canon.Gemini:
		return x.r.From.Called("max_tokens")
	case x.r.From == canon.Chat && !jsonx.IsNull(jsonx.Get(x.r.Body, "max_completion_tokens")):
		return "max_completion_tokens"
	}
	return "max_tokens"
}

func appendInt(n int64) canon.Raw { return fmt.Appendf(nil, "%d", n) }

// minBudget is the least thinking budget that Messages upstreams take (wire.md 1.9).
const minBudget = 1024

// thinking takes the client's wishes away, or makes them fit.
func (x *preparation) thinking() {
	t := &x.r.Thinking
	silent := t.Mode == 0 && t.Effort == nil && t.Budget == nil
	if x.p.Thinking == "off" {
		if !silent || t.Summary != nil {
			x.l.Add(x.thinkingPath(), canon.ByPolicy)
		}
		*t = canon.Thinking{Display: t.Display}
		return
	}
	if silent && x.to == canon.Messages && x.p.ThinkingBudgetTokens > 0 {
		t.Mode, t.Budget = canon.ThinkingOn, appendInt(x.p.ThinkingBudgetTokens)
	}
	budget, ok := jsonx.Int(t.Budget)
	most, known := jsonx.Int(x.r.Params[canon.ParamMaxTokens])
	if !known && x.r.Params[canon.ParamMaxTokens] == nil && x.to == canon.Messages {
		most, known = x.p.DefaultMaxTokens, true
	}
	if !ok || !known || budget < most {
		return
	}
	if !silent {
		x.l.Add(x.budgetPath(), canon.ByPolicy)
	}
	if budget = most - 1; budget < 1 || x.to == canon.Messages && budget < minBudget {
		t.Budget = nil
		if t.Mode == canon.ThinkingOn && t.Effort == nil {
			t.Mode = 0
		}
		return
	}
	t.Budget = appendInt(budget)
}

// metadata takes from what the upstream has no place for the texts that mergeExtras makes members of: they are not lost. Only OpenAI's
// dialects are sent each other's metadata as it is.
func (x *preparation) metadata() {
	m := x.r.Params[canon.ParamMetadata]
	if m == nil || !x.p.MetadataExtras || x.to != canon.Messages && x.r.From != canon.Messages {
		return
	}
	rest := dropMember(dropMember(m, "extra_body"), templateArgs)
	if members := jsonx.Object(rest); !members.Next() {
		rest = nil
	}
	x.r.Params[canon.ParamMetadata] = rest
}

// thinkingPath is where the client has said what it wants of reasoning.
func (x *preparation) thinkingPath() string {
	switch {
	case x.r.Thinking.Path != "":
		return x.r.Thinking.Path
	case x.r.From == canon.Chat:
		return "reasoning_effort"
	}
	return x.reasoningName("thinking")
}

// budgetPath is where it has set a budget.
func (x *preparation) budgetPath() string {
	switch x.r.From {
	case canon.Messages:
		return "thinking.budget_tokens"
	case canon.Chat:
		return "thinking_token_budget"
	}
	return lostAt(x.r.Thinking.Path, x.r.From.Called("budget_tokens"))
}
