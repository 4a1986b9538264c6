package derive

import (
	"strconv"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// Form says what of a Call is written.
type Form struct {
	Payloads bool // request, response, request_raw, response_raw
	Own      bool // the member rolltap, which the Gym record has not
}

// AppendJSON appends the derived record: its members in the order of the Gym record, nulls included. It has rests where the Call has.
func (c *Call) AppendJSON(dst []byte, form Form) []byte {
	member := func(name string, raw []byte) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), name...), `":`...)
		dst = appendRaw(dst, raw)
	}
	number := func(name string, n int64) {
		if n < 0 {
			member(name, nil)
			return
		}
		member(name, strconv.AppendInt(nil, n, 10))
	}
	dst = append(dst, '{')
	member("model_call_id", c.ID)
	member("response_id", c.ResponseID)
	member("client_session_id", c.SessionID)
	number("call_index", int64(c.Index))
	member("model_ref", c.ModelRef.appendJSON(nil))
	member("model", c.Model)
	member("dialect", c.Dialect)
	member("status_code", c.Status)
	member("response_status", c.ResponseStatus)
	member("finish_reason", c.Finish)
	member("upstream_attempted", c.UpstreamAttempted)
	member("response_source", c.Source)
	member("upstream_status_code", c.UpstreamStatus)
	member("local_response_reason", c.LocalReason)
	member("started_at", c.Started)
	member("completed_at", c.Completed)
	number("tokens_in", c.Tokens.In)
	number("tokens_out", c.Tokens.Out)
	number("tokens_reasoning", c.Tokens.Reasoning)
	number("tokens_total", c.Tokens.Total)
	if form.Payloads {
		p := c.bodies
		if p == nil {
			p = &payloads{c.Request, c.Response, c.RequestRaw, c.ResponseRaw}
		}
		for i, name := range payloadNames() {
			member(name, p[i])
		}
	}
	dst = append(dst, `,"tool_calls":`...)
	dst = c.appendToolCalls(dst)
	dst = append(dst, `,"reasoning_content":`...)
	dst = c.appendReasoning(dst)
	dst = append(dst, `,"cache_hit":`...)
	if c.Tokens.Cached < 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendBool(dst, c.Tokens.Cached > 0)
	}
	number("cached_tokens", c.Tokens.Cached)
	number("cache_creation_tokens", c.Tokens.CacheCreation)
	member("error_category", c.Category)
	member("latency_total_ms", c.Latency)
	member("latency_ttft_ms", c.TTFT)
	if form.Own {
		dst = append(dst, `,"rolltap":`...)
		dst = c.Own.appendJSON(dst)
	}
	return append(dst, '}')
}

// payloads are the bodies of a record, nil for null: request and response, and their texts.
type payloads [4][]byte

func payloadNames() [4]string { return [4]string{"request", "response", "request_raw", "response_raw"} }

// payloadsOf has rests for the bodies of a line that is cut.
func payloadsOf(l capture.Line) *payloads {
	var p payloads
	for i, name := range payloadNames() {
		want := jsonx.KindObject
		if i >= 2 {
			want = jsonx.KindString
		}
		if value, kind := l.Body(name); kind == want {
			p[i] = value
		}
	}
	return &p
}

func (r ModelRef) appendJSON(dst []byte) []byte {
	if r.Type == nil {
		return dst
	}
	dst = append(append(dst, `{"type":`...), r.Type...)
	dst = append(append(dst, `,"name":`...), r.Name...)
	return append(dst, '}')
}

func (o *Own) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"outcome":`...)
	dst = jsonx.AppendString(dst, o.Outcome)
	dst = append(dst, `,"finish_reason":`...)
	dst = appendKnown(dst, o.Finish)
	dst = append(dst, `,"stream":`...)
	dst = strconv.AppendBool(dst, o.Stream)
	dst = append(dst, `,"side":`...)
	dst = appendKnown(dst, string(o.Side))
	dst = append(dst, `,"losses":`...)
	if o.Losses == nil {
		dst = append(dst, "[]"...)
	} else {
		dst = append(dst, o.Losses...)
	}
	dst = append(dst, `,"truncated":`...)
	if o.Truncated == nil {
		dst = append(dst, "[]"...)
	} else {
		dst = append(dst, o.Truncated...)
	}
	dst = append(dst, `,"upstream_dialect":`...)
	dst = appendKnown(dst, o.Upstream)
	dst = append(dst, `,"usage":`...)
	dst = o.Usage.appendJSON(dst)
	dst = append(dst, `,"session":`...)
	dst = appendKnown(dst, o.Session)
	dst = append(dst, `,"agent":`...)
	dst = appendKnown(dst, o.Agent)
	dst = append(dst, `,"parent_agent":`...)
	dst = appendKnown(dst, o.Parent)
	return append(dst, '}')
}

func (u Usage) appendJSON(dst []byte) []byte {
	dst = appendCount(append(dst, `{"prompt_tokens":`...), u.Prompt)
	dst = appendCount(append(dst, `,"completion_tokens":`...), u.Completion)
	dst = appendCount(append(dst, `,"cached_tokens":`...), u.Cached)
	dst = appendCount(append(dst, `,"reasoning_tokens":`...), u.Reasoning)
	return append(dst, '}')
}

// appendKnown appends a string, null for an empty one.
func appendKnown(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return jsonx.AppendString(dst, s)
}

func appendCount(dst []byte, n int64) []byte {
	if n < 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}
