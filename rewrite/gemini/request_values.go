package gemini

import (
	"bytes"
	"encoding/base64"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// text reads a string; null is absent.
func (in *callReader) text(raw []byte, path string) canon.Text {
	if jsonx.IsNull(raw) {
		return nil
	}
	text, ok := jsonx.Interior(raw)
	if !ok {
		in.fail(path, dialect.MustBe(jsonx.KindString))
		return nil
	}
	return text
}

// word reads a string that is compared with words; absent and null are nil.
func (in *callReader) word(raw []byte, path string) string {
	return string(fold.Name(in.text(raw, path)))
}

// of gives raw back if it is of the kind.
func (in *callReader) of(kind jsonx.Kind, raw []byte, path string) canon.Raw {
	if jsonx.KindOf(raw) != kind {
		in.fail(path, dialect.MustBe(kind))
		return nil
	}
	return raw
}

// integer reads an integer. One in a string is one, too, as in every JSON form of a protocol buffer.
func (in *callReader) integer(raw []byte, path string) canon.Raw {
	if text, ok := jsonx.Interior(raw); ok {
		raw = text
	}
	if _, ok := jsonx.Int(raw); !ok {
		in.fail(path, "must be an integer")
		return nil
	}
	return raw
}

func (in *callReader) flag(raw []byte, path string) bool {
	if in.of(jsonx.KindBool, raw, path) == nil {
		return false
	}
	return raw[0] == 't'
}

// make keeps the text that write appends.
func (in *callReader) make(write func(dst []byte) []byte) canon.Text {
	start := len(in.made)
	in.made = write(in.made)
	return in.made[start:len(in.made):len(in.made)]
}

// base64Text reads bytes. They may be written in the letters for URLs, and without their padding; others know neither.
func (in *callReader) base64Text(raw []byte, path string) canon.Text {
	text := in.text(raw, path)
	if bytes.IndexByte(text, '\\') >= 0 { // an escaped slash
		text = in.make(func(dst []byte) []byte { return jsonx.AppendUnquoted(dst, text) })
	}
	if bytes.IndexByte(text, '"') >= 0 || bytes.IndexByte(text, '\\') >= 0 {
		in.fail(path, "must be base64")
		return nil
	}
	if len(text)%4 == 0 && bytes.IndexByte(text, '-') < 0 && bytes.IndexByte(text, '_') < 0 {
		return text
	}
	return in.make(func(dst []byte) []byte {
		from := len(dst)
		dst = append(dst, bytes.TrimRight(text, "=")...)
		for i, c := range dst[from:] {
			switch c {
			case '-':
				dst[from+i] = '+'
			case '_':
				dst[from+i] = '/'
			}
		}
		for (len(dst)-from)%4 != 0 {
			dst = append(dst, byte(base64.StdPadding))
		}
		return dst
	})
}
