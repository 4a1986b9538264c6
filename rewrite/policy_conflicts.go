package rewrite

import (
	"slices"

	"rolltap/internal/jsonx"
)

// conflicts tells of keys that exclude each other: of which one can never act, or with which every request would be refused or contradict
// itself. A key that merely has no use with some upstream is none.
func (p *Policy) conflicts(wrong func(key, format string, args ...any)) {
	bodies := []struct {
		key string
		raw []byte
	}{{"extra_body", p.ExtraBody}, {"override", p.Override}}
	if p.ThinkingBudgetTokens > 0 && p.Thinking == "off" {
		wrong("thinking_budget_tokens", "does not go together with thinking: off")
	}
	if limit := p.MaxTokensLimit; limit > 0 {
		if p.ThinkingBudgetTokens >= limit {
			wrong("thinking_budget_tokens", "%d is not below max_tokens_limit, %d", p.ThinkingBudgetTokens, limit)
		}
		if n := p.DefaultMaxTokens; n > limit && n != DefaultPolicy().DefaultMaxTokens {
			wrong("default_max_tokens", "%d is more than max_tokens_limit, %d", n, limit)
		}
	}
	for _, b := range bodies {
		if jsonx.KindOf(b.raw) != jsonx.KindObject {
			continue
		}
		has := func(name string) bool { return !jsonx.IsNull(jsonx.Get(b.raw, name)) }
		if p.ThinkingBudgetTokens > 0 && has("thinking") {
			wrong("thinking_budget_tokens", "does not go together with %s.thinking", b.key)
		}
		for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
			if n, ok := jsonx.Int(jsonx.Get(b.raw, name)); ok && p.MaxTokensLimit > 0 && n > p.MaxTokensLimit {
				wrong("max_tokens_limit", "%d is less than %s.%s, %d", p.MaxTokensLimit, b.key, name, n)
			}
		}
		if p.MaxTokensName == "max_completion_tokens" && has("max_tokens") {
			wrong("max_tokens_name", "max_completion_tokens does not go together with %s.max_tokens", b.key)
		}
		for _, name := range vllmOnly() {
			if !p.ChatExtensions && has(name) {
				wrong("chat_extensions", "false does not go together with %s.%s", b.key, name)
			}
		}
	}
	p.samplingConflicts(wrong)
}

// vllmOnly are the members of what chat_extensions is about that no other upstream takes: top_k is one of Messages.
func vllmOnly() []string {
	return []string{"min_p", "repetition_penalty", "continue_final_message", "thinking_token_budget", templateArgs}
}

// samplingConflicts are those of rules with each other, with what no request can be without, and with what override sends of that model.
func (p *Policy) samplingConflicts(wrong func(key, format string, args ...any)) {
	always, _ := jsonx.Text(jsonx.Get(p.Override, "model"))
	for i := range p.Sampling {
		rule := &p.Sampling[i]
		at := samplingAt(i)
		for _, name := range rule.Forbid {
			if slices.Contains([]string{"model", "messages", "max_tokens", "stream"}, name) {
				wrong(at+".forbid", "%q is what requests cannot be without", name)
			}
			if rule.Action == "error" && always != "" && rule.Model != "" && containsFold(always, rule.Model) && !jsonx.IsNull(jsonx.Get(p.Override, name)) {
				wrong(at+".forbid", "%q does not go together with override.%s for override.model, %q", name, name, always)
			}
			for j := range p.Sampling[:i] {
				if other := &p.Sampling[j]; other.Model == rule.Model && other.Action != rule.Action && slices.Contains(other.Forbid, name) {
					wrong(at+".action", "%q does not go together with %s.action, %q: both forbid %q to %q", rule.Action, samplingAt(j), other.Action, name, rule.Model)
				}
			}
		}
	}
}
