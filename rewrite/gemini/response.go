package gemini

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func (gemini) ReadResponse(body []byte) dialect.Summary {
	s := summary(get(body, "modelVersion"), first(get(body, "candidates")), get(body, "promptFeedback"), get(body, "usageMetadata"))
	if e := jsonx.Get(body, "error"); !jsonx.IsNull(e) {
		s.HasError, s.ErrorStatus = true, dialect.StatusOf(e)
	}
	return s
}

func first(list []byte) []byte {
	if it := jsonx.Array(list); it.Next() {
		return it.Value()
	}
	return nil
}

func summary(model, candidate, feedback, usage []byte) dialect.Summary {
	s := dialect.Summary{Usage: readUsage(usage)}
	s.Model, _ = jsonx.Text(model)
	reason, _ := jsonx.Text(get(candidate, "finishReason"))
	if reason == "" && blocked(feedback) {
		reason = "SAFETY"
	}
	called := false
	for it := jsonx.Array(jsonx.Get(get(candidate, "content"), "parts")); it.Next() && !called; {
		called = get(it.Value(), "functionCall") != nil
	}
	s.Finish = finish(reason, called)
	return s
}

// blocked tells that no answer was begun.
func blocked(feedback []byte) bool { return jsonx.Truthy(get(feedback, "blockReason")) }

// finish says a finishReason in Chat's words; one that is not known stays as it is.
func finish(reason string, called bool) string {
	switch stopReason(reason) {
	case canon.StopEnd:
		if called {
			return "tool_calls"
		}
		return "stop"
	case canon.StopLength:
		return "length"
	case canon.StopFilter:
		return "content_filter"
	}
	return reason
}

// stopReason is why the model stopped; 0: nobody knows the word.
func stopReason(word string) canon.StopReason {
	switch word {
	case "STOP":
		return canon.StopEnd
	case "MAX_TOKENS":
		return canon.StopLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return canon.StopFilter
	}
	return 0
}

// readUsage: promptTokenCount is the whole prompt, what was cached among it; thoughts are counted apart from the rest of the answer.
func readUsage(usage []byte) canon.Usage {
	u := canon.Usage{
		Prompt:     dialect.Count(get(usage, "promptTokenCount")),
		Completion: dialect.Count(get(usage, "candidatesTokenCount")),
		Cached:     dialect.Count(get(usage, "cachedContentTokenCount")),
		CacheWrite: canon.Unknown,
		Reasoning:  dialect.Count(get(usage, "thoughtsTokenCount")),
	}
	if u.Reasoning > 0 {
		if u.Completion = max(u.Completion, 0) + u.Reasoning; u.Completion < 0 { // the sum left the range of counts
			u.Completion = canon.Unknown
		}
	}
	return u.WithTotal(dialect.Count(get(usage, "totalTokenCount")))
}
