package tokens

import (
	"encoding/binary"
	"math/bits"

	"rolltap/internal/jsonx"
)

// members walks the members of an object and judges it at the same time: the members' values are read by the caller, who puts the index
// after each, or -1, into i.
type members struct {
	p     []byte
	i     int // where reading goes on; -1: this is no JSON
	depth int // containers around the members, the object itself included

	key  []byte // between the quotes; what was escaped is decoded
	from int    // where the member begins
	prev int    // the end of the value in front of it, or where the object begins

	begun   bool
	kept    bool // a member in front of this one stays
	cut     bool // this one goes
	pending int  // 1 + the edit that reaches to the next member
}

// enter begins to walk the object at p[i]; where there is none, next is false and i is -1. m is new.
func (m *members) enter(p []byte, i, depth int) {
	if i < 0 || i >= len(p) || p[i] != '{' || depth >= jsonx.MaxDepth {
		m.i = -1
		return
	}
	m.p, m.i, m.depth = p, i+1, depth+1
}

// next goes to the next member: i is then where its value begins. When there is none, i is the index after the object, or -1.
func (m *members) next() bool {
	p, i := m.p, m.i
	if i < 0 {
		return false
	}
	m.prev = i
	if i < len(p) && p[i] <= ' ' {
		i = space(p, i)
	}
	if i >= len(p) {
		m.i = -1
		return false
	}
	if m.begun {
		m.kept = m.kept || !m.cut
		m.cut = false
	}
	switch {
	case p[i] == '}':
		m.i = i + 1
		return false
	case !m.begun:
		m.begun = true
	case p[i] != ',':
		m.i = -1
		return false
	default:
		if i++; i < len(p) && p[i] <= ' ' {
			i = space(p, i)
		}
	}
	end, plain := text(p, i, m.depth)
	if end < 0 {
		m.i = -1
		return false
	}
	m.from, m.key = i, p[i+1:end-1]
	if !plain {
		m.key = jsonx.Unquoted(m.key)
	}
	if i = end; i < len(p) && p[i] <= ' ' {
		i = space(p, i)
	}
	if i >= len(p) || p[i] != ':' {
		m.i = -1
		return false
	}
	if i++; i < len(p) && p[i] <= ' ' {
		i = space(p, i)
	}
	m.i = i
	return true
}

// skip reads the value and returns it.
func (m *members) skip() []byte {
	from := m.i
	if m.i = valueEnd(m.p, from, m.depth); m.i < 0 {
		return nil
	}
	return m.p[from:m.i]
}

// told is skip with nil for null.
func (m *members) told() []byte {
	raw := m.skip()
	if len(raw) == 4 && string(raw) == "null" {
		return nil
	}
	return raw
}

// valueEnd is jsonx.ValueEnd with a short way for what most values are.
func valueEnd(p []byte, i, depth int) int {
	if i >= len(p) {
		return -1
	}
	switch b := p[i]; {
	case b == '"':
		end, _ := text(p, i, depth)
		return end
	case b == 'n':
		if len(p)-i >= 4 && string(p[i:i+4]) == "null" {
			return i + 4
		}
	case b == '[' && depth < jsonx.MaxDepth:
		if end, _ := plainIDs(p, i); end >= 0 {
			return end
		}
	case b == '-' || b-'0' <= 9:
		if end := plainNumber(p, i); end >= 0 {
			return end
		}
	}
	return jsonx.ValueEnd(p, i, depth)
}

// plainNumber returns the index after the number at p[i], or -1 if it has an exponent, stands at the end, or is none.
func plainNumber(p []byte, i int) int {
	if p[i] == '-' {
		i++
	}
	from := i
	for i < len(p) && p[i]-'0' <= 9 {
		i++
	}
	if i == from || i-from > 1 && p[from] == '0' {
		return -1
	}
	if i < len(p) && p[i] == '.' {
		i++
		from = i
		for i < len(p) && p[i]-'0' <= 9 {
			i++
		}
		if i == from {
			return -1
		}
	}
	if i == len(p) || p[i]|0x20 == 'e' {
		return -1
	}
	return i
}

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// text returns the index after the string at p[i], or -1; plain: nothing in it is escaped. Most are short and plain, and found without a
// call.
func text(p []byte, i, depth int) (end int, plain bool) {
	if i >= len(p) || p[i] != '"' {
		return -1, false
	}
	for at := i + 1; at+8 <= len(p); at += 8 {
		w := binary.LittleEndian.Uint64(p[at:])
		quote, slash := w^ones*'"', w^ones*'\\'
		// Bytes that are a quote, a backslash, a control character or no ASCII. The lowest hit is exact: a byte that borrows from the one
		// above is a hit itself.
		hits := ((quote-ones)&^quote | (slash-ones)&^slash | (w - ones*' ') | w) & tops
		if hits == 0 {
			continue
		}
		if at += bits.TrailingZeros64(hits) >> 3; p[at] == '"' {
			return at + 1, true
		}
		break
	}
	return jsonx.ValueEnd(p, i, depth), false
}

func space(p []byte, i int) int {
	for i < len(p) && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}
