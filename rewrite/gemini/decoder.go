package gemini

import (
	"io"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// decoder reads a stream of chunks. Its state is which text is open: a chunk goes on with the one in front where that is of the same kind, and
// reasoning stays open until it is known whether the part behind it has its signature.
type decoder struct {
	losses *canon.Losses
	id     string // of the exchange

	begun, done bool
	parts       int
	kind        canon.PartType // of the open part, 0 none
	sealed      bool           // it is reasoning, and has its signature
	told        bool           // some usage was
	usage       canon.Usage
}

func (gemini) NewDecoder(o dialect.Options) dialect.Decoder {
	return &decoder{losses: o.Losses, id: o.ID}
}

func (d *decoder) Finish() error {
	if d.done {
		return nil
	}
	return io.ErrUnexpectedEOF
}

// ReadAnswer: a whole answer is a stream of one chunk.
func (gemini) ReadAnswer(body []byte, o dialect.Options) (*canon.Answer, error) {
	d := decoder{losses: o.Losses, id: o.ID}
	events, err := d.Frame(nil, nil, body)
	if err != nil {
		return nil, err
	}
	if !d.done {
		return nil, canon.Unreadable("the answer has no finish reason")
	}
	var f canon.Folder
	for i := range events {
		if err := f.Event(&events[i]); err != nil {
			return nil, canon.Unreadable("the answer is none: " + err.Error())
		}
	}
	return f.Answer(), nil
}

func (d *decoder) Frame(dst []canon.Event, _, data []byte) ([]canon.Event, error) {
	if d.done {
		return dst, nil
	}
	chunk, invalid := fold.Open(data)
	switch {
	case invalid:
		return dst, canon.Unreadable("an event is no JSON object")
	case chunk == nil:
		return dst, nil
	}
	if e := jsonx.Get(chunk, "error"); !jsonx.IsNull(e) {
		d.done = true
		return append(dst, canon.Event{Kind: canon.Fail, Problem: dialect.ReadError(0, e)}), nil
	}
	var candidates, feedback []byte
	start := canon.Event{Kind: canon.Start, Usage: canon.NoUsage()}
	for it := jsonx.Object(chunk); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(camel(it.Key())) {
		case "candidates":
			candidates = value
		case "promptFeedback":
			feedback = value
		case "modelVersion":
			start.Model, _ = jsonx.Interior(value)
		case "responseId":
			start.ID, _ = jsonx.Interior(value)
		case "usageMetadata":
			d.usage, d.told = readUsage(value), true
		case "createTime", "modelStatus":
		default:
			d.losses.Add(dialect.LossName(fold.Name(it.Key())), canon.NotKnown)
		}
	}
	if !d.begun {
		d.begun = true
		dst = append(dst, start)
	}
	var err error
	finish, some := canon.Text(nil), false
	for it := jsonx.Array(candidates); it.Next(); {
		if n, ok := jsonx.Int(jsonx.Get(it.Value(), "index")); ok && n != 0 || !ok && some {
			d.losses.Add("candidates[]", canon.NoEquivalent)
			continue
		}
		some = true
		if dst, finish, err = d.candidate(dst, it.Value()); err != nil {
			return dst, err
		}
	}
	switch {
	case len(finish) > 0:
		return d.end(dst, finish), nil
	case !some && blocked(feedback):
		return d.end(dst, canon.Text("SAFETY")), nil
	case !some:
		dst = append(dst, canon.Event{Kind: canon.Ping})
	}
	return dst, nil
}

func (d *decoder) candidate(dst []canon.Event, raw []byte) ([]canon.Event, canon.Text, error) {
	var content []byte
	var finish canon.Text
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch word := string(camel(it.Key())); word {
		case "content":
			content = value
		case "finishReason":
			finish, _ = jsonx.Interior(value)
		case "index", "tokenCount", "avgLogprobs", "safetyRatings", "finishMessage":
		case "citationMetadata", "groundingMetadata", "groundingAttributions", "urlContextMetadata", "logprobsResult":
			d.losses.Add("candidates[0]."+word, canon.NoEquivalent)
		default:
			d.losses.Add("candidates[0]."+dialect.LossName(fold.Name(it.Key())), canon.NotKnown)
		}
	}
	for it := jsonx.Array(jsonx.Get(content, "parts")); it.Next(); {
		var err error
		if dst, err = d.part(dst, it.Value()); err != nil {
			return dst, finish, err
		}
	}
	return dst, finish, nil
}

// said is a part of an answer, raw.
type said struct {
	text, call []byte
	thought    bool
	signature  canon.Text
	kind       canon.PartType
	strange    []byte // the name of a member that nobody knows
}

func readSaid(raw []byte) (p said) {
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(camel(it.Key())) {
		case "text":
			p.text, p.kind = value, canon.TextPart
		case "functionCall":
			p.call, p.kind = value, canon.CallPart
		case "thought":
			p.thought = string(value) == "true"
		case "thoughtSignature":
			if text, ok := jsonx.Interior(value); ok {
				p.signature = readSignature(text)
			}
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "inlineData", "fileData", "functionResponse":
			p.kind = canon.HostedPart
		default:
			p.strange = fold.Name(it.Key())
		}
	}
	switch {
	case p.kind == 0 && p.strange != nil:
		p.kind = canon.UnknownPart
	case p.kind == canon.TextPart && p.thought:
		p.kind = canon.ReasoningPart
	}
	return p
}

func (d *decoder) part(dst []canon.Event, raw []byte) ([]canon.Event, error) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return dst, canon.Unreadable("a part is no object")
	}
	p := readSaid(raw)
	text, ok := jsonx.Interior(p.text)
	if p.text != nil && !ok {
		return dst, canon.Unreadable("a part has a text that is none")
	}
	if len(p.signature) > 0 && p.kind != canon.ReasoningPart {
		dst = d.seal(dst, p.signature)
	}
	switch p.kind {
	case canon.TextPart, canon.ReasoningPart:
		if len(text) > 0 {
			if d.kind != p.kind || d.sealed {
				dst = append(d.close(dst), canon.Event{Kind: canon.Open, Part: d.parts, Type: p.kind})
				d.kind = p.kind
			}
			dst = append(dst, canon.Event{Kind: canon.Delta, Part: d.parts, Text: text})
		}
		if p.kind == canon.ReasoningPart && len(p.signature) > 0 {
			dst = d.seal(dst, p.signature)
		}
	case canon.CallPart:
		return d.call(d.close(dst), p.call)
	case canon.HostedPart, canon.UnknownPart:
		dst = append(d.close(dst), canon.Event{Kind: canon.Open, Part: d.parts, Type: p.kind, Raw: raw})
		d.kind = p.kind
		return d.close(dst), nil
	}
	if p.strange != nil {
		d.losses.Add(partPath(d.parts, dialect.LossName(p.strange)), canon.NotKnown)
	}
	return dst, nil
}

// seal gives the reasoning in front its signature. Where there is none in front it was not shown, and is told by its signature alone.
func (d *decoder) seal(dst []canon.Event, signature canon.Text) []canon.Event {
	if d.kind != canon.ReasoningPart || d.sealed {
		dst = append(d.close(dst), canon.Event{Kind: canon.Open, Part: d.parts, Type: canon.ReasoningPart})
		d.kind = canon.ReasoningPart
	}
	d.sealed = true
	return append(dst, canon.Event{Kind: canon.Seal, Part: d.parts, Text: signature, SignedBy: canon.Gemini})
}

func (d *decoder) call(dst []canon.Event, raw []byte) ([]canon.Event, error) {
	open := canon.Event{Kind: canon.Open, Part: d.parts, Type: canon.CallPart}
	arguments := canon.Text("{}")
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(camel(it.Key())) {
		case "id":
			open.Call.ID, _ = jsonx.Interior(value)
		case "name":
			open.Call.Name, _ = jsonx.Interior(value)
		case "args":
			if jsonx.KindOf(value) != jsonx.KindObject {
				return dst, canon.Unreadable("a call has arguments that are no object")
			}
			arguments = jsonx.AppendEscaped(nil, value)
		default:
			d.losses.Add(partPath(d.parts, dialect.LossName(fold.Name(it.Key()))), canon.NotKnown)
		}
	}
	if len(open.Call.Name) == 0 {
		return dst, dialect.Nameless()
	}
	if len(open.Call.ID) == 0 {
		open.Call.ID = dialect.AppendCallID(nil, d.id, d.parts)
	}
	d.kind = canon.CallPart
	dst = append(dst, open, canon.Event{Kind: canon.Delta, Part: d.parts, Text: arguments})
	return d.close(dst), nil
}

func (d *decoder) close(dst []canon.Event) []canon.Event {
	if d.kind == 0 {
		return dst
	}
	dst = append(dst, canon.Event{Kind: canon.Close, Part: d.parts})
	d.kind, d.sealed = 0, false
	d.parts++
	return dst
}

func (d *decoder) end(dst []canon.Event, finish canon.Text) []canon.Event {
	d.done = true
	dst = d.close(dst)
	if d.told {
		dst = append(dst, canon.Event{Kind: canon.Counted, Usage: d.usage})
	}
	stop := canon.Stop{Reason: stopReason(string(fold.Name(finish))), Native: finish}
	if stop.Reason == 0 {
		stop.Reason = canon.StopEnd
		d.losses.Add("candidates[0].finishReason", canon.NotKnown)
	}
	return append(dst, canon.Event{Kind: canon.Ended, Stop: stop})
}
