package lineage

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spelling is how values are written.
type spelling uint8

const (
	compact spelling = iota // as orjson with sorted keys: no spaces, characters as they are
	spaced                  // as Python's json.dumps with sorted keys: spaces behind commas and colons, ASCII alone
	printed                 // as Python's str: of numbers only
)

// appendNumber appends a JSON number as it comes out again. Integers keep their digits. All others are doubles in the fewest digits that
// tell them apart; the spellings differ in where the exponent begins and how it is padded.
func appendNumber(dst, raw []byte, how spelling) []byte {
	if !bytes.ContainsAny(raw, ".eE") {
		if string(raw) == "-0" {
			raw = raw[1:]
		}
		return append(dst, raw...)
	}
	f, _ := strconv.ParseFloat(string(raw), 64) // out of range is an infinity, as in Python
	switch magnitude := max(f, -f); {
	case magnitude > 1.7976931348623157e308:
		if how == compact {
			return append(dst, "null"...)
		}
		if f < 0 {
			dst = append(dst, '-')
		}
		if how == printed {
			return append(dst, "inf"...)
		}
		return append(dst, "Infinity"...)
	case magnitude == 0, magnitude < 1e16 && (magnitude >= 1e-4 || how == compact && magnitude >= 1e-5):
		begin := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		if bytes.IndexByte(dst[begin:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Here exponents have two digits at least, as Python's.
	if n := len(dst); how == compact && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

func appendNotFinite(dst, raw []byte, how spelling) []byte {
	if how == compact {
		raw = []byte("null")
	}
	return append(dst, raw...)
}

// appendQuoted appends a JSON string anew: with no escape that is not needed, or in ASCII.
func appendQuoted(dst, raw []byte, how spelling) []byte {
	interior := raw[1 : len(raw)-1]
	if how == compact && bytes.IndexByte(interior, '\\') < 0 && bytes.IndexByte(interior, 0xed) < 0 {
		return append(dst, raw...)
	}
	dst = append(dst, '"')
	if bytes.IndexByte(interior, '\\') >= 0 {
		interior = appendInterior(nil, interior)
	}
	return append(appendEscaped(dst, interior, how), '"')
}

// appendEscaped appends the inside of the JSON string that stands for s.
func appendEscaped(dst, s []byte, how spelling) []byte {
	for len(s) > 0 {
		n := 0
		for n < len(s) && s[n] >= ' ' && s[n] != '"' && s[n] != '\\' && s[n] < 0x7f {
			n++
		}
		dst, s = append(dst, s[:n]...), s[n:]
		if len(s) == 0 {
			break
		}
		if high, ok := surrogate(s); ok {
			s = s[3:]
			if low, ok := surrogate(s); ok && high < 0xdc00 && low >= 0xdc00 {
				s = s[3:]
				dst = appendRune(dst, 0x10000+(high-0xd800)<<10+(low-0xdc00), how)
				continue
			}
			dst = appendHex(dst, high)
			continue
		}
		r, size := utf8.DecodeRune(s)
		s = s[size:]
		if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[i])
		} else if r < ' ' {
			dst = appendHex(dst, r)
		} else {
			dst = appendRune(dst, r, how)
		}
	}
	return dst
}

func appendRune(dst []byte, r rune, how spelling) []byte {
	switch {
	case how == compact:
		return utf8.AppendRune(dst, r)
	case r > 0xffff:
		r -= 0x10000
		dst = appendHex(dst, 0xd800+r>>10)
		return appendHex(dst, 0xdc00+r&0x3ff)
	}
	return appendHex(dst, r)
}

// appendHex appends the escape of one UTF-16 unit.
func appendHex(dst []byte, unit rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}
