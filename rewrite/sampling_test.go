package rewrite

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/rewrite/canon"
)

func TestSamplingRules(t *testing.T) {
	drop := []SamplingRule{{"opus", []string{"top_k", "stop_sequences", "tools"}, "drop"}}
	for _, tc := range []struct {
		name, body, before string
		rules              []SamplingRule
		from               canon.Dialect
		want, param        string
		lost               []canon.Loss
	}{
		{"refused", `{"model":"us/aws/anthropic/eccn-Claude-Opus-4-8","temperature":1,"top_k":5}`, "", DefaultPolicy().Sampling, canon.Chat, "", "temperature", nil},
		{"refused by the name that the client knows", `{"model":"claude-opus-4-8","top_k":5}`, "", DefaultPolicy().Sampling, canon.Gemini, "", "generationConfig.topK", nil},
		{"another model", `{"model":"claude-sonnet","top_k":5}`, "", DefaultPolicy().Sampling, canon.Chat, `{"model":"claude-sonnet","top_k":5}`, "", nil},
		{"null is none", `{"model":"claude-opus-4-8","top_k":null}`, "", DefaultPolicy().Sampling, canon.Chat, `{"model":"claude-opus-4-8","top_k":null}`, "", nil},
		{"dropped", `{"model":"opus","top_k":5,"temperature":1}`, `{"top_k":5}`, drop, canon.Chat, `{"model":"opus","temperature":1}`, "", []canon.Loss{{Path: "top_k", Reason: canon.ByPolicy}}},
		{"any member", `{"model":"opus","stop_sequences":["a"],"tools":[]}`, `{"stop_sequences":["a"],"tools":[]}`, drop, canon.Chat, `{"model":"opus"}`, "",
			[]canon.Loss{{Path: "stop", Reason: canon.ByPolicy}, {Path: "tools", Reason: canon.ByPolicy}}},
		{"what a setting adds is no loss", `{"model":"opus","top_k":5}`, `{"model":"opus"}`, drop, canon.Chat, `{"model":"opus"}`, "", nil},
	} {
		p := DefaultPolicy()
		p.Sampling = tc.rules
		var l canon.Losses
		got, err := p.forbid([]byte(tc.body), []byte(tc.before), tc.from, &l)
		var problem *canon.Problem
		if errors.As(err, &problem) != (tc.param != "") || problem != nil && (problem.Param != tc.param || problem.Code != canon.CodeUnsupported || problem.Status != 400) {
			t.Errorf("%s: %v; want %s", tc.name, err, tc.param)
		}
		if string(got) != tc.want || !cmp.Equal(tc.lost, l.List()) {
			t.Errorf("%s: %s %v; want %s %v", tc.name, got, l.List(), tc.want, tc.lost)
		}
	}
}
