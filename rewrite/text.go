package rewrite

import (
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// plainText is the text that t stands for.
func plainText(t canon.Text) string {
	return string(jsonx.Unquoted(t))
}

// unit is the first character of s, which is a piece of the inside of a JSON string and not empty, and how many bytes it takes there. A
// character beyond ASCII is -1: its bytes are taken one by one, its escapes one by one as well, half a surrogate pair each.
func unit(s []byte) (c, n int) {
	switch {
	case s[0] >= 0x80:
		return -1, 1
	case s[0] != '\\':
		return int(s[0]), 1
	case len(s) < 2:
		return -1, 1
	}
	switch s[1] {
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
		if len(s) < 6 {
			return -1, len(s)
		}
		r := hex4(s[2:6])
		if r < 0 || r >= 0x80 {
			return -1, 6
		}
		return r, 6
	}
	return int(s[1]), 2
}

// hex4 is the value of four hexadecimal digits, -1 when they are none.
func hex4(s []byte) int {
	r := 0
	for _, b := range s {
		d := hexDigit(int(b))
		if d < 0 {
			return -1
		}
		r = r<<4 | d
	}
	return r
}

// isHigh: the first half of a surrogate pair.
func isHigh(r int) bool { return 0xd800 <= r && r < 0xdc00 }

func hexDigit(c int) int {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return -1
}

func isBlank(c int) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// lostAt is the path of what is called name and was found at path.
func lostAt(path, name string) string {
	switch {
	case path == "":
		return name
	case name == "" || path == name || strings.HasSuffix(path, "."+name):
		return path
	}
	return path + "." + name
}

// typeOf is the member `type` of an object of a client, short enough for a path. Parts of Gemini have none: what they are is the name of a member.
func typeOf(raw canon.Raw) string {
	kind := jsonx.Get(raw, "type")
	if kind == nil {
		for it := jsonx.Object(raw); it.Next(); {
			if jsonx.KindOf(it.Value()) == jsonx.KindObject {
				return short(plainText(it.Key()))
			}
		}
	}
	t, _ := jsonx.Text(kind)
	return short(t)
}

// short bounds a name that a client has chosen, if there is one.
func short(name string) string {
	if name == "" {
		return ""
	}
	return dialect.LossName([]byte(name))
}
