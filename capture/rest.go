package capture

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unsafe"

	"rolltap/internal/jsonx"
)

// A text of an outline that was made by Refer may end in a rest: it stands for the bytes of the text that were left in the file, and
// says where they lie. It is found and kept wherever the text goes, in JSON and decoded, since it has two bytes that no JSON has:
//
//	0xff  kind  offset, 16 hexadecimal digits  length, 16 hexadecimal digits  0xff
//
// Texts with rests may be joined and nested. A rest may also stand for a whole value in JSON (Line.Body, Rests.Value), which only a Rests
// reads. Only a Rests may write them out.
const (
	restMark = 0xff
	restLen  = 1 + 1 + 16 + 16 + 1
)

// What becomes of the bytes in the file, which are those of a JSON text.
const (
	restRaw     = 'r' // they stand there as they are: in JSON, and in a text that is JSON
	restDecoded = 't' // their escapes are decoded: in a text
	restEscaped = 'e' // they are escaped once more: in JSON with a text that is JSON
	restValue   = 'v' // their escapes are decoded, and the white space between the tokens is dropped: a value in JSON that a text is
)

// textRest is a rest, taken apart.
type textRest struct {
	kind byte
	from int64 // in the file
	size int64
}

// chars are strings and bytes.
type chars interface{ ~string | ~[]byte }

func appendRest(dst []byte, k textRest) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(k.from))
	binary.BigEndian.PutUint64(b[8:], uint64(k.size))
	dst = append(dst, restMark, k.kind)
	return append(hex.AppendEncode(dst, b[:]), restMark)
}

// nextRest finds the first rest in s: what stands before and behind it. ok is false when there is none.
func nextRest[T chars](s T) (before T, k textRest, behind T, ok bool) {
	i := indexRest(s)
	if i < 0 || len(s) < i+restLen {
		return s, textRest{}, s[len(s):], false
	}
	var b [16]byte
	if _, err := hex.Decode(b[:], []byte(s[i+2:i+restLen-1])); err != nil {
		return s, textRest{}, s[len(s):], false
	}
	k = textRest{s[i+1], int64(binary.BigEndian.Uint64(b[:8])), int64(binary.BigEndian.Uint64(b[8:]))}
	return s[:i], k, s[i+restLen:], true
}

func indexRest[T chars](s T) int {
	if len(s) == 0 {
		return -1
	}
	return strings.IndexByte(view(s), restMark)
}

// view is s as a string that is only read, and not kept.
func view[T chars](s T) string {
	switch s := any(s).(type) {
	case string:
		return s
	case []byte:
		return unsafe.String(unsafe.SliceData(s), len(s))
	}
	return string(s)
}

// HasRest reports whether there is a rest in s.
func HasRest[T chars](s T) bool { return indexRest(s) >= 0 }

// AtMost is the length of s with its rests, at most: their escapes count as they stand in the file.
func AtMost[T chars](s T) int64 {
	n := int64(0)
	for {
		before, k, behind, ok := nextRest(s)
		n += int64(len(before))
		if !ok {
			return n
		}
		n += k.size
		s = behind
	}
}

// Brief is s with the sign of an ellipsis in the place of each rest, for names and the like, which nobody needs at that length.
func Brief(s string) string {
	if !HasRest(s) {
		return s
	}
	var b strings.Builder
	for {
		before, _, behind, ok := nextRest(s)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString("…")
		s = behind
	}
}

// Text is jsonx.Text for a value that may have rests.
func Text(raw []byte) (string, bool) {
	s, ok := jsonx.Text(raw)
	if !ok || !HasRest(s) {
		return s, ok
	}
	b := make([]byte, 0, len(s))
	for {
		before, k, behind, ok := nextRest(s)
		b = append(b, before...)
		if !ok {
			return string(b), true
		}
		if k.kind == restRaw {
			k.kind = restDecoded
		}
		b = appendRest(b, k)
		s = behind
	}
}

// AppendText is jsonx.AppendString for a text that may have rests.
func AppendText(dst []byte, s string) []byte {
	if !HasRest(s) {
		return jsonx.AppendString(dst, s)
	}
	dst = append(dst, '"')
	for {
		before, k, behind, ok := nextRest(s)
		dst = jsonx.AppendEscaped(dst, []byte(before))
		if !ok {
			return append(dst, '"')
		}
		switch k.kind {
		case restDecoded:
			k.kind = restRaw
		case restRaw:
			k.kind = restEscaped
		}
		dst = appendRest(dst, k)
		s = behind
	}
}
