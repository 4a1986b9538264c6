package canon

// Replay gives the events of a stream that says the whole answer: Start, then part by part Open, one Delta (of reasoning one for the text
// and one for the summary), Seal, Cite and Close, then Counted if something was counted, then Ended or Fail, or neither for an answer that
// has no end. It stops at the first error of yield and returns it. The events borrow from the answer, and each only until yield returns.
//
// Folding them gives the answer again, but for what no event says: Extra, Path and Cache.
func (a *Answer) Replay(yield func(*Event) error) error {
	start := Event{Kind: Start, ID: a.ID, Model: a.Model, Created: a.Created, Usage: a.Usage}
	// What was said is not known at the start of a stream.
	start.Usage.Completion, start.Usage.Reasoning, start.Usage.Total = Unknown, Unknown, 0
	if err := yield(&start); err != nil {
		return err
	}
	entries := a.logprobsPart()
	for i := range a.Parts {
		var logprobs Raw
		if i == entries {
			logprobs = a.Logprobs
		}
		if err := a.Parts[i].replay(i, logprobs, yield); err != nil {
			return err
		}
	}
	if a.Usage != NoUsage() {
		if err := yield(&Event{Kind: Counted, Usage: a.Usage}); err != nil {
			return err
		}
	}
	switch {
	case a.Failed != nil:
		return yield(&Event{Kind: Fail, Problem: a.Failed})
	case a.Stop.Reason != 0:
		return yield(&Event{Kind: Ended, Stop: a.Stop})
	}
	return nil
}

// logprobsPart is the part whose delta carries the logprobs of all, -1 none.
func (a *Answer) logprobsPart() int {
	if a.Logprobs == nil {
		return -1
	}
	for i := range a.Parts {
		if a.Parts[i].Type == TextPart && a.Parts[i].Text != nil {
			return i
		}
	}
	for i := range a.Parts {
		if p := &a.Parts[i]; p.text() != nil || p.Type == ReasoningPart && p.Summary != nil {
			return i
		}
	}
	return -1
}

// text is what a delta of the part adds to, except to a summary; nil none.
func (p *Part) text() Text {
	switch p.Type {
	case TextPart, RefusalPart, ReasoningPart:
		return p.Text
	case CallPart:
		return p.Call.Arguments
	}
	return nil
}

func (p *Part) replay(i int, logprobs Raw, yield func(*Event) error) error {
	open := Event{Kind: Open, Part: i, Type: p.Type, ItemID: p.ItemID, Raw: p.Raw}
	switch p.Type {
	case CallPart:
		open.Call = p.Call
		open.Call.Arguments = nil
	case RedactedPart:
		open.Text, open.SignedBy = p.Signature, p.SignedBy
	}
	if err := yield(&open); err != nil {
		return err
	}
	if text := p.text(); text != nil {
		if err := yield(&Event{Kind: Delta, Part: i, Text: text, Logprobs: logprobs}); err != nil {
			return err
		}
		logprobs = nil
	}
	if p.Type == ReasoningPart && p.Summary != nil {
		if err := yield(&Event{Kind: Delta, Part: i, Text: p.Summary, Summary: true, Logprobs: logprobs}); err != nil {
			return err
		}
	}
	if p.Type == ReasoningPart && (p.Signature != nil || p.SignedBy != "") {
		if err := yield(&Event{Kind: Seal, Part: i, Text: p.Signature, SignedBy: p.SignedBy}); err != nil {
			return err
		}
	}
	for _, raw := range p.Cites {
		if err := yield(&Event{Kind: Cite, Part: i, Raw: raw}); err != nil {
			return err
		}
	}
	return yield(&Event{Kind: Close, Part: i})
}
