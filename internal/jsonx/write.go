package jsonx

import (
	"unicode/utf8"
	"unsafe"
)

// Strings are written as plainly as RFC 8259 allows: only quotes, backslashes and control characters are
// escaped. Nothing is escaped for HTML, and U+2028, U+2029 and DEL stay raw. What is no UTF-8 becomes
// U+FFFD, one for the longest beginning of a sequence, as browsers and Python do it.

const (
	replacement = "\uFFFD"
	digits      = "0123456789abcdef"
)

// AppendString appends s as a JSON string with its quotes.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	// The bytes are only read, so they may be borrowed from the string.
	dst = AppendEscaped(dst, unsafe.Slice(unsafe.StringData(s), len(s)))
	return append(dst, '"')
}

// AppendEscaped appends the inside of the JSON string that stands for s, without quotes. Pieces appended
// one after the other make one string; a piece must not end inside a UTF-8 sequence (see TextEscaper).
func AppendEscaped(dst, s []byte) []byte {
	dst, rest := appendText(dst, s)
	if len(rest) > 0 {
		dst = append(dst, replacement...)
	}
	return dst
}

// appendText is AppendEscaped, but a sequence that s leaves unfinished is returned.
func appendText(dst, s []byte) (_, rest []byte) {
	from := 0
	for i := 0; ; {
		if i = plain(s, i); i == len(s) {
			return append(dst, s[from:]...), nil
		}
		if b := s[i]; b < 0x80 {
			dst = append(dst, s[from:i]...)
			dst = appendEscape(dst, b)
			i++
			from = i
			continue
		}
		if i = wide(s, i); i == len(s) || s[i] < 0x80 {
			continue
		}
		dst = append(dst, s[from:i]...)
		n := sequence(s[i:])
		if n == 0 {
			return dst, s[i:]
		}
		dst = append(dst, replacement...)
		i -= n
		from = i
	}
}

// appendEscape appends the escape of a quote, a backslash or a control character.
func appendEscape(dst []byte, b byte) []byte {
	const letters = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu" // of the control characters, u for those without a short escape
	if b >= ' ' {
		return append(dst, '\\', b)
	}
	if letters[b] != 'u' {
		return append(dst, '\\', letters[b])
	}
	return append(dst, '\\', 'u', '0', '0', digits[b>>4], digits[b&15])
}

// TextEscaper is AppendEscaped for bytes that arrive in pieces, which may end inside a UTF-8 sequence.
// The output is the same for every split. The zero value is ready.
type TextEscaper struct {
	held [utf8.UTFMax]byte // the beginning of a sequence
	n    int
}

// Append appends p, escaped, to dst. The beginning of a sequence at the end of p is kept for the next call.
func (e *TextEscaper) Append(dst, p []byte) []byte {
	for e.n > 0 && len(p) > 0 {
		e.held[e.n] = p[0]
		switch n := sequence(e.held[:e.n+1]); {
		case n == 0:
			e.n++
		case n > 0:
			dst = append(dst, e.held[:n]...)
			e.n = 0
		default: // p[0] does not continue it
			dst = append(dst, replacement...)
			e.n = 0
			continue
		}
		p = p[1:]
	}
	dst, rest := appendText(dst, p)
	if len(rest) > 0 {
		e.n = copy(e.held[:], rest)
	}
	return dst
}

// Finish appends what stands for an unfinished sequence and makes e as good as new.
func (e *TextEscaper) Finish(dst []byte) []byte {
	if e.n > 0 {
		dst = append(dst, replacement...)
		e.n = 0
	}
	return dst
}
