package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

const result = "sunny, 21 C \u2014 \"really\""

// An agent's loop: an application adds the SDK's answer and the results of its calls to the conversation and asks again. The upstream is then
// sent what it said itself: reasoning with its own signature, texts, calls with their ids and arguments.
func TestTurns(t *testing.T) {
	found := 0
	for upstream, all := range byDialect(streams(t)) {
		s := serve(t, upstream, all)
		for i := range all {
			x := &all[i]
			said := decode(t, translator(t, upstream), x.response)
			if said.Failed != nil || !said.Called() || said.Stop.Reason != canon.StopEnd {
				continue // a call that was cut is not answered
			}
			found++
			for name, loop := range map[canon.Dialect]func(*testing.T, server, ask){canon.Chat: chatTurns, canon.Messages: messagesTurns, canon.Responses: responsesTurns, canon.Gemini: geminiTurns} {
				t.Run(x.name+" to "+string(name), func(t *testing.T) {
					loop(t, s.rollout(x.name+"-"+string(name)), askOf(t, x))
					sent := s.sent(x.name)
					checkTurns(t, name, translator(t, upstream), said, sent)
					if t.Failed() {
						t.Logf("the upstream was sent\n%s", sent)
					}
				})
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d answers with calls", found)
	}
}

func chatTurns(t *testing.T, at server, a ask) {
	c := chatSDK{}
	p := c.params(a, true)
	for turn := range 2 {
		completion, _, failed := c.send(patient(t), t, at, p)
		if failed != nil {
			t.Fatalf("turn %d failed with %+v", turn, *failed)
		}
		m := completion.Choices[0].Message
		p.Messages = append(p.Messages, m.ToParam())
		for _, call := range m.ToolCalls {
			p.Messages = append(p.Messages, openai.ToolMessage(result, call.ID))
		}
	}
}

func messagesTurns(t *testing.T, at server, a ask) {
	c := messagesSDK{}
	p := c.params(a)
	for turn := range 2 {
		m, _, failed := c.send(patient(t), t, at, p)
		if failed != nil {
			t.Fatalf("turn %d failed with %+v", turn, *failed)
		}
		var results []anthropic.ContentBlockParamUnion
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				results = append(results, anthropic.NewToolResultBlock(b.ID, result, false))
			}
		}
		p.Messages = append(p.Messages, m.ToParam(), anthropic.NewUserMessage(results...))
	}
}

func responsesTurns(t *testing.T, at server, a ask) {
	c := responsesSDK{}
	p := c.params(a)
	for turn := range 2 {
		r, failed := c.send(patient(t), t, at, p)
		if failed != nil {
			t.Fatalf("turn %d failed with %+v", turn, *failed)
		}
		var results responses.ResponseInputParam
		for _, item := range r.Output {
			p.Input.OfInputItemList = append(p.Input.OfInputItemList, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
			if item.Type == "function_call" {
				results = append(results, functionOutput(item.CallID, result))
			}
		}
		p.Input.OfInputItemList = append(p.Input.OfInputItemList, results...)
	}
}

func geminiTurns(t *testing.T, at server, a ask) {
	c := geminiSDK{}
	p := c.params(a)
	for turn := range 2 {
		content, _, failed := c.send(patient(t), t, at, p)
		if failed != nil {
			t.Fatalf("turn %d failed with %+v", turn, *failed)
		}
		results := &genai.Content{Role: genai.RoleUser}
		for _, part := range content.Parts {
			if call := part.FunctionCall; call != nil {
				results.Parts = append(results.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: call.ID, Name: call.Name, Response: map[string]any{"output": result}}})
			}
		}
		p.contents = append(p.contents, content, results)
	}
}

// checkTurns compares the second request with what the upstream said to the first.
func checkTurns(t *testing.T, client canon.Dialect, upstream dialect.Dialect, said *canon.Answer, body []byte) {
	t.Helper()
	policy := dialect.DefaultPolicy()
	request, err := upstream.ReadCall(body, dialect.Options{Policy: &policy, ID: "x"})
	if err != nil {
		t.Fatalf("the second request: %v", err)
	}
	last := -1
	for i, m := range request.Messages {
		if m.Role == canon.Assistant {
			last = i
		}
	}
	if last < 0 {
		t.Fatal("the model's own turn was not sent")
	}
	passed := client == upstream.Name()
	want, got := saidOf(t, &canon.Answer{Parts: said.Parts}), saidOf(t, &canon.Answer{Parts: request.Messages[last].Parts})
	if client == canon.Messages {
		want, got = want.mended(), got.mended() // the SDK writes JSON without spaces
	}
	if client == canon.Gemini {
		want, got = want.valued(), got.valued() // the SDK has an object
	}
	if client == canon.Chat {
		want.Parts, got.Parts = withoutReasoning(want.Parts), withoutReasoning(got.Parts) // the SDK has no member for it
	}
	if upstream.Name() == canon.Chat || client == canon.Chat {
		want, got = want.flat(), got.flat()
	}
	want, got = want.collapsed().joined(), got.collapsed().joined()
	equal(t, "the upstream is sent what it said", want, got)

	if !passed && client != canon.Chat {
		w, g := signatures(said.Parts), signatures(request.Messages[last].Parts)
		if w != g {
			t.Errorf("the upstream's signatures were %q, and come back as %q", w, g)
		}
	}

	var ids []string
	for _, m := range request.Messages[last+1:] {
		for _, p := range m.Parts {
			if p.Type != canon.ResultPart {
				t.Errorf("a part of type %d among the results", p.Type)
				continue
			}
			ids = append(ids, unquoted(p.Result.CallID))
			if len(p.Result.Parts) != 1 || unquoted(p.Result.Parts[0].Text) != result {
				t.Errorf("the result is %+v", p.Result)
			}
		}
	}
	var called []string
	for _, p := range said.Parts {
		if p.Type == canon.CallPart {
			called = append(called, unquoted(p.Call.ID))
		}
	}
	if strings.Join(ids, " ") != strings.Join(called, " ") {
		t.Errorf("results of %q, calls %q", ids, called)
	}
}

// joined has reasoning as one text, whichever kind it is.
func (s said) joined() said {
	for i := range s.Parts {
		if p := &s.Parts[i]; p.Kind == "reasoning" {
			p.Text, p.Summary = p.Text+p.Summary, ""
		}
	}
	return s
}

func withoutReasoning(parts []part) []part {
	var rest []part
	for _, p := range parts {
		if p.Kind != "reasoning" {
			rest = append(rest, p)
		}
	}
	return rest
}

func signatures(parts []canon.Part) string {
	var all []string
	for _, p := range parts {
		if len(p.Signature) > 0 {
			all = append(all, string(p.Signature))
		}
	}
	return strings.Join(all, " ")
}
