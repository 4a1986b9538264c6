package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"rolltap/rewrite/canon"
)

// What passes through is recorded as what the client's own SDK makes of it.
func TestPassedThrough(t *testing.T) {
	whole := func(x exchange) bool {
		if x.stream() {
			a := decode(t, translator(t, x.dialect), x.response)
			return a.Failed == nil && a.Stop.Reason != 0
		}
		return true
	}
	for upstream, all := range byDialect(append(streams(t), wholes(t)...)) {
		s := serve(t, upstream, all)
		for _, c := range sdks() {
			for i := range all {
				x := &all[i]
				if c.dialect() != upstream || !whole(*x) {
					continue
				}
				t.Run(x.name, func(t *testing.T) {
					t.Parallel()
					ask := c.unary
					if x.stream() {
						ask = c.stream
					}
					got, failed := ask(patient(t), t, s.rollout(x.name), askOf(t, x))
					if failed != nil {
						t.Fatalf("failed with %+v", *failed)
					}
					recorded := c.whole(t, s.recorded(t, x.name))
					if upstream == canon.Chat && strings.HasSuffix(x.name, "-usage-continuous") {
						// The SDK adds up the usage of all chunks, though each of vLLM's says that of all before it.
						got.Usage = recorded.Usage
					}
					if upstream == canon.Messages {
						got, recorded = got.mended(), recorded.mended()
					}
					equal(t, "the record and the SDK say the same", recorded, got)
				})
			}
		}
	}
}

// Several choices pass through only. The record's fold of them is the accumulator's.
func TestChoices(t *testing.T) {
	found := exchanges(t, func(x *exchange) bool { return x.choices() && x.stream() && x.status == 200 })
	if len(found) == 0 {
		t.Fatal("there is no stream with choices")
	}
	for _, x := range found {
		s := serve(t, canon.Chat, []exchange{x})
		at := s.rollout(x.name)
		service := chatSDK{}.service(at)
		stream := service.Completions.NewStreaming(patient(t), chatSDK{}.params(askOf(t, &x), true))
		got := accumulated(t, stream)
		var want openai.ChatCompletion
		if err := json.Unmarshal(s.recorded(t, x.name), &want); err != nil {
			t.Fatal(err)
		}
		if len(got.Choices) < 2 || len(got.Choices) != len(want.Choices) {
			t.Fatalf("the SDK has %d choices, the record %d", len(got.Choices), len(want.Choices))
		}
		for i := range got.Choices {
			a, b := want.Choices[i], got.Choices[i]
			a.Message.JSON, b.Message.JSON = openai.ChatCompletionMessage{}.JSON, openai.ChatCompletionMessage{}.JSON
			if a.Index != b.Index || a.FinishReason != b.FinishReason || a.Message.Content != b.Message.Content || len(a.Logprobs.Content) != len(b.Logprobs.Content) {
				t.Errorf("choice %d (-record +SDK):\n%s", i, cmp.Diff(a.Message.Content, b.Message.Content))
			}
		}
	}
}

func accumulated(t *testing.T, stream *ssestream.Stream[openai.ChatCompletionChunk]) *openai.ChatCompletion {
	t.Helper()
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if chunk := stream.Current(); !all.AddChunk(chunk) {
			t.Fatalf("the SDK cannot accumulate %s", chunk.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return &all.ChatCompletion
}
