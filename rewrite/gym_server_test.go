package rewrite_test

import (
	"encoding/json"
	"errors"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// throughServer compares a whole exchange through Gym's vLLM server with the same one here: what went upstream ("sent"), the status and what
// the client got ("got"). A stream is what it says.
func throughServer(t *testing.T, c gymCase) []string {
	var in struct {
		Path     string
		Request  json.RawMessage
		Status   int             `json:"upstream_status"`
		Body     json.RawMessage `json:"upstream_body"`
		Settings gymSettings     `json:"server_settings"`
	}
	var theirs struct {
		Sent   []any `json:"upstream_requests"`
		Status int
		Type   string `json:"content_type"`
		Body   json.RawMessage
	}
	if json.Unmarshal(c.Input, &in) != nil || json.Unmarshal(c.Output, &theirs) != nil {
		t.Fatalf("%s is no exchange", c.name)
	}
	policy := in.Settings.policy()
	client := map[string]canon.Dialect{"/v1/chat/completions": canon.Chat, "/v1/messages": canon.Messages, "/v1/responses": canon.Responses}[in.Path]
	s := served{status: in.Status, answer: in.Body}
	if client == canon.Chat { // bytes pass
		s.sent, _ = policy.Splice(in.Request, "served", canon.Chat, new(canon.Losses))
	} else {
		tr := rewrite.NewTranslation(translator(t, client), translator(t, canon.Chat), policy, rewrite.Call{ID: "1", Served: func(string) string { return "served" }})
		s.translated(t, tr, in.Request)
	}
	var all []string
	if s.sent == nil || len(theirs.Sent) == 0 {
		if (s.sent == nil) != (len(theirs.Sent) == 0) {
			all = append(all, "~sent")
		}
	} else {
		all = compare("sent", tidyRequest(theirs.Sent[0]), tidyRequest(anyJSON(t, s.sent)))
	}
	if theirs.Status != s.status {
		return append(all, "~status") // an answer and an error, or two errors, of which each has words of its own
	}
	heard := func(body []byte, streamed bool) any {
		if streamed {
			return tidyAnswer(folded(t, client, body))
		}
		return tidyAnswer(anyJSON(t, body))
	}
	body := theirs.Body
	var stream string
	if theirs.Type == "text/event-stream" && json.Unmarshal(body, &stream) == nil {
		body = []byte(stream)
	}
	return append(all, compare("got", heard(body, stream != ""), heard(s.answer, s.streamed))...)
}

// gymSettings are those of Gym's server that differ between the cases.
type gymSettings struct {
	Propagate    bool            `json:"propagate_context_overflow_errors"`
	TemplateArgs json.RawMessage `json:"chat_template_kwargs"`
}

// policy says the same as the settings do. Gym's vLLM server takes strict out of tools.
func (s *gymSettings) policy() *rewrite.Policy {
	policy := rewrite.DefaultPolicy()
	policy.StrictTools = "drop"
	if !s.Propagate {
		policy.ContextOverflow = "length"
	}
	if s.TemplateArgs != nil {
		policy.ExtraBody = rewrite.SetMember([]byte("{}"), "chat_template_kwargs", s.TemplateArgs)
	}
	return &policy
}

// served is an exchange: what the upstream was sent, and what the client got.
type served struct {
	sent, answer []byte
	status       int
	streamed     bool
}

// translated makes of what the upstream answered what the client gets.
func (s *served) translated(t *testing.T, tr *rewrite.Translation, request []byte) {
	t.Helper()
	upstream := s.answer
	refuse := func(err error) {
		var p *canon.Problem
		if !errors.As(err, &p) {
			t.Fatal(err)
		}
		s.status, s.answer = p.Status, tr.AppendProblem(nil, p)
	}
	var err error
	if s.sent, err = tr.Request(request); err != nil {
		refuse(err)
		return
	}
	s.streamed = tr.Streamed()
	if s.status >= 400 {
		p := tr.Problem(s.status, upstream)
		if !tr.Overflows(p) {
			refuse(p)
			return
		}
		if s.status = 200; s.streamed {
			s.answer = tr.NewStream(0).EmptyTurn()
		} else if s.answer, err = tr.EmptyTurn(); err != nil {
			refuse(err)
		}
		return
	}
	if s.streamed {
		s.answer, err = tr.NewStream(0).Whole(upstream)
	} else {
		s.answer, err = tr.Answer(upstream)
	}
	if err != nil {
		refuse(err)
	}
}
