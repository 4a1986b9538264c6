package demomodel

import (
	"strconv"

	"rolltap/internal/jsonx"
)

// reply is what one request is answered with. It holds all choices, generated
// before the first byte is sent, and the members that every chunk repeats.
type reply struct {
	r       *request
	id      string
	created int64
	model   string
	seed    uint64 // of logprobs and call ids; from the prompt
	prompt  []int
	answers []*answer
}

const fingerprint = `"vllm-0.32.0-demo"`

// head writes the opening members of a chunk or a whole answer.
func (p *reply) head(dst []byte, object string) []byte {
	dst = append(dst, `{"id":`...)
	dst = jsonx.AppendString(dst, p.id)
	dst = append(dst, `,"object":"`+object+`","created":`...)
	dst = strconv.AppendInt(dst, p.created, 10)
	dst = append(dst, `,"model":`...)
	return jsonx.AppendString(dst, p.model)
}

func appendIDs(dst []byte, ids []int, wanted bool) []byte {
	if !wanted {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(id), 10)
	}
	return append(dst, ']')
}

// usage writes the counts. Whole answers have one member more.
func (p *reply) usage(dst []byte, completion, thought int, unary bool) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, int64(len(p.prompt)), 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, int64(len(p.prompt)+completion), 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, int64(completion), 10)
	if unary {
		dst = append(dst, `,"prompt_tokens_details":null`...)
	}
	dst = append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, int64(thought), 10)
	return append(dst, `}}`...)
}

// totals sums over the choices; the prompt counts once.
func (p *reply) totals() (completion, thought int) {
	for _, a := range p.answers {
		completion += len(a.ids)
		thought += a.thought(len(a.ids))
	}
	return completion, thought
}

func (p *reply) stopReason(dst []byte, a *answer) []byte {
	if a.stopReason == "" {
		return append(dst, "null"...)
	}
	return jsonx.AppendString(dst, a.stopReason)
}

// callID is the same for the same call of the same conversation, and different
// for every other call of it: the prompt grows.
func (p *reply) callID(choice, call int) string {
	const digits = "0123456789abcdef"
	id := []byte("chatcmpl-tool-")
	for n, h := 0, mix(p.seed, choice, call); n < 16; n, h = n+1, h>>4 {
		id = append(id, digits[h&15])
	}
	return string(id)
}

func (p *reply) logprobs(choice int, python bool) logprobWriter {
	return logprobWriter{seed: mix(p.seed, choice), top: p.r.topLogprobs(), python: python}
}

// unary writes the whole answer.
func (p *reply) unary() []byte {
	dst := p.head(nil, "chat.completion")
	dst = append(dst, `,"choices":[`...)
	for i, a := range p.answers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, `,"message":`...)
		dst = p.message(dst, i, a)
		dst = append(dst, `,"logprobs":`...)
		if p.r.wantsLogprobs() {
			dst = p.logprobs(i, true).append(dst, a, 0, len(a.ids))
		} else {
			dst = append(dst, "null"...)
		}
		dst = append(dst, `,"finish_reason":"`+a.finish+`","stop_reason":`...)
		dst = p.stopReason(dst, a)
		dst = append(dst, `,"token_ids":`...)
		dst = appendIDs(dst, a.ids, p.r.wantsIDs())
		dst = append(dst, `,"routed_experts":null}`...)
	}
	dst = append(dst, `],"service_tier":null,"system_fingerprint":`+fingerprint+`,"usage":`...)
	completion, thought := p.totals()
	dst = p.usage(dst, completion, thought, true)
	dst = append(dst, `,"prompt_logprobs":null,"prompt_token_ids":`...)
	dst = appendIDs(dst, p.prompt, p.r.ReturnTokenIDs)
	return append(dst, `,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

// message writes one choice's message.
func (p *reply) message(dst []byte, choice int, a *answer) []byte {
	var thoughts, text string
	calls := make([]string, 0, len(a.calls)) // arguments of those whose name is known
	for _, s := range a.between(0, len(a.text)) {
		switch s.kind {
		case reasoning:
			thoughts += s.text
		case content:
			text += s.text
		case callName:
			calls = append(calls, "")
		case arguments:
			calls[s.call] += s.text
		}
	}
	if a.openCall() >= 0 {
		// A call that was cut is no JSON, so the parser gives up and the whole
		// markup is content. In a stream it is a call with broken arguments.
		calls, text = nil, a.markup()
	}
	dst = append(dst, `{"role":"assistant","content":`...)
	switch {
	case len(calls) > 0 && text == afterThinking, text == "":
		dst = append(dst, "null"...)
	default:
		dst = jsonx.AppendString(dst, text)
	}
	dst = append(dst, `,"refusal":null,"annotations":null,"audio":null,"function_call":null`...)
	for i, args := range calls {
		if i == 0 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":"`+p.callID(choice, i)+`","type":"function","function":{"name":`...)
		dst = jsonx.AppendString(dst, a.calls[i].name)
		dst = append(dst, `,"arguments":`...)
		dst = jsonx.AppendString(dst, args)
		dst = append(dst, `}}`...)
	}
	if len(calls) > 0 {
		dst = append(dst, ']')
	}
	dst = append(dst, `,"reasoning":`...)
	if thoughts == "" || p.r.hidesReasoning() {
		dst = append(dst, "null"...)
	} else {
		dst = jsonx.AppendString(dst, thoughts)
	}
	return append(dst, '}')
}

// markup is all that was generated behind the thinking, special tokens as text.
func (a *answer) markup() string {
	var text []byte
	for i, id := range a.ids {
		switch {
		case i <= a.thinkTo && a.thinkTo > 0:
		case special(id):
			text = append(text, a.tok.piece(id)...)
		default:
			text = append(text, tokenText(a, i)...)
		}
	}
	return string(text)
}
