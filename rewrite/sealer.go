package rewrite

import (
	"slices"

	"rolltap/rewrite/canon"
)

// sealer gives every reasoning part a seal that the client's dialect can carry, in front of its end: clients drop reasoning without one, or
// send it back as text (harness.md 2.15). A seal that the upstream gave in another dialect is wrapped into ours, and so is a
// redacted part: it becomes reasoning of which only the seal is seen.
type sealer struct {
	p      *Policy
	client canon.Dialect
	open   []sealing // reasoning parts, one mostly
}

// sealing is an open reasoning part.
type sealing struct {
	part int
	done bool // it has a seal of the client's dialect
	said sealed
}

func (f *sealer) next(dst []canon.Event, e *canon.Event) ([]canon.Event, error) {
	switch e.Kind {
	case canon.Open:
		switch {
		case e.Type == canon.ReasoningPart:
			f.open = append(f.open, sealing{part: e.Part})
		case e.Type == canon.RedactedPart && e.SignedBy != f.client && len(e.Text) > 0:
			f.open = append(f.open, sealing{part: e.Part, said: sealed{signature: slices.Clone(e.Text), signedBy: e.SignedBy, redacted: true}})
			return append(dst, canon.Event{Kind: canon.Open, Part: e.Part, Type: canon.ReasoningPart, ItemID: e.ItemID}), nil
		}
	case canon.Delta:
		if s := f.find(e.Part); s != nil {
			if e.Summary {
				s.said.summary = appendText(s.said.summary, e.Text)
			} else {
				s.said.text = appendText(s.said.text, e.Text)
			}
		}
	case canon.Seal:
		s := f.find(e.Part)
		if s == nil {
			break
		}
		if len(e.Text) == 0 {
			return dst, nil
		}
		if e.SignedBy != "" && e.SignedBy != f.client {
			s.said.signature, s.said.signedBy = slices.Clone(e.Text), e.SignedBy
			return dst, nil
		}
		s.done = true
	case canon.Close:
		s := f.find(e.Part)
		if s == nil {
			break
		}
		if !s.done {
			dst = append(dst, canon.Event{Kind: canon.Seal, Part: e.Part, Text: f.p.mint(s.said), SignedBy: f.client})
		}
		f.open = slices.DeleteFunc(f.open, func(s sealing) bool { return s.part == e.Part })
	}
	return append(dst, *e), nil
}

func (f *sealer) find(part int) *sealing {
	for i := range f.open {
		if f.open[i].part == part {
			return &f.open[i]
		}
	}
	return nil
}

// appendText is append, but an empty text is not an absent one.
func appendText(dst, s canon.Text) canon.Text {
	if dst == nil {
		dst = canon.Text{}
	}
	return append(dst, s...)
}
