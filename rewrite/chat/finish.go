package chat

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// readStop maps a finish_reason (wire.md 5.2). A stop that a stop string ended has that string beside it: stop_reason (vLLM) or matched_stop
// (SGLang); a number there is a token and names no sequence. Called is none of the reasons, the parts tell that. Abort and error are no
// reasons to stop: somebody ended the generation from outside, or it broke. A word that nobody knows is an end like others.
func readStop(finish canon.Text, stopReason, matched []byte, losses *canon.Losses) (stop canon.Stop, failed *canon.Problem) {
	stop = canon.Stop{Reason: canon.StopEnd, Native: finish}
	switch string(finish) {
	case "tool_calls", "function_call":
	case "stop":
		for _, raw := range [2][]byte{stopReason, matched} {
			if text, ok := jsonx.Interior(raw); ok && len(text) > 0 {
				stop.Reason, stop.Sequence = canon.StopSequence, text
				break
			}
		}
	case "length", "repetition":
		stop.Reason = canon.StopLength
	case "content_filter":
		stop.Reason = canon.StopFilter
	case "abort":
		return canon.Stop{}, dialect.Aborted()
	case "error":
		return canon.Stop{}, dialect.Broke()
	default:
		losses.Add("choices[0].finish_reason", canon.NotKnown)
	}
	return stop, nil
}

// cut tells that an answer is not whole, so that a call at its end may have no name yet.
func cut(stop canon.Stop) bool {
	return stop.Reason == canon.StopLength || stop.Reason == canon.StopFilter
}

// finishReason is the finish_reason that says a stop. A call is told by it unless the answer was cut.
func finishReason(stop canon.Stop, called bool) string {
	switch stop.Reason {
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

// toldFinish is finishReason in the words of who asked: of functions there is a word of their own.
func toldFinish(stop canon.Stop, called bool, asked *canon.Request) string {
	word := finishReason(stop, called)
	if word == "tool_calls" && asked.Show.Legacy {
		return "function_call"
	}
	return word
}

func unfinished() *canon.Problem {
	return canon.Unreadable("the upstream ended the stream without a finish reason")
}

// countIDs is the number of elements of a list of token ids, which are numbers; 0 when it is none.
func countIDs(raw []byte) int64 {
	if len(raw) < len("[0]") || raw[0] != '[' || !jsonx.Truthy(raw) {
		return 0
	}
	return int64(bytes.Count(raw, []byte{','})) + 1
}

func usageKnown(u canon.Usage) bool { return u != canon.NoUsage() }

// countedUsage is what lists of ids tell where the upstream told no usage (wire.md 5.9).
func countedUsage(u canon.Usage, prompt, completion int64) canon.Usage {
	if u.Prompt == canon.Unknown && prompt > 0 {
		u.Prompt = prompt
	}
	if u.Completion == canon.Unknown && completion > 0 {
		u.Completion = completion
	}
	return u
}

// isHarmlessTop and its like tell the members that only describe, or are for who captures: leaving them out of another dialect loses nothing
// that a client could act on (wire.md 1.4, 2.1).
func isHarmlessTop(name []byte) bool {
	switch string(name) {
	case "id", "object", "created", "model", "choices", "usage", "error", "system_fingerprint", "service_tier", "obfuscation", "metrics",
		"prompt_token_ids", "prompt_text", "prompt_logprobs", "kv_transfer_params", "ec_transfer_params", "timings", "sglext", "metadata",
		"meta_info", "weight_versions":
		return true
	}
	return false
}

func isHarmlessInChoice(name []byte) bool {
	switch string(name) {
	case "index", "delta", "message", "finish_reason", "logprobs", "token_ids", "stop_reason", "matched_stop", "routed_experts", "hidden_states",
		"meta_info", "weight_versions", "native_finish_reason":
		return true
	}
	return false
}

func isHarmlessInMessage(name []byte) bool {
	switch string(name) {
	case "role", "content", "refusal", "reasoning", "reasoning_content", "tool_calls", "function_call", "annotations", "token_ids",
		"prompt_token_ids", "stop_reason", "obfuscation", "hidden_states":
		return true
	}
	return false
}

func isCallMember(name []byte) bool {
	switch string(name) {
	case "index", "id", "type", "function", "custom":
		return true
	}
	return false
}

// lostWhy: a sound is known and has no place elsewhere; the rest nobody knows.
func lostWhy(name []byte) canon.Reason {
	if string(name) == "audio" {
		return canon.NoEquivalent
	}
	return canon.NotKnown
}
