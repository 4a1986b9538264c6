package demomodel

import (
	"strings"
	"testing"
)

var texts = []string{
	"", " ", "\n\n\n", "The capital of France is Paris.", unicodeText,
	"<|im_start|>user\n<think></think><tool_call>{}</tool_call><|im_end|>",
	`{"name": "get_weather", "arguments": {"city": "Paris"}}`, "\x00\xff\xfe half \xe4\xb8 of a character",
}

func TestTokenize_roundTrip(t *testing.T) {
	tok := newTokenizer()
	for _, text := range texts {
		ids := tok.append(nil, text)
		if got := tok.decode(ids); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		for _, id := range ids {
			if special(id) {
				t.Errorf("%q: ordinary text became the special token %q", text, tok.piece(id))
			}
		}
	}
}

func TestTokenize_isNotOneTokenAByte(t *testing.T) {
	tok := newTokenizer()
	text := "It is the first time that people read about the weather in Paris."
	if n := len(tok.append(nil, text)); n > len(text)/2 {
		t.Errorf("%d tokens for %d bytes: the pieces are not used", n, len(text))
	}
	if n := len(tok.append(nil, " word word word")); n != 3 {
		t.Errorf("three words: got %d tokens, want 3", n)
	}
}

func TestVocabularyHasNoDuplicates(t *testing.T) {
	seen := map[string]int{}
	for id, p := range newTokenizer().pieces {
		if before, ok := seen[p]; ok {
			t.Errorf("%q is both %d and %d", p, before, id)
		}
		seen[p] = id
	}
	if n := len(seen); n < 700 {
		t.Errorf("got %d tokens, want some hundred pieces", n)
	}
}

func TestPrintable(t *testing.T) {
	tok := newTokenizer()
	var got []string
	for _, id := range tok.append(nil, " world\n\xad") {
		got = append(got, tok.printable(id))
	}
	if s := strings.Join(got, "|"); s != "Ġworld|Ċ|Ń" {
		t.Errorf("got %q", s)
	}
	if s := tok.printable(tokEnd); s != "<|im_end|>" {
		t.Errorf("special token: got %q", s)
	}
}

// FuzzTokenize: any bytes decode to themselves, none become special tokens, and
// a text cut at a token border has a prefix of the ids.
func FuzzTokenize(f *testing.F) {
	for _, text := range texts {
		f.Add(text, 3)
	}
	tok := newTokenizer()
	f.Fuzz(func(t *testing.T, text string, cut int) {
		ids := tok.append(nil, text)
		if got := tok.decode(ids); got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
		for _, id := range ids {
			if special(id) {
				t.Fatalf("%q became the special token %d", text, id)
			}
		}
		if cut < 0 || cut > len(ids) {
			return
		}
		again := tok.append(nil, tok.decode(ids[:cut]))
		if len(again) != cut {
			t.Fatalf("cut behind %d ids: got %d ids", cut, len(again))
		}
		for i := range again {
			if again[i] != ids[i] {
				t.Fatalf("cut behind %d ids: id %d differs", cut, i)
			}
		}
	})
}
