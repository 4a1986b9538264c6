package lineage

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"rolltap/internal/jsonx"
)

// Texts are UTF-8 in which a lone surrogate has the three bytes that its number would have, so that texts which differ in nothing else
// stay apart. Two that meet become one character, as everywhere in JSON.

const replacement = "\uFFFD"

// is reports whether raw is the string s.
func is(raw []byte, s string) bool {
	interior, ok := jsonx.Interior(raw)
	if !ok {
		return false
	}
	if bytes.IndexByte(interior, '\\') < 0 {
		return string(interior) == s
	}
	return string(appendInterior(nil, interior)) == s
}

// appendText appends what the string raw stands for.
func appendText(dst, raw []byte) []byte {
	interior, _ := jsonx.Interior(raw)
	return appendInterior(dst, interior)
}

// appendInterior appends what the inside of a JSON string stands for.
func appendInterior(dst, s []byte) []byte {
	begin := len(dst)
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 || n+1 >= len(s) {
			return append(dst, s...)
		}
		dst = append(dst, s[:n]...)
		c := s[n+1]
		s = s[n+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, ok := hex4(s)
			if !ok {
				dst = append(dst, replacement...) // no valid string has this
				continue
			}
			dst = appendUnit(dst, begin, r)
			s = s[4:]
			continue
		}
		dst = append(dst, c)
	}
}

// appendUnit appends one UTF-16 unit to the text that begins at dst[begin].
func appendUnit(dst []byte, begin int, r rune) []byte {
	switch {
	case r < 0xd800 || r > 0xdfff:
		return utf8.AppendRune(dst, r)
	case r >= 0xdc00 && len(dst)-begin >= 3:
		if high, ok := surrogate(dst[len(dst)-3:]); ok && high < 0xdc00 {
			return utf8.AppendRune(dst[:len(dst)-3], 0x10000+(high-0xd800)<<10+(r-0xdc00))
		}
	}
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// surrogate reports whether s begins with the three bytes of a surrogate, and which.
func surrogate(s []byte) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// strip is Python's str.strip: Unicode's white space and the four separators of ASCII.
func strip(s []byte) []byte {
	return bytes.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f })
}

// appendTruthy appends the str of the first value that is true to Python; nothing if none is.
func appendTruthy(dst []byte, values ...[]byte) ([]byte, error) {
	for _, v := range values {
		if jsonx.Truthy(v) {
			return appendStr(dst, v)
		}
	}
	return dst, nil
}

// appendStr appends Python's str of a value. Containers have none here: no dialect has one where a name or an id belongs.
func appendStr(dst, raw []byte) ([]byte, error) {
	switch jsonx.KindOf(raw) {
	case jsonx.KindString:
		return appendText(dst, raw), nil
	case jsonx.KindNull:
		return append(dst, "None"...), nil
	case jsonx.KindBool:
		if raw[0] == 't' {
			return append(dst, "True"...), nil
		}
		return append(dst, "False"...), nil
	case jsonx.KindNumber:
		return appendNumber(dst, raw, printed), nil
	}
	return dst, fmt.Errorf("%w: a name or an id is a container", ErrUnsupported)
}
