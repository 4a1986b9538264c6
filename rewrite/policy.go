package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Policy is the `rewrite:` part of the configuration: what the dialects act on, and what acts on the canonical request, on the events of
// an answer and on the body that goes upstream. Nothing writes to it after Validate; it may be shared.
type Policy struct {
	dialect.Policy

	ExtraBody, Override  canon.Raw // JSON objects; nil none
	MetadataExtras       bool
	Sampling             []SamplingRule
	MaxTokensLimit       int64  // 0 never, -1 (auto) what the upstream says of itself
	ThinkingBudgetTokens int64  // 0 none
	UnsignedThinking     string // pass, drop
	SealKeyFile          string // reasoning_seal_key_file; who reads the configuration reads the file into SealKey
	SealKey              []byte // empty: seals are only checksummed
	ThinkTags            string // keep, parse
	BillingLine          string // strip, keep
	ContextOverflow      string // error, length
}

// SamplingRule is for Messages upstreams that refuse sampling parameters for some of their models.
type SamplingRule struct {
	Model  string   // part of the name of the upstream's model
	Forbid []string // members of the request
	Action string   // error, drop
}

// autoLimit is MaxTokensLimit written as "auto".
const autoLimit = -1

// DefaultPolicy is the policy of a configuration without `rewrite:` keys.
func DefaultPolicy() Policy {
	sampling := []string{"temperature", "top_p", "top_k"}
	return Policy{
		Policy:         dialect.DefaultPolicy(),
		MetadataExtras: true,
		Sampling: []SamplingRule{
			{Model: "claude-opus-4-7", Forbid: sampling, Action: "error"},
			{Model: "claude-opus-4-8", Forbid: slices.Clone(sampling), Action: "error"},
		},
		MaxTokensLimit: autoLimit, UnsignedThinking: "pass", ThinkTags: "keep", BillingLine: "strip", ContextOverflow: "error",
	}
}

// wordKey is a key that is one of some words.
type wordKey struct {
	name  string
	value *string
	words []string
}

func (p *Policy) words() []wordKey {
	return []wordKey{
		{"max_tokens_name", &p.MaxTokensName, []string{"max_tokens", "max_completion_tokens"}},
		{"thinking", &p.Thinking, []string{"map", "off"}},
		{"unsigned_thinking", &p.UnsignedThinking, []string{"pass", "drop"}},
		{"reasoning_replay", &p.ReasoningReplay, []string{"both", "reasoning", "reasoning_content", "none"}},
		{"reasoning_output", &p.ReasoningOutput, []string{"summary", "content", "both"}},
		{"think_tags", &p.ThinkTags, []string{"keep", "parse"}},
		{"late_system", &p.LateSystem, []string{"user", "system", "merge"}},
		{"developer_role", &p.DeveloperRole, []string{"system", "keep"}},
		{"billing_line", &p.BillingLine, []string{"strip", "keep"}},
		{"prefill", &p.Prefill, []string{"continue", "pass", "error"}},
		{"custom_tools", &p.CustomTools, []string{"bridge", "native", "drop", "error"}},
		{"hosted_tools", &p.HostedTools, []string{"drop", "pass", "error"}},
		{"hosted_history", &p.HostedHistory, []string{"note", "drop"}},
		{"strict_tools", &p.StrictTools, []string{"keep", "drop"}},
		{"images", &p.Images, []string{"pass", "drop", "error"}},
		{"tool_result_images", &p.ToolResultImages, []string{"user_message", "inline", "placeholder"}},
		{"context_overflow", &p.ContextOverflow, []string{"error", "length"}},
		{"incomplete_event", &p.IncompleteEvent, []string{"auto", "incomplete", "completed"}},
	}
}

// Validate joins all that is wrong with the policy, each a *KeyError.
func (p *Policy) Validate() error {
	var bad []error
	wrong := func(key, format string, args ...any) {
		bad = append(bad, &KeyError{key, fmt.Errorf(format, args...)})
	}
	for _, k := range p.words() {
		if !slices.Contains(k.words, *k.value) {
			wrong(k.name, "%q is none of %s", *k.value, strings.Join(k.words, ", "))
		}
	}
	for _, o := range []struct {
		key string
		raw canon.Raw
	}{{"extra_body", p.ExtraBody}, {"override", p.Override}} {
		if o.raw != nil && !jsonx.ValidObject(o.raw) {
			wrong(o.key, "is no JSON object")
		}
	}
	if p.DefaultMaxTokens < 1 {
		wrong("default_max_tokens", "%d is less than 1", p.DefaultMaxTokens)
	}
	if p.MaxTokensLimit < autoLimit {
		wrong("max_tokens_limit", "%d is neither auto nor 0 or more", p.MaxTokensLimit)
	}
	if p.ThinkingBudgetTokens < 0 {
		wrong("thinking_budget_tokens", "%d is less than 0", p.ThinkingBudgetTokens)
	}
	for i, rule := range p.Sampling {
		at := samplingAt(i)
		if rule.Model == "" {
			wrong(at+".model", "is missing")
		}
		if len(rule.Forbid) == 0 {
			wrong(at+".forbid", "is empty")
		}
		if rule.Action != "error" && rule.Action != "drop" {
			wrong(at+".action", "%q is none of error, drop", rule.Action)
		}
	}
	p.conflicts(wrong)
	return errors.Join(bad...)
}

func samplingAt(i int) string { return fmt.Sprintf("sampling[%d]", i) }
