package tokens

// Reason says in one word why the tokens of an answer are no use for training; empty: they are whole. The words are a closed list.
type Reason string

// The reasons, in the order in which they are looked for: the first that holds is told, so the cause comes before what it entails.
const (
	TooLarge           Reason = "too_large"           // more than the limit, or an event that nobody looks into
	Unreadable         Reason = "unreadable"          // an event, or the answer, is no strict JSON object
	UpstreamError      Reason = "upstream_error"      // the answer is an error, or one ended it
	SeveralChoices     Reason = "several_choices"     // there is more than the choice with index 0
	Truncated          Reason = "truncated"           // the answer has no end
	InvalidIDs         Reason = "invalid_ids"         // a list of ids is none, or an id is no integer of 0 and above
	InvalidLogprobs    Reason = "invalid_logprobs"    // a log probability is no finite number
	ConflictingSources Reason = "conflicting_sources" // two sources, or two events, tell different ids
	HiddenReasoning    Reason = "hidden_reasoning"    // include_reasoning: false holds ids back
	NoTokenIDs         Reason = "no_token_ids"        // no ids of the generation, or only some of what belongs to them
	NoPromptIDs        Reason = "no_prompt_ids"       // no ids of the prompt
	NoLogprobs         Reason = "no_logprobs"         // ids, but no log probabilities
	LogprobsMismatch   Reason = "logprobs_mismatch"   // not as many log probabilities as ids
	CountMismatch      Reason = "count_mismatch"      // not as many ids as usage counts tokens
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		TooLarge, Unreadable, UpstreamError, SeveralChoices, Truncated, InvalidIDs, InvalidLogprobs, ConflictingSources, HiddenReasoning,
		NoTokenIDs, NoPromptIDs, NoLogprobs, LogprobsMismatch, CountMismatch,
	}
}

// Source is where the ids of an answer were.
type Source uint8

// The sources (capture.md 5.4).
const (
	NoSource Source = iota
	Bundle          // on the message: prompt_token_ids, generation_token_ids, generation_log_probs
	Inline          // prompt_token_ids at the top, token_ids and logprobs in the choice
	Named           // entries of logprobs written token_id:N; the prompt's ids are missing
)

// Result is what an answer said of its tokens. Its bytes belong to the Collector, those of an answer that was given whole may be parts of
// it; they are valid until the next call or until the answer is written over.
type Result struct {
	// JSON arrays, numbers spelled as the engine spelled them. Nil: none came, or they were invalid.
	Prompt, Generated, Logprobs          []byte
	PromptLen, GeneratedLen, LogprobsLen int

	// Of usage, canon.Unknown when untold.
	Completion, PromptTokens int64

	// Raw JSON, nil when untold or null.
	Model, ResponseID, Finish []byte
	WeightVersions            []byte
	Experts                   []byte  // routed_experts
	LongExperts               Spooled // the same where it was spooled, the caller's to release; nil otherwise

	Source Source
	// NeedsPrompt says that everything is there but the prompt's ids, which the engine's tokenizer has to tell: see TokenizeRequest and
	// SetPrompt. Without them the result is not whole.
	NeedsPrompt bool
	Reason      Reason
}
