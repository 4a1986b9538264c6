package messages

import (
	"bytes"
	"encoding/hex"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// idPrefix begins the ids that appendCallID had to spell in other letters.
const idPrefix = "rtid_"

// appendCallID spells an id in the letters that ids may have here, ^[a-zA-Z0-9_-]+$ (dialects.md 1.12): one that has them is sent as it is,
// byte for byte. In any other, all but letters, digits and hyphens become _ and two hexadecimal digits, behind a prefix; no two ids become the
// same, and originalCallID has them back.
func appendCallID(dst, id []byte) []byte {
	const digits = "0123456789abcdef"
	ok := len(id) > 0 && !bytes.HasPrefix(id, []byte(idPrefix))
	for _, b := range id {
		ok = ok && (b == '_' || inCallID(b))
	}
	if ok {
		return append(dst, id...)
	}
	dst = append(dst, idPrefix...)
	for _, b := range jsonx.AppendUnquoted(nil, id) {
		if inCallID(b) {
			dst = append(dst, b)
		} else {
			dst = append(dst, '_', digits[b>>4], digits[b&15])
		}
	}
	return dst
}

func inCallID(b byte) bool {
	return b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// originalCallID is the id that appendCallID spelled so; any other is as it is.
func originalCallID(id canon.Text) canon.Text {
	spelled, ok := bytes.CutPrefix(id, []byte(idPrefix))
	if !ok {
		return id
	}
	var text []byte
	for len(spelled) > 0 {
		if spelled[0] != '_' {
			text, spelled = append(text, spelled[0]), spelled[1:]
			continue
		}
		if len(spelled) < 3 {
			return id
		}
		var err error
		if text, err = hex.AppendDecode(text, spelled[1:3]); err != nil {
			return id
		}
		spelled = spelled[3:]
	}
	original := jsonx.AppendEscaped(nil, text)
	if !bytes.Equal(appendCallID(nil, original), id) {
		return id
	}
	return original
}
