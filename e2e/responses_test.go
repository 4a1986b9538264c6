package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"rolltap/rewrite/canon"
)

// responsesSDK is openai-go: the response of the terminal event, and the sums of the deltas on the way there, which must be the same.
type responsesSDK struct{}

func (responsesSDK) dialect() canon.Dialect { return canon.Responses }

// stopWord: of a response that is complete the status, else the reason.
func (responsesSDK) stopWord(reason canon.StopReason, _ bool) string {
	switch reason {
	case canon.StopLength, canon.StopContext:
		return "max_output_tokens"
	case canon.StopFilter:
		return "content_filter"
	}
	return "completed"
}

func (responsesSDK) params(a ask) responses.ResponseNewParams {
	p := responses.ResponseNewParams{
		Model: a.model, MaxOutputTokens: openai.Int(a.maxTokens), Store: openai.Bool(false),
		Include:   []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent, responses.ResponseIncludableMessageOutputTextLogprobs},
		Reasoning: shared.ReasoningParam{Summary: shared.ReasoningSummaryAuto},
	}
	var input responses.ResponseInputParam
	for _, t := range a.turns {
		if t.reasoning != "" {
			item := responses.ResponseInputItemParamOfReasoning("rs_1", []responses.ResponseReasoningItemSummaryParam{{Text: t.reasoning}})
			input = append(input, item)
		}
		switch {
		case t.role == "tool":
			input = append(input, functionOutput(t.callID, t.text))
		case t.text != "":
			input = append(input, responses.ResponseInputItemParamOfMessage(t.text, responses.EasyInputMessageRole(t.role)))
		}
		for _, c := range t.calls {
			input = append(input, responses.ResponseInputItemParamOfFunctionCall(c.Arguments, c.ID, c.Name))
		}
	}
	p.Input.OfInputItemList = input
	for _, t := range a.tools {
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: t.name, Description: openai.String(t.description), Parameters: t.parameters, Strict: openai.Bool(false),
		}})
	}
	return p
}

func functionOutput(callID, text string) responses.ResponseInputItemUnionParam {
	item := responses.ResponseInputItemParamOfFunctionCallOutput(text)
	item.OfFunctionCallOutput.CallID = openai.String(callID)
	return item
}

func (r responsesSDK) body(tb testing.TB, a ask) []byte { return streamed(tb, r.params(a)) }

func (r responsesSDK) fold(tb testing.TB, wire []byte) (said, *failure) {
	tb.Helper()
	response, f := r.accumulate(tb, ssestream.NewStream[responses.ResponseStreamEventUnion](ssestream.NewDecoder(answered(wire)), nil))
	return r.said(tb, response), f
}

func (r responsesSDK) whole(tb testing.TB, body []byte) said {
	tb.Helper()
	var response responses.Response
	if err := json.Unmarshal(body, &response); err != nil {
		tb.Fatalf("the SDK cannot read the answer: %v\n%s", err, body)
	}
	return r.said(tb, &response)
}

func (responsesSDK) service(s server) responses.ResponseService {
	return openai.NewClient(option.WithBaseURL(s.root+"/v1/"), option.WithAPIKey("key"), option.WithMaxRetries(0), option.WithMiddleware(s.keep)).Responses
}

func (r responsesSDK) stream(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	response, f := r.send(ctx, tb, s, r.params(a))
	return r.said(tb, response), f
}

func (r responsesSDK) send(ctx context.Context, tb testing.TB, s server, p responses.ResponseNewParams) (*responses.Response, *failure) {
	tb.Helper()
	service := r.service(s)
	return r.accumulate(tb, service.NewStreaming(ctx, p))
}

func (r responsesSDK) unary(ctx context.Context, tb testing.TB, s server, a ask) (said, *failure) {
	tb.Helper()
	service := r.service(s)
	response, err := service.New(ctx, r.params(a))
	if err != nil {
		return said{}, openaiFailure(tb, err)
	}
	return r.said(tb, response), nil
}

// accumulate reads a stream three ways: the SDK's ResponseAccumulator, the sums of the deltas, and the response of the terminal event, which
// it returns when the others agree. Of a stream that failed the response is what the failure event says.
func (r responsesSDK) accumulate(tb testing.TB, stream *ssestream.Stream[responses.ResponseStreamEventUnion]) (*responses.Response, *failure) {
	tb.Helper()
	defer stream.Close()
	var (
		all      responses.ResponseAccumulator
		sum      sums
		terminal *responses.Response
		before   responses.ResponseAccumulatorSnapshot
		sequence int64
	)
	for stream.Next() {
		event := stream.Current()
		if terminal != nil {
			tb.Errorf("%s behind the terminal event", event.Type)
		}
		if event.AsAny() == nil {
			tb.Errorf("the SDK does not know the event %s", event.RawJSON())
		}
		if event.SequenceNumber != sequence {
			tb.Errorf("sequence number %d, want %d", event.SequenceNumber, sequence)
		}
		sequence++
		sum.add(tb, &event)
		switch event.Type {
		case "response.completed", "response.incomplete", "response.failed":
			terminal, before = &event.Response, all.Snapshot()
		}
		var same responses.ResponsesServerEventUnion
		if err := json.Unmarshal([]byte(event.RawJSON()), &same); err != nil {
			tb.Fatalf("the SDK cannot read %s: %v", event.RawJSON(), err)
		}
		if err := all.AddEvent(same); err != nil {
			tb.Fatalf("the SDK cannot accumulate %s: %v", event.RawJSON(), err)
		}
	}
	switch err := stream.Err(); {
	case err == nil:
	case terminal != nil && terminal.Status == "failed" && errors.Is(err, io.ErrUnexpectedEOF):
		// Behind a failure event the sidecar aborts the connection, so that nobody takes the answer for a whole one. Readers of the other
		// dialects stop at the event; this one reads on.
	default:
		return &responses.Response{}, openaiFailure(tb, err)
	}
	if terminal == nil {
		tb.Fatalf("the stream ends without a terminal event and without an error")
	}
	for i, item := range terminal.Output {
		sum.check(tb, int64(i), &item)
		if i >= len(before.Output) {
			tb.Errorf("item %d is only in the terminal event", i)
			continue
		}
		told := before.Output[i]
		if told.ItemID != item.ID || told.Type != item.Type || told.CallID != item.CallID || told.Name != item.Name ||
			told.Arguments != item.Arguments.OfString || told.Input != item.Input {
			tb.Errorf("the accumulator of the SDK has item %d as %+v, the terminal event as %s", i, told, item.RawJSON())
		}
		for j, content := range item.Content {
			if content.Type == "output_text" && told.Text[int64(j)] != content.Text {
				tb.Errorf("the accumulator of the SDK has text %d of item %d as %q, the terminal event as %q", j, i, told.Text[int64(j)], content.Text)
			}
		}
	}
	if len(sum.items) != len(terminal.Output) {
		tb.Errorf("%d items were told, the terminal event has %d", len(sum.items), len(terminal.Output))
	}
	again, err := all.ReconstructedResponse()
	if err != nil || again.RawJSON() != terminal.RawJSON() {
		tb.Errorf("the SDK reconstructs another response: %v", err)
	}
	if terminal.Status == "failed" {
		e := terminal.Error
		return terminal, &failure{Code: string(e.Code), Message: e.Message, Type: e.Type, Param: e.Param}
	}
	return terminal, nil
}

func (responsesSDK) said(tb testing.TB, r *responses.Response) said {
	tb.Helper()
	s := said{Usage: usage{r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.InputTokensDetails.CachedTokens, r.Usage.OutputTokensDetails.ReasoningTokens}}
	switch r.Status {
	case "completed":
		s.Stop = "completed"
	case "incomplete":
		s.Stop = r.IncompleteDetails.Reason
	}
	for _, item := range r.Output {
		switch item := item.AsAny().(type) {
		case responses.ResponseOutputMessage:
			for _, c := range item.Content {
				switch c.Type {
				case "output_text":
					s.Parts = append(s.Parts, part{Kind: "text", Text: c.Text})
				case "refusal":
					s.Parts = append(s.Parts, part{Kind: "refusal", Text: c.Refusal})
				default:
					tb.Errorf("content of type %q", c.Type)
				}
				for _, e := range c.Logprobs {
					entry := logprob{Token: e.Token, Logprob: e.Logprob}
					for _, top := range e.TopLogprobs {
						entry.Top = append(entry.Top, logprob{Token: top.Token, Logprob: top.Logprob})
					}
					s.Logprobs = append(s.Logprobs, entry)
				}
			}
		case responses.ResponseReasoningItem:
			p := part{Kind: "reasoning", Sealed: item.EncryptedContent != ""}
			var summary []string
			for _, s := range item.Summary {
				summary = append(summary, s.Text)
			}
			p.Summary = strings.Join(summary, "\n\n")
			for _, c := range item.Content {
				p.Text += c.Text
			}
			s.Parts = append(s.Parts, p)
		case responses.ResponseFunctionToolCall:
			s.Parts = append(s.Parts, part{Kind: "call", ID: item.CallID, Name: item.Name, Arguments: item.Arguments})
		case responses.ResponseCustomToolCall:
			s.Parts = append(s.Parts, part{Kind: "custom call", ID: item.CallID, Name: item.Name, Arguments: item.Input})
		default:
			tb.Fatalf("an item of type %T", item)
		}
	}
	return s
}

// sums are what the deltas of a stream add up to, by item and by place in it.
type sums struct {
	items []string // ids
	texts map[place]string
	dones map[place]string
}

type place struct {
	kind        string
	item, index int64
}

func (s *sums) add(tb testing.TB, e *responses.ResponseStreamEventUnion) {
	tb.Helper()
	if s.texts == nil {
		s.texts, s.dones = map[place]string{}, map[place]string{}
	}
	switch e.Type {
	case "response.output_item.added":
		if int(e.OutputIndex) != len(s.items) {
			tb.Errorf("item %d is added as number %d", e.OutputIndex, len(s.items))
		}
		s.items = append(s.items, e.Item.ID)
		return
	case "response.output_item.done":
		s.check(tb, e.OutputIndex, &e.Item)
	}
	if e.ItemID != "" && (int(e.OutputIndex) >= len(s.items) || s.items[e.OutputIndex] != e.ItemID) {
		tb.Errorf("%s of item %q, which is not number %d", e.Type, e.ItemID, e.OutputIndex)
	}
	kind, delta := strings.CutSuffix(e.Type, ".delta")
	at := place{kind, e.OutputIndex, e.ContentIndex + e.SummaryIndex}
	if delta {
		s.texts[at] += e.Delta
		return
	}
	if kind, done := strings.CutSuffix(e.Type, ".done"); done {
		at.kind = kind
		switch kind {
		case "response.output_text", "response.reasoning_text", "response.reasoning_summary_text":
			s.dones[at] = e.Text
		case "response.refusal":
			s.dones[at] = e.Refusal
		case "response.function_call_arguments":
			s.dones[at] = e.Arguments
		case "response.custom_tool_call_input":
			s.dones[at] = e.Input
		default:
			return
		}
		if s.dones[at] != s.texts[at] {
			tb.Errorf("%s says %q, its deltas %q", e.Type, s.dones[at], s.texts[at])
		}
	}
}

// check compares an item with its deltas.
func (s *sums) check(tb testing.TB, index int64, item *responses.ResponseOutputItemUnion) {
	tb.Helper()
	same := func(kind string, i int, text string) {
		tb.Helper()
		if sum := s.texts[place{kind, index, int64(i)}]; sum != text {
			tb.Errorf("%s %d of item %d: the deltas say %q, the item %q", kind, i, index, sum, text)
		}
	}
	if int(index) >= len(s.items) || s.items[index] != item.ID {
		tb.Errorf("item %d is %q, which was not added there", index, item.ID)
	}
	switch item.Type {
	case "message":
		for i, c := range item.Content {
			if c.Type == "refusal" {
				same("response.refusal", i, c.Refusal)
			} else {
				same("response.output_text", i, c.Text)
			}
		}
	case "reasoning":
		for i, c := range item.Summary {
			same("response.reasoning_summary_text", i, c.Text)
		}
		for i, c := range item.Content {
			same("response.reasoning_text", i, c.Text)
		}
	case "function_call":
		same("response.function_call_arguments", 0, item.Arguments.OfString)
	case "custom_tool_call":
		same("response.custom_tool_call_input", 0, item.Input)
	}
}
