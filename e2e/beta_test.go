package e2e

import (
	"encoding/json"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"rolltap/rewrite/canon"
)

// The beta client asks at another address, and has types of its own that fold to the same.
func TestBeta(t *testing.T) {
	all := byDialect(streams(t))[canon.Chat]
	s := serve(t, canon.Chat, all)
	for i := range all {
		x := &all[i]
		said := decode(t, translator(t, canon.Chat), x.response)
		if said.Failed != nil || said.Stop.Reason == 0 {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			at := s.rollout(x.name)
			want, failed := messagesSDK{}.stream(patient(t), t, at, askOf(t, x))
			if failed != nil {
				t.Fatalf("failed with %+v", *failed)
			}
			client := anthropic.NewClient(option.WithBaseURL(at.root+"-beta/"), option.WithAPIKey("key"), option.WithMaxRetries(0))
			stream := client.Beta.Messages.NewStreaming(patient(t), anthropic.BetaMessageNewParams{
				Model: anthropic.Model(x.name), MaxTokens: 96, StopSequences: askOf(t, x).stop,
				Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("hi"))},
				Betas:    []anthropic.AnthropicBeta{"interleaved-thinking-2025-05-14"},
			})
			defer stream.Close()
			var m anthropic.BetaMessage
			for stream.Next() {
				if err := m.Accumulate(stream.Current()); err != nil {
					t.Fatal(err)
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			equal(t, "both clients read the same", want.mended(), betaSaid(t, &m).mended())
		})
	}
}

func betaSaid(tb testing.TB, m *anthropic.BetaMessage) said {
	tb.Helper()
	s := said{Stop: string(m.StopReason), Sequence: m.StopSequence, Usage: usage{
		m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens, m.Usage.OutputTokens,
		m.Usage.CacheReadInputTokens, m.Usage.OutputTokensDetails.ThinkingTokens,
	}}
	for _, b := range m.Content {
		switch b := b.AsAny().(type) {
		case anthropic.BetaTextBlock:
			s.Parts = append(s.Parts, part{Kind: "text", Text: b.Text})
		case anthropic.BetaThinkingBlock:
			s.Parts = append(s.Parts, part{Kind: "reasoning", Text: b.Thinking, Sealed: b.Signature != ""})
		case anthropic.BetaToolUseBlock:
			input, err := json.Marshal(b.Input)
			if err != nil {
				tb.Error(err)
			}
			s.Parts = append(s.Parts, part{Kind: "call", ID: b.ID, Name: b.Name, Arguments: string(input)})
		default:
			tb.Errorf("a block of type %T", b)
		}
	}
	return s
}
