package jsonx

import (
	"encoding/binary"
	"math/bits"
	"slices"
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

// AppendStrings appends a JSON array of strings.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}

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
	dst = slices.Grow(dst, len(s)) // nothing becomes shorter
	for i := 0; i < len(s); {
		if n := (cap(dst) - len(dst) - slack) / widest; n >= 16 && len(s)-i >= 8 {
			if dst, i = appendWords(dst, s, i, min(i+n, len(s))); i == len(s) {
				break
			}
		}
		if from := i; isPlain(s[i]) {
			i = plain(s[:min(len(s), i+64)], i)
			dst = append(dst, s[from:i]...)
			continue
		}
		if b := s[i]; b < 0x80 {
			dst = appendEscape(dst, b)
			i++
			continue
		}
		switch n := sequence(s[i:]); {
		case n == 0:
			return dst, s[i:]
		case n > 0:
			dst = append(dst, s[i:i+n]...)
			i += n
		default:
			dst = append(dst, replacement...)
			i -= n
		}
	}
	return dst, nil
}

const (
	widest = 6  // bytes of the longest escape
	slack  = 32 // that appendWords touches behind what it has written
)

// appendWords appends what s becomes from i on, eight bytes at a time, and returns where it stopped: at end or a little
// behind it, less than eight bytes before the end of s, or at a sequence that is not whole before end. There is room for
// widest bytes for each up to end, and for slack more, so that nothing has to be asked for each byte.
func appendWords(dst, s []byte, i, end int) ([]byte, int) {
	out := dst[len(dst):cap(dst)]
	o := 0
	for i < end && i+8 <= len(s) {
		w := binary.LittleEndian.Uint64(s[i:])
		win := (*[slack]byte)(out[o:])
		binary.LittleEndian.PutUint64(win[:], w)
		quotes, others := escapes(w)
		if others == 0 {
			// Each backslash pushes its byte, and all behind it, on by one. Of eight bytes none gets behind the sixteenth,
			// which is what the mask tells the compiler.
			pushed := uint(0)
			for ; quotes != 0; quotes &= quotes - 1 {
				k := uint(bits.TrailingZeros64(quotes)) &^ 7
				at := (pushed + k/8) & 15
				win[at] = '\\'
				binary.LittleEndian.PutUint64(win[at+1:], w>>(k&63))
				pushed++
			}
			i += 8
			o += 8 + int(pushed)
			continue
		}
		k := bits.TrailingZeros64(quotes|others) >> 3
		i += k
		o += k
		if b := s[i]; b < 0x80 {
			o = len(appendEscape(out[:o], b))
			i++
			continue
		}
		from := i
		if i = wide(s[:max(i, end)], i); i == from {
			break
		}
		o += copy(out[o:], s[from:i])
	}
	return dst[:len(dst)+o], i
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

// Held is how many bytes are kept for the next call: what was appended stands for all bytes but these.
func (e *TextEscaper) Held() int { return e.n }

// Finish appends what stands for an unfinished sequence and makes e as good as new.
func (e *TextEscaper) Finish(dst []byte) []byte {
	if e.n > 0 {
		dst = append(dst, replacement...)
		e.n = 0
	}
	return dst
}

// AppendMembers appends an object of the values, valid JSON each, that are not nil, as they are; names has as many, unquoted.
func AppendMembers(dst []byte, names []string, values [][]byte) []byte {
	size := 2
	for i, value := range values {
		size += len(names[i]) + len(value) + len(`"":,`)
	}
	dst = append(slices.Grow(dst, size), '{')
	open := len(dst)
	for i, value := range values {
		if value == nil {
			continue
		}
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, names[i]), ':')
		dst = append(dst, value...)
	}
	return append(dst, '}')
}
