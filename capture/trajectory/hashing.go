package trajectory

import (
	"bytes"
	"hash/maphash"
	"io"
	"unicode"

	"rolltap/internal/jsonx"
)

// The writers of this file hash texts that come in pieces, each of whole characters. What they make of a text does not depend on the pieces.

// trimmed hashes a text without the white space at its ends.
type trimmed struct {
	h     *maphash.Hash
	sum   uint64 // up to the last byte that is no white space
	begun bool
}

func (t *trimmed) Write(p []byte) (int, error) {
	n := len(p)
	if !t.begun {
		p = bytes.TrimLeftFunc(p, unicode.IsSpace)
		t.begun = len(p) > 0
	}
	if end := len(bytes.TrimRightFunc(p, unicode.IsSpace)); end > 0 {
		t.h.Write(p[:end])
		t.sum = t.h.Sum64()
		p = p[end:]
	}
	t.h.Write(p) // counts when something stands behind it
	return n, nil
}

// dense hashes what is no white space.
type dense struct {
	h    *maphash.Hash
	some bool // there was some
}

func (d *dense) Write(p []byte) (int, error) {
	for w := range bytes.FieldsSeq(p) {
		d.h.Write(w)
		d.some = true
	}
	return len(p), nil
}

// respelled writes JSON on without white space between its tokens and with texts spelled in one way.
type respelled struct {
	to   io.Writer
	in   bool   // inside a text
	held []byte // the beginning of an escape
	out  []byte
}

func (r *respelled) Write(p []byte) (int, error) {
	n := len(p)
	if len(r.held) > 0 {
		p = append(r.held, p...)
		r.held = nil
	}
	r.out = r.out[:0]
	for len(p) > 0 {
		if !r.in {
			b := p[0]
			if p = p[1:]; b != ' ' && b != '\t' && b != '\n' && b != '\r' {
				r.out = append(r.out, b)
				r.in = b == '"'
			}
			continue
		}
		end := jsonx.TextEnd(p)
		if end == 0 && p[0] != '"' {
			r.held = append([]byte(nil), p...)
			break
		}
		r.out = jsonx.AppendEscaped(r.out, jsonx.Unquoted(p[:end]))
		if p = p[end:]; len(p) > 0 && p[0] == '"' {
			r.out, r.in, p = append(r.out, '"'), false, p[1:]
		}
	}
	_, err := r.to.Write(r.out)
	return n, err
}
