package proxy

import (
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// The record's half of the table "what happens when".
func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name     string
		s        situation
		f        answerFacts
		outcome  string
		category string
	}{
		{"a whole JSON answer", situationWhole, answerFacts{status: 200, bodySeen: true, object: true}, "ok", ""},
		{"a whole stream", situationWhole, answerFacts{status: 200, verdict: dialect.Complete, bodySeen: true, object: true}, "ok", ""},
		{"a Responses stream that ends incomplete", situationWhole, answerFacts{status: 200, verdict: dialect.Incomplete, bodySeen: true, object: true}, "ok", "incomplete"},
		{"an answer that is no JSON object", situationWhole, answerFacts{status: 200, bodySeen: true}, "ok", "capture_parse_error"},
		{"an empty answer", situationWhole, answerFacts{status: 204}, "ok", ""},
		{"400", situationWhole, answerFacts{status: 400, bodySeen: true, object: true}, "upstream_error", "client_error"},
		{"401", situationWhole, answerFacts{status: 401}, "upstream_error", "auth"},
		{"403", situationWhole, answerFacts{status: 403}, "upstream_error", "auth"},
		{"404", situationWhole, answerFacts{status: 404}, "upstream_error", "not_found"},
		{"408", situationWhole, answerFacts{status: 408}, "upstream_error", "timeout"},
		{"429", situationWhole, answerFacts{status: 429}, "upstream_error", "rate_limit"},
		{"500 that is no JSON: status beats the parse error", situationWhole, answerFacts{status: 500, bodySeen: true}, "upstream_error", "upstream_error"},
		{"504", situationWhole, answerFacts{status: 504}, "upstream_error", "timeout"},
		{"an error frame on 200", situationErrorFrame, answerFacts{status: 200, verdict: dialect.Failed}, "upstream_error", "upstream_error"},
		{"an error frame on 429", situationErrorFrame, answerFacts{status: 429, verdict: dialect.Failed}, "upstream_error", "rate_limit"},
		{"a stream without its terminal event", situationNoTerminal, answerFacts{status: 200}, "upstream_cut", "stream_truncated"},
		{"a stream of an error status", situationNoTerminal, answerFacts{status: 500}, "upstream_error", "upstream_error"},
		{"no head", situationUnavailable, answerFacts{status: 502}, "upstream_error", "connection"},
		{"broken inside", situationCut, answerFacts{status: 200}, "upstream_cut", "connection"},
		{"silence before the head", situationSilent, answerFacts{status: 504}, "upstream_timeout", "timeout"},
		{"silence inside", situationSilent, answerFacts{status: 200}, "upstream_timeout", "timeout"},
		{"the client has left", situationClientGone, answerFacts{status: 200}, "client_gone", "cancelled"},
		{"not supported", situationRefused, answerFacts{status: 501}, "refused", "upstream_error"},
		{"an unreadable request", situationRefused, answerFacts{status: 400}, "refused", "client_error"},
		{"the drain timeout", situationDrained, answerFacts{status: 200}, "aborted", "exception"},
		{"a panic", situationPanicked, answerFacts{status: 500}, "aborted", "exception"},
		{"required and not durable", situationNotDurable, answerFacts{}, "aborted", "exception"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := c.s.end(c.f), (ending{c.outcome, c.category}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// Words that rewrite uses too are written here once more, since this is the place where they are documented.
func TestCodesOfRewriteAreTheSame(t *testing.T) {
	for ours, theirs := range map[string]string{
		codeUpstreamInvalid: canon.CodeUpstreamInvalid, codeUnsupported: canon.CodeUnsupported, codeInvalidRequest: canon.CodeInvalid,
	} {
		if ours != theirs {
			t.Errorf("%s is %s in rewrite", ours, theirs)
		}
	}
}
