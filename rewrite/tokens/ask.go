package tokens

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// Wish is what a request asked for before token capture added to it.
type Wish struct {
	Streamed        bool // stream
	IDs             bool // return_token_ids
	Logprobs        bool // logprobs
	Usage           bool // stream_options.include_usage
	ContinuousUsage bool // stream_options.continuous_usage_stats

	// HiddenReasoning is include_reasoning: false. Engines that are told so hold back ids and log probabilities as well, of all tokens or of
	// some (vllm.md 1, 9), so it is not what they are told, and the client gets none of the three. Who asks for ids and log probabilities
	// itself is passed through as it asked (wire.md 5.1).
	HiddenReasoning bool
}

// hides tells that reasoning is taken out of the answer.
func (w *Wish) hides() bool { return w.HiddenReasoning && !w.IDs }

// The members of a Chat request that Ask looks at.
const (
	inReturnIDs = iota
	inLogprobs
	inTopLogprobs
	inN
	inStream
	inStreamOptions
	inIncludeReasoning
	asked
)

// Ask adds to a Chat request what token capture needs, and tells what the client itself had asked for. Every other byte stays; body, a valid
// JSON object, is not written to.
//
//	return_token_ids: true
//	logprobs: true, top_logprobs: 0 where the client's own would be refused, show more, or (null) switch log probabilities off
//	stream_options.include_usage: true, in a stream
//	include_reasoning: true in the place of false, which would hold back what was asked for
//
// A value of the wrong type is left for the upstream to judge, as it is without token capture. The error is a *canon.Problem: a request for
// several choices cannot be captured, and is not to be sent.
func Ask(body []byte) (sent []byte, w Wish, err error) {
	var in [asked][]byte
	jsonx.GetAll(body, []string{"return_token_ids", "logprobs", "top_logprobs", "n", "stream", "stream_options", "include_reasoning"}, in[:])
	if severalAsked(in[inN]) {
		return nil, w, canon.Unsupported("n", "several choices cannot be captured with their tokens: n must be 1")
	}
	w = Wish{
		Streamed:        string(in[inStream]) == "true",
		IDs:             wanted(in[inReturnIDs]),
		Logprobs:        wanted(in[inLogprobs]),
		HiddenReasoning: string(in[inIncludeReasoning]) == "false",
	}
	s := splicer{body: body}
	if !w.IDs {
		s.set("return_token_ids", in[inReturnIDs], "true")
	}
	if !w.Logprobs {
		s.set("logprobs", in[inLogprobs], "true")
	}
	if top := in[inTopLogprobs]; string(top) == "null" || top != nil && !w.Logprobs && string(top) != "0" {
		s.set("top_logprobs", top, "0")
	}
	options := in[inStreamOptions]
	if jsonx.KindOf(options) == jsonx.KindObject {
		w.Usage = wanted(jsonx.Get(options, "include_usage"))
		w.ContinuousUsage = wanted(jsonx.Get(options, "continuous_usage_stats"))
	}
	if w.Streamed && !w.Usage {
		switch jsonx.KindOf(options) {
		case jsonx.KindObject:
			s.setIn(options, "include_usage", "true")
		case jsonx.KindNull, jsonx.KindInvalid:
			s.set("stream_options", options, `{"include_usage":true}`)
		}
	}
	if w.HiddenReasoning && !(w.IDs && w.Logprobs) {
		s.set("include_reasoning", in[inIncludeReasoning], "true")
		w.IDs, w.Logprobs = false, false // which tell what was reasoned
	}
	return s.bytes(), w, nil
}

// wanted tells whether a switch is on, or is something that only the upstream can judge.
func wanted(raw []byte) bool { return !jsonx.IsNull(raw) && string(raw) != "false" }

// severalAsked tells whether n is more than 1, or may be read as more. No number, 0 and below are the upstream's to refuse.
func severalAsked(n []byte) bool {
	switch jsonx.KindOf(n) {
	case jsonx.KindNumber:
		f, err := strconv.ParseFloat(string(n), 64)
		return err != nil || f > 1
	case jsonx.KindString:
		return true // lenient servers read "2" as a number
	}
	return false
}

// splicer collects what is set in a JSON object.
type splicer struct {
	body  []byte
	edits []edit
	added []byte // members to be added to the object
}

// set gives a member, whose value now is old, nil when it is missing, another value.
func (s *splicer) set(name string, old []byte, with string) {
	if old != nil {
		from := cap(s.body) - cap(old) // a part of body, whose capacity runs to the same end
		s.edits = append(s.edits, edit{from: from, to: from + len(old), with: with})
		return
	}
	s.added = appendMember(s.added, name, with)
}

// setIn is set for a member of an object that is a value of the body.
func (s *splicer) setIn(object []byte, name, with string) {
	old := jsonx.Get(object, name)
	if old != nil {
		s.set(name, old, with)
		return
	}
	added := appendMember(nil, name, with)
	if it := jsonx.Object(object); it.Next() {
		added = append([]byte{','}, added...)
	}
	end := cap(s.body) - cap(object) + len(object) - 1
	s.edits = append(s.edits, edit{from: end, to: end, with: string(added)})
}

func appendMember(dst []byte, name, value string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = append(jsonx.AppendString(dst, name), ':')
	return append(dst, value...)
}

// bytes is the body with what was set.
func (s *splicer) bytes() []byte {
	if end := bytes.LastIndexByte(s.body, '}'); len(s.added) > 0 && end >= 0 {
		if it := jsonx.Object(s.body); it.Next() {
			s.added = append([]byte{','}, s.added...)
		}
		s.edits = append(s.edits, edit{from: end, to: end, with: string(s.added)})
	}
	slices.SortFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	return appendEdited(make([]byte, 0, len(s.body)+128), s.body, s.edits)
}
