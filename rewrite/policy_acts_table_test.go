package rewrite

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// TestWhereKeysActIsDocumented: the last table of docs/rewrite.md says of each key between whom its cases act.
func TestWhereKeysActIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/rewrite.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Where they act\n")
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`[^|]* \\| (.+?) \\| (.+?) \\|$").FindAllStringSubmatch(table, -1) {
		among := func(cell string, d canon.Dialect) bool {
			return strings.HasPrefix(cell, "all") || strings.Contains(cell, "`"+string(d)+"`")
		}
		for _, client := range Dialects() {
			for _, upstream := range upstreamDialects() {
				if client.Name() != upstream && among(m[2], client.Name()) && among(m[3], upstream) || client.Name() == upstream && strings.Contains(m[3], "†") && among(m[3], upstream) {
					told[fmt.Sprintf("%s, %s to %s", m[1], client.Name(), upstream)] = true
				}
			}
		}
	}
	acts := map[string]bool{}
	for _, c := range actCases() {
		for _, client := range Dialects() {
			for _, upstream := range upstreamDialects() {
				if c.acts(client.Name(), upstream) {
					acts[fmt.Sprintf("%s, %s to %s", c.key, client.Name(), upstream)] = true
				}
			}
		}
	}
	for _, pair := range slices.Sorted(maps.Keys(acts)) {
		if !told[pair] {
			t.Errorf("it is not told that it acts: %s", pair)
		}
	}
	for _, pair := range slices.Sorted(maps.Keys(told)) {
		if !acts[pair] {
			t.Errorf("it is told that it acts, and does not: %s", pair)
		}
	}
}

// TestEveryValueHasItsCase: the cases have every key, and of those that are words each that is not the default.
func TestEveryValueHasItsCase(t *testing.T) {
	cases := map[string][]string{}
	for _, c := range actCases() {
		cases[c.key] = append(cases[c.key], c.value)
	}
	p := DefaultPolicy()
	keys := p.keys()
	for _, key := range keys {
		if len(cases[key]) == 0 {
			t.Errorf("%s has no case", key)
		}
	}
	for key := range cases {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is no key", key)
		}
	}
	for _, k := range p.words() {
		for _, word := range k.words {
			if word != *k.value && !slices.Contains(cases[k.name], fmt.Sprintf("%q", word)) {
				t.Errorf("%s: %s has no case", k.name, word)
			}
		}
	}
	// The keys as users know them.
	want := strings.Fields(`extra_body override metadata_extras sampling chat_extensions default_max_tokens max_tokens_limit max_tokens_name
		thinking thinking_budget_tokens unsigned_thinking reasoning_replay reasoning_output reasoning_seal_key_file think_tags late_system
		developer_role billing_line prefill custom_tools hosted_tools hosted_history strict_tools images tool_result_images context_overflow
		incomplete_event`)
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(keys)); !slices.Equal(want, got) {
		t.Errorf("the keys are %v; want %v", got, want)
	}
}
