package chat

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendAnswer writes a chat.completion that says what the encoder's stream would say: texts of one kind one behind the other. An answer
// that failed is an error, which has another body.
func (chat) AppendAnswer(dst []byte, a *canon.Answer, asked *canon.Request, o dialect.Options) ([]byte, error) {
	if a.Failed != nil {
		return dst, a.Failed
	}
	dst = append(dst, '{')
	dst = appendIdentity(dst, "chat.completion", a.ID, a.Model, a.Created, asked, o)
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	dst = appendTexts(dst, a.Parts, canon.TextPart)
	dst = append(dst, `,"refusal":`...)
	dst = appendTexts(dst, a.Parts, canon.RefusalPart)
	if hasPart(a.Parts, canon.ReasoningPart) {
		dst = append(dst, `,"reasoning_content":`...)
		dst = appendTexts(dst, a.Parts, canon.ReasoningPart)
	}
	dst = appendAnnotations(dst, a.Parts)
	dst = appendCalls(dst, a.Parts, asked)
	dst = append(dst, `},"logprobs":`...)
	dst = appendLogprobs(dst, a.Logprobs, asked)
	dst = append(append(dst, `,"finish_reason":"`...), toldFinish(a.Stop, a.Called(), asked)...)
	dst = appendUsage(append(dst, `"}],"usage":`...), a.Usage)
	loseParts(a, asked, o.Losses)
	return append(dst, '}'), nil
}

func hasPart(parts []canon.Part, kind canon.PartType) bool {
	for i := range parts {
		if parts[i].Type == kind {
			return true
		}
	}
	return false
}

// appendTexts appends the texts of a kind as one string, null where none is. Reasoning is its text, else its summary.
func appendTexts(dst []byte, parts []canon.Part, kind canon.PartType) []byte {
	if !hasPart(parts, kind) {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	for i := range parts {
		switch p := &parts[i]; {
		case p.Type != kind:
		case len(p.Text) > 0:
			dst = append(dst, p.Text...)
		default:
			dst = append(dst, p.Summary...)
		}
	}
	return append(dst, '"')
}

func appendAnnotations(dst []byte, parts []canon.Part) []byte {
	before := len(dst)
	for i := range parts {
		for _, raw := range parts[i].Cites {
			if !isAnnotation(raw) {
				continue
			}
			if len(dst) == before {
				dst = append(dst, `,"annotations":[`...)
			} else {
				dst = append(dst, ',')
			}
			dst = append(dst, raw...)
		}
	}
	if len(dst) > before {
		dst = append(dst, ']')
	}
	return dst
}

func appendCalls(dst []byte, parts []canon.Part, asked *canon.Request) []byte {
	before := len(dst)
	for i := range parts {
		if parts[i].Type != canon.CallPart {
			continue
		}
		if asked.Show.Legacy {
			return appendCallee(append(dst, `,"function_call":`...), &parts[i].Call, "arguments", parts[i].Call.Arguments)
		}
		if len(dst) == before {
			dst = append(dst, `,"tool_calls":[{`...)
		} else {
			dst = append(dst, ',', '{')
		}
		dst = appendCall(dst, &parts[i].Call, parts[i].Call.Arguments)
	}
	if len(dst) > before {
		dst = append(dst, ']')
	}
	return dst
}

// loseParts notes what was not written, under the paths that the encoder uses.
func loseParts(a *canon.Answer, asked *canon.Request, losses *canon.Losses) {
	calls := 0
	for i := range a.Parts {
		p := &a.Parts[i]
		for _, raw := range p.Cites {
			if !isAnnotation(raw) {
				losses.Add(answerPath(citeName(raw)), canon.NoEquivalent)
			}
		}
		switch p.Type {
		case canon.TextPart, canon.RefusalPart:
		case canon.CallPart:
			loseCall(&p.Call, calls, asked, losses)
			calls++
		case canon.ReasoningPart:
			if p.SignedBy != "" {
				losses.Add(reasoningPath(p.SignedBy.Called("encrypted_content")), canon.Foreign)
			}
			if len(p.Text) > 0 && len(p.Summary) > 0 {
				losses.Add(reasoningPath(reasoningName(true)), canon.NoEquivalent)
			}
		default:
			losses.Add(answerPath(partName(p.Type, p.Raw)), p.Type.LostWhy())
		}
	}
}
