package responses

import (
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// spoken is one output item: a part of the answer, with what has been said of it so far.
type spoken struct {
	kind   canon.PartType
	closed bool
	place  int    // in output
	at     []byte // `,"item_id":"msg_1_0","output_index":0`
	id     []byte // the id in it
	call   canon.Call
	text   []byte // of a call its arguments
	// summary and hasContent: reasoning stands in summary, in content or in both. A part of one is there once something is said in it.
	summary    []byte
	hasContent bool
	last       source // of what was said last in summary
	seal       []byte // encrypted_content
	foreign    bool   // the signature is another dialect's
	cites      []byte // annotations with commas between them
	nCites     int
	logprobs   []byte // entries of an output_text part with commas between them
	raw        []byte // of an item of another type
}

// size is about how long the item is, in bytes.
func (s *spoken) size() int {
	return len(s.text) + len(s.summary) + len(s.seal) + len(s.cites) + len(s.logprobs) + len(s.raw) + len(s.call.Name) + 2*len(s.at) + 256
}

// source tells what a piece of a summary was for the upstream.
type source uint8

const (
	nothing source = iota
	reasoning
	summarised
)

// textRoom is the first room of a text that arrives in deltas.
const textRoom = 512

// open begins the item of a part and tells whether there is one: some parts have no place in a response.
func (b *object) open(part int, kind canon.PartType, call *canon.Call, raw canon.Raw) (*spoken, bool) {
	for len(b.places) <= part {
		b.places = append(b.places, notSaid)
	}
	s := spoken{kind: kind, place: len(b.items)}
	prefix := ""
	switch kind {
	case canon.TextPart, canon.RefusalPart:
		prefix = "msg_"
	case canon.ReasoningPart:
		prefix = "rs_"
	case canon.CallPart:
		s.call = canon.Call{ID: clone(call.ID), Name: clone(call.Name), Namespace: clone(call.Namespace), Custom: call.Custom}
		prefix = "fc_"
		if call.Custom {
			prefix = "ctc_"
		}
	case canon.HostedPart:
		word, _ := jsonx.Text(jsonx.Get(raw, "type"))
		if !hostedOutput(word) {
			b.lose(part, lostName(raw, "hosted_tool"), kind.LostWhy())
			return nil, false
		}
		s.raw = jsonx.AppendCompact(nil, raw)
	case canon.RedactedPart:
		b.lose(part, lostName(raw, "redacted_thinking"), kind.LostWhy())
		return nil, false
	default:
		b.lose(part, lostName(raw, "part"), kind.LostWhy())
		return nil, false
	}
	if prefix != "" {
		at := append(make([]byte, 0, 64+len(b.o.ID)), `,"item_id":"`...)
		from := len(at)
		at = append(append(append(at, prefix...), b.o.ID...), '_')
		at = strconv.AppendInt(at, int64(part), 10)
		s.id = at[from:len(at):len(at)]
		at = append(at, `","output_index":`...)
		s.at = strconv.AppendInt(at, int64(s.place), 10)
	}
	b.places[part] = len(b.items)
	b.items = append(b.items, s)
	return &b.items[len(b.items)-1], true
}

func clone(t canon.Text) canon.Text { return append(canon.Text(nil), t...) }

// lose notes that a part, or what belongs to it, does not reach the client. Its path is where it would be in the client's answer.
func (b *object) lose(part int, what string, why canon.Reason) {
	if b.o.Losses == nil {
		return
	}
	b.o.Losses.Add(canon.At("output", part)+"."+what, why)
}

// lostName is what a part that has no place here is called where it came from, else what the caller says.
func lostName(raw []byte, other string) string {
	if word, _ := jsonx.Interior(jsonx.Get(raw, "type")); len(word) > 0 {
		return dialect.LossName(word)
	}
	return other
}

// shows tells where the client finds reasoning that came as such; a summary that came as one is a summary (dialects.md 1.13).
func (b *object) shows() (summary, content bool) {
	switch b.o.Policy.ReasoningOutput {
	case "content":
		return false, true
	case "both":
		return true, true
	}
	return true, false
}

// gap is what stands in the summary in front of a piece from another source than the last: an empty line, escaped as in a JSON string.
func (s *spoken) gap(from source) string {
	before := s.last
	if s.last = from; before == nothing || before == from {
		return ""
	}
	return `\n\n`
}

// sign takes a signature. The client may have one that a Responses server made, or one of ours; the last one counts.
func (b *object) sign(s *spoken, text canon.Text, by canon.Dialect) {
	switch {
	case s.kind != canon.ReasoningPart:
	case by != "" && by != canon.Responses:
		s.seal, s.foreign = nil, true
	case b.asked.Show.Encrypted && len(text) > 0:
		s.seal, s.foreign = append(s.seal[:0], text...), false
	}
}

// cite takes an annotation and returns it as this dialect writes it, a part of s.cites; nil when it has no place here.
func (b *object) cite(part int, s *spoken, raw canon.Raw) []byte {
	word, _ := jsonx.Text(jsonx.Get(raw, "type"))
	nested := jsonx.Get(raw, "url_citation")
	switch {
	case s.kind != canon.TextPart:
		b.lose(part, "citations", canon.NoEquivalent)
		return nil
	case word == "url_citation" || word == "file_citation" || word == "container_file_citation" || word == "file_path":
	default:
		b.lose(part, "citations", canon.NoEquivalent)
		return nil
	}
	if s.nCites++; s.nCites > 1 {
		s.cites = append(s.cites, ',')
	}
	from := len(s.cites)
	if jsonx.KindOf(nested) != jsonx.KindObject {
		s.cites = jsonx.AppendCompact(s.cites, raw)
		return s.cites[from:]
	}
	// Chat nests what Responses has beside the type.
	s.cites = append(s.cites, `{"type":"url_citation"`...)
	for it := jsonx.Object(nested); it.Next(); {
		s.cites = append(s.cites, ',', '"')
		s.cites = append(s.cites, it.Key()...)
		s.cites = append(s.cites, '"', ':')
		s.cites = jsonx.AppendCompact(s.cites, it.Value())
	}
	s.cites = append(s.cites, '}')
	return s.cites[from:]
}

// append appends the item. In progress it has no content yet, and no summary or arguments either as long as nothing was said in them.
func (s *spoken) append(dst []byte, status string) []byte {
	switch s.kind {
	case canon.TextPart, canon.RefusalPart:
		dst = s.head(dst, "message", status)
		dst = append(dst, `,"role":"assistant","content":[`...)
		if status != "in_progress" {
			dst = s.appendPart(dst)
		}
		return append(dst, ']', '}')
	case canon.ReasoningPart:
		dst = s.head(dst, "reasoning", status)
		dst = append(dst, `,"summary":[`...)
		if s.last != nothing {
			dst = appendSimple(dst, "summary_text", s.summary)
		}
		dst = append(dst, ']')
		if s.hasContent {
			dst = append(dst, `,"content":[`...)
			dst = appendSimple(dst, "reasoning_text", s.text)
			dst = append(dst, ']')
		}
		dst = append(dst, `,"encrypted_content":`...)
		if s.seal == nil {
			return append(dst, "null}"...)
		}
		return append(append(append(dst, '"'), s.seal...), `"}`...)
	case canon.CallPart:
		kind, member := "function_call", `","arguments":"`
		if s.call.Custom {
			kind, member = "custom_tool_call", `","input":"`
		}
		dst = s.head(dst, kind, status)
		dst = append(dst, `,"call_id":"`...)
		dst = append(dst, s.call.ID...)
		if len(s.call.Namespace) > 0 {
			dst = append(dst, `","namespace":"`...)
			dst = append(dst, s.call.Namespace...)
		}
		dst = append(dst, `","name":"`...)
		dst = append(dst, s.call.Name...)
		dst = append(dst, member...)
		dst = append(dst, s.text...)
		return append(dst, `"}`...)
	}
	return append(dst, s.raw...)
}

func (s *spoken) head(dst []byte, kind, status string) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, s.id...)
	dst = append(dst, `","type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","status":"`...)
	dst = append(dst, status...)
	return append(dst, '"')
}

// appendPart appends the one content part of a message.
func (s *spoken) appendPart(dst []byte) []byte {
	if s.kind == canon.RefusalPart {
		dst = append(dst, `{"type":"refusal","refusal":"`...)
		dst = append(dst, s.text...)
		return append(dst, `"}`...)
	}
	dst = append(dst, `{"type":"output_text","text":"`...)
	dst = append(dst, s.text...)
	dst = append(dst, `","annotations":[`...)
	dst = append(dst, s.cites...)
	dst = append(dst, `],"logprobs":[`...)
	dst = append(dst, s.logprobs...)
	return append(dst, ']', '}')
}

func appendSimple(dst []byte, kind string, text []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","text":"`...)
	dst = append(dst, text...)
	return append(dst, `"}`...)
}

// AppendAnswer says what the stream of the same answer says at its end.
func (responses) AppendAnswer(dst []byte, a *canon.Answer, asked *canon.Request, o dialect.Options) ([]byte, error) {
	b := newObject(asked, o)
	b.usage, b.served = a.Usage, a.Model
	logprobs := a.Logprobs
	for i := range a.Parts {
		p := &a.Parts[i]
		s, ok := b.open(i, p.Type, &p.Call, p.Raw)
		if !ok {
			continue
		}
		s.closed = true
		switch p.Type {
		case canon.TextPart:
			s.text = p.Text
			if logprobs != nil && p.Text != nil && b.asked.Show.Logprobs {
				s.logprobs = appendItemEntries(nil, logprobs)
				logprobs = nil
			}
		case canon.RefusalPart:
			s.text = p.Text
		case canon.CallPart:
			s.text = p.Call.Arguments
		case canon.ReasoningPart:
			b.reason(i, s, p)
		}
		for _, raw := range p.Cites {
			b.cite(i, s, raw)
		}
	}
	how := outcomeOf(a.Stop.Reason)
	if a.Failed != nil {
		how = outcome{status: "failed", failed: a.Failed}
	} else {
		b.atLeastOne()
	}
	return b.append(dst, how), nil
}

// reason is what the deltas and seals of reasoning come to.
func (b *object) reason(part int, s *spoken, p *canon.Part) {
	summary, content := b.shows()
	if len(p.Text) > 0 && summary {
		s.summary = append(append(s.summary, s.gap(reasoning)...), p.Text...)
	}
	if len(p.Text) > 0 && content {
		s.text, s.hasContent = p.Text, true
	}
	if len(p.Summary) > 0 {
		s.summary = append(append(s.summary, s.gap(summarised)...), p.Summary...)
	}
	if p.Signature != nil {
		b.sign(s, p.Signature, p.SignedBy)
	}
	if s.foreign {
		b.lose(part, "signature", canon.Foreign)
	}
}

// atLeastOne adds the empty message that an answer without anything said is (dialects.md 1.4), and returns it.
func (b *object) atLeastOne() *spoken {
	if len(b.items) > 0 {
		return nil
	}
	s, _ := b.open(len(b.places), canon.TextPart, nil, nil)
	s.closed = true
	return s
}
