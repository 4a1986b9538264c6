package dialecttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// Difference is something that two answers do not both say. Name is one of parts, order, arguments, logprobs, logprobs.textless, usage.prompt,
// usage.completion, usage.cached, usage.cache_write, usage.reasoning, usage.total, stop, stop.sequence and failed. Order is that all texts and all calls
// are the same and only stand differently; arguments is that the arguments of a call are no JSON and the other side has an empty object;
// logprobs.textless is that logprobs have no text which they could be of.
type Difference struct{ Name, Detail string }

func (d Difference) String() string { return d.Name + ": " + d.Detail }

// Differences compares what was said with what was heard, as far as a dialect has words for it. The following is not compared: ids but those
// of calls, the model's name, native words, signatures; whether reasoning is a text or a summary; how texts are escaped; where one text
// ends and the next begins when they are neighbours; texts that are empty; the bytes of logprobs, which are those of the tokens; usage and logprobs of an answer
// without an end.
func Differences(said, heard *canon.Answer) []Difference {
	var ds []Difference
	add := func(name string, differ bool, said, heard any) {
		if differ {
			ds = append(ds, Difference{name, fmt.Sprintf("\n said %v\nheard %v", said, heard)})
		}
	}
	if name := differentParts(said, heard); name != "" {
		s, h := describeParts(said), describeParts(heard)
		add(name, true, strings.Join(s, "\n      "), strings.Join(h, "\n      "))
	}
	if ended := said.Stop.Reason != 0; !ended {
		x, y := *said, *heard
		x.Usage, y.Usage, x.Logprobs, y.Logprobs = canon.Usage{}, canon.Usage{}, nil, nil
		said, heard = &x, &y
	}
	if x, y := describeLogprobs(said.Logprobs), describeLogprobs(heard.Logprobs); x != y {
		name := "logprobs"
		if y == "" && !slices.ContainsFunc(heard.Parts, func(p canon.Part) bool { return p.Type == canon.TextPart }) {
			name = "logprobs.textless"
		}
		add(name, true, x, y)
	}
	for _, c := range []struct {
		name        string
		said, heard int64
	}{
		{"usage.prompt", said.Usage.Prompt, heard.Usage.Prompt},
		{"usage.completion", said.Usage.Completion, heard.Usage.Completion},
		{"usage.cached", said.Usage.Cached, heard.Usage.Cached},
		{"usage.cache_write", said.Usage.CacheWrite, heard.Usage.CacheWrite},
		{"usage.reasoning", said.Usage.Reasoning, heard.Usage.Reasoning},
		{"usage.total", said.Usage.InAll(), heard.Usage.InAll()},
	} {
		// Where a dialect must name a number, nobody knows is 0.
		add(c.name, max(c.said, 0) != max(c.heard, 0), c.said, c.heard)
	}
	if x, y := said.Stop.Reason, heard.Stop.Reason; x != y {
		name := "stop"
		if x == canon.StopSequence && y == canon.StopEnd {
			name = "stop.sequence"
		}
		add(name, true, x, y)
	} else {
		add("stop.sequence", unquoted(said.Stop.Sequence) != unquoted(heard.Stop.Sequence), unquoted(said.Stop.Sequence), unquoted(heard.Stop.Sequence))
	}
	add("failed", differentFailures(said.Failed, heard.Failed), describeFailure(said.Failed), describeFailure(heard.Failed))
	return ds
}

// differ is Differences without those that are allowed.
func differ(said, heard *canon.Answer, allowed []string) []Difference {
	return slices.DeleteFunc(Differences(said, heard), func(d Difference) bool { return slices.Contains(allowed, d.Name) })
}

func differentFailures(said, heard *canon.Problem) bool {
	if said == nil || heard == nil {
		return said != heard
	}
	return said.Message != heard.Message || said.Status != 0 && said.Status/100 != heard.Status/100
}

func describeFailure(p *canon.Problem) string {
	if p == nil {
		return "no failure"
	}
	return fmt.Sprintf("%dxx %s", p.Status/100, p.Message)
}

func unquoted(t canon.Text) string { return string(jsonx.AppendUnquoted(nil, t)) }

func describeParts(a *canon.Answer) []string {
	var lines []string
	before := canon.PartType(0)
	text := func(t canon.PartType, word string, text canon.Text) {
		switch s := unquoted(text); {
		case s == "":
			return
		case before == t:
			lines[len(lines)-1] += s
		default:
			lines = append(lines, word+" "+s)
		}
		before = t
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Type {
		case canon.TextPart:
			text(p.Type, "text", p.Text)
		case canon.RefusalPart:
			text(p.Type, "refusal", p.Text)
		case canon.ReasoningPart:
			if len(p.Text) > 0 {
				text(p.Type, "reasoning", p.Text)
			} else {
				text(p.Type, "reasoning", p.Summary)
			}
		case canon.RedactedPart:
			lines, before = append(lines, "redacted"), p.Type
		case canon.CallPart:
			lines, before = append(lines, describeCall(&p.Call)), p.Type
		default:
			lines, before = append(lines, fmt.Sprintf("part of type %d: %s", p.Type, p.Raw)), p.Type
		}
	}
	return lines
}

// differentParts names how the parts of two answers differ, "" not at all.
func differentParts(said, heard *canon.Answer) string {
	s, h := describeParts(said), describeParts(heard)
	if slices.Equal(s, h) {
		return ""
	}
	if slices.Equal(byType(said), byType(heard)) {
		return "order"
	}
	mended := *said
	mended.Parts = slices.Clone(said.Parts)
	for i := range mended.Parts {
		if call := &mended.Parts[i].Call; !jsonx.Valid([]byte(unquoted(call.Arguments))) {
			call.Arguments = nil
		}
	}
	if slices.Equal(describeParts(&mended), h) {
		return "arguments"
	}
	return "parts"
}

// describeLogprobs are the entries without what dialects spell differently.
func describeLogprobs(raw []byte) string {
	var out []byte
	for it := jsonx.Array(raw); it.Next(); {
		entry := it.Value()
		token, _ := jsonx.Text(jsonx.Get(entry, "token"))
		out = fmt.Appendf(out, "%q %s, ", token, jsonx.Get(entry, "logprob"))
		if top := describeLogprobs(jsonx.Get(entry, "top_logprobs")); top != "" {
			out = fmt.Appendf(out, "of %s; ", top)
		}
	}
	return string(out)
}

// byType is what an answer says with its parts sorted by what they are.
func byType(a *canon.Answer) []string {
	sorted := *a
	sorted.Parts = slices.Clone(a.Parts)
	slices.SortStableFunc(sorted.Parts, func(x, y canon.Part) int { return int(x.Type) - int(y.Type) })
	return describeParts(&sorted)
}

func describeCall(c *canon.Call) string {
	arguments := strings.TrimSpace(unquoted(c.Arguments))
	if arguments == "" && !c.Custom {
		arguments = "{}"
	}
	return fmt.Sprintf("call %s %s.%s custom %v %s", unquoted(c.ID), unquoted(c.Namespace), unquoted(c.Name), c.Custom, arguments)
}

// differentJSON says where two values, read with json.Number, first differ; "" nowhere. What is null is absent.
func differentJSON(path string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		names := map[string]bool{}
		for name := range x {
			names[name] = true
		}
		for name := range y {
			names[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if d := differentJSON(path+"."+name, x[name], y[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			if d := differentJSON(fmt.Sprintf("%s[%d]", path, i), x[i], y[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if s, t := fmt.Sprintf("%T %v", a, a), fmt.Sprintf("%T %v", b, b); s != t {
		return fmt.Sprintf("%s: %s, %s", path, s, t)
	}
	return ""
}
