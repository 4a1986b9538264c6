package tokens

import (
	"bytes"

	"rolltap/rewrite/canon"
)

// Result judges what came so far.
func (c *Collector) Result() Result {
	r := Result{
		Completion: c.usage.Completion, PromptTokens: c.usage.Prompt,
		Model: c.model, ResponseID: c.id, Finish: c.finish,
		WeightVersions: c.versions, Experts: c.experts, LongExperts: c.long,
	}
	prompt, generated, logprobs := &c.prompt, &c.generated, &c.logprobs
	switch {
	case c.bundle.prompt.seen || c.bundle.generated.seen || c.bundle.logprobs.seen:
		r.Source = Bundle
		prompt, generated, logprobs = &c.bundle.prompt, &c.bundle.generated, &c.bundle.logprobs
	case c.prompt.seen || c.generated.seen:
		r.Source = Inline
	case c.named.n > 0:
		r.Source = Named
		generated = &c.named
	}
	r.Prompt, r.PromptLen = prompt.array(), prompt.n
	r.Generated, r.GeneratedLen = generated.array(), generated.n
	r.Logprobs, r.LogprobsLen = logprobs.array(), logprobs.n
	r.Reason = c.reason(&r)
	r.NeedsPrompt = r.Source == Named && r.Reason == ""
	return r
}

// reason is the first reason that holds, in the order of the list.
func (c *Collector) reason(r *Result) Reason {
	short := r.Generated == nil || r.Completion != canon.Unknown && int64(r.GeneratedLen) != r.Completion
	switch {
	case c.tooLarge:
		return TooLarge
	case c.unreadable:
		return Unreadable
	case c.failed:
		return UpstreamError
	case c.several:
		return SeveralChoices
	case c.finish == nil || !c.done && r.Completion == canon.Unknown:
		return Truncated
	case c.badIDs:
		return InvalidIDs
	case c.badLogprobs:
		return InvalidLogprobs
	case c.split || c.disagree(r.Source):
		return ConflictingSources
	case c.wish.HiddenReasoning && short && r.Source != Bundle:
		return HiddenReasoning
	case r.Generated == nil:
		return NoTokenIDs
	case r.PromptLen == 0 && r.Source != Named:
		return NoPromptIDs
	case r.Logprobs == nil:
		return NoLogprobs
	case r.LogprobsLen != r.GeneratedLen:
		return LogprobsMismatch
	case short:
		return CountMismatch
	}
	return ""
}

// disagree tells whether a source behind the one that counts tells other ids.
func (c *Collector) disagree(from Source) bool {
	differ := func(a, b *sequence) bool { return a.seen && b.seen && !bytes.Equal(a.text, b.text) }
	switch from {
	case Bundle:
		if differ(&c.bundle.prompt, &c.prompt) || differ(&c.bundle.generated, &c.generated) {
			return true
		}
		return c.named.n > 0 && differ(&c.bundle.generated, &c.named)
	case Inline:
		return c.named.n > 0 && differ(&c.generated, &c.named)
	}
	return false
}

// array is the whole JSON array, nil when there is none. Its end stands behind what is kept, and goes when more comes.
func (s *sequence) array() []byte {
	if !s.seen {
		return nil
	}
	out := append(s.text, ']')
	s.text = out[:len(s.text)]
	return out
}

// SetPrompt completes a result that NeedsPrompt with n ids that the engine's tokenizer told, a JSON array. When usage counts another number
// of prompt tokens the tokenizer read another prompt: then there are none.
func (r *Result) SetPrompt(ids []byte, n int) {
	if !r.NeedsPrompt {
		return
	}
	r.NeedsPrompt = false
	if n == 0 || r.PromptTokens != canon.Unknown && r.PromptTokens != int64(n) {
		r.Reason = NoPromptIDs
		return
	}
	r.Prompt, r.PromptLen = ids, n
}
