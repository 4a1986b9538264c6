package jsonx

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The walkers take raw JSON that Valid or a Compactor has accepted, with or without white space, and hand
// out parts of it. On anything else they stop early or hand out nonsense, but they end and do not panic.

// ObjectIter walks the members of an object in their order.
type ObjectIter struct {
	raw        []byte
	i          int // where the next member begins; -1 after the end
	key, value []byte
}

// Object walks the members of raw. If raw is no object there are none.
func Object(raw []byte) ObjectIter {
	return ObjectIter{raw: raw, i: enter(raw, '{')}
}

// Next goes to the next member. Members with the same name all come.
func (it *ObjectIter) Next() bool {
	if it.i < 0 {
		return false
	}
	raw, i := it.raw, it.i
	it.i = -1
	if i >= len(raw) || raw[i] != '"' {
		return false
	}
	end := skipString(raw, i)
	colon := skipSpace(raw, end)
	if colon >= len(raw) || raw[colon] != ':' {
		return false
	}
	from := skipSpace(raw, colon+1)
	to := skipValue(raw, from)
	if to <= from {
		return false
	}
	it.key, it.value = raw[i+1:end-1], raw[from:to]
	it.i = after(raw, to)
	return true
}

// Key returns what is between the quotes of the member's name, escapes as written. It is part of raw.
func (it *ObjectIter) Key() []byte { return it.key }

// Value returns the member's value, as written and without white space around it. It is part of raw.
func (it *ObjectIter) Value() []byte { return it.value }

// ArrayIter walks the elements of an array.
type ArrayIter struct {
	raw   []byte
	i     int // where the next element begins; -1 after the end
	value []byte
}

// Array walks the elements of raw. If raw is no array there are none.
func Array(raw []byte) ArrayIter {
	return ArrayIter{raw: raw, i: enter(raw, '[')}
}

// Next goes to the next element.
func (it *ArrayIter) Next() bool {
	if it.i < 0 {
		return false
	}
	raw, i := it.raw, it.i
	it.i = -1
	to := skipValue(raw, i)
	if to <= i {
		return false
	}
	it.value = raw[i:to]
	it.i = after(raw, to)
	return true
}

// Value returns the element as written, without white space around it. It is part of raw.
func (it *ArrayIter) Value() []byte { return it.value }

// Get returns the raw value of the last member of obj whose name is key after decoding its escapes. It is
// part of obj; nil if there is none or obj is no object.
func Get(obj []byte, key string) []byte {
	var found []byte
	for it := Object(obj); it.Next(); {
		if equalUnquoted(it.key, key) {
			found = it.value
		}
	}
	return found
}

// GetAll is Get for several keys in one pass: found[i] becomes the raw value of the last member called keys[i]. It leaves the
// others as they are, so found is usually new. Both have the same length.
func GetAll(obj []byte, keys []string, found [][]byte) {
	for it := Object(obj); it.Next(); {
		for i, key := range keys {
			if equalUnquoted(it.key, key) {
				found[i] = it.value
			}
		}
	}
}

// enter returns the index of the first token in the container that raw holds, or -1.
func enter(raw []byte, open byte) int {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != open {
		return -1
	}
	return skipSpace(raw, i+1)
}

// after returns the index of what follows the comma at i, or -1 if there is no comma.
func after(raw []byte, i int) int {
	i = skipSpace(raw, i)
	if i == len(raw) || raw[i] != ',' {
		return -1
	}
	return skipSpace(raw, i+1)
}

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && isSpace(raw[i]) {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at raw[i], or len(raw) if it has no end.
func skipString(raw []byte, i int) int {
	inside := i + 1
	from := inside
	// Most strings are shorter than what it costs to begin a search.
	for n := 0; n < 3 && from+8 <= len(raw); n++ {
		w := binary.LittleEndian.Uint64(raw[from:])
		// As in plain, the lowest hit is exact: a byte that borrows from the one above is a hit itself.
		hits := ((w^ones*'"'-ones)&^(w^ones*'"') | (w^ones*'\\'-ones)&^(w^ones*'\\')) & tops
		if hits == 0 {
			from += 8
			continue
		}
		if from += bits.TrailingZeros64(hits) >> 3; raw[from] == '"' {
			return from + 1
		}
		break
	}
	for {
		n := bytes.IndexByte(raw[from:], '"')
		if n < 0 {
			return len(raw)
		}
		quote := from + n
		back := quote
		for back > inside && raw[back-1] == '\\' {
			back--
		}
		if (quote-back)%2 == 0 {
			return quote + 1
		}
		from = quote + 1
	}
}

// skipValue returns the index after the value that begins at raw[i]; i itself if none begins there, and
// len(raw) if it has no end.
func skipValue(raw []byte, i int) int {
	if i >= len(raw) {
		return i
	}
	switch raw[i] {
	case '"':
		return skipString(raw, i)
	case '{', '[':
	default:
		for i < len(raw) && !isSpace(raw[i]) && raw[i] != ',' && raw[i] != '}' && raw[i] != ']' {
			i++
		}
		return i
	}
	for depth := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return i
}
