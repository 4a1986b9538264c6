package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// loseRest tells as lost what is said beside the counts, and beside the reason why the response is incomplete.
func (r *response) loseRest(losses *canon.Losses) {
	dialect.LoseRest(r.usage, "usage", besidePlace, losses)
	dialect.LoseRest(r.details, "incomplete_details", besidePlace, losses)
}

// besidePlace tells what becomes of a member of usage or of incomplete_details (wire.md 3.2.3). vLLM's counts for each turn add up to the
// others, and of one turn they are the others (vllm.md 5).
func besidePlace(at string, name []byte) (why canon.Reason, inside string) {
	switch at {
	case "usage":
		switch string(name) {
		case "input_tokens_details":
			return "", "usage.input_tokens_details"
		case "output_tokens_details":
			return "", "usage.output_tokens_details"
		case "input_tokens", "output_tokens", "total_tokens":
			return "", ""
		}
	case "usage.input_tokens_details":
		switch string(name) {
		case "cached_tokens", "cache_write_tokens", "input_tokens_per_turn", "cached_tokens_per_turn":
			return "", ""
		}
	case "usage.output_tokens_details":
		switch string(name) {
		case "reasoning_tokens", "output_tokens_per_turn", "tool_output_tokens_per_turn":
			return "", ""
		case "tool_output_tokens":
			return canon.NoEquivalent, ""
		}
	case "incomplete_details":
		if string(name) == "reason" {
			return "", ""
		}
	}
	return canon.NotKnown, ""
}

// idleMember tells the members of a response that only describe it or repeat the request (wire.md 3.2.3; the penalties: vllm.md 5), or are for
// who runs the engine.
func idleMember(word string) bool {
	switch word {
	case "object", "completed_at", "instructions", "metadata", "output_text", "parallel_tool_calls", "temperature", "top_p", "tool_choice", "tools",
		"background", "conversation", "max_output_tokens", "max_tool_calls", "previous_response_id", "prompt", "prompt_cache_key",
		"prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "text", "top_logprobs", "truncation", "user",
		"presence_penalty", "frequency_penalty", "metrics", "kv_transfer_params", "billing":
		return true
	}
	return false
}

// extras are the members of an object that are neither known nor null.
func extras(dst []canon.Member, object []byte, known ...string) []canon.Member {
members:
	for it := jsonx.Object(object); it.Next(); {
		for _, word := range known {
			if string(it.Key()) == word {
				continue members
			}
		}
		if !jsonx.IsNull(it.Value()) {
			dst = append(dst, canon.Member{Name: it.Key(), Value: it.Value()})
		}
	}
	return dst
}

func messageExtras(dst []canon.Member, item []byte) []canon.Member {
	return extras(dst, item, "id", "type", "status", "role", "content")
}

// elementExtras are those of the elements of a list of texts, which lies in the item at a path.
func elementExtras(dst []canon.Member, list []byte, path, name string) []canon.Member {
	n := 0
	for it := jsonx.Array(list); it.Next(); n++ {
		from := len(dst)
		dst = extras(dst, it.Value(), "type", "text")
		for i := range dst[from:] {
			dst[from+i].Path = canon.At(path+"."+name, n)
		}
	}
	return dst
}

// loseMembers tells members as lost that nobody knows, at their own path or in their holder.
func loseMembers(losses *canon.Losses, members []canon.Member, holder string) {
	for i := range members {
		path := members[i].In(holder)
		if path != "" {
			path += "."
		}
		losses.Add(path+dialect.LossName(jsonx.Unquoted(members[i].Name)), canon.NotKnown)
	}
}
