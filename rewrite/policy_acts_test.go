package rewrite

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

var updateActs = flag.Bool("update-acts", false, "write testdata/policy anew")

// actCase is one value of one key: where it acts, and what it is tried with. A pair is "client upstream"; a case that acts has to make a
// difference for each of its pairs, exactly the one that testdata/policy/<key>.txt says, and none for any other.
type actCase struct {
	key, value string
	clients    string // that it acts for, in words; "" all
	upstreams  string // that it acts toward; "" all
	same       string // dialects in which it acts where client and upstream speak the same one
	idle       string // why it does not act elsewhere
	requests   map[canon.Dialect]string
	answers    map[canon.Dialect]string // by the upstream's dialect; nil: the request alone is looked at
	refusal    string                   // what the upstream answers with status 400, in place of answers
	call       Call
	policy     func(*Policy) // what the key file holds, besides the value
}

func (c *actCase) acts(client, upstream canon.Dialect) bool {
	if client == upstream {
		return slices.Contains(strings.Fields(c.same), string(client))
	}
	in := func(words string, d canon.Dialect) bool {
		return words == "" || slices.Contains(strings.Fields(words), string(d))
	}
	return in(c.clients, client) && in(c.upstreams, upstream)
}

// upstreamDialects are those that --upstream-dialects takes.
func upstreamDialects() []canon.Dialect {
	return []canon.Dialect{canon.Chat, canon.Messages, canon.Responses}
}

// TestEveryKeyActsWhereItShould: each value of each key of `rewrite:`, with it and without, for every client and every upstream.
func TestEveryKeyActsWhereItShould(t *testing.T) {
	said := map[string]*strings.Builder{}
	for _, c := range actCases() {
		if said[c.key] == nil {
			said[c.key] = new(strings.Builder)
		}
		for _, client := range Dialects() {
			for _, upstream := range upstreamDialects() {
				without, with := DefaultPolicy(), c.changed(t)
				difference := differenceOf(c.try(t, client, upstream, &without), c.try(t, client, upstream, &with))
				name := fmt.Sprintf("%s: %s, %s to %s", c.key, c.value, client.Name(), upstream)
				switch acts := c.acts(client.Name(), upstream); {
				case acts && len(difference) == 0:
					t.Errorf("%s: nothing changes", name)
				case !acts && len(difference) > 0:
					t.Errorf("%s: something changes: %s", name, strings.Join(difference, "\n"))
				}
				if len(difference) > 0 {
					fmt.Fprintf(said[c.key], "%s\n  %s\n", name, strings.Join(difference, "\n  "))
				}
			}
		}
		if c.idle == "" && (c.clients != "" || c.upstreams != "") {
			t.Errorf("%s: %s: it is not told why it acts for some pairs only", c.key, c.value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(said)) {
		checkActs(t, filepath.Join("testdata/policy", key+".txt"), said[key].String())
	}
	files, err := os.ReadDir("testdata/policy")
	if err != nil || len(files) != len(said) {
		t.Errorf("testdata/policy has %d files for %d keys: %v", len(files), len(said), err)
	}
}

func checkActs(t *testing.T, file, got string) {
	t.Helper()
	if *updateActs {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	wants, gots := strings.SplitAfter(string(want), "\n"), strings.SplitAfter(got, "\n")
	for i := range min(len(wants), len(gots)) {
		if wants[i] != gots[i] {
			t.Errorf("%s:%d: want %s got %s", file, i+1, wants[i], gots[i])
			return
		}
	}
	t.Errorf("%s: %d lines, want %d", file, len(gots), len(wants))
}

// changed is the default policy with the case's value.
func (c *actCase) changed(t *testing.T) Policy {
	t.Helper()
	p, err := PolicyFromJSON(SetMember([]byte("{}"), c.key, []byte(c.value)))
	if err = errors.Join(err, p.Validate()); err != nil {
		t.Fatalf("%s: %s: %v", c.key, c.value, err)
	}
	if c.policy != nil {
		c.policy(&p)
	}
	return p
}

// try is what becomes of the case's exchange, in lines that name what they are about.
func (c *actCase) try(t *testing.T, client dialect.Dialect, upstream canon.Dialect, p *Policy) (lines []string) {
	t.Helper()
	request, ok := c.requests[client.Name()]
	if !ok {
		request = hello(client.Name())
	}
	if client.Name() == upstream {
		var l canon.Losses
		body, err := p.Splice([]byte(request), "", upstream, &l)
		if err != nil {
			return refusedLines(t, err)
		}
		return append(flatten(nil, "upstream", body), lossLines(l.List())...)
	}
	call := c.call
	call.ID, call.Target.Model = "x", "m"
	tr := NewTranslation(client, DialectOf(upstream), p, call)
	body, err := tr.Request([]byte(request))
	if err != nil {
		return refusedLines(t, err)
	}
	lines = flatten(nil, "upstream", body)
	switch answer := c.answers[upstream]; {
	case c.refusal != "":
		lines = append(lines, c.refused(t, client, tr)...)
	case answer != "":
		whole, err := tr.Answer([]byte(answer))
		if err != nil {
			t.Fatalf("%s: %s: %v", c.key, c.value, err)
		}
		lines = flatten(lines, "client", whole)
		lines = append(lines, c.streamed(t, client, upstream, request, answer, p)...)
	}
	return append(lines, lossLines(tr.Losses())...)
}

// refused is an error of the upstream, and the turn that may stand for it, whole and as a stream.
func (c *actCase) refused(t *testing.T, client dialect.Dialect, tr *Translation) []string {
	t.Helper()
	problem := tr.Problem(400, []byte(c.refusal))
	if !tr.Overflows(problem) {
		return flatten(nil, "client", tr.AppendProblem(nil, problem))
	}
	turn, err := tr.EmptyTurn()
	if err != nil {
		t.Fatal(err)
	}
	asked := *tr.asked
	asked.Stream, tr.asked = true, &asked
	wire := tr.NewStream(0).EmptyTurn()
	return append(flatten(nil, "client", turn), flatten(nil, "client's stream", []byte(dialecttest.Fold(client, wire).Response))...)
}

// streamed is the same answer as a stream: what the client's frames fold to, and how the last of them is called.
func (c *actCase) streamed(t *testing.T, client dialect.Dialect, upstream canon.Dialect, request, answer string, p *Policy) []string {
	t.Helper()
	call := c.call
	call.ID, call.Target = "x", dialect.Target{Model: "m", Stream: true}
	body := []byte(request)
	if client.Name() != canon.Gemini {
		body = SetMember(body, "stream", []byte("true"))
	}
	tr := NewTranslation(client, DialectOf(upstream), p, call)
	if _, err := tr.Request(body); err != nil {
		t.Fatal(err)
	}
	s := tr.NewStream(0)
	wire := slices.Clone(s.Push(streamOf(t, DialectOf(upstream), answer)))
	if wire = append(wire, s.Finish()...); !s.Ended() || s.Failed() != nil {
		t.Fatalf("%s: %s: the stream has no end: %+v", c.key, c.value, s.Failed())
	}
	last := "none"
	for line := range strings.Lines(string(wire)) {
		if word, ok := strings.CutPrefix(line, "event: "); ok {
			last = strings.TrimSpace(word)
		}
	}
	folded := dialecttest.Fold(client, wire).Response
	return append(flatten(nil, "client's stream", []byte(folded)), "client's last event "+last)
}

// streamOf is the stream of an upstream that says the same as this answer.
func streamOf(t *testing.T, upstream dialect.Dialect, answer string) (wire []byte) {
	t.Helper()
	policy := dialect.DefaultPolicy()
	o := dialect.Options{Policy: &policy, ID: "up"}
	a, err := upstream.ReadAnswer([]byte(answer), o)
	if err != nil {
		t.Fatal(err)
	}
	asked := &canon.Request{From: upstream.Name(), Stream: true, Show: canon.Show{Usage: true, Encrypted: true}}
	enc := upstream.NewEncoder(asked, o)
	if err := a.Replay(func(e *canon.Event) error {
		wire = enc.Append(wire, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return wire
}

func refusedLines(t *testing.T, err error) []string {
	t.Helper()
	var p *canon.Problem
	if !errors.As(err, &p) || p.Status != 400 || p.Param == "" {
		t.Fatalf("an error that is no refusal of a field: %v", err)
	}
	return []string{fmt.Sprintf("refused %s %s", p.Code, p.Param)}
}

func lossLines(losses []canon.Loss) (lines []string) {
	for _, l := range losses {
		lines = append(lines, fmt.Sprintf("lost %s %s", l.Path, l.Reason))
	}
	return lines
}

// flatten has a line for each value of a JSON text that holds no others.
func flatten(lines []string, path string, raw []byte) []string {
	before := len(lines)
	switch jsonx.KindOf(raw) {
	case jsonx.KindObject:
		for it := jsonx.Object(raw); it.Next(); {
			lines = flatten(lines, path+"."+string(it.Key()), it.Value())
		}
	case jsonx.KindArray:
		for it, i := jsonx.Array(raw), 0; it.Next(); i++ {
			lines = flatten(lines, fmt.Sprintf("%s[%d]", path, i), it.Value())
		}
	}
	if len(lines) == before {
		lines = append(lines, path+" "+string(raw))
	}
	return lines
}

// differenceOf has the lines of a that are not in b, and the other way round; of a refusal nothing else is told.
func differenceOf(a, b []string) (lines []string) {
	if len(b) == 1 && strings.HasPrefix(b[0], "refused ") && !slices.Contains(a, b[0]) {
		return []string{"+ " + b[0]}
	}
	for _, line := range a {
		if !slices.Contains(b, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}
