package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"rolltap/rewrite/canon"
)

// messagesSDK is anthropic-sdk-go: Message.Accumulate.
type messagesSDK struct{}

func (messagesSDK) dialect() canon.Dialect { return canon.Messages }

func (messagesSDK) stopWord(reason canon.StopReason, called bool) string {
	switch reason {
	case canon.StopLength:
		return "max_tokens"
	case canon.StopContext:
		return "model_context_window_exceeded"
	case canon.StopFilter:
		return "refusal"
	case canon.StopPause:
		return "pause_turn"
	case canon.StopSequence:
		return "stop_sequence"
	}
	if called {
		return "tool_use"
	}
	return "end_turn"
}

func (messagesSDK) params(a ask) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{Model: anthropic.Model(a.model), MaxTokens: a.maxTokens, StopSequences: a.stop}
	for _, t := range a.turns {
		switch t.role {
		case "user":
			p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(t.text)))
		case "tool":
			p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewToolResultBlock(t.callID, t.text, false)))
		case "assistant":
			var blocks []anthropic.ContentBlockParamUnion
			if t.reasoning != "" {
				blocks = append(blocks, anthropic.NewThinkingBlock("", t.reasoning))
			}
			if t.text != "" {
				blocks = append(blocks, anthropic.NewTextBlock(t.text))
			}
			for _, c := range t.calls {
				blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, json.RawMessage(c.Arguments), c.Name))
			}
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(blocks...))
		}
	}
	for _, t := range a.tools {
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.name, Description: anthropic.String(t.description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: t.parameters["properties"], ExtraFields: map[string]any{"required": t.parameters["required"]}},
		}})
	}
	return p
}

func (m messagesSDK) body(tb testing.TB, a ask) []byte { return streamed(tb, m.params(a)) }

func (m messagesSDK) fold(tb testing.TB, wire []byte) (said, *failure) {
	tb.Helper()
	message, inputs, f := m.accumulate(tb, ssestream.NewStream[anthropic.MessageStreamEventUnion](ssestream.NewDecoder(answered(wire)), nil))
	return m.said(tb, message).withInputs(tb, inputs), f
}

func (m messagesSDK) whole(tb testing.TB, body []byte) said {
	tb.Helper()
	var message anthropic.Message
	if err := json.Unmarshal(body, &message); err != nil {
		tb.Fatalf("the SDK cannot read the answer: %v\n%s", err, body)
	}
	return m.said(tb, &message)
}

func (messagesSDK) service(s server) anthropic.MessageService {
	return anthropic.NewClient(option.WithBaseURL(s.root+"/"), option.WithAPIKey("key"), option.WithMaxRetries(0), option.WithMiddleware(s.keep)).Messages
}

func (m messagesSDK) stream(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	message, inputs, f := m.send(ctx, tb, s, m.params(a))
	return m.said(tb, message).withInputs(tb, inputs), f
}

func (m messagesSDK) send(ctx context.Context, tb testing.TB, s server, p anthropic.MessageNewParams) (*anthropic.Message, []string, *failure) {
	tb.Helper()
	service := m.service(s)
	return m.accumulate(tb, service.NewStreaming(ctx, p))
}

func (m messagesSDK) unary(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	service := m.service(s)
	message, err := service.New(ctx, m.params(a))
	if err != nil {
		return said{}, m.failure(tb, err)
	}
	return m.said(tb, message), nil
}

// accumulate also adds up the input of each block.
func (m messagesSDK) accumulate(tb testing.TB, stream *ssestream.Stream[anthropic.MessageStreamEventUnion]) (*anthropic.Message, []string, *failure) {
	tb.Helper()
	defer stream.Close()
	var message anthropic.Message
	var inputs []string
	stopped := false
	for stream.Next() {
		event := stream.Current()
		if stopped {
			tb.Errorf("%s behind message_stop", event.Type)
		}
		stopped = event.Type == "message_stop"
		if event.AsAny() == nil {
			tb.Errorf("the SDK does not know the event %s", event.RawJSON())
		}
		if err := message.Accumulate(event); err != nil {
			tb.Fatalf("the SDK cannot accumulate %s: %v", event.RawJSON(), err)
		}
		switch event.Type {
		case "content_block_start":
			inputs = append(inputs, "")
		case "content_block_delta":
			inputs[event.Index] += event.Delta.PartialJSON
		}
	}
	if err := stream.Err(); err != nil {
		return &message, inputs, m.failure(tb, err)
	}
	if !stopped {
		tb.Errorf("the stream ends without message_stop and without an error")
	}
	return &message, inputs, nil
}

func (messagesSDK) failure(tb testing.TB, err error) *failure {
	tb.Helper()
	var e *anthropic.Error
	if !errors.As(err, &e) {
		tb.Fatalf("the SDK's error is of type %T: %v", err, err)
	}
	f := failureOf(tb, e.StatusCode, e.RawJSON())
	if f.Type != string(e.Type()) {
		tb.Errorf("the SDK does not know the error's type: %q in %s", e.Type(), e.RawJSON())
	}
	if f.Status == 200 {
		f.Status = 0
	}
	return f
}

func (messagesSDK) said(tb testing.TB, m *anthropic.Message) said {
	tb.Helper()
	s := said{
		Stop: string(m.StopReason), Sequence: m.StopSequence,
		Usage: usage{
			m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens, m.Usage.OutputTokens,
			m.Usage.CacheReadInputTokens, m.Usage.OutputTokensDetails.ThinkingTokens,
		},
	}
	for i := range m.Content {
		// The members of the union are what Accumulate adds to. A block's AsAny is made anew when the block ends, if it is JSON then: not of a
		// block that was cut, and of arguments that are no JSON it says {}.
		b := &m.Content[i]
		switch b.Type {
		case "text":
			s.Parts = append(s.Parts, part{Kind: "text", Text: b.Text})
			if typed, ok := b.AsAny().(anthropic.TextBlock); !ok || m.StopReason != "" && typed.Text != b.Text {
				tb.Errorf("block %d is not what it was added up to: %s", i, b.RawJSON())
			}
		case "thinking":
			s.Parts = append(s.Parts, part{Kind: "reasoning", Text: b.Thinking, Sealed: b.Signature != ""})
			if typed, ok := b.AsAny().(anthropic.ThinkingBlock); !ok || m.StopReason != "" && (typed.Thinking != b.Thinking || typed.Signature != b.Signature) {
				tb.Errorf("block %d is not what it was added up to: %s", i, b.RawJSON())
			}
		case "tool_use":
			s.Parts = append(s.Parts, part{Kind: "call", ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			typed, ok := b.AsAny().(anthropic.ToolUseBlock)
			if !ok || typed.ID != b.ID || typed.Name != b.Name || m.StopReason != "" && json.Valid(b.Input) && !sameJSON(typed.Input, b.Input) {
				tb.Errorf("block %d is not what it was added up to: %s", i, b.RawJSON())
			}
		default:
			tb.Fatalf("a block of type %q", b.Type)
		}
	}
	return s
}

// withInputs puts back what a model wrote as arguments where it is no JSON, of an answer that was cut in a call mostly: Accumulate makes {} of
// it when the block ends, as its Input is a json.RawMessage. Such a call has come through as far as deltas go.
func (s said) withInputs(tb testing.TB, inputs []string) said {
	tb.Helper()
	if len(inputs) != len(s.Parts) {
		tb.Fatalf("%d blocks were begun, the message has %d", len(inputs), len(s.Parts))
	}
	for i, input := range inputs {
		p := &s.Parts[i]
		switch {
		case p.Arguments == input, input == "" && (p.Arguments == "{}" || p.Kind != "call"):
		case p.Arguments == "{}" && !json.Valid([]byte(input)):
			p.Arguments = input
		default:
			tb.Errorf("the deltas of block %d are %q, the SDK has %q", i, input, p.Arguments)
		}
	}
	return s
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
