package chat

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func (chat) ReadResponse(body []byte) dialect.Summary {
	var top [5][]byte
	jsonx.GetAll(body, []string{"choices", "model", "usage", "error", "object"}, top[:])
	choices, model, usage, problem, object := top[0], top[1], top[2], top[3], top[4]
	s := summary(model, jsonx.Get(lowest(choices), "finish_reason"), usage)
	if !jsonx.IsNull(problem) {
		s.HasError, s.ErrorStatus = true, dialect.StatusOf(problem)
	} else if isFlatError(object) {
		s.HasError, s.ErrorStatus = true, dialect.StatusOf(body)
	}
	return s
}

// lowest is the choice with the lowest index, whatever their order, as a fold of the same stream tells of it; one without an index is the first.
func lowest(choices []byte) (found []byte) {
	var least int64
	for it := jsonx.Array(choices); it.Next(); {
		if index, _ := jsonx.Int(jsonx.Get(it.Value(), "index")); found == nil || index < least {
			found, least = it.Value(), index
		}
	}
	return found
}

// isFlatError: older vLLM puts the error's members beside object "error" (wire.md 1.7).
func isFlatError(object []byte) bool { return string(object) == `"error"` }

func summary(model, finish, usage []byte) dialect.Summary {
	s := dialect.Summary{Usage: readUsage(usage)}
	s.Model, _ = jsonx.Text(model)
	s.Finish, _ = jsonx.Text(finish)
	return s
}

// readUsage: prompt_tokens is the whole prompt, cached tokens among it. Where the details are not, other spellings of the same counts are
// looked for (dialects.md 1.11; reasoning_tokens beside the others: SGLang, wire.md 2.2).
func readUsage(usage []byte) canon.Usage {
	var m [9][]byte
	jsonx.GetAll(usage, []string{
		"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details",
		"cached_input_tokens", "cache_read_input_tokens", "reasoning_output_tokens", "reasoning_tokens",
	}, m[:])
	var prompt [3][]byte
	jsonx.GetAll(m[3], []string{"cached_tokens", "created_cache_tokens", "cache_write_tokens"}, prompt[:])
	u := canon.Usage{
		Prompt:     dialect.Count(m[0]),
		Completion: dialect.Count(m[1]),
		Cached:     firstCount(prompt[0], m[5], m[6]),
		CacheWrite: firstCount(prompt[1], prompt[2]),
		Reasoning:  firstCount(jsonx.Get(m[4], "reasoning_tokens"), m[7], m[8]),
	}
	return u.WithTotal(dialect.Count(m[2]))
}

func firstCount(raws ...[]byte) int64 {
	for _, raw := range raws {
		if n := dialect.Count(raw); n != canon.Unknown {
			return n
		}
	}
	return canon.Unknown
}

// countPlace tells what becomes of a member of usage (wire.md 1.4, 3.3). Texts are what the other details leave of a count.
func countPlace(at string, name []byte) (why canon.Reason, inside string) {
	switch at {
	case "usage":
		switch string(name) {
		case "prompt_tokens_details":
			return "", "usage.prompt_tokens_details"
		case "completion_tokens_details":
			return "", "usage.completion_tokens_details"
		case "prompt_tokens", "completion_tokens", "total_tokens", "cached_input_tokens", "cache_read_input_tokens", "reasoning_output_tokens",
			"reasoning_tokens":
			return "", ""
		}
	case "usage.prompt_tokens_details":
		switch string(name) {
		case "cached_tokens", "created_cache_tokens", "cache_write_tokens", "text_tokens":
			return "", ""
		case "audio_tokens", "image_tokens", "multimodal_tokens":
			return canon.NoEquivalent, ""
		}
	case "usage.completion_tokens_details":
		switch string(name) {
		case "reasoning_tokens", "text_tokens":
			return "", ""
		case "audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens":
			return canon.NoEquivalent, ""
		}
	}
	return canon.NotKnown, ""
}
