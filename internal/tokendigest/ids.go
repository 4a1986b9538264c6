package tokendigest

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrTokens says that a text is no list of token ids: integers from 0 to 2^64-1, without fraction, exponent, sign and leading zeros.
var ErrTokens = errors.New("not a list of token ids")

// ErrShort says that there are fewer token ids than were asked for.
var ErrShort = errors.New("too few token ids")

// Sum returns the digest of the ids of all lists, one behind the other, and how many they are.
func Sum(lists ...[]byte) (digest string, n int, err error) {
	for _, list := range lists {
		n += newIDs(list).count()
	}
	h := New(n)
	for _, list := range lists {
		ids := newIDs(list)
		if err := ids.addTo(h, -1); err != nil {
			return "", 0, err
		}
	}
	digest, _ = h.Hex() // of a well written list the count is right
	return digest, n, nil
}

// Prefix returns the digest of the first n ids of a list. With fewer ids the error is ErrShort; what is behind the n ids is not read.
func Prefix(list []byte, n int) (string, error) {
	ids := newIDs(list)
	if n < 0 || n > ids.count() {
		return "", fmt.Errorf("%w: %d of %d", ErrShort, n, ids.count())
	}
	h := New(n)
	if err := ids.addTo(h, n); err != nil {
		return "", err
	}
	digest, _ := h.Hex()
	return digest, nil
}

// Suffix returns the ids behind the first n as a JSON array of its own, spelled as in the list. The error is ErrShort or ErrTokens.
func Suffix(list []byte, n int) ([]byte, error) {
	ids := newIDs(list)
	if n < 0 || n > ids.count() {
		return nil, fmt.Errorf("%w: %d of %d", ErrShort, n, ids.count())
	}
	if _, err := ids.skip(n); err != nil {
		return nil, err
	}
	rest := bytes.TrimLeft(ids.text[ids.i:], space)
	if _, err := ids.skip(-1); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(rest)+2)
	out = append(out, '[')
	out = append(out, rest...)
	return append(out, ']'), nil
}

// Count returns how many ids a list has.
func Count(list []byte) (int, error) {
	ids := newIDs(list)
	return ids.skip(-1)
}

// ID returns the id that all of text spells.
func ID(text []byte) (uint64, bool) {
	id, end, ok := number(text, 0)
	return id, ok && end == len(text)
}

// number reads the id at s[i:] and returns where it ends.
func number(s []byte, i int) (id uint64, end int, ok bool) {
	from := i
	for i < len(s) && s[i]-'0' < 10 {
		id = id*10 + uint64(s[i]-'0')
		i++
	}
	digits := i - from
	if digits == 0 || s[from] == '0' && digits > 1 || digits > 20 || digits == 20 && (s[from] != '1' || id < 1e19) {
		return 0, i, false
	}
	return id, i, true
}

// tokenIDs walks the ids of a list.
type tokenIDs struct {
	text []byte // between the brackets, without white space around it; a bracket without its pair is in it and is no id
	i    int
}

const space = " \t\r\n"

func newIDs(list []byte) tokenIDs {
	list = bytes.Trim(list, space)
	if n := len(list); n > 1 && list[0] == '[' && list[n-1] == ']' {
		list = bytes.Trim(list[1:n-1], space)
	}
	return tokenIDs{text: list}
}

// count is how many ids there are if all are well written.
func (t tokenIDs) count() int {
	if len(t.text) == 0 {
		return 0
	}
	return bytes.Count(t.text, []byte(",")) + 1
}

// next returns the next id. It returns false behind the last one.
func (t *tokenIDs) next() (uint64, bool, error) {
	s, i := t.text, t.i
	if i >= len(s) {
		return 0, false, nil
	}
	for i < len(s) && s[i] <= ' ' && isSpace(s[i]) {
		i++
	}
	id, i, ok := number(s, i)
	if !ok {
		return 0, false, ErrTokens
	}
	for i < len(s) && s[i] <= ' ' && isSpace(s[i]) {
		i++
	}
	if i < len(s) {
		// Something has to follow a comma: white space at the end was cut off.
		if i++; s[i-1] != ',' || i == len(s) {
			return 0, false, ErrTokens
		}
	}
	t.i = i
	return id, true, nil
}

// skip walks over at most limit ids, or all if it is negative, and returns how many.
func (t *tokenIDs) skip(limit int) (n int, err error) {
	for ; n != limit; n++ {
		if _, ok, err := t.next(); err != nil || !ok {
			return n, err
		}
	}
	return n, nil
}

// addTo digests at most limit ids, or all if it is negative.
func (t *tokenIDs) addTo(h *Hash, limit int) error {
	for n := 0; n != limit; n++ {
		id, ok, err := t.next()
		if err != nil || !ok {
			return err
		}
		h.Add(id)
	}
	return nil
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }
