package rewrite_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialecttest"
)

// stream draws the events of an answer that every dialect has words for. Its parts may overlap, or only calls with others.
func stream(t *rapid.T, texts bool) []canon.Event {
	text := func() canon.Text {
		words := rapid.SampledFrom([]string{"a", " b", `\n`, `\"`, `\\`, `\u00e9`, `\ud83d\ude00`, `\ud800`, "é", "", `</think>`, "data: x", `\u001b[31m`})
		return canon.Text(words.Draw(t, "text"))
	}
	arguments := func() canon.Text {
		return canon.Text(rapid.SampledFrom([]string{`{`, `\"a\":1`, ` `, `[`, `{\"a\": \"\\n\"`, "free text", ""}).Draw(t, "arguments"))
	}
	count := rapid.Int64Range(0, 5)
	usage := canon.Usage{Prompt: 10 + count.Draw(t, "prompt"), Completion: 10 + count.Draw(t, "completion"), Cached: count.Draw(t, "cached"),
		CacheWrite: canon.Unknown, Reasoning: canon.Unknown}
	events := []canon.Event{{Kind: canon.Start, ID: canon.Text("id"), Model: canon.Text("m"), Usage: canon.NoUsage()}}
	var types []canon.PartType
	var alive []int
	for range rapid.IntRange(0, 30).Draw(t, "steps") {
		kind := rapid.SampledFrom([]canon.Kind{canon.Ping, canon.Open, canon.Delta, canon.Delta, canon.Delta, canon.Close, canon.Counted}).Draw(t, "kind")
		e := canon.Event{Kind: kind}
		switch kind {
		case canon.Open:
			e.Part, e.Type = len(types), rapid.SampledFrom([]canon.PartType{canon.TextPart, canon.ReasoningPart, canon.CallPart}).Draw(t, "type")
			if e.Type == canon.CallPart {
				e.Call = canon.Call{ID: canon.Text(fmt.Sprintf("call_%d", e.Part)), Name: canon.Text("f")}
			} else if !texts && slices.ContainsFunc(alive, func(i int) bool { return types[i] != canon.CallPart }) {
				continue
			}
			types, alive = append(types, e.Type), append(alive, e.Part)
		case canon.Counted:
			e.Usage = usage
		case canon.Delta, canon.Close:
			if len(alive) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(alive)-1).Draw(t, "part")
			e.Part = alive[at]
			if kind == canon.Close {
				alive = slices.Delete(alive, at, at+1)
				if types[e.Part] == canon.CallPart && rapid.Bool().Draw(t, "whole") {
					// Arguments that are whole may be the end of a call, so nothing follows them.
					events = append(events, canon.Event{Kind: canon.Delta, Part: e.Part, Text: canon.Text("}")})
				}
			} else if e.Text = text(); types[e.Part] == canon.CallPart {
				e.Text = arguments()
			}
		}
		events = append(events, e)
	}
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		return append(events, canon.Event{Kind: canon.Fail, Problem: &canon.Problem{Status: 500, Message: "m"}})
	}
	for _, i := range alive {
		events = append(events, canon.Event{Kind: canon.Close, Part: i})
	}
	reason := rapid.SampledFrom([]canon.StopReason{canon.StopEnd, canon.StopLength, canon.StopFilter}).Draw(t, "reason")
	return append(events, canon.Event{Kind: canon.Counted, Usage: usage}, canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: reason}})
}

func TestAnyEvents(t *testing.T) {
	for _, d := range dialects(t) {
		t.Run(string(d.Name()), func(t *testing.T) {
			allowed, texts := unsaid(d.Name()), true
			if d.Name() == canon.Chat {
				// A chunk does not say which text or which reasoning it goes on with, and calls have a list of their own.
				allowed, texts = append(allowed, "order"), false
			}
			rapid.Check(t, func(rt *rapid.T) { dialecttest.Events(property{t, rt}, d, stream(rt, texts), allowed...) })
		})
	}
}

// property makes a failed check one that rapid shrinks.
type property struct {
	testing.TB
	t *rapid.T
}

func (p property) Helper()                           {}
func (p property) Errorf(format string, args ...any) { p.t.Errorf(format, args...) }
func (p property) Fatalf(format string, args ...any) { p.t.Fatalf(format, args...) }
