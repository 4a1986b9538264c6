package gemini

import (
	"bytes"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendAnswer writes a GenerateContentResponse, which is what a folded stream of ours is:
//
//	{"candidates":[{"content":{"parts":[…],"role":"model"},"finishReason","index":0}],"modelVersion","responseId","usageMetadata":{…}}
//
// An answer that failed has no form here: it is the error that its Problem says.
func (gemini) AppendAnswer(dst []byte, a *canon.Answer, asked *canon.Request, o dialect.Options) ([]byte, error) {
	if a.Failed != nil {
		return dst, a.Failed
	}
	w := partWriter{asked: asked, losses: o.Losses}
	dst = append(dst, candidateFront...)
	first := len(dst)
	for i := range a.Parts {
		dst = w.part(dst, &a.Parts[i], i)
	}
	dst = w.end(dst)
	if len(dst) == first {
		dst = append(dst, emptyText...)
	}
	dst = append(dst, contentBack...)
	if a.Stop.Reason != 0 {
		dst = append(append(append(dst, `,"finishReason":"`...), finishWord(&a.Stop)...), '"')
	}
	dst = append(dst, candidateBack...)
	dst = appendHead(dst, o.ID, asked, a.Model)
	dst = appendUsage(dst, &a.Usage)
	return append(dst, '}'), nil
}

const (
	candidateFront = `{"candidates":[{"content":{"parts":[`
	contentBack    = `],"role":"model"}`
	candidateBack  = `,"index":0}],`
	emptyText      = `{"text":""}` // of an answer that says nothing: some clients need a part
)

// partWriter writes parts behind each other. Texts of one kind that follow each other are one, as they are in a stream.
type partWriter struct {
	asked  *canon.Request
	losses *canon.Losses
	seal   canon.Text // of the reasoning in front
	open   canon.PartType
	begun  bool // something was written
}

// hides tells that the client sees no reasoning.
func hides(asked *canon.Request) bool { return asked != nil && asked.Show.Unthought }

func (w *partWriter) part(dst []byte, p *canon.Part, n int) []byte {
	if len(p.Cites) > 0 {
		w.losses.Add(partPath(n, "annotations"), canon.NoEquivalent)
	}
	switch p.Type {
	case canon.TextPart, canon.RefusalPart:
		return w.text(dst, p.Text, canon.TextPart)
	case canon.ReasoningPart:
		said := p.Text
		switch {
		case len(said) == 0:
			said = p.Summary
		case len(p.Summary) > 0 && !hides(w.asked):
			w.losses.Add(partPath(n, "summary"), canon.NoEquivalent)
		}
		if !hides(w.asked) {
			dst = w.text(dst, said, canon.ReasoningPart)
		}
		return w.hold(dst, p.Signature, p.SignedBy, n)
	case canon.CallPart:
		dst = w.next(dst)
		dst = appendCall(dst, &p.Call, n, w.losses)
		return append(w.signed(dst), '}')
	}
	losePart(p.Type, p.Raw, n, w.losses)
	return dst
}

// text goes on with the text in front where that is of the same kind.
func (w *partWriter) text(dst []byte, text canon.Text, kind canon.PartType) []byte {
	if len(text) == 0 {
		return dst
	}
	if w.open == kind && w.seal == nil {
		return append(dst, text...)
	}
	if kind == canon.ReasoningPart && w.seal != nil {
		dst = w.alone(dst)
	}
	dst = w.next(dst)
	dst = append(dst, '{')
	if kind == canon.ReasoningPart {
		dst = append(dst, `"thought":true,`...)
	} else if w.seal != nil {
		dst = append(appendSignature(append(dst, `"thoughtSignature":"`...), w.seal), '"', ',')
		w.seal = nil
	}
	w.open = kind
	return append(append(dst, `"text":"`...), text...)
}

// next ends the text that is open, and begins another part.
func (w *partWriter) next(dst []byte) []byte {
	if w.open != 0 {
		dst, w.open = append(dst, '"', '}'), 0
	}
	if w.begun {
		dst = append(dst, ',')
	}
	w.begun = true
	return dst
}

// hold keeps the signature of reasoning for the part behind it.
func (w *partWriter) hold(dst []byte, seal canon.Text, by canon.Dialect, n int) []byte {
	if len(seal) == 0 {
		return dst
	}
	if !readable(by) {
		w.losses.Add(partPath(n, "signature"), canon.Foreign)
		return dst
	}
	if w.seal != nil {
		dst = w.alone(dst)
	}
	w.seal = seal
	return dst
}

// alone writes a signature that no part follows.
func (w *partWriter) alone(dst []byte) []byte {
	dst = append(w.next(dst), `{"text":""`...)
	return append(w.signed(dst), '}')
}

func (w *partWriter) signed(dst []byte) []byte {
	if w.seal != nil {
		dst = append(appendSignature(append(dst, `,"thoughtSignature":"`...), w.seal), '"')
		w.seal = nil
	}
	return dst
}

func (w *partWriter) end(dst []byte) []byte {
	if w.seal != nil {
		dst = w.alone(dst)
	}
	if w.open != 0 {
		dst, w.open = append(dst, '"', '}'), 0
	}
	return dst
}

// readable tells signatures that are this dialect's, or that rolltap made.
func readable(by canon.Dialect) bool { return by == canon.Gemini || by == "" }

// appendCall writes {"functionCall":{"id","name","args"} without its last brace.
func appendCall(dst []byte, c *canon.Call, n int, losses *canon.Losses) []byte {
	if len(c.Namespace) > 0 {
		losses.Add(partPath(n, "namespace"), canon.NoEquivalent)
	}
	dst = append(dst, `{"functionCall":{"id":"`...)
	dst = append(append(dst, c.ID...), `","name":"`...)
	dst = append(append(dst, c.Name...), `","args":`...)
	return append(appendArgs(dst, c, n, losses), '}')
}

// appendArgs writes arguments as the model wrote them, on one line. What is no JSON object has no place here. The text of a custom call is the one
// member of an object, as where custom tools are bridged.
func appendArgs(dst []byte, c *canon.Call, n int, losses *canon.Losses) []byte {
	if c.Custom {
		return append(append(append(dst, `{"input":"`...), c.Arguments...), '"', '}')
	}
	from := len(dst)
	dst = jsonx.AppendUnquoted(dst, c.Arguments)
	args := bytes.Trim(dst[from:], " \t\r\n")
	switch {
	case len(args) == 0:
	case args[0] == '{' && jsonx.Valid(args):
		for i, b := range args { // a line end can only be between tokens, and would end the line of an event
			if b == '\n' || b == '\r' {
				args[i] = ' '
			}
		}
		return append(dst[:from], args...) // moves it to the front
	default:
		losses.Add(partPath(n, "functionCall.args"), canon.NoEquivalent)
	}
	return append(dst[:from], '{', '}')
}

// finishWord: that a call was made is none of the reasons.
func finishWord(s *canon.Stop) string {
	switch s.Reason {
	case canon.StopLength, canon.StopContext:
		return "MAX_TOKENS"
	case canon.StopFilter:
		return "SAFETY"
	}
	return "STOP"
}

// appendHead writes the members that every chunk has. The model is the one that was asked for, whatever the upstream calls it.
func appendHead(dst []byte, id string, asked *canon.Request, served canon.Text) []byte {
	model := served
	if asked != nil && len(asked.Model) > 0 {
		model = asked.Model
	}
	dst = append(append(dst, `"modelVersion":"`...), model...)
	return append(append(append(dst, `","responseId":"`...), id...), '"')
}

// appendUsage writes the member usageMetadata; of an answer that told no usage there is none. What was reasoned is counted apart.
func appendUsage(dst []byte, u *canon.Usage) []byte {
	if *u == canon.NoUsage() {
		return dst
	}
	thoughts := min(max(u.Reasoning, 0), max(u.Completion, 0))
	dst = strconv.AppendInt(append(dst, `,"usageMetadata":{"promptTokenCount":`...), max(u.Prompt, 0), 10)
	dst = strconv.AppendInt(append(dst, `,"candidatesTokenCount":`...), max(u.Completion, 0)-thoughts, 10)
	if thoughts > 0 {
		dst = strconv.AppendInt(append(dst, `,"thoughtsTokenCount":`...), thoughts, 10)
	}
	if u.Cached > 0 {
		dst = strconv.AppendInt(append(dst, `,"cachedContentTokenCount":`...), u.Cached, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"totalTokenCount":`...), u.InAll(), 10)
	return append(dst, '}')
}

func losePart(kind canon.PartType, raw canon.Raw, n int, losses *canon.Losses) {
	name, ok := jsonx.Text(jsonx.Get(raw, "type"))
	if !ok {
		name = "part"
	}
	losses.Add(partPath(n, dialect.LossName([]byte(name))), kind.LostWhy())
}

// partPath is the path of a member of part n of the upstream's answer.
func partPath(n int, member string) string { return canon.At("parts", n) + "." + member }
