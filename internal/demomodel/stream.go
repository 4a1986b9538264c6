package demomodel

import (
	"strconv"

	"rolltap/internal/jsonx"
)

// streamer writes a reply as chunks.
type streamer struct {
	*reply
	hold       int
	usage      bool // a last chunk with the counts
	continuous bool // counts on every chunk
	shown      []int
	buf        []byte
}

func newStreamer(p *reply) *streamer {
	s := &streamer{reply: p, hold: holdBack(p.r), shown: make([]int, len(p.answers))}
	if o := p.r.StreamOptions; o != nil {
		s.usage = o.IncludeUsage
		s.continuous = o.IncludeUsage && o.ContinuousUsage
	}
	return s
}

// run sends every chunk through send, which returns false to end the stream, and
// calls step before each round of tokens. Choices take turns.
func (s *streamer) run(step func() bool, send func(data []byte) bool) bool {
	for i := range s.answers {
		if !send(s.role(i)) {
			return false
		}
	}
	for at, more := 0, true; more; at++ {
		more = false
		if !step() {
			return false
		}
		for i, a := range s.answers {
			if at >= len(a.ids) {
				continue
			}
			more = more || at+1 < len(a.ids)
			if data := s.delta(i, at); data != nil && !send(data) {
				return false
			}
		}
	}
	return !s.usage || send(s.counts())
}

func (s *streamer) begin(choice int) []byte {
	s.buf = s.head(s.buf[:0], "chat.completion.chunk")
	dst := append(s.buf, `,"choices":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	return append(dst, `,"delta":{`...)
}

func (s *streamer) role(choice int) []byte {
	dst := s.begin(choice)
	dst = append(dst, `"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	dst = s.soFar(dst, choice, 0)
	dst = append(dst, `,"prompt_token_ids":`...)
	dst = appendIDs(dst, s.prompt, s.r.ReturnTokenIDs)
	s.buf = append(dst, `,"prompt_text":null}`...)
	return s.buf
}

// delta writes the chunk of one id, nil when nobody would see anything in it:
// markup, or a part of a character, with neither ids nor logprobs asked for.
func (s *streamer) delta(choice, at int) []byte {
	a := s.answers[choice]
	last := at == len(a.ids)-1
	to := max(s.shown[choice], a.released(at, s.hold))
	pieces := a.between(s.shown[choice], to)
	s.shown[choice] = to
	if s.r.hidesReasoning() {
		kept := pieces[:0]
		for _, p := range pieces {
			if p.kind != reasoning {
				kept = append(kept, p)
			}
		}
		pieces = kept
	}
	if len(pieces) == 0 && !last && !s.r.wantsIDs() && !s.r.wantsLogprobs() {
		return nil
	}

	dst := s.begin(choice)
	dst = s.appendDelta(dst, choice, pieces)
	dst = append(dst, `},"logprobs":`...)
	if s.r.wantsLogprobs() {
		dst = s.logprobs(choice, false).append(dst, a, at, at+1)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"finish_reason":`...)
	if last {
		dst = append(dst, `"`+a.finish+`","stop_reason":`...)
		dst = s.stopReason(dst, a)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"token_ids":`...)
	dst = appendIDs(dst, a.ids[at:at+1], s.r.wantsIDs())
	dst = append(dst, `}]`...)
	dst = s.soFar(dst, choice, at+1)
	if last && !s.usage {
		dst = append(dst, `,"system_fingerprint":`+fingerprint...)
	}
	s.buf = append(dst, '}')
	return s.buf
}

// appendDelta writes the members of a delta. Content comes first whatever was
// said first, and it is null beside calls.
func (s *streamer) appendDelta(dst []byte, choice int, pieces []piece) []byte {
	var text, thoughts string
	var calls []byte
	open := -1 // call whose element is not closed yet
	for i, p := range pieces {
		switch p.kind {
		case content:
			text += p.text
		case reasoning:
			thoughts += p.text
		case callName:
			calls = s.element(calls, p.call, choice, p.text)
			open = p.call
		case arguments:
			if open != p.call {
				calls = s.element(calls, p.call, choice, "")
			} else {
				calls = append(calls, ',')
			}
			calls = append(calls, `"arguments":`...)
			calls = jsonx.AppendString(calls, p.text)
			open = p.call
		}
		if open >= 0 && (i+1 == len(pieces) || pieces[i+1].call != open) {
			calls = append(calls, `}}`...)
			open = -1
		}
	}
	first := true
	member := func(name string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, name...)
	}
	if text != "" {
		member(`"content":`)
		dst = jsonx.AppendString(dst, text)
	} else if calls != nil {
		member(`"content":null`)
	}
	if s.r.hidesReasoning() && len(pieces) > 0 {
		member(`"reasoning":null`)
	} else if thoughts != "" {
		member(`"reasoning":`)
		dst = jsonx.AppendString(dst, thoughts)
	}
	if calls != nil {
		member(`"tool_calls":[`)
		dst = append(dst, calls...)
		dst = append(dst, ']')
	}
	return dst
}

// element opens one element of tool_calls. The first of a call has its id and
// name and no arguments.
func (s *streamer) element(dst []byte, call, choice int, name string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, '{')
	if name != "" {
		dst = append(dst, `"id":"`+s.callID(choice, call)+`","type":"function",`...)
	}
	dst = append(dst, `"index":`...)
	dst = strconv.AppendInt(dst, int64(call), 10)
	dst = append(dst, `,"function":{`...)
	if name != "" {
		dst = append(dst, `"name":`...)
		dst = jsonx.AppendString(dst, name)
	}
	return dst
}

// soFar writes the counts of one choice after n ids, when every chunk has them.
func (s *streamer) soFar(dst []byte, choice, n int) []byte {
	if !s.continuous {
		return dst
	}
	dst = append(dst, `,"usage":`...)
	return s.reply.usage(dst, n, s.answers[choice].thought(n), false)
}

// counts writes the chunk that ends a stream with usage.
func (s *streamer) counts() []byte {
	completion, thought := s.totals()
	dst := s.head(s.buf[:0], "chat.completion.chunk")
	dst = append(dst, `,"choices":[],"usage":`...)
	dst = s.reply.usage(dst, completion, thought, false)
	s.buf = append(dst, `,"system_fingerprint":`+fingerprint+`}`...)
	return s.buf
}
