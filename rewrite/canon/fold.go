package canon

import (
	"bytes"
	"errors"
	"fmt"
)

// A Folder puts the events of one stream together into the answer that they say. It accepts exactly the grammar of the package comment
// and copies what it keeps. The zero Folder is ready; one goroutine at a time.
type Folder struct {
	begun, ended bool
	answer       Answer // without Parts and Logprobs
	parts        []folding
}

// folding is a part that arrives, or has arrived.
type folding struct {
	Part
	closed   bool
	logprobs []byte // the entries, without the brackets around them
}

// Event takes the next event. An error names the rule that the event breaks; the event then counts as not sent.
func (f *Folder) Event(e *Event) error {
	switch {
	case f.ended:
		return fmt.Errorf("%v after the end of the stream", e.Kind)
	case !f.begun && e.Kind != Start && e.Kind != Ping && e.Kind != Fail:
		return fmt.Errorf("%v before the start of the stream", e.Kind)
	}
	switch e.Kind {
	case Ping:
	case Start:
		return f.start(e)
	case Open:
		return f.open(e)
	case Delta, Seal, Cite, Close:
		p, err := f.part(e)
		if err != nil {
			return err
		}
		return p.event(e)
	case Counted:
		f.answer.Usage = e.Usage
	case Ended:
		return f.end(e)
	case Fail:
		if e.Problem == nil {
			return errors.New("fail without a problem")
		}
		problem := *e.Problem
		f.answer.Failed, f.ended = &problem, true
	default:
		return fmt.Errorf("event of %v", e.Kind)
	}
	return nil
}

func (f *Folder) start(e *Event) error {
	if f.begun {
		return errors.New("second start of the stream")
	}
	f.begun = true
	f.answer.ID, f.answer.Model, f.answer.Created, f.answer.Usage = owned(e.ID), owned(e.Model), owned(e.Created), e.Usage
	return nil
}

func (f *Folder) end(e *Event) error {
	if e.Stop.Reason == 0 {
		return errors.New("end without a reason")
	}
	for i := range f.parts {
		if !f.parts[i].closed {
			return fmt.Errorf("end while part %d is open", i)
		}
	}
	f.answer.Stop = Stop{e.Stop.Reason, owned(e.Stop.Sequence), owned(e.Stop.Native)}
	f.ended = true
	return nil
}

func (f *Folder) open(e *Event) error {
	if e.Part != len(f.parts) {
		return fmt.Errorf("part %d opened as number %d", e.Part, len(f.parts))
	}
	p := Part{Type: e.Type, ItemID: owned(e.ItemID), Raw: owned(e.Raw)}
	switch e.Type {
	case TextPart, RefusalPart, ReasoningPart, HostedPart, UnknownPart:
	case RedactedPart:
		p.Signature, p.SignedBy = owned(e.Text), e.SignedBy
	case CallPart:
		p.Call = Call{ID: owned(e.Call.ID), Name: owned(e.Call.Name), Namespace: owned(e.Call.Namespace), Custom: e.Call.Custom}
	default:
		return fmt.Errorf("part %d of a type that no answer has: %d", e.Part, e.Type)
	}
	f.parts = append(f.parts, folding{Part: p})
	return nil
}

// part is the open part that an event is of.
func (f *Folder) part(e *Event) (*folding, error) {
	if e.Part < 0 || e.Part >= len(f.parts) {
		return nil, fmt.Errorf("%v of part %d, which was never opened", e.Kind, e.Part)
	}
	p := &f.parts[e.Part]
	if p.closed {
		return nil, fmt.Errorf("%v of part %d after its close", e.Kind, e.Part)
	}
	return p, nil
}

func (p *folding) event(e *Event) error {
	switch e.Kind {
	case Delta:
		return p.delta(e)
	case Seal:
		if p.Type != ReasoningPart {
			return fmt.Errorf("seal of part %d, which is no reasoning", e.Part)
		}
		p.Signature, p.SignedBy = owned(e.Text), e.SignedBy
	case Cite:
		p.Cites = append(p.Cites, owned(e.Raw))
	case Close:
		p.closed = true
	}
	return nil
}

func (p *folding) delta(e *Event) error {
	to := &p.Text
	switch {
	case e.Summary && p.Type != ReasoningPart:
		return fmt.Errorf("summary of part %d, which is no reasoning", e.Part)
	case e.Summary:
		to = &p.Summary
	case p.Type == CallPart:
		to = &p.Call.Arguments
	case p.Type != TextPart && p.Type != RefusalPart && p.Type != ReasoningPart:
		return fmt.Errorf("delta of part %d, which has no text", e.Part)
	}
	if e.Logprobs != nil {
		n := len(e.Logprobs)
		if n < 2 || e.Logprobs[0] != '[' || e.Logprobs[n-1] != ']' {
			return fmt.Errorf("logprobs of part %d are no array", e.Part)
		}
		p.logprobs = joinEntries(p.logprobs, e.Logprobs[1:n-1])
	}
	if *to == nil {
		*to = Text{} // a text that came is not an absent one, even if it is empty
	}
	*to = append(*to, e.Text...)
	return nil
}

// Answer is what was said so far. It may be called at any time; what it gave does not change when more events come.
func (f *Folder) Answer() *Answer {
	a := f.answer
	if !f.begun {
		a.Usage = NoUsage()
	}
	if len(f.parts) > 0 {
		a.Parts = make([]Part, len(f.parts))
	}
	// Bytes that were written are never written again, so the texts can be shared as long as nobody appends to them.
	var logprobs []byte
	for i := range f.parts {
		p := &f.parts[i]
		a.Parts[i] = p.Part
		a.Parts[i].Text, a.Parts[i].Summary = clip(p.Text), clip(p.Summary)
		a.Parts[i].Call.Arguments = clip(p.Call.Arguments)
		a.Parts[i].Cites = p.Cites[:len(p.Cites):len(p.Cites)]
		if p.logprobs != nil {
			logprobs = joinEntries(logprobs, p.logprobs)
		}
	}
	if logprobs != nil {
		a.Logprobs = append(append(Raw{'['}, logprobs...), ']')
	}
	return &a
}

// joinEntries appends the inside of one array to that of another.
func joinEntries(dst, entries []byte) []byte {
	if dst == nil {
		dst = []byte{}
	}
	if len(bytes.Trim(entries, " \t\r\n")) == 0 {
		return dst
	}
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, entries...)
}

// owned is a copy that keeps nil apart from empty.
func owned[T ~[]byte](b T) T {
	if b == nil {
		return nil
	}
	return append(T{}, b...)
}

func clip(t Text) Text { return t[:len(t):len(t)] }
