package e2e

import (
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// Every recorded stream, to every client: the SDK folds what the client is sent to what we fold it to, and to what the upstream said.
func TestStreams(t *testing.T) {
	for _, x := range streams(t) {
		for _, c := range sdks() {
			t.Run(x.name+" to "+string(c.dialect()), func(t *testing.T) {
				policy := rewrite.DefaultPolicy()
				checkStream(t, c, &x, &policy, false)
			})
		}
	}
}

// What keeps a client waiting changes nothing that its SDK reads, in front of the first event and between any two.
func TestKeepAlives(t *testing.T) {
	for _, x := range streams(t) {
		for _, c := range sdks() {
			t.Run(x.name+" to "+string(c.dialect()), func(t *testing.T) {
				policy := rewrite.DefaultPolicy()
				checkStream(t, c, &x, &policy, true)
			})
		}
	}
}

// The three ways in which reasoning is shown to Responses clients.
func TestReasoningOutputs(t *testing.T) {
	reasoning := streamsOf(t, func(a *canon.Answer) bool {
		return slices.ContainsFunc(a.Parts, func(p canon.Part) bool { return p.Type == canon.ReasoningPart })
	})
	for _, output := range []string{"summary", "content", "both"} {
		for _, x := range reasoning {
			t.Run(x.name+" as "+output, func(t *testing.T) {
				policy := rewrite.DefaultPolicy()
				policy.ReasoningOutput = output
				checkStream(t, responsesSDK{}, &x, &policy, false)
			})
		}
	}
}

// A response that was cut is told to Codex, and by policy to others, as one that is complete.
func TestIncompleteEvents(t *testing.T) {
	for _, x := range streamsOf(t, func(a *canon.Answer) bool { return a.Stop.Reason == canon.StopLength }) {
		for _, event := range []string{"incomplete", "completed"} {
			t.Run(x.name+" as "+event, func(t *testing.T) {
				policy := rewrite.DefaultPolicy()
				policy.IncompleteEvent = event
				checkStream(t, responsesSDK{}, &x, &policy, false)
			})
		}
	}
}

// streamsOf are the streams whose answer is such a one.
func streamsOf(t *testing.T, such func(*canon.Answer) bool) []exchange {
	t.Helper()
	all := slices.DeleteFunc(streams(t), func(x exchange) bool { return !such(decode(t, translator(t, x.dialect), x.response)) })
	if len(all) < 5 {
		t.Fatalf("only %d streams", len(all))
	}
	return all
}

func checkStream(t *testing.T, c sdk, x *exchange, policy *rewrite.Policy, keepAlives bool) {
	client, upstream := translator(t, c.dialect()), translator(t, x.dialect)
	sent := translate(t, client, upstream, c.body(t, askOf(t, x)), x.response, policy, keepAlives)
	upstreamSaid := decode(t, upstream, x.response)
	if !sent.opened {
		if sent.failed == nil || len(sent.wire) > 0 {
			t.Fatalf("nothing was sent, and nothing failed")
		}
		return // the client gets an error with a status of its own, see TestErrors
	}
	got, failed := c.fold(t, sent.wire)
	ours := decode(t, client, sent.wire)
	checkFailure(t, failed, ours.Failed, sent.failed)
	checkSaid(t, c, got, ours, upstreamSaid, sent.failed != nil)
	if t.Failed() {
		t.Logf("the client was sent\n%s", sent.wire)
	}
}

// checkSaid compares what an application sees with what we think it sees, and with what the upstream said.
func checkSaid(t *testing.T, c sdk, got said, ours, upstream *canon.Answer, failed bool) {
	t.Helper()
	want := saidOf(t, ours)
	if c.dialect() == canon.Chat {
		want = want.flat()
	}
	if c.dialect() == canon.Gemini {
		want, got = want.valued(), got.valued()
	}
	if failed {
		// What was counted until an answer failed is not final: some dialects tell it, some readers leave it out.
		want.Usage, got.Usage = usage{}, usage{}
	}
	equal(t, "the SDK and we read the same", want, got)

	heard := saidOf(t, upstream).tidy().flat()
	for i := range heard.Parts {
		heard.Parts[i].Sealed = false
	}
	if c.dialect() == canon.Gemini {
		heard = heard.valued()
	}
	seen := got.tidy()
	for _, p := range seen.Parts {
		if p.Kind == "reasoning" && !p.Sealed && c.dialect() != canon.Chat && !failed {
			t.Errorf("reasoning has no seal: %+v", p)
		}
	}
	seen = seen.collapsed().flat()
	if c.dialect() == canon.Messages || c.dialect() == canon.Gemini || failed || c.dialect() == canon.Responses && !texts(seen) {
		// Messages and Gemini have no log probabilities here, Responses has them beside a text only; of an answer that failed nobody reads them.
		heard.Logprobs, seen.Logprobs = nil, nil
	}
	if failed {
		heard.Stop, heard.Sequence, heard.Usage = "", "", usage{}
		equal(t, "the SDK reads what the upstream said until it failed", heard, seen)
		return
	}
	heard.Stop = c.stopWord(upstream.Stop.Reason, upstream.Called())
	if c.dialect() != canon.Messages {
		heard.Sequence = ""
	}
	equal(t, "the SDK reads what the upstream said", heard, seen)
}

func texts(s said) bool {
	return slices.ContainsFunc(s.Parts, func(p part) bool { return p.Kind == "text" })
}

// collapsed has one text of reasoning that is shown as a summary, as text, or as both.
func (s said) collapsed() said {
	parts := make([]part, len(s.Parts))
	for i, p := range s.Parts {
		if p.Kind == "reasoning" {
			if p.Text != "" {
				p.Summary = ""
			}
			p.Sealed = false
		}
		parts[i] = p
	}
	s.Parts = parts
	return s
}

func checkFailure(t *testing.T, got *failure, ours, said *canon.Problem) {
	t.Helper()
	switch {
	case (got == nil) != (ours == nil) || (got == nil) != (said == nil):
		t.Errorf("failures: the SDK sees %+v, we see %+v, and it was %+v", got, ours, said)
	case got == nil:
	case got.Message != ours.Message || got.Message != said.Message && said.Code != cutCode:
		t.Errorf("failures: the SDK sees %q, we see %q, and it was %q", got.Message, ours.Message, said.Message)
	case got.Code != ours.Code && ours.Code != "" && got.Code != "":
		t.Errorf("failures: the SDK sees code %q, we see %q", got.Code, ours.Code)
	case strings.TrimSpace(got.Type+got.Code) == "":
		t.Errorf("a failure without type and code: %+v", *got)
	}
}
