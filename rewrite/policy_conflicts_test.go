package rewrite

import (
	"errors"
	"strings"
	"testing"
)

// TestContradictionsAreRefused: each is told once, by both its keys; one of the two alone is fine.
func TestContradictionsAreRefused(t *testing.T) {
	for _, tc := range []struct {
		one, other string // members of the mapping
		want       string
	}{
		{`"thinking_budget_tokens":2048`, `"thinking":"off"`, `rewrite.thinking_budget_tokens: does not go together with thinking: off`},
		{`"thinking_budget_tokens":2048`, `"extra_body":{"thinking":{"type":"adaptive"}}`, `rewrite.thinking_budget_tokens: does not go together with extra_body.thinking`},
		{`"thinking_budget_tokens":2048`, `"override":{"thinking":{"type":"disabled"}}`, `rewrite.thinking_budget_tokens: does not go together with override.thinking`},
		{`"thinking_budget_tokens":2048`, `"max_tokens_limit":2048`, `rewrite.thinking_budget_tokens: 2048 is not below max_tokens_limit, 2048`},
		{`"default_max_tokens":4096`, `"max_tokens_limit":2048`, `rewrite.default_max_tokens: 4096 is more than max_tokens_limit, 2048`},
		{`"max_tokens_limit":2048`, `"override":{"max_tokens":2049}`, `rewrite.max_tokens_limit: 2048 is less than override.max_tokens, 2049`},
		{`"max_tokens_limit":2048`, `"extra_body":{"max_output_tokens":4000}`, `rewrite.max_tokens_limit: 2048 is less than extra_body.max_output_tokens, 4000`},
		{`"max_tokens_limit":2048`, `"override":{"max_completion_tokens":4000}`, `rewrite.max_tokens_limit: 2048 is less than override.max_completion_tokens, 4000`},
		{`"max_tokens_name":"max_completion_tokens"`, `"override":{"max_tokens":9}`, `rewrite.max_tokens_name: max_completion_tokens does not go together with override.max_tokens`},
		{`"max_tokens_name":"max_completion_tokens"`, `"extra_body":{"max_tokens":9}`, `rewrite.max_tokens_name: max_completion_tokens does not go together with extra_body.max_tokens`},
		{`"chat_extensions":false`, `"extra_body":{"min_p":0.1}`, `rewrite.chat_extensions: false does not go together with extra_body.min_p`},
		{`"chat_extensions":false`, `"override":{"chat_template_kwargs":{"a":1}}`, `rewrite.chat_extensions: false does not go together with override.chat_template_kwargs`},
		{`"sampling":[{"model":"opus","forbid":["top_k"]}]`, `"override":{"model":"Opus-5","top_k":5}`,
			`rewrite.sampling[0].forbid: "top_k" does not go together with override.top_k for override.model, "Opus-5"`},
	} {
		for _, alone := range []string{tc.one, tc.other} {
			if err := startWith(`{` + alone + `}`); err != nil {
				t.Errorf("%s alone: %v", alone, err)
			}
		}
		if err := startWith(`{` + tc.one + `,` + tc.other + `}`); err == nil || err.Error() != tc.want {
			t.Errorf("%s and %s: %v; want %s", tc.one, tc.other, err, tc.want)
		}
	}
}

func startWith(config string) error {
	p, err := PolicyFromJSON([]byte(config))
	return errors.Join(err, p.Validate())
}

func TestSamplingRulesThatContradictThemselves(t *testing.T) {
	for _, tc := range []struct{ rules, want string }{
		{`[{"model":"a","forbid":["top_k"]},{"model":"a","forbid":["top_p","top_k"],"action":"drop"}]`,
			`rewrite.sampling[1].action: "drop" does not go together with sampling[0].action, "error": both forbid "top_k" to "a"`},
		{`[{"model":"a","forbid":["messages"]}]`, `rewrite.sampling[0].forbid: "messages" is what requests cannot be without`},
		{`[{"model":"a","forbid":["max_tokens"],"action":"drop"}]`, `rewrite.sampling[0].forbid: "max_tokens" is what requests cannot be without`},
		{`[{"model":"a","forbid":["top_k"]},{"model":"a","forbid":["top_k"]}]`, ""}, // twice the same
		{`[{"model":"a","forbid":["top_k"]},{"model":"ab","forbid":["top_k"],"action":"drop"}]`, ""},
	} {
		err := startWith(`{"sampling":` + tc.rules + `}`)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
			t.Errorf("%s: %v; want %s", tc.rules, err, tc.want)
		}
	}
}

// Goes together: what merely has no use, or has an order of its own.
func TestWhatIsNoContradiction(t *testing.T) {
	for _, config := range []string{
		`{"max_tokens_limit":100}`, // the default default_max_tokens is lowered
		`{"max_tokens_limit":0,"override":{"max_tokens":100000}}`,
		`{"max_tokens_limit":"auto","extra_body":{"max_tokens":100000}}`,
		`{"chat_extensions":false,"override":{"top_k":5}}`, // a member of Messages
		`{"extra_body":{"a":1},"override":{"a":2}}`,
		`{"images":"drop","tool_result_images":"inline"}`, // the latter is about files as well
		`{"thinking":"off","override":{"reasoning_effort":"low"}}`,
		`{"sampling":[{"model":"opus","forbid":["top_k"],"action":"drop"}],"override":{"model":"opus","temperature":1}}`,
	} {
		if err := startWith(config); err != nil {
			t.Errorf("%s: %v", config, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
}
