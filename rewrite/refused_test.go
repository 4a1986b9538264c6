package rewrite_test

import (
	"errors"
	"fmt"
	"testing"

	"rolltap/rewrite/canon"
)

// What changes the meaning of a request and cannot be said upstream is refused, whoever asks whom: it is neither dropped nor sent on for the
// upstream to stumble over.
func TestWhatChangesTheMeaningIsRefused(t *testing.T) {
	const (
		chatHead      = `"model":"m","messages":[{"role":"user","content":"x"}]`
		messagesHead  = `"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]`
		responsesHead = `"model":"m","input":"x"`
		geminiHead    = `"contents":[{"role":"user","parts":[{"text":"x"}]}]`
		chatTools     = `,"tools":[{"type":"function","function":{"name":"f"}}]`
		messagesTools = `,"tools":[{"name":"f"}]`
	)
	for _, c := range []struct {
		name, body, code, param string
		client                  canon.Dialect
	}{
		{"a format that nobody knows", chatHead + `,"response_format":{"type":"structural_tag"}`, canon.CodeUnsupported, "response_format.type", canon.Chat},
		{"a format that nobody knows", responsesHead + `,"text":{"format":{"type":"structural_tag"}}`, canon.CodeUnsupported, "text.format.type", canon.Responses},
		{"a format that nobody knows", messagesHead + `,"output_config":{"format":{"type":"structural_tag"}}`, canon.CodeInvalid, "output_config.format.type", canon.Messages},
		{"a choice of what is not offered", chatHead + chatTools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, canon.CodeInvalid, "tool_choice", canon.Chat},
		{"a custom choice of what is not offered", chatHead + chatTools + `,"tool_choice":{"type":"custom","custom":{"name":"g"}}`, canon.CodeInvalid, "tool_choice", canon.Chat},
		{"a choice of what is not offered", chatHead + `,"functions":[{"name":"f"}],"function_call":{"name":"g"}`, canon.CodeInvalid, "function_call", canon.Chat},
		{"a choice of what is not offered", messagesHead + messagesTools + `,"tool_choice":{"type":"tool","name":"g"}`, canon.CodeInvalid, "tool_choice.name", canon.Messages},
		{"a choice of what is not offered", responsesHead + `,"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}`, canon.CodeInvalid, "tool_choice", canon.Responses},
		{"a choice of what is not offered", geminiHead + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}`,
			canon.CodeInvalid, "toolConfig.functionCallingConfig.allowedFunctionNames[0]", canon.Gemini},
		{"a choice of nothing", chatHead + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, canon.CodeInvalid, "tool_choice", canon.Chat},
		{"a choice of nothing", chatHead + `,"tool_choice":"required"`, canon.CodeInvalid, "tool_choice", canon.Chat},
		{"a choice of nothing", messagesHead + `,"tool_choice":{"type":"any"}`, canon.CodeInvalid, "tool_choice", canon.Messages},
		{"a choice of nothing", responsesHead + `,"tool_choice":"required"`, canon.CodeInvalid, "tool_choice", canon.Responses},
		{"a choice of nothing", geminiHead + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`, canon.CodeInvalid, "toolConfig.functionCallingConfig", canon.Gemini},
	} {
		for _, up := range upstreams() {
			if up == c.client {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s to %s", c.name, c.client, up), func(t *testing.T) {
				_, err := between(t, c.client, up).Request([]byte("{" + c.body + "}"))
				var p *canon.Problem
				if !errors.As(err, &p) || p.Status != 400 || p.Code != c.code || p.Param != c.param {
					t.Errorf("%+v; want %s at %s", p, c.code, c.param)
				}
			})
		}
	}
}
