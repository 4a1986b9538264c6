package demomodel

import (
	"slices"
	"strings"
)

// tokenizer is a byte-level tokenizer: 256 byte tokens, the special tokens and a
// few hundred longer pieces. Encoding takes the longest piece at each place, so
//
//   - every text has exactly one encoding and decodes to itself;
//   - the encoding of a text cut at a token border is a prefix of the encoding of
//     the whole: an answer cut by length re-encodes to the ids that were generated.
type tokenizer struct {
	pieces  []string        // by id
	longest [256][]pieceRef // by first byte, longest first; multi-byte pieces only
}

type pieceRef struct {
	text string
	id   int
}

func newTokenizer() *tokenizer {
	t := &tokenizer{}
	for b := range 256 {
		t.pieces = append(t.pieces, string([]byte{byte(b)}))
	}
	t.pieces = append(t.pieces, specials[:]...)
	for _, p := range vocabulary() {
		t.longest[p[0]] = append(t.longest[p[0]], pieceRef{p, len(t.pieces)})
		t.pieces = append(t.pieces, p)
	}
	for _, refs := range t.longest {
		slices.SortStableFunc(refs, func(a, b pieceRef) int { return len(b.text) - len(a.text) })
	}
	return t
}

// append encodes text behind ids. It never produces a special token.
func (t *tokenizer) append(ids []int, text string) []int {
next:
	for len(text) > 0 {
		for _, p := range t.longest[text[0]] {
			if strings.HasPrefix(text, p.text) {
				ids = append(ids, p.id)
				text = text[len(p.text):]
				continue next
			}
		}
		ids = append(ids, int(text[0]))
		text = text[1:]
	}
	return ids
}

// piece is the text of an id, empty for an id that does not exist.
func (t *tokenizer) piece(id int) string {
	if id < 0 || id >= len(t.pieces) {
		return ""
	}
	return t.pieces[id]
}

func (t *tokenizer) decode(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.piece(id))
	}
	return b.String()
}

func special(id int) bool { return id >= tokTurn && id < firstPiece }

// printable spells a token as vLLM's token_strs do: GPT-2's alphabet, in which
// every byte is a visible character (a space is "Ġ").
func (t *tokenizer) printable(id int) string {
	if special(id) {
		return t.pieces[id]
	}
	var b strings.Builder
	for _, c := range []byte(t.piece(id)) {
		b.WriteRune(visible(c))
	}
	return b.String()
}

// visible maps a byte to GPT-2's alphabet: printable Latin-1 stays, the rest
// follows from U+0100 on in the order of the bytes.
func visible(c byte) rune {
	shown := func(c byte) bool {
		return c >= '!' && c <= '~' || c >= 0xA1 && c <= 0xAC || c >= 0xAE
	}
	if shown(c) {
		return rune(c)
	}
	r := rune(0x100)
	for x := range c {
		if !shown(x) {
			r++
		}
	}
	return r
}
