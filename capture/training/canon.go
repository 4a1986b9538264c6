package training

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/internal/tokendigest"
)

// The canonical spelling is that of the reference's writer, so that it would spell what it read from us as we did: no white
// space, members sorted by the bytes of their names, texts with the fewest escapes, and numbers as follows. An integer keeps its
// spelling. Everything else is a double: the fewest digits that give it back, with a point from 1e-5 up to below 1e16 and
// with an exponent outside.

// depthMax is how deep values may be nested: the reference's writer gives up at 254, with the entry around them.
const depthMax = 200

// canonIDs returns a JSON array of token ids without white space, raw itself when it has none, and how many ids there are.
func canonIDs(raw []byte) (out []byte, n int, err error) {
	if jsonx.KindOf(raw) != jsonx.KindArray { // a bare list is none here
		return nil, 0, fmt.Errorf("%w: token ids are no array", ErrEntry)
	}
	if n, err = tokendigest.Count(raw); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	for _, b := range []byte(" \n\t\r") {
		if bytes.IndexByte(raw, b) >= 0 {
			return jsonx.AppendCompact(make([]byte, 0, len(raw)), raw), n, nil
		}
	}
	return raw, n, nil
}

// canonNumbers returns a JSON array of numbers as one of canonical doubles, raw itself when it is, and how many there are.
func canonNumbers(raw []byte) (out []byte, n int, err error) {
	if jsonx.KindOf(raw) != jsonx.KindArray || !jsonx.Valid(raw) {
		return nil, 0, fmt.Errorf("%w: log probabilities are no array", ErrEntry)
	}
	size, same := 2, true
	for it := jsonx.Array(raw); it.Next(); n++ {
		if jsonx.KindOf(it.Value()) != jsonx.KindNumber {
			return nil, 0, fmt.Errorf("%w: log probability %d is no number", ErrEntry, n)
		}
		size += len(it.Value())
		same = same && plainDouble(it.Value())
	}
	if n > 0 {
		size += n - 1
	}
	if same && size == len(raw) {
		return raw, n, nil
	}
	out = append(make([]byte, 0, len(raw)+2*n), '[')
	for it := jsonx.Array(raw); it.Next(); {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if out, err = appendDouble(out, it.Value()); err != nil {
			return nil, 0, err
		}
	}
	return append(out, ']'), n, nil
}

// plainDouble reports whether a number is certainly spelled canonically: at most 15 digits, some of them behind the point and
// the last one needed, and not near the borders. False proves nothing.
func plainDouble(raw []byte) bool {
	if raw[0] == '-' {
		raw = raw[1:]
	}
	point := bytes.IndexByte(raw, '.')
	if point < 1 || len(raw) > 16 || point+1 == len(raw) {
		return false
	}
	for i, b := range raw {
		if i != point && b-'0' > 9 {
			return false
		}
	}
	if last := raw[len(raw)-1]; last == '0' && len(raw) > point+2 {
		return false
	}
	return raw[0] != '0' || !bytes.HasPrefix(raw[point+1:], []byte("000")) // else perhaps below 1e-5
}

// appendDouble appends a JSON number as the double that it is.
func appendDouble(dst, raw []byte) ([]byte, error) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return dst, fmt.Errorf("%w: a number is beyond doubles", ErrEntry)
	}
	if string(raw) == "-0" {
		f = 0 // it was an integer
	}
	return appendFloat(dst, f), nil
}

func appendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-5 || a >= 1e16) {
		from := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// 1e-07: an exponent has no leading zero. Its sign stays.
		if e := bytes.LastIndexByte(dst[from:], 'e') + from; dst[e+2] == '0' {
			dst = slices.Delete(dst, e+2, e+3)
		}
		return dst
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[from:], '.') < 0 {
		dst = append(dst, '.', '0')
	}
	return dst
}

// appendCanon appends a valid JSON value.
func appendCanon(dst, raw []byte, depth int) ([]byte, error) {
	if depth > depthMax {
		return dst, fmt.Errorf("%w: more than %d containers inside each other", ErrEntry, depthMax)
	}
	var err error
	switch jsonx.KindOf(raw) {
	case jsonx.KindObject:
		return appendCanonObject(dst, raw, depth)
	case jsonx.KindArray:
		dst = append(dst, '[')
		first := true
		for it := jsonx.Array(raw); it.Next(); {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			if dst, err = appendCanon(dst, it.Value(), depth+1); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case jsonx.KindString:
		interior, _ := jsonx.Interior(raw)
		return appendCanonText(dst, interior)
	case jsonx.KindNumber:
		if raw = bytes.TrimSpace(raw); bytes.ContainsAny(raw, ".eE") {
			return appendDouble(dst, raw)
		}
		if string(raw) == "-0" {
			raw = raw[1:]
		}
		return append(dst, raw...), nil
	}
	return append(dst, bytes.TrimSpace(raw)...), nil
}

func appendCanonObject(dst, raw []byte, depth int) ([]byte, error) {
	type member struct{ name, key, value []byte }
	members := make([]member, 0, 8)
	for it := jsonx.Object(raw); it.Next(); {
		members = append(members, member{jsonx.Unquoted(it.Key()), it.Key(), it.Value()})
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	dst = append(dst, '{')
	first := true
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(m.name, members[i+1].name) {
			continue // the last one counts
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		var err error
		if dst, err = appendCanonText(dst, m.key); err != nil {
			return dst, err
		}
		if dst, err = appendCanon(append(dst, ':'), m.value, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendCanonText appends a string whose inside is given. A lone surrogate is refused: the reference cannot read it, and the
// whole rollout with it.
func appendCanonText(dst, interior []byte) ([]byte, error) {
	dst = append(dst, '"')
	if bytes.IndexByte(interior, '\\') < 0 {
		dst = append(dst, interior...)
	} else {
		if loneSurrogate(interior) {
			return dst, fmt.Errorf("%w: a text has a lone surrogate", ErrEntry)
		}
		dst = jsonx.AppendEscaped(dst, jsonx.Unquoted(interior))
	}
	return append(dst, '"'), nil
}

// loneSurrogate reports whether the inside of a valid JSON string has the escape of half a character.
func loneSurrogate(s []byte) bool {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return false
		}
		s = s[i:]
		u := unit(s)
		switch {
		case u < 0:
			s = s[2:]
		case u >= 0xdc00 && u < 0xe000:
			return true
		case u >= 0xd800 && u < 0xdc00:
			if low := unit(s[6:]); low < 0xdc00 || low >= 0xe000 {
				return true
			}
			s = s[12:]
		default:
			s = s[6:]
		}
	}
}

// unit is the code unit of the escape \uXXXX that s begins with, -1 when it begins otherwise.
func unit(s []byte) int {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(n)
}
