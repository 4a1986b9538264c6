package rewrite_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

// material is what a dialect is tried with: what its clients have sent, and what servers have answered in it.
type material struct {
	requests, streams, answers map[string][]byte
	refusals                   []exchange
}

// materials finds it for each dialect: in testdata/vllm and testdata/harness, and in the requests that the dialect's own testdata has.
func materials(tb testing.TB) map[canon.Dialect]*material {
	tb.Helper()
	all := map[canon.Dialect]*material{}
	of := func(d canon.Dialect) *material {
		if all[d] == nil {
			all[d] = &material{requests: map[string][]byte{}, streams: map[string][]byte{}, answers: map[string][]byte{}}
		}
		return all[d]
	}
	files, err := filepath.Glob("*/testdata/requests/*.json")
	if err != nil {
		tb.Fatal(err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.ToSlash(file), "/")
		body, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if rewrite.DialectOf(canon.Dialect(name)) != nil && callable(body) {
			of(canon.Dialect(name)).requests[filepath.Base(file)] = body
		}
	}
	for _, sent := range sentRequests(tb) {
		path, _, _ := strings.Cut(sent.Path, "?")
		if route := rewrite.ParseRoute(path); route.Endpoint == rewrite.Model && callable(sent.Body) {
			of(route.Dialect).requests[sent.name] = sent.Body
		}
	}
	for _, x := range exchanges(tb) {
		m := of(x.dialect)
		if x.request != nil {
			m.requests[x.name] = x.request
		}
		switch choices := strings.Contains(x.name, "-n2"); { // several are refused for other dialects
		case x.status >= 400:
			m.refusals = append(m.refusals, x)
		case x.stream && !choices:
			m.streams[x.name] = x.response
		case x.status == 200 && !choices:
			m.answers[x.name] = x.response
		}
	}
	return all
}

// serves tells whether upstreams speak a dialect: whether it writes the requests of another's clients.
func serves(d dialecttest.Dialect) bool {
	policy := dialect.DefaultPolicy()
	foreign := &canon.Request{From: "another", Body: canon.Raw("{}"), Model: canon.Text("m"),
		Messages: []canon.Message{{Role: canon.User, Parts: []canon.Part{{Type: canon.TextPart, Text: canon.Text("hi")}}}}}
	_, err := d.AppendCall(nil, foreign, dialect.Options{Policy: &policy, ID: "x"})
	return err == nil
}

// TestEveryPair runs the kit for each client and each upstream there is. A dialect joins by its line in rewrite.Dialects and by what was
// recorded of it; one of which nothing was recorded fails.
func TestEveryPair(t *testing.T) {
	all := materials(t)
	pairs := 0
	for _, upstream := range dialects(t) {
		if !serves(upstream) {
			continue
		}
		said := all[upstream.Name()]
		if said == nil || len(said.streams) < 10 || len(said.answers) < 5 || len(said.refusals) < 3 {
			t.Errorf("%s: too little was recorded of upstreams that speak it", upstream.Name())
			continue
		}
		for _, client := range dialects(t) {
			pairs++
			t.Run(fmt.Sprintf("%s to %s", client.Name(), upstream.Name()), func(t *testing.T) {
				asked := all[client.Name()]
				if asked == nil || len(asked.requests) < 2 {
					t.Fatal("too little was recorded of these clients")
				}
				checkPair(t, client, upstream, asked, said)
			})
		}
	}
	if pairs < 12 {
		t.Errorf("only %d pairs", pairs)
	}
}

func checkPair(t *testing.T, client, upstream dialecttest.Dialect, asked, said *material) {
	written := 0
	each(t, "request", asked.requests, func(t *testing.T, body []byte) { // those that vLLM refused are among them
		dialecttest.CheckCall(t, client, upstream, body)
		policy := rewrite.DefaultPolicy()
		call := rewrite.Call{ID: "x", Target: targetOf(client.Name())}
		if _, err := rewrite.NewTranslation(client, upstream, &policy, call).Request(body); err == nil {
			written++
		}
	})
	if written < 2 {
		t.Errorf("%d of %d requests reach the upstream", written, len(asked.requests))
	}
	each(t, "stream", said.streams, func(t *testing.T, stream []byte) {
		dialecttest.Square(t, upstream, client, stream, unsaid(client.Name())...)
		dialecttest.UnaryEqualsStream(t, upstream, client, stream, unsaidWhole(client.Name())...)
		checkCuts(t, client, upstream, stream)
	})
	each(t, "answer", said.answers, func(t *testing.T, body []byte) {
		dialecttest.Answer(t, upstream, client, body, unsaidWhole(client.Name())...)
	})
	for _, x := range said.refusals {
		t.Run("refusal "+x.name, func(t *testing.T) { dialecttest.Refusal(t, upstream, client, x.status, x.response) })
	}
	few := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(said.streams))[:10] {
		few[name] = said.streams[name]
	}
	dialecttest.Concurrent(t, upstream, client, few)
}

func each(t *testing.T, what string, bodies map[string][]byte, check func(*testing.T, []byte)) {
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		t.Run(what+" "+name, func(t *testing.T) { check(t, bodies[name]) })
	}
}

// checkCuts: what a translation sends does not depend on how the upstream's bytes come in, its filters included, and a stream that ends has
// its end.
func checkCuts(t *testing.T, client, upstream dialecttest.Dialect, stream []byte) {
	t.Helper()
	send := func(size int) (wire []byte, ended bool) {
		policy := rewrite.DefaultPolicy()
		target := targetOf(client.Name())
		target.Stream = true
		tr := rewrite.NewTranslation(client, upstream, &policy, rewrite.Call{ID: "x", Created: 1700000000, Target: target})
		body := []byte(hiFrom(client.Name()))
		if client.Name() != canon.Gemini {
			body = rewrite.SetMember(body, "stream", []byte("true"))
		}
		if _, err := tr.Request(body); err != nil {
			t.Fatal(err)
		}
		s := tr.NewStream(1 << 20)
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			wire = append(wire, s.Push(rest[:n])...)
			rest = rest[n:]
		}
		return append(wire, s.Finish()...), s.Ended()
	}
	whole, ended := send(len(stream))
	pieces, endedAgain := send(611)
	if !bytes.Equal(whole, pieces) || ended != endedAgain {
		t.Errorf("what is sent depends on the cuts of what comes in:\n%s\n%s", whole, pieces)
	}
	if d, err := dialecttest.Decode(upstream, stream); err == nil && ended != (d.Ended || d.Failed) {
		t.Errorf("the stream's end: %v; the upstream's %v, failed %v", ended, d.Ended, d.Failed)
	}
}

func hiFrom(d canon.Dialect) string {
	if d == canon.Chat {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	}
	return saysHi(d)
}
