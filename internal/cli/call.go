package cli

import (
	"math"
	"strconv"
	"time"

	"rolltap/internal/jsonx"
)

// call is what the commands know of one record. Unknown numbers are below 0. Its slices are parts of the line.
type call struct {
	id, dialect, model string
	upstreamDialect    string // "" when nothing was sent
	outcome            string // derived for records that another program wrote
	category, finish   string
	started, completed time.Time
	latency, ttft      time.Duration
	status             int64
	stream             bool
	prompt, completion int64
	cached, reasoning  int64
	localReason        string
	losses, truncated  []string
	request, response  []byte
	rawRequest, rawRes []byte // raw JSON strings, nil when absent
}

// readCall reads a record, which is valid JSON. Members that it lacks or that have another type are unknown.
func readCall(line []byte) call {
	c := call{latency: -1, ttft: -1, status: -1, prompt: -1, completion: -1, cached: -1, reasoning: -1}
	var own []byte
	for it := jsonx.Object(line); it.Next(); {
		switch v := it.Value(); string(it.Key()) {
		case "model_call_id":
			c.id, _ = jsonx.Text(v)
		case "dialect":
			c.dialect, _ = jsonx.Text(v)
		case "started_at":
			c.started = instant(v)
		case "completed_at":
			c.completed = instant(v)
		case "latency_ms":
			c.latency = millis(v)
		case "latency_ttft_ms":
			c.ttft = millis(v)
		case "status_code":
			c.status = number(v)
		case "error_category":
			c.category, _ = jsonx.Text(v)
		case "request":
			c.request = present(v)
		case "response":
			c.response = present(v)
		case "request_raw":
			c.rawRequest = present(v)
		case "response_raw":
			c.rawRes = present(v)
		case "local_response_reason":
			c.localReason, _ = jsonx.Text(v)
		case "rolltap":
			own = present(v)
		}
	}
	c.readOwn(own)
	for _, m := range [][]byte{c.response, jsonx.Get(own, "upstream"), c.request} {
		if c.model == "" {
			c.model = text(m, "model")
		}
	}
	return c
}

func (c *call) readOwn(own []byte) {
	if own == nil {
		c.guess()
		return
	}
	var usage []byte
	for it := jsonx.Object(own); it.Next(); {
		switch v := it.Value(); string(it.Key()) {
		case "outcome":
			c.outcome, _ = jsonx.Text(v)
		case "finish_reason":
			c.finish, _ = jsonx.Text(v)
		case "stream":
			c.stream = jsonx.Truthy(v)
		case "usage":
			usage = v
		case "upstream":
			c.upstreamDialect = text(v, "dialect")
		case "losses":
			for l := jsonx.Array(v); l.Next(); {
				c.losses = append(c.losses, text(l.Value(), "path")+" ("+text(l.Value(), "reason")+")")
			}
		case "truncated":
			for t := jsonx.Array(v); t.Next(); {
				s, _ := jsonx.Text(t.Value())
				c.truncated = append(c.truncated, s)
			}
		}
	}
	c.prompt = number(jsonx.Get(usage, "prompt_tokens"))
	c.completion = number(jsonx.Get(usage, "completion_tokens"))
	c.cached = number(jsonx.Get(usage, "cached_tokens"))
	c.reasoning = number(jsonx.Get(usage, "reasoning_tokens"))
}

// guess fills what rolltap's own member would say: another program wrote this record, in the same format without it.
func (c *call) guess() {
	c.outcome = "ok"
	switch c.category {
	case "", "incomplete", "capture_parse_error":
	case "cancelled":
		c.outcome = "client_gone"
	case "stream_truncated", "connection":
		c.outcome = "upstream_cut"
	case "timeout":
		c.outcome = "upstream_timeout"
	default:
		c.outcome = "upstream_error"
	}
	c.stream = jsonx.Truthy(jsonx.Get(c.request, "stream"))
	usage := jsonx.Get(c.response, "usage")
	switch c.dialect {
	case "chat":
		c.prompt, c.completion = number(jsonx.Get(usage, "prompt_tokens")), number(jsonx.Get(usage, "completion_tokens"))
		for it := jsonx.Array(jsonx.Get(c.response, "choices")); it.Next() && c.finish == ""; {
			c.finish = text(it.Value(), "finish_reason")
		}
	case "gemini":
		usage = jsonx.Get(c.response, "usageMetadata")
		c.prompt, c.completion = number(jsonx.Get(usage, "promptTokenCount")), number(jsonx.Get(usage, "candidatesTokenCount"))
		if it := jsonx.Array(jsonx.Get(c.response, "candidates")); it.Next() {
			c.finish = text(it.Value(), "finishReason")
		}
	default:
		c.prompt, c.completion = number(jsonx.Get(usage, "input_tokens")), number(jsonx.Get(usage, "output_tokens"))
		if c.dialect == "messages" && c.prompt >= 0 {
			// This dialect counts what came from or went into a cache beside its input tokens.
			for _, key := range []string{"cache_read_input_tokens", "cache_creation_input_tokens"} {
				c.prompt += max(0, number(jsonx.Get(usage, key)))
			}
		}
		c.finish = text(c.response, "stop_reason")
	}
}

func (c *call) failed() bool { return c.outcome != "ok" }

func present(raw []byte) []byte {
	if jsonx.IsNull(raw) {
		return nil
	}
	return raw
}

func number(raw []byte) int64 {
	if n, ok := jsonx.Int(raw); ok && n >= 0 {
		return n
	}
	return -1
}

func float(raw []byte) (float64, bool) {
	if jsonx.KindOf(raw) != jsonx.KindNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// instant reads Unix seconds; the zero time is unknown.
func instant(raw []byte) time.Time {
	f, ok := float(raw)
	if !ok || f <= 0 || f > 1e11 {
		return time.Time{}
	}
	return time.UnixMicro(int64(f * 1e6))
}

func millis(raw []byte) time.Duration {
	f, ok := float(raw)
	if !ok || f < 0 || f > 1e12 {
		return -1
	}
	return time.Duration(f * float64(time.Millisecond))
}

// text is a string member, "" when it is absent or no string.
func text(obj []byte, key string) string {
	s, _ := jsonx.Text(jsonx.Get(obj, key))
	return s
}
