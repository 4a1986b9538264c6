package rewrite

import (
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// history makes the parts of all messages fit for the upstream. A message that has lost all its parts goes with them, and with what it has besides.
func (x *preparation) history() error {
	kept := make([]canon.Message, 0, len(x.r.Messages))
	var late []canon.Message // results that became text: behind the results that follow the same calls
	for i := range x.r.Messages {
		m := x.r.Messages[i]
		parts := make([]canon.Part, 0, len(m.Parts))
		for _, part := range m.Parts {
			if part.Path == "" {
				part.Path = m.Path
			}
			keep, err := x.part(&part)
			if err != nil {
				return err
			}
			if keep {
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 && len(m.Parts) > 0 {
			x.besides(&m)
			continue
		}
		m.Parts = parts
		if m.Role == canon.ToolRole {
			if len(parts) == 1 && parts[0].Type == canon.ResultPart && parts[0].Result.Custom && x.p.CustomTools == "drop" {
				late = append(late, resultAsText(m, &parts[0]))
				continue
			}
		} else {
			kept, late = append(kept, late...), nil
		}
		kept = append(kept, m)
	}
	x.r.Messages = append(kept, late...)
	return nil
}

// besides tells what a message has besides its parts as lost.
func (x *preparation) besides(m *canon.Message) {
	if m.Name != nil {
		x.l.Add(lostAt(m.Path, "name"), canon.NoEquivalent)
	}
	for i := range m.Extra {
		x.l.Add(lostAt(m.Extra[i].In(m.Path), plainText(m.Extra[i].Name)), canon.NotKnown)
	}
}

// part changes p, which is a copy, and tells whether anything is left of it.
func (x *preparation) part(p *canon.Part) (keep bool, err error) {
	if p.Type == canon.ReferencePart && !x.recall(p) {
		x.l.Add(lostAt(p.Path, "item_reference"), canon.Foreign)
		return false, nil
	}
	switch p.Type {
	case canon.ReasoningPart, canon.RedactedPart:
		return x.reasoning(p), nil
	case canon.CallPart:
		return true, x.pastCall(p)
	case canon.ResultPart:
		return true, x.result(p)
	case canon.ImagePart:
		return true, x.image(p)
	case canon.FilePart:
		p.Media.Parts, err = x.inner(p.Media.Parts, p.Path)
		return true, err
	case canon.HostedPart:
		if x.p.HostedHistory == "note" {
			*p = canon.Part{Type: canon.TextPart, Text: hostedNote(p.Raw), Path: p.Path}
			return true, nil
		}
		x.l.Add(lostAt(p.Path, typeOf(p.Raw)), canon.ByPolicy)
		return false, nil
	case canon.UnknownPart:
		x.l.Add(lostAt(p.Path, typeOf(p.Raw)), canon.NotKnown)
		return false, nil
	}
	return true, nil
}

// recall puts what is remembered in the place of a reference (dialects.md 3.8).
func (x *preparation) recall(p *canon.Part) bool {
	if x.c.Remembered == nil {
		return false
	}
	known, ok := x.c.Remembered(plainText(p.Text))
	if !ok || known.Type == canon.ReferencePart {
		return false
	}
	known.Path = p.Path
	*p = known
	return true
}

// reasoning opens a seal of ours and takes away what the upstream's family did not make (dialects.md 1.13).
func (x *preparation) reasoning(p *canon.Part) (keep bool) {
	switch s, ok := x.p.openSeal(p.Signature); {
	case ok:
		p.Type, p.Raw, p.Text, p.Summary, p.Signature, p.SignedBy = canon.ReasoningPart, nil, s.text, s.summary, s.signature, s.signedBy
		if s.redacted {
			p.Type = canon.RedactedPart
		}
	case len(p.Signature) == 0:
		p.Signature, p.SignedBy = nil, ""
	case p.SignedBy == "":
		p.SignedBy = x.r.From
	}
	said := len(p.Text) > 0 || len(p.Summary) > 0
	if p.Signature != nil && (p.SignedBy != x.to || isSeal(p.Signature)) {
		if p.Type == canon.RedactedPart {
			x.l.Add(lostAt(p.Path, x.reasoningName("redacted_thinking")), canon.Foreign)
			return false
		}
		x.l.Add(lostAt(p.Path, x.signatureName()), canon.Foreign)
		p.Signature, p.SignedBy = nil, ""
	}
	switch {
	case p.Type == canon.RedactedPart || p.Signature != nil:
		return true
	case !said:
		return false
	case x.to != canon.Messages:
		return true
	case x.p.UnsignedThinking == "drop":
		x.l.Add(lostAt(p.Path, x.reasoningName("thinking")), canon.ByPolicy)
		return false
	}
	p.Signature, p.SignedBy = x.p.mint(sealed{text: p.Text, summary: p.Summary}), canon.Messages
	return true
}

// reasoningName is how the client calls reasoning, or what it is called in Messages where the client speaks that.
func (x *preparation) reasoningName(other string) string {
	if x.r.From == canon.Messages {
		if other == "redacted_thinking" {
			return other
		}
		return "thinking"
	}
	return "reasoning"
}

func (x *preparation) signatureName() string {
	switch x.r.From {
	case canon.Responses, canon.Gemini:
		return x.r.From.Called("encrypted_content")
	}
	return "signature"
}

// pastCall gives an earlier call its name upstream, and a custom one the arguments of the function that it is there.
func (x *preparation) pastCall(p *canon.Part) error {
	c := &p.Call
	if c.Custom {
		switch {
		case x.p.CustomTools == "error":
			return canon.Unsupported(p.Path, "calls of custom tools are refused here")
		case x.p.CustomTools == "drop":
			x.l.Add(lostAt(p.Path, "custom_tool_call"), canon.ByPolicy)
			*p = canon.Part{Type: canon.TextPart, Text: callNote(c), Path: p.Path}
			return nil
		}
	}
	c.Name, c.Namespace = x.names.sent(c.Namespace, c.Name, c.Custom), nil
	if c.Custom && x.bridges() {
		c.Arguments, c.Custom, p.Raw = bridgeArguments(c.Arguments), false, nil
	}
	return nil
}

func (x *preparation) result(p *canon.Part) (err error) {
	if p.Result.Custom {
		if x.p.CustomTools == "error" {
			return canon.Unsupported(p.Path, "results of custom tools are refused here")
		}
		p.Result.Custom = !x.bridges()
	}
	p.Result.Parts, err = x.inner(p.Result.Parts, p.Path)
	return err
}

// inner makes the parts of a result or of a document fit. What nobody knows is kept there as its JSON text: it is what the model gets to
// see of the tool's work (dialects.md 1.7.3).
func (x *preparation) inner(parts []canon.Part, path string) ([]canon.Part, error) {
	if len(parts) == 0 {
		return parts, nil
	}
	parts = slices.Clone(parts)
	for i := range parts {
		p := &parts[i]
		if p.Path == "" {
			p.Path = path
		}
		var err error
		switch p.Type {
		case canon.ImagePart:
			err = x.image(p)
		case canon.FilePart:
			p.Media.Parts, err = x.inner(p.Media.Parts, p.Path)
		case canon.HostedPart, canon.UnknownPart:
			text, ok := jsonx.Interior(jsonx.Get(p.Raw, "text"))
			if !ok {
				text = jsonx.AppendEscaped(nil, p.Raw)
			}
			*p = canon.Part{Type: canon.TextPart, Text: text, Cache: p.Cache, Path: p.Path}
		}
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// image applies the policy for images.
func (x *preparation) image(p *canon.Part) error {
	switch x.p.Images {
	case "error":
		return canon.Unsupported(p.Path, "images are refused here")
	case "drop":
		name := typeOf(p.Raw)
		if name == "" {
			name = "image"
		}
		x.l.Add(lostAt(p.Path, name), canon.ByPolicy)
		*p = canon.Part{Type: canon.TextPart, Text: canon.Text("[image left out]"), Cache: p.Cache, Path: p.Path}
	}
	return nil
}
