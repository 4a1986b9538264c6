package rewrite

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

func keyed(key string) *Policy {
	p := DefaultPolicy()
	p.SealKey = []byte(key)
	return &p
}

func TestSeals(t *testing.T) {
	open, a, b := keyed(""), keyed("a"), keyed("b")
	alphabet := regexp.MustCompile(`^rolltap1[ck]_[A-Za-z0-9_-]+$`)
	for _, s := range []sealed{
		{}, {text: canon.Text("")}, {text: canon.Text(`so\u0020\ud83d it is`)}, {summary: canon.Text("S")}, {text: canon.Text("T"), summary: canon.Text("S")},
		{text: canon.Text("T"), signature: canon.Text("sig=="), signedBy: canon.Messages}, {signature: canon.Text("e"), signedBy: canon.Responses}, {signature: canon.Text("e"), signedBy: canon.Chat},
		{signature: canon.Text("e"), signedBy: canon.Messages, redacted: true},
		{text: bytes.Repeat([]byte("long "), 1<<16)},
	} {
		for _, p := range []*Policy{open, a} {
			seal := p.mint(s)
			if !alphabet.Match(seal) || !isSeal(seal) {
				t.Fatalf("no seal: %.80s", seal)
			}
			if !bytes.Equal(seal, p.mint(s)) {
				t.Error("the same reasoning has two seals")
			}
			got, ok := a.openSeal(seal)
			if d := cmp.Diff(s, got, cmp.AllowUnexported(sealed{})); !ok || d != "" {
				t.Errorf("does not open: %v %.300s", ok, d)
			}
			for _, i := range []int{len(sealOpen), len(seal) / 2, len(seal) - 2} {
				bad := bytes.Clone(seal)
				bad[i] = 'A' + (bad[i]-'A'+1)%26
				if got, ok := a.openSeal(bad); ok {
					t.Errorf("a seal that was changed at %d of %d opens: %.100v", i, len(seal), got)
				}
			}
		}
		if _, ok := b.openSeal(a.mint(s)); ok {
			t.Error("another key opens")
		}
		if _, ok := open.openSeal(a.mint(s)); ok {
			t.Error("no key opens")
		}
	}
	if bytes.Contains(a.mint(sealed{text: canon.Text("secret")}), []byte("c2VjcmV0")) {
		t.Error("a key hides nothing")
	}
	for _, other := range []string{"", "sig==", "rolltap1c_", "rolltap1k_AAAA", "rolltap1c_!!!", "rolltap2c_AAAA"} {
		if _, ok := a.openSeal(canon.Text(other)); ok {
			t.Errorf("%q opens", other)
		}
	}
}

func TestSealsHoldNothingButTexts(t *testing.T) {
	p := keyed("")
	for _, s := range []sealed{{text: canon.Text(`a","role":"system`)}, {summary: canon.Text(`\q`)}, {text: canon.Text("\n")}, {signature: canon.Text(`"`), signedBy: canon.Messages}, {signature: canon.Text("x")}} {
		if got, ok := p.openSeal(p.mint(s)); ok {
			t.Errorf("%+v opens as %+v", s, got)
		}
	}
}

func FuzzSeal(f *testing.F) {
	f.Add("so it is", "", "k")
	f.Add(`a "b" \ é`, "sig", "")
	f.Fuzz(func(t *testing.T, text, signature, key string) {
		p := keyed(key)
		s := sealed{text: jsonx.AppendEscaped(canon.Text{}, []byte(text))}
		if sig := jsonx.AppendEscaped(nil, []byte(signature)); len(sig) > 0 {
			s.signature, s.signedBy = sig, canon.Messages
		}
		got, ok := p.openSeal(p.mint(s))
		if d := cmp.Diff(s, got, cmp.AllowUnexported(sealed{})); !ok || d != "" {
			t.Fatal(d)
		}
		p.openSeal(canon.Text(text))
		p.openSeal(append(canon.Text(sealOpen), text...))
	})
}

func TestSealer(t *testing.T) {
	reasoning := func(more ...canon.Event) []canon.Event {
		all := []canon.Event{{Kind: canon.Open, Type: canon.ReasoningPart}, {Kind: canon.Delta, Text: canon.Text("a ")}, {Kind: canon.Delta, Text: canon.Text("b")}}
		return append(append(all, more...), canon.Event{Kind: canon.Close})
	}
	p := keyed("")
	for _, tc := range []struct {
		name   string
		events []canon.Event
		want   sealed // what the seal holds; a signature alone: it is as it came
	}{
		{"none", reasoning(), sealed{text: canon.Text("a b")}},
		{"with a summary", reasoning(canon.Event{Kind: canon.Delta, Summary: true, Text: canon.Text("S")}), sealed{text: canon.Text("a b"), summary: canon.Text("S")}},
		{"the client's own", reasoning(canon.Event{Kind: canon.Seal, Text: canon.Text("sig"), SignedBy: canon.Messages}), sealed{signature: canon.Text("sig")}},
		{"an empty one", reasoning(canon.Event{Kind: canon.Seal, Text: canon.Text(""), SignedBy: canon.Messages}), sealed{text: canon.Text("a b")}},
		{"another dialect's", reasoning(canon.Event{Kind: canon.Seal, Text: canon.Text("e"), SignedBy: canon.Responses}), sealed{text: canon.Text("a b"), signature: canon.Text("e"), signedBy: canon.Responses}},
		{"nothing said", []canon.Event{{Kind: canon.Open, Type: canon.ReasoningPart}, {Kind: canon.Close}}, sealed{}},
	} {
		out := through(t, &sealer{p: p, client: canon.Messages}, tc.events...)
		last := out[len(out)-2]
		if out[len(out)-1].Kind != canon.Close || last.Kind != canon.Seal || last.SignedBy != canon.Messages {
			t.Errorf("%s: %+v", tc.name, out)
			continue
		}
		got, ok := p.openSeal(last.Text)
		if !ok {
			got.signature = last.Text
		}
		if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(sealed{})); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
		seals := 0
		for _, e := range out {
			if e.Kind == canon.Seal {
				seals++
			}
		}
		if seals != 1 {
			t.Errorf("%s: %d seals", tc.name, seals)
		}
	}
	if got := p.filters(&canon.Request{From: canon.Responses, Show: canon.Show{Encrypted: true}}, nil, nil); len(got) != 1 {
		t.Error("a Responses client that asks for encrypted contents gets seals")
	}
	for _, r := range []canon.Request{{From: canon.Responses}, {From: canon.Chat}} {
		if got := p.filters(&r, nil, nil); got != nil {
			t.Errorf("%s: %v", r.From, got)
		}
	}
}

func TestSealsGoRound(t *testing.T) {
	p := keyed("k")
	out := through(t, &sealer{p: p, client: canon.Responses}, canon.Event{Kind: canon.Open, Type: canon.ReasoningPart}, canon.Event{Kind: canon.Delta, Text: canon.Text(`\u0041 b`)}, canon.Event{Kind: canon.Close})
	r := &canon.Request{Messages: []canon.Message{message(canon.Assistant, "input[0]", canon.Part{Type: canon.ReasoningPart, Summary: canon.Text("A b"), Signature: out[2].Text, SignedBy: canon.Responses})}}
	_, losses, _ := prepareFor(t, *p, canon.Responses, canon.Chat, r, Call{})
	if got := r.Messages[0].Parts[0]; string(got.Text) != `\u0041 b` || got.Signature != nil || len(losses) > 0 {
		t.Errorf("%+v %v", got, losses)
	}
}
