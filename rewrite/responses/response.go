package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/dialect"
)

func (responses) ReadResponse(body []byte) dialect.Summary { return summary(body) }

func summary(body []byte) dialect.Summary {
	s := dialect.Summary{Finish: finish(body), Usage: readUsage(jsonx.Get(body, "usage"))}
	s.Model, _ = jsonx.Text(jsonx.Get(body, "model"))
	if e := jsonx.Get(body, "error"); !jsonx.IsNull(e) {
		s.HasError, s.ErrorStatus = true, dialect.StatusOf(e)
	}
	return s
}

// finish says status, reason and output in Chat's words (dialects.md 1.10). A response that is not at its end has none.
func finish(body []byte) string {
	switch status, _ := jsonx.Text(jsonx.Get(body, "status")); status {
	case "completed":
		for items := jsonx.Array(jsonx.Get(body, "output")); items.Next(); {
			switch kind, _ := jsonx.Text(jsonx.Get(items.Value(), "type")); kind {
			case "function_call", "custom_tool_call":
				return "tool_calls"
			}
		}
		return "stop"
	case "incomplete":
		switch reason, _ := jsonx.Text(jsonx.Get(jsonx.Get(body, "incomplete_details"), "reason")); reason {
		case "max_output_tokens":
			return "length"
		default:
			return reason
		}
	}
	return ""
}
