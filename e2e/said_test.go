package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/internal/jsonx"
	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/sse"
)

// said is what an answer says, whoever read it.
type said struct {
	Parts    []part
	Stop     string // in the words of the client's dialect, "" not ended
	Sequence string // the stop sequence that was met, where the dialect tells it
	Usage    usage
	Logprobs []logprob
}

// part is a text, a refusal, reasoning, a call, or something else, which is told by its type only.
type part struct {
	Kind          string
	Text, Summary string // of reasoning one or both; of the rest Text
	Sealed        bool
	ID, Name      string
	Arguments     string
}

// usage in canon's sense; what is not known is 0, as SDKs do not tell the two apart.
type usage struct{ Prompt, Completion, Cached, Reasoning int64 }

type logprob struct {
	Token   string
	Logprob float64
	Top     []logprob `json:"top_logprobs"`
}

// failure is why an answer failed, in the client's words.
type failure struct {
	Status                     int // 0: it came inside a stream
	Type, Code, Param, Message string
}

func unquoted(t canon.Text) string { return string(jsonx.AppendUnquoted(nil, t)) }

// saidOf puts a canonical answer into the form in which it is compared.
func saidOf(tb testing.TB, a *canon.Answer) said {
	tb.Helper()
	s := said{
		Stop: unquoted(a.Stop.Native), Sequence: unquoted(a.Stop.Sequence),
		Usage: usage{max(a.Usage.Prompt, 0), max(a.Usage.Completion, 0), max(a.Usage.Cached, 0), max(a.Usage.Reasoning, 0)},
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Type {
		case canon.TextPart:
			s.Parts = append(s.Parts, part{Kind: "text", Text: unquoted(p.Text)})
		case canon.RefusalPart:
			s.Parts = append(s.Parts, part{Kind: "refusal", Text: unquoted(p.Text)})
		case canon.ReasoningPart:
			s.Parts = append(s.Parts, part{Kind: "reasoning", Text: unquoted(p.Text), Summary: unquoted(p.Summary), Sealed: len(p.Signature) > 0})
		case canon.CallPart:
			kind := "call"
			if p.Call.Custom {
				kind = "custom call"
			}
			s.Parts = append(s.Parts, part{Kind: kind, ID: unquoted(p.Call.ID), Name: unquoted(p.Call.Name), Arguments: unquoted(p.Call.Arguments)})
		default:
			tb.Fatalf("a part of type %d: %s", p.Type, p.Raw)
		}
	}
	if a.Logprobs != nil {
		if err := json.Unmarshal(a.Logprobs, &s.Logprobs); err != nil {
			tb.Fatalf("logprobs: %v", err)
		}
	}
	return s
}

// tidy removes what no reader may care for: parts without a word, the spelling of a call without arguments, of an absent list.
func (s said) tidy() said {
	var parts []part
	for _, p := range s.Parts {
		switch p.Kind {
		case "text", "refusal":
			if p.Text == "" {
				continue
			}
		case "call":
			if strings.TrimSpace(p.Arguments) == "" {
				p.Arguments = "{}"
			}
		}
		parts = append(parts, p)
	}
	s.Parts = parts
	if len(s.Logprobs) == 0 {
		s.Logprobs = nil
	}
	for i := range s.Logprobs {
		if len(s.Logprobs[i].Top) == 0 {
			s.Logprobs[i].Top = nil
		}
	}
	return s
}

// flat is a Chat message: one reasoning, one text, one refusal, then the calls. That is all that its type in an SDK can say.
func (s said) flat() said {
	var reasoning, text, refusal part
	var calls []part
	for _, p := range s.Parts {
		switch p.Kind {
		case "reasoning":
			reasoning.Kind, reasoning.Text = p.Kind, reasoning.Text+p.Text+p.Summary
		case "text":
			text.Kind, text.Text = p.Kind, text.Text+p.Text
		case "refusal":
			refusal.Kind, refusal.Text = p.Kind, refusal.Text+p.Text
		default:
			calls = append(calls, p)
		}
	}
	s.Parts = nil
	for _, p := range []part{reasoning, text, refusal} {
		if p.Text != "" {
			s.Parts = append(s.Parts, p)
		}
	}
	s.Parts = append(s.Parts, calls...)
	return s
}

func equal(tb testing.TB, what string, want, got said) {
	tb.Helper()
	if d := cmp.Diff(want.tidy(), got.tidy()); d != "" {
		tb.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// decode reads a stream with a decoder of ours.
func decode(tb testing.TB, d dialect.Dialect, stream []byte) *canon.Answer {
	tb.Helper()
	policy := dialect.DefaultPolicy()
	decoder := d.NewDecoder(dialect.Options{Policy: &policy, ID: "x"})
	var (
		fold   canon.Folder
		split  sse.Splitter
		ev     sse.Event
		events []canon.Event
	)
	frame := func() {
		var err error
		if events, err = decoder.Frame(events[:0], ev.Name, ev.Data); err != nil {
			tb.Fatalf("our own decoder: %v in %q", err, ev.Data)
		}
		for i := range events {
			if err := fold.Event(&events[i]); err != nil {
				tb.Fatalf("our own folder: %v in %q", err, ev.Data)
			}
		}
	}
	split.Push(stream)
	for split.Next(&ev) {
		frame()
	}
	if split.Finish(&ev) {
		frame()
	}
	return fold.Answer()
}

// read reads a whole answer with a decoder of ours.
func read(tb testing.TB, d dialect.Dialect, body []byte) *canon.Answer {
	tb.Helper()
	policy := dialect.DefaultPolicy()
	a, err := d.ReadAnswer(body, dialect.Options{Policy: &policy, ID: "x"})
	if err != nil {
		tb.Fatalf("our own decoder: %v in %s", err, body)
	}
	return a
}

// translated is what a client is sent of a recorded stream.
type translated struct {
	wire   []byte         // whole, a failure event included
	failed *canon.Problem // why it failed
	opened bool           // the client was given something
}

// translate gives a stream to a client who sent this body, with keep-alives in front of it and inside it or without.
func translate(tb testing.TB, client, upstream dialect.Dialect, body, stream []byte, policy *rewrite.Policy, keepAlives bool) translated {
	tb.Helper()
	call := rewrite.Call{ID: "x", Created: 1700000000}
	if client.Name() == canon.Gemini { // which says it in the path
		call.Target = dialect.Target{Model: "m", Stream: true}
	}
	t := rewrite.NewTranslation(client, upstream, policy, call)
	if _, err := t.Request(body); err != nil {
		tb.Fatalf("the SDK's request is refused: %v\n%s", err, body)
	}
	s := t.NewStream(0)
	var wire []byte
	for len(stream) > 0 { // the frames of ours must not depend on how the upstream's are cut, and some are cut here
		if keepAlives {
			wire = append(wire, s.KeepAlive()...)
		}
		n := min(len(stream), 700)
		wire = append(wire, s.Push(stream[:n])...)
		stream = stream[n:]
	}
	wire = append(wire, s.Finish()...)
	if !s.Ended() {
		wire = append(wire, s.Fail(&canon.Problem{Status: 502, Code: cutCode, Message: "the upstream broke off its answer"})...)
	}
	return translated{wire, s.Failed(), s.Opened()}
}

// cutCode is of an answer whose upstream said nothing of why it ended.
const cutCode = "upstream_cut"
