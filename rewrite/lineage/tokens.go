package lineage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// Token ids are texts here: decimal integers as the engine wrote them, in a JSON array or separated by commas alone. A sequence of a
// hundred thousand ids is hashed without a list of numbers ever being made of it.

const (
	tokenDomain   = "nemo-gym-tokens"
	digestVersion = 1
)

// ErrTokens says that a text is no list of token ids: integers from 0 to 2^64-1, without fraction, exponent, sign and leading zeros.
var ErrTokens = errors.New("not a list of token ids")

// ErrShort says that there are fewer token ids than were asked for.
var ErrShort = errors.New("too few token ids")

// TokenDigest returns the digest of the ids of all arrays, one behind the other, and how many they are.
func TokenDigest(arrays ...[]byte) (digest string, n int, err error) {
	for _, a := range arrays {
		n += newIDs(a).count()
	}
	h := newTokenHasher(n)
	for _, a := range arrays {
		ids := newIDs(a)
		if _, err := h.add(&ids, -1); err != nil {
			return "", 0, err
		}
	}
	return h.hex(), n, nil
}

// PrefixDigest returns the digest of the first n ids of array. A prompt continues a parent if the digest of as many first ids as the parent
// has in prompt and generation is the parent's digest. With fewer ids the error is ErrShort; what is behind the n ids is not read.
func PrefixDigest(array []byte, n int) (string, error) {
	ids := newIDs(array)
	if n < 0 || n > ids.count() {
		return "", fmt.Errorf("%w: %d of %d", ErrShort, n, ids.count())
	}
	h := newTokenHasher(n)
	if _, err := h.add(&ids, n); err != nil {
		return "", err
	}
	return h.hex(), nil
}

// Suffix returns the ids behind the first n as a JSON array of its own, spelled as in array. The error is ErrShort or ErrTokens.
func Suffix(array []byte, n int) ([]byte, error) {
	ids := newIDs(array)
	if n < 0 || n > ids.count() {
		return nil, fmt.Errorf("%w: %d of %d", ErrShort, n, ids.count())
	}
	for range n {
		if _, _, err := ids.next(); err != nil {
			return nil, err
		}
	}
	rest := bytes.TrimLeft(ids.text[ids.i:], space)
	for {
		_, ok, err := ids.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
	}
	out := make([]byte, 0, len(rest)+2)
	out = append(out, '[')
	out = append(out, rest...)
	return append(out, ']'), nil
}

// tokenHasher hashes ids, eight bytes each, big end first.
type tokenHasher struct {
	h   hash.Hash
	buf [4096]byte
	n   int // bytes in buf
}

// newTokenHasher is ready for n ids. Of an empty sequence only the domain is hashed.
func newTokenHasher(n int) *tokenHasher {
	h := &tokenHasher{h: sha256.New()}
	h.n = copy(h.buf[:], tokenDomain)
	if n > 0 {
		h.buf[h.n] = digestVersion
		binary.BigEndian.PutUint64(h.buf[h.n+1:], uint64(n))
		h.n += 9
	}
	return h
}

// add hashes at most limit ids, or all if it is negative, and returns how many.
func (h *tokenHasher) add(ids *tokenIDs, limit int) (int, error) {
	n := 0
	for ; n != limit; n++ {
		id, ok, err := ids.next()
		if err != nil || !ok {
			return n, err
		}
		if h.n+8 > len(h.buf) {
			h.h.Write(h.buf[:h.n])
			h.n = 0
		}
		binary.BigEndian.PutUint64(h.buf[h.n:], id)
		h.n += 8
	}
	return n, nil
}

func (h *tokenHasher) hex() string {
	h.h.Write(h.buf[:h.n])
	h.n = 0
	return hex.EncodeToString(h.h.Sum(h.buf[:0]))
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
	from := i
	var id uint64
	for i < len(s) && s[i]-'0' < 10 {
		id = id*10 + uint64(s[i]-'0')
		i++
	}
	digits := i - from
	if digits == 0 || s[from] == '0' && digits > 1 || digits > 20 || digits == 20 && (s[from] != '1' || id < 1e19) {
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

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }
