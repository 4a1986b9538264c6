package jsonx

import (
	"bytes"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// KindOf returns the kind of raw, judged by its first byte that is no white space; KindInvalid if nothing
// begins there.
func KindOf(raw []byte) Kind {
	i := skipSpace(raw, 0)
	if i == len(raw) {
		return KindInvalid
	}
	switch b := raw[i]; b {
	case '{':
		return KindObject
	case '[':
		return KindArray
	case '"':
		return KindString
	case 't', 'f':
		return KindBool
	case 'n':
		return KindNull
	default:
		if b == '-' || '0' <= b && b <= '9' {
			return KindNumber
		}
		return KindInvalid
	}
}

// IsNull reports whether raw is absent or null.
func IsNull(raw []byte) bool {
	raw = trim(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// Truthy reports whether raw is there and neither null, false, a zero, "", {} nor []: Python's bool.
func Truthy(raw []byte) bool {
	raw = trim(raw)
	switch KindOf(raw) {
	case KindInvalid, KindNull:
		return false
	case KindBool:
		return raw[0] == 't'
	case KindNumber:
		for _, b := range raw {
			switch {
			case '1' <= b && b <= '9':
				return true
			case b == 'e' || b == 'E':
				return false
			}
		}
		return false
	case KindString:
		return len(raw) > 2
	default:
		i := skipSpace(raw, 1)
		return i < len(raw) && raw[i] != '}' && raw[i] != ']'
	}
}

// Int returns the value of raw if it is a number without fraction and exponent that fits.
func Int(raw []byte) (int64, bool) {
	raw = trim(raw)
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	if len(raw) == 0 || len(raw) > 1 && raw[0] == '0' {
		return 0, false
	}
	// The sum is kept negative, because the negative range is larger by one.
	var n int64
	for _, b := range raw {
		if b < '0' || b > '9' {
			return 0, false
		}
		d := int64(b - '0')
		if n < (math.MinInt64+d)/10 {
			return 0, false
		}
		n = n*10 - d
	}
	switch {
	case negative:
		return n, true
	case n == math.MinInt64:
		return 0, false
	}
	return -n, true
}

// Interior returns what is between the quotes of the string raw, escapes untouched. It is part of raw.
func Interior(raw []byte) ([]byte, bool) {
	raw = trim(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}

// Text returns a copy of the string raw, decoded.
func Text(raw []byte) (string, bool) {
	in, ok := Interior(raw)
	if !ok {
		return "", false
	}
	return string(Unquoted(in)), true
}

// AppendUnquoted appends the text that interior, the inside of a JSON string, stands for. Escapes of lone
// surrogates become U+FFFD each. What is no escape is kept as it is.
func AppendUnquoted(dst, interior []byte) []byte {
	for {
		i := bytes.IndexByte(interior, '\\')
		if i < 0 {
			return append(dst, interior...)
		}
		dst = append(dst, interior[:i]...)
		r, n := escape(interior[i:])
		dst = utf8.AppendRune(dst, r)
		interior = interior[i+n:]
	}
}

// Unquoted is the text that interior, the inside of a JSON string, stands for: interior itself when nothing in it is escaped.
func Unquoted(interior []byte) []byte {
	if bytes.IndexByte(interior, '\\') < 0 {
		return interior
	}
	return AppendUnquoted(nil, interior)
}

// TextEnd is where the inside of a JSON string ends in p, which may be a piece of it: at its quote, else in front of an escape of which
// something may stand behind p, the other half of a character included, else with p.
func TextEnd(p []byte) int {
	for i := 0; ; {
		n := bytes.IndexAny(p[i:], "\"\\")
		if n < 0 {
			return len(p)
		}
		if i += n; p[i] == '"' {
			return i
		}
		n = 2
		if i+1 < len(p) && p[i+1] == 'u' {
			n = 6
		}
		if i+n > len(p) {
			return i
		}
		half := n == 6 && unit(p[i:])&^0x3ff == 0xd800
		if rest := p[i+n:]; half && len(rest) < 6 && bytes.HasPrefix([]byte(`\u`), rest[:min(2, len(rest))]) {
			return i
		}
		i += n
	}
}

// equalUnquoted reports whether interior stands for s.
func equalUnquoted(interior []byte, s string) bool {
	// Escapes only get shorter. Most names differ in their first byte, or have none.
	if len(interior) < len(s) || len(s) > 0 && interior[0] != s[0] && interior[0] != '\\' {
		return false
	}
	for {
		i := bytes.IndexByte(interior, '\\')
		if i < 0 {
			return string(interior) == s
		}
		if len(s) < i || string(interior[:i]) != s[:i] {
			return false
		}
		r, n := escape(interior[i:])
		var buf [utf8.UTFMax]byte
		m := utf8.EncodeRune(buf[:], r)
		if len(s)-i < m || string(buf[:m]) != s[i:i+m] {
			return false
		}
		interior, s = interior[i+n:], s[i+m:]
	}
}

// escape decodes the escape in front of p, which begins with a backslash, and returns its length. If it is
// none, that is the backslash alone.
func escape(p []byte) (rune, int) {
	if len(p) < 2 {
		return '\\', 1
	}
	switch p[1] {
	case '"', '\\', '/':
		return rune(p[1]), 2
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		r := unit(p)
		switch {
		case r < 0:
			return '\\', 1
		case !utf16.IsSurrogate(r):
			return r, 6
		}
		if pair := utf16.DecodeRune(r, unit(p[6:])); pair != utf8.RuneError {
			return pair, 12
		}
		return utf8.RuneError, 6
	}
	return '\\', 1
}

// unit decodes the escape \uXXXX in front of p, or returns -1.
func unit(p []byte) rune {
	if len(p) < 6 || p[0] != '\\' || p[1] != 'u' {
		return -1
	}
	var r rune
	for _, b := range p[2:6] {
		d := hexDigit(b)
		if d < 0 {
			return -1
		}
		r = r<<4 | rune(d)
	}
	return r
}

func trim(raw []byte) []byte {
	raw = raw[skipSpace(raw, 0):]
	for len(raw) > 0 && isSpace(raw[len(raw)-1]) {
		raw = raw[:len(raw)-1]
	}
	return raw
}
