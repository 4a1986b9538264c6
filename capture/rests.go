package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
	"unsafe"

	"rolltap/internal/jsonx"
)

// Rests writes out what has rests (Lines.Refer, Lines.Pick), in small memory. Texts without any need none: a nil Rests does for them. It is used by
// one goroutine and valid as long as its Lines are open.
type Rests struct {
	f     io.ReaderAt // nil: the lines come from no file
	buf   []byte
	out   []byte // decoded or escaped
	tight []byte // compacted
	err   error
}

// Rests reads what outlines of these lines lack.
func (l *Lines) Rests() *Rests {
	f, _ := l.f.(io.ReaderAt)
	return &Rests{f: f}
}

// Err is the first error that reading met. What was written since is not whole.
func (r *Rests) Err() error { return r.err }

// Write writes JSON whole.
func (r *Rests) Write(w io.Writer, json []byte) error {
	for {
		before, k, behind, ok := nextRest(json)
		if len(before) > 0 {
			if _, err := w.Write(before); err != nil {
				return err
			}
		}
		if !ok {
			return nil
		}
		if err := r.rest(w, k); err != nil {
			return err
		}
		json = behind
	}
}

// WriteText writes a text whole. No piece of it ends inside a character.
func (r *Rests) WriteText(w io.Writer, text string) error {
	return r.Write(w, unsafe.Slice(unsafe.StringData(text), len(text))) // writers only read
}

// Whole is a text with its rests, when it has at most so many bytes.
func (r *Rests) Whole(text string, most int) (whole string, ok bool) {
	if !HasRest(text) {
		return text, len(text) <= most
	}
	n := AtMost(text)
	if n > int64(most) {
		return "", false
	}
	var b strings.Builder
	b.Grow(int(n))
	err := r.WriteText(&b, text)
	return b.String(), err == nil
}

// Head is the beginning of a text that has more bytes, else all of it: at most so many, whole characters.
func (r *Rests) Head(text string, most int) string {
	h := head{left: most}
	if err := r.WriteText(&h, text); err != nil && !errors.Is(err, errHead) {
		return ""
	}
	return string(h.b)
}

// Value is for a text that is JSON, and not ok for any other: raw is the text, a JSON string that ends in a rest, and value what it is JSON of. That is
// written without the white space between its tokens. The text is read here to see what it is.
func (r *Rests) Value(raw []byte) (value []byte, ok bool) {
	in, _ := jsonx.Interior(raw)
	before, k, behind, ok := nextRest(in)
	if !ok || k.kind != restRaw || len(behind) > 0 {
		return nil, false
	}
	k = textRest{restValue, k.from - int64(len(before)), k.size + int64(len(before))} // what is there of it stands in front of its rest
	var check jsonx.Checker
	if r.rest(&check, textRest{restDecoded, k.from, k.size}) != nil || !check.Valid() {
		return nil, false
	}
	return appendRest(nil, k), true
}

// Measure counts the bytes and the line feeds of a text.
func (r *Rests) Measure(text string) (size int64, lines int) {
	var m measure
	if r.WriteText(&m, text) != nil {
		return AtMost(text), m.lines
	}
	return m.size, m.lines
}

// fail keeps the first error.
func (r *Rests) fail(err error) error {
	if r.err == nil {
		r.err = err
	}
	return err
}

// rest writes what a rest stands for. Pieces end between two characters.
func (r *Rests) rest(w io.Writer, k textRest) error {
	if r == nil || r.f == nil {
		return errNoFile
	}
	if r.buf == nil {
		r.buf = make([]byte, readBuf)
	}
	decoded := k.kind == restDecoded || k.kind == restValue
	var compact jsonx.Compactor // of a value
	held, end := 0, k.from+k.size
	for at := k.from; at < end; {
		n := int(min(int64(len(r.buf)-held), end-at))
		if _, err := r.f.ReadAt(r.buf[held:held+n], at); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return r.fail(fmt.Errorf("read the rest of a text: %w", err))
		}
		at += int64(n)
		p := r.buf[:held+n]
		whole := len(p)
		if at < end {
			if whole = boundary(p, decoded); whole == 0 {
				whole = len(p) // these are not the bytes that were there; somebody writes without the lock
			}
		}
		piece := p[:whole]
		if decoded && bytes.IndexByte(piece, '\\') >= 0 {
			r.out = jsonx.AppendUnquoted(r.out[:0], piece)
			piece = r.out
		}
		switch k.kind {
		case restEscaped:
			r.out = jsonx.AppendEscaped(r.out[:0], piece)
			piece = r.out
		case restValue:
			value, err := compact.Append(r.tight[:0], piece)
			if err != nil {
				return r.fail(fmt.Errorf("read the rest of a text: %w", err)) // it was JSON before
			}
			r.tight, piece = value, value
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
		held = copy(r.buf, p[whole:])
	}
	return nil
}

// boundary is how much of p, which goes on, ends with a whole character, and where escapes are decoded with a whole one of them.
func boundary(p []byte, escapes bool) int {
	if escapes {
		if end := jsonx.TextEnd(p); end < len(p) {
			return end
		}
	}
	end := len(p)
	for k := 1; k < utf8.UTFMax && k <= len(p); k++ {
		if b := p[end-k]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[end-k:]) {
				return end - k
			}
			break
		}
	}
	return end
}

// highSurrogate: an escape that is the first half of a character.
func highSurrogate(p []byte) bool {
	return len(p) == 6 && p[0] == '\\' && p[1] == 'u' && p[2]|0x20 == 'd' && bytes.IndexByte([]byte("89abAB"), p[3]) >= 0
}

// halfEnds reports whether the inside of a JSON string so far ends in such an escape.
func halfEnds(p []byte) bool {
	n := max(0, len(p)-6)
	if !highSurrogate(p[n:]) {
		return false
	}
	before := 0
	for before < n && p[n-before-1] == '\\' {
		before++
	}
	return before%2 == 0 // else its backslash is itself escaped
}

var (
	errNoFile = errors.New("the line comes from no file")
	errHead   = errors.New("enough")
)

// head keeps the beginning of what is written.
type head struct {
	b    []byte
	left int
}

func (h *head) Write(p []byte) (int, error) {
	if len(p) <= h.left {
		h.b = append(h.b, p...)
		h.left -= len(p)
		return len(p), nil
	}
	n := h.left
	for n > 0 && !utf8.RuneStart(p[n]) {
		n--
	}
	h.b = append(h.b, p[:n]...)
	return n, errHead
}

// measure counts what is written.
type measure struct {
	size  int64
	lines int
}

func (m *measure) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	m.lines += bytes.Count(p, []byte{'\n'})
	return len(p), nil
}
