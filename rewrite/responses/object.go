package responses

import (
	"strconv"

	"rolltap/internal/grow"
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// object is the response object that a client is given: once in a unary answer, several times in a stream, each time with more in it
// (wire.md 3.2.3).
type object struct {
	o      dialect.Options
	asked  *canon.Request
	served canon.Text // the model as the upstream calls it, for who asked for none
	echo   []byte     // what the object repeats of the request, made once: requests of agents have 60 KiB
	items  []spoken
	places []int // of the parts, in items; notSaid for one that the client cannot be told
	usage  canon.Usage
}

const notSaid = -1

func newObject(asked *canon.Request, o dialect.Options) object {
	if asked == nil {
		asked = new(canon.Request)
	}
	return object{o: o, asked: asked, usage: canon.NoUsage()}
}

// outcome is how a response stands.
type outcome struct {
	status string // in_progress, completed, incomplete, failed
	reason string // why it is incomplete, "" null
	failed *canon.Problem
	again  bool // in progress, and items were told of already
}

// outcomeOf tells a stop in the words of this dialect (dialects.md 1.10). No word says that the provider paused its turn.
func outcomeOf(reason canon.StopReason) outcome {
	switch reason {
	case canon.StopLength, canon.StopContext:
		return outcome{status: "incomplete", reason: "max_output_tokens"}
	case canon.StopFilter:
		return outcome{status: "incomplete", reason: "content_filter"}
	case canon.StopPause:
		return outcome{status: "incomplete"}
	}
	return outcome{status: "completed"}
}

// append appends the object. While it is in progress it tells nothing that only the end knows: no output, no usage.
func (b *object) append(dst []byte, how outcome) []byte {
	dst = append(dst, `{"id":"resp_`...)
	dst = append(dst, b.o.ID...)
	dst = append(dst, `","object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, b.o.Created, 10)
	dst = append(dst, `,"status":"`...)
	dst = append(dst, how.status...)
	dst = append(dst, `","error":`...)
	dst = appendFailure(dst, how.failed)
	dst = append(dst, `,"incomplete_details":`...)
	if how.reason == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, `{"reason":"`...)
		dst = append(dst, how.reason...)
		dst = append(dst, `"}`...)
	}
	if b.echo == nil {
		b.echo = appendEcho(nil, b.asked, b.served)
	}
	if how.status != "in_progress" {
		dst = grow.Room(dst, b.size())
	}
	dst = append(dst, b.echo...)
	if how.again { // an empty output would take back what an accumulator has (openai-go)
		return append(dst, `,"usage":null}`...)
	}
	dst = append(dst, `,"output":[`...)
	if how.status == "in_progress" {
		return append(dst, `],"usage":null}`...)
	}
	for i := range b.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		status := "completed"
		if !b.items[i].closed {
			status = "incomplete"
		}
		dst = b.items[i].append(dst, status)
	}
	dst = append(dst, `],"usage":`...)
	dst = appendUsage(dst, b.usage)
	return append(dst, '}')
}

// size is about how long the object is at its end, in bytes.
func (b *object) size() int {
	n := len(b.echo) + 1<<10
	for i := range b.items {
		n += b.items[i].size()
	}
	return n
}

// appendFailure appends the error member. Clients act on the codes that they know (dialects.md 2.2.3), so the words of others become the
// nearest of the two that say by whose fault it was.
func appendFailure(dst []byte, p *canon.Problem) []byte {
	if p == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"code":"`...)
	dst = append(dst, failureCode(p)...)
	dst = append(dst, `","message":`...)
	dst = jsonx.AppendString(dst, dialect.OpenAIMessage(p))
	return append(dst, '}')
}

func failureCode(p *canon.Problem) string {
	switch p.Code {
	case "server_error", "rate_limit_exceeded", "invalid_prompt", "data_residency_mismatch", "bio_policy", "cyber_policy", "vector_store_timeout",
		"context_length_exceeded", "insufficient_quota", "usage_not_included", "server_is_overloaded", "slow_down":
		return p.Code
	}
	switch {
	case p.Status == 429:
		return "rate_limit_exceeded"
	case p.Status >= 400 && p.Status < 500 && p.Status != 408 && p.Status != 409:
		return "invalid_prompt"
	}
	return "server_error"
}

// appendUsage: all counts are integers, unknown ones 0, or Codex cannot read the event and opencode never ends (dialects.md 1.11,
// harness.md 2.11).
func appendUsage(dst []byte, u canon.Usage) []byte {
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, max(u.Prompt, 0), 10)
	dst = append(dst, `,"input_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, max(u.Cached, 0), 10)
	if u.CacheWrite >= 0 {
		dst = append(dst, `,"cache_write_tokens":`...)
		dst = strconv.AppendInt(dst, u.CacheWrite, 10)
	}
	dst = append(dst, `},"output_tokens":`...)
	dst = strconv.AppendInt(dst, max(u.Completion, 0), 10)
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, max(u.Reasoning, 0), 10)
	dst = append(dst, `},"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.InAll(), 10)
	return append(dst, '}')
}

// echoed are the members of a request that a response repeats, and what it says where the request had none.
var echoed = [...]struct{ name, absent string }{
	{"background", "false"}, {"instructions", "null"}, {"max_output_tokens", "null"}, {"max_tool_calls", "null"}, {"metadata", "{}"},
	{"parallel_tool_calls", "true"}, {"previous_response_id", "null"}, {"prompt_cache_key", "null"},
	{"reasoning", `{"effort":null,"summary":null}`}, {"safety_identifier", "null"}, {"service_tier", `"auto"`}, {"store", "true"},
	{"temperature", "null"}, {"text", `{"format":{"type":"text"}}`}, {"tool_choice", `"auto"`}, {"tools", "[]"}, {"top_logprobs", "null"},
	{"top_p", "null"}, {"truncation", `"disabled"`}, {"user", "null"},
}

// Repeats implements dialect.Repeater.
func (responses) Repeats() []string {
	names := echoedNames()
	return names[:]
}

func echoedNames() (names [len(echoed)]string) {
	for i := range echoed {
		names[i] = echoed[i].name
	}
	return names
}

// appendEcho appends the members that repeat the request, as the client sent them (dialects.md 1.4): `,"background":false,…`. Where it sent
// none they say what the API's own default is, or null where the upstream decides.
func appendEcho(dst []byte, asked *canon.Request, served canon.Text) []byte {
	names := echoedNames()
	var sent [len(echoed)][]byte
	if asked.From == canon.Responses {
		jsonx.GetAll(asked.Body, names[:], sent[:])
	}
	dst = append(dst, `,"model":"`...)
	if len(asked.Model) > 0 {
		served = asked.Model
	}
	dst = append(append(dst, served...), '"')
	for i := range echoed {
		dst = append(dst, `,"`...)
		dst = append(dst, echoed[i].name...)
		dst = append(dst, `":`...)
		if jsonx.IsNull(sent[i]) {
			dst = append(dst, echoed[i].absent...)
		} else {
			dst = jsonx.AppendCompact(dst, sent[i])
		}
	}
	return dst
}
