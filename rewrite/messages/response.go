package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func (messages) ReadResponse(body []byte) dialect.Summary {
	var top [4][]byte
	jsonx.GetAll(body, []string{"model", "stop_reason", "usage", "error"}, top[:])
	s := summary(top[0], top[1], top[2])
	if e := top[3]; !jsonx.IsNull(e) {
		s.HasError, s.ErrorStatus = true, dialect.StatusOf(e)
	}
	return s
}

func summary(model, stop, usage []byte) dialect.Summary {
	s := dialect.Summary{Usage: readUsage(usage)}
	s.Model, _ = jsonx.Text(model)
	s.Finish, _ = jsonx.Text(stop)
	s.Finish = finish(s.Finish)
	return s
}

// finish says a stop_reason in Chat's words (dialects.md 1.10); a word that is not known stays as it is.
func finish(stop string) string {
	switch stop {
	case "end_turn", "stop_sequence", "pause_turn":
		return "stop"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return stop
}

// readUsage: input_tokens leaves out what was read from or written to the cache, our prompt count includes it (wire.md 3.1.2).
func readUsage(usage []byte) canon.Usage {
	u := canon.Usage{
		Prompt:     dialect.Count(jsonx.Get(usage, "input_tokens")),
		Completion: dialect.Count(jsonx.Get(usage, "output_tokens")),
		Cached:     dialect.Count(jsonx.Get(usage, "cache_read_input_tokens")),
		CacheWrite: dialect.Count(jsonx.Get(usage, "cache_creation_input_tokens")),
		Reasoning:  dialect.Count(jsonx.Get(jsonx.Get(usage, "output_tokens_details"), "thinking_tokens")),
	}
	for _, n := range [...]int64{u.Cached, u.CacheWrite} {
		if u.Prompt != canon.Unknown && n > 0 {
			if u.Prompt += n; u.Prompt < 0 { // the sum left the range of counts
				u.Prompt = canon.Unknown
			}
		}
	}
	return u
}

// countPlace tells what becomes of a member of usage (wire.md 3.1.2). How, where and how fast an answer was made only describes it.
func countPlace(at string, name []byte) (why canon.Reason, inside string) {
	switch at {
	case "usage":
		switch string(name) {
		case "output_tokens_details":
			return "", "usage.output_tokens_details"
		case "cache_creation":
			return "", "usage.cache_creation"
		case "server_tool_use":
			return "", "usage.server_tool_use"
		case "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "service_tier", "inference_geo", "speed":
			return "", ""
		}
	case "usage.output_tokens_details":
		if string(name) == "thinking_tokens" {
			return "", ""
		}
	case "usage.cache_creation":
		switch string(name) {
		case "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens":
			return canon.NoEquivalent, ""
		}
	case "usage.server_tool_use":
		switch string(name) {
		case "web_search_requests", "web_fetch_requests":
			return canon.NoEquivalent, ""
		}
	}
	return canon.NotKnown, ""
}
