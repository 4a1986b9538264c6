package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

	"rolltap/rewrite/canon"
)

// chatSDK is openai-go: ChatCompletionAccumulator.
type chatSDK struct{}

func (chatSDK) dialect() canon.Dialect { return canon.Chat }

func (chatSDK) stopWord(reason canon.StopReason, called bool) string {
	switch reason {
	case canon.StopLength, canon.StopContext:
		return "length"
	case canon.StopFilter:
		return "content_filter"
	}
	if called {
		return "tool_calls"
	}
	return "stop"
}

func (chatSDK) params(a ask, stream bool) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model: a.model, MaxCompletionTokens: openai.Int(a.maxTokens), Stop: openai.ChatCompletionNewParamsStopUnion{OfStringArray: a.stop},
		Logprobs: openai.Bool(true),
	}
	if stream {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	for _, t := range a.turns {
		switch t.role {
		case "user":
			p.Messages = append(p.Messages, openai.UserMessage(t.text))
		case "tool":
			p.Messages = append(p.Messages, openai.ToolMessage(t.text, t.callID))
		case "assistant":
			m := openai.ChatCompletionAssistantMessageParam{}
			if t.text != "" {
				m.Content.OfString = openai.String(t.text)
			}
			for _, c := range t.calls {
				m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
				}})
			}
			if t.reasoning != "" {
				m.SetExtraFields(map[string]any{"reasoning_content": t.reasoning})
			}
			p.Messages = append(p.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &m})
		}
	}
	for _, t := range a.tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.name, Description: openai.String(t.description), Parameters: t.parameters,
		}))
	}
	return p
}

func (c chatSDK) body(tb testing.TB, a ask) []byte { return streamed(tb, c.params(a, true)) }

func (c chatSDK) fold(tb testing.TB, wire []byte) (said, *failure) {
	tb.Helper()
	completion, reasoning, f := c.accumulate(tb, ssestream.NewStream[openai.ChatCompletionChunk](ssestream.NewDecoder(answered(wire)), nil))
	return c.said(tb, completion, reasoning), f
}

func (c chatSDK) whole(tb testing.TB, body []byte) said {
	tb.Helper()
	var completion openai.ChatCompletion
	if err := json.Unmarshal(body, &completion); err != nil {
		tb.Fatalf("the SDK cannot read the answer: %v\n%s", err, body)
	}
	return c.saidWhole(tb, &completion)
}

func (c chatSDK) saidWhole(tb testing.TB, completion *openai.ChatCompletion) said {
	tb.Helper()
	reasoning := ""
	if len(completion.Choices) > 0 {
		reasoning = reasoningOf(tb, completion.Choices[0].Message.JSON.ExtraFields)
	}
	return c.said(tb, completion, reasoning)
}

func (chatSDK) service(s server) openai.ChatService {
	return openai.NewClient(option.WithBaseURL(s.root+"/v1/"), option.WithAPIKey("key"), option.WithMaxRetries(0), option.WithMiddleware(s.keep)).Chat
}

func (c chatSDK) stream(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	completion, reasoning, f := c.send(ctx, tb, s, c.params(a, true))
	return c.said(tb, completion, reasoning), f
}

func (c chatSDK) send(ctx context.Context, tb testing.TB, s server, p openai.ChatCompletionNewParams) (*openai.ChatCompletion, string, *failure) {
	tb.Helper()
	service := c.service(s)
	return c.accumulate(tb, service.Completions.NewStreaming(ctx, p))
}

func (c chatSDK) unary(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	service := c.service(s)
	completion, err := service.Completions.New(ctx, c.params(a, false))
	if err != nil {
		return said{}, openaiFailure(tb, err)
	}
	return c.saidWhole(tb, completion), nil
}

// accumulate also adds up reasoning, which the official API does not have and the accumulator leaves out.
func (chatSDK) accumulate(tb testing.TB, stream *ssestream.Stream[openai.ChatCompletionChunk]) (*openai.ChatCompletion, string, *failure) {
	tb.Helper()
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	reasoning := ""
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			tb.Fatalf("the SDK cannot accumulate %s", chunk.RawJSON())
		}
		for _, choice := range chunk.Choices {
			reasoning += reasoningOf(tb, choice.Delta.JSON.ExtraFields)
		}
	}
	if err := stream.Err(); err != nil {
		return &all.ChatCompletion, reasoning, openaiFailure(tb, err)
	}
	if len(all.Choices) == 0 || all.Choices[0].FinishReason == "" {
		tb.Errorf("the stream ends without a finish reason and without an error")
	}
	return &all.ChatCompletion, reasoning, nil
}

// reasoningOf reads the member that servers add to a message; where there are both its names they say the same.
func reasoningOf(tb testing.TB, extra map[string]respjson.Field) string {
	tb.Helper()
	var texts []string
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text *string
		if raw := extra[name].Raw(); raw != "" {
			if err := json.Unmarshal([]byte(raw), &text); err != nil {
				tb.Errorf("%s is no text: %s", name, raw)
			}
		}
		if text != nil {
			texts = append(texts, *text)
		}
	}
	switch {
	case len(texts) == 0:
		return ""
	case len(texts) == 2 && texts[0] != texts[1]:
		tb.Errorf("two names of reasoning, two texts: %q", texts)
	}
	return texts[0]
}

// openaiFailure is an error of openai-go: of an answer, or of an event inside a stream.
func openaiFailure(tb testing.TB, err error) *failure {
	tb.Helper()
	var inside *ssestream.StreamError
	if errors.As(err, &inside) {
		return failureOf(tb, 0, string(inside.Event.Data))
	}
	var e *openai.Error
	if !errors.As(err, &e) {
		tb.Fatalf("the SDK's error is of type %T: %v", err, err)
	}
	return &failure{Status: e.StatusCode, Type: e.Type, Code: e.Code, Param: e.Param, Message: e.Message}
}

func (chatSDK) said(tb testing.TB, c *openai.ChatCompletion, reasoning string) said {
	tb.Helper()
	s := said{Usage: usage{
		c.Usage.PromptTokens, c.Usage.CompletionTokens, c.Usage.PromptTokensDetails.CachedTokens, c.Usage.CompletionTokensDetails.ReasoningTokens,
	}}
	if len(c.Choices) == 0 {
		return s
	}
	if len(c.Choices) > 1 {
		tb.Errorf("%d choices", len(c.Choices))
	}
	choice := &c.Choices[0]
	s.Stop = choice.FinishReason
	s.Parts = []part{{Kind: "reasoning", Text: reasoning}, {Kind: "text", Text: choice.Message.Content}, {Kind: "refusal", Text: choice.Message.Refusal}}
	for _, call := range choice.Message.ToolCalls {
		if call.Type != "function" {
			tb.Errorf("a call of type %q", call.Type)
		}
		s.Parts = append(s.Parts, part{Kind: "call", ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	for _, e := range choice.Logprobs.Content {
		entry := logprob{Token: e.Token, Logprob: e.Logprob}
		for _, top := range e.TopLogprobs {
			entry.Top = append(entry.Top, logprob{Token: top.Token, Logprob: top.Logprob})
		}
		s.Logprobs = append(s.Logprobs, entry)
	}
	return s.flat()
}
