package rewrite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/rewrite/canon"
)

func TestDefaultPolicyIsValid(t *testing.T) {
	p := DefaultPolicy()
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	empty, err := PolicyFromJSON([]byte(`{"extra_body":null,"images":null}`))
	if err != nil || !cmp.Equal(p, empty) {
		t.Errorf("a mapping without values is not the default: %v %s", err, cmp.Diff(p, empty))
	}
}

func TestPolicyFromJSON(t *testing.T) {
	got, err := PolicyFromJSON([]byte(`{"extra_body":{"a":1},"override":{"b":2},"metadata_extras":false,"chat_extensions":false,
		"sampling":[{"model":"x","forbid":["top_p"],"action":"drop"},{"model":"y","forbid":["seed"]}],
		"default_max_tokens":5,"max_tokens_limit":7,"max_tokens_name":"max_completion_tokens","thinking":"off","thinking_budget_tokens":2048,
		"unsigned_thinking":"drop","reasoning_replay":"none","reasoning_output":"both","reasoning_seal_key_file":"/k","think_tags":"parse",
		"late_system":"merge","developer_role":"keep","billing_line":"keep","prefill":"pass","custom_tools":"native","hosted_tools":"pass",
		"hosted_history":"drop","strict_tools":"drop","images":"error","tool_result_images":"inline","context_overflow":"length","incomplete_event":"completed"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultPolicy() // what goes together is another question

	want.ExtraBody, want.Override = canon.Raw(`{"a":1}`), canon.Raw(`{"b":2}`)
	want.MetadataExtras, want.ChatExtensions = false, false
	want.Sampling = []SamplingRule{{"x", []string{"top_p"}, "drop"}, {"y", []string{"seed"}, "error"}}
	want.DefaultMaxTokens, want.MaxTokensLimit, want.MaxTokensName = 5, 7, "max_completion_tokens"
	want.Thinking, want.ThinkingBudgetTokens, want.UnsignedThinking = "off", 2048, "drop"
	want.ReasoningReplay, want.ReasoningOutput, want.SealKeyFile, want.ThinkTags = "none", "both", "/k", "parse"
	want.LateSystem, want.DeveloperRole, want.BillingLine, want.Prefill = "merge", "keep", "keep", "pass"
	want.CustomTools, want.HostedTools, want.HostedHistory, want.StrictTools = "native", "pass", "drop", "drop"
	want.Images, want.ToolResultImages, want.ContextOverflow, want.IncompleteEvent = "error", "inline", "length", "completed"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if auto, err := PolicyFromJSON([]byte(`{"max_tokens_limit":"auto"}`)); err != nil || auto.MaxTokensLimit != -1 {
		t.Errorf("auto: %d, %v", auto.MaxTokensLimit, err)
	}
}

func TestPolicyFromJSONRefuses(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`[]`, "rewrite: is no mapping"},
		{`{`, "rewrite: is no mapping"},
		{`{"extra-body":{}}`, "rewrite.extra-body: unknown key"},
		{`{"extra-body":null}`, "rewrite.extra-body: unknown key"},
		{`{"extra_body":"{}"}`, "rewrite.extra_body: is no mapping"},
		{`{"override":[]}`, "rewrite.override: is no mapping"},
		{`{"metadata_extras":"yes"}`, "rewrite.metadata_extras: is neither true nor false"},
		{`{"images":true}`, "rewrite.images: is no string"},
		{`{"reasoning_seal_key_file":3}`, "rewrite.reasoning_seal_key_file: is no string"},
		{`{"default_max_tokens":1.5}`, "rewrite.default_max_tokens: is no integer"},
		{`{"max_tokens_limit":"never"}`, "rewrite.max_tokens_limit: is neither auto nor"},
		{`{"max_tokens_limit":-1}`, "rewrite.max_tokens_limit: is neither auto nor"},
		{`{"sampling":{}}`, "rewrite.sampling: is no list"},
		{`{"sampling":[3]}`, "rewrite.sampling[0]: is no mapping"},
		{`{"sampling":[{"model":"m","forbids":[]}]}`, "rewrite.sampling[0].forbids: unknown key"},
		{`{"sampling":[{"model":"m","forbid":"top_p"}]}`, "rewrite.sampling[0].forbid: is no list of strings"},
		{`{"a":1,"b":2}`, "rewrite.a: unknown key\nrewrite.b: unknown key"},
	} {
		if _, err := PolicyFromJSON([]byte(tc.in)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %s", tc.in, err, tc.want)
		}
	}
}

func TestValidateNamesEveryKey(t *testing.T) {
	p := DefaultPolicy()
	for _, k := range p.words() {
		*k.value = "wrong"
	}
	p.ExtraBody, p.Override = canon.Raw(`{"thinking":{}}`), canon.Raw(`[]`)
	p.ThinkingBudgetTokens, p.MaxTokensLimit, p.DefaultMaxTokens = 1, -2, 0
	p.Sampling = []SamplingRule{{Action: "warn"}}
	err := p.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{
		`rewrite.late_system: "wrong" is none of user, system, merge`, "rewrite.context_overflow: ", "rewrite.think_tags: ", "rewrite.prefill: ",
		"rewrite.thinking_budget_tokens: does not go together with extra_body.thinking", "rewrite.override: is no JSON object",
		"rewrite.max_tokens_limit: ", "rewrite.default_max_tokens: ", "rewrite.sampling[0].model: ", "rewrite.sampling[0].forbid: ", "rewrite.sampling[0].action: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\n%v", want, err)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(p.words())+7 {
		t.Errorf("%d problems; want one for each of %d", got, len(p.words())+7)
	}
	p = DefaultPolicy()
	p.ThinkingBudgetTokens, p.Override = 4096, canon.Raw(`{"thinking":{"type":"disabled"}}`)
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "thinking_budget_tokens: does not go together with override.thinking") {
		t.Errorf("override.thinking: %v", err)
	}
}
