package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes at a time. In each byte of a word the top bit answers "does this byte need a look?".
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// escapes finds, exactly, the bytes of w that become longer in a string by a backslash in front, and all others that do not
// stay as they are or are not ASCII. No sum carries into the byte above.
func escapes(w uint64) (quotes, others uint64) {
	const lows = tops - ones
	low := w & lows
	quotes = ^((low^ones*'"'+lows)&(low^ones*'\\'+lows) | w) & tops
	others = (w | ^(low + ones*(0x80-' '))) & tops
	return quotes, others
}

// plain returns the index of the first byte of p from i on that ends a run inside a string: a quote, a
// backslash, a control character or a byte of a multi-byte sequence. It returns len(p) if there is none.
func plain(p []byte, i int) int {
	for i+32 <= len(p) {
		q := p[i : i+32 : i+32]
		h0, h1 := hits(binary.LittleEndian.Uint64(q)), hits(binary.LittleEndian.Uint64(q[8:]))
		h2, h3 := hits(binary.LittleEndian.Uint64(q[16:])), hits(binary.LittleEndian.Uint64(q[24:]))
		if (h0|h1|h2|h3)&tops == 0 {
			i += 32
			continue
		}
		if h0 &= tops; h0 != 0 {
			return i + bits.TrailingZeros64(h0)>>3
		}
		if h1 &= tops; h1 != 0 {
			return i + 8 + bits.TrailingZeros64(h1)>>3
		}
		if h2 &= tops; h2 != 0 {
			return i + 16 + bits.TrailingZeros64(h2)>>3
		}
		return i + 24 + bits.TrailingZeros64(h3&tops)>>3
	}
	for ; i+8 <= len(p); i += 8 {
		if h := hits(binary.LittleEndian.Uint64(p[i:])) & tops; h != 0 {
			return i + bits.TrailingZeros64(h)>>3
		}
	}
	for i < len(p) && isPlain(p[i]) {
		i++
	}
	return i
}

// hits marks in the top bits the bytes of w that end a run, and maybe bytes above such a one: a subtraction borrows from the byte above
// only if this byte is a hit itself, so the lowest hit is exact, and only that one is used.
func hits(w uint64) uint64 {
	return w | (w - ones*' ') | (w ^ ones*'"' - ones) | (w ^ ones*'\\' - ones)
}

func isPlain(b byte) bool { return b >= ' ' && b < 0x80 && b != '"' && b != '\\' }

func isSpace(b byte) bool { return b <= ' ' && (b == ' ' || b == '\n' || b == '\r' || b == '\t') }

// text consumes the inside of a string from p[i] on, up to and with its closing quote.
func (c *Compactor) text(p []byte, i int) int {
	c.state = stString
	for {
		i = plain(p, i)
		if i == len(p) {
			return i
		}
		switch b := p[i]; {
		case b == '"':
			if c.name {
				c.state = stColon
			} else {
				c.close()
			}
			return i + 1
		case b == '\\':
			from := i
			for i+1 < len(p) && p[i] == '\\' && isEscape(p[i+1]) { // often several stand together
				i += 2
			}
			if i > from {
				continue
			}
			c.state = stEscape
		case b < ' ':
			c.state = stBad
			return i
		default:
			if i = wide(p, i); i == len(p) || p[i] < 0x80 {
				continue
			}
			if c.need, c.lo, c.hi = lead(p[i]); c.need == 0 {
				c.state = stBad
				return i
			}
			c.state = stUTF8
		}
		// Something that may reach over the end of p: byte by byte until it is over.
		i++
		for i < len(p) && c.state != stString {
			if i = c.inner(p, i); c.state == stBad {
				return i
			}
		}
		if i == len(p) {
			return i
		}
	}
}

// wide returns the index of the first byte of p from i on that is ASCII or begins no whole multi-byte
// sequence. Text in most scripts is one sequence of two or three bytes after the other.
func wide(p []byte, i int) int {
	for i < len(p) {
		switch b := p[i]; {
		case b < 0x80:
			return i
		case 0xc2 <= b && b < 0xe0 && i+2 <= len(p) && p[i+1]&0xc0 == 0x80:
			i += 2
			continue
		case 0xe0 < b && b < 0xf0 && b != 0xed && i+3 <= len(p) && p[i+1]&0xc0 == 0x80 && p[i+2]&0xc0 == 0x80:
			i += 3
			continue
		}
		n := sequence(p[i:])
		if n <= 0 {
			return i
		}
		i += n
	}
	return i
}

// inner consumes one byte of an escape or of a multi-byte sequence.
func (c *Compactor) inner(p []byte, i int) int {
	b := p[i]
	switch c.state {
	case stEscape:
		switch {
		case isEscape(b):
			c.state = stString
		case b == 'u':
			c.state, c.need = stHex, 4
		default:
			c.state = stBad
		}
		return i + 1
	case stHex:
		if hexDigit(b) < 0 {
			c.state = stBad
			return i
		}
	default: // stUTF8
		if b < c.lo || b > c.hi {
			c.state = stBad
			return i
		}
		c.lo, c.hi = 0x80, 0xbf
	}
	if c.need--; c.need == 0 {
		c.state = stString
	}
	return i + 1
}

// isEscape reports whether b after a backslash makes a whole escape.
func isEscape(b byte) bool {
	const quote, letters = 1<<'"' | 1<<'/', 1<<('\\'-64) | 1<<('b'-64) | 1<<('f'-64) | 1<<('n'-64) | 1<<('r'-64) | 1<<('t'-64)
	return uint64(quote)>>b&1 != 0 || uint64(letters)>>(b-64)&1 != 0
}

// hexDigit returns the value of b, or -1.
func hexDigit(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	}
	return -1
}

// lead says how many continuation bytes follow b and between which bounds the first of them lies (Unicode
// table 3-7). No bytes: b begins nothing longer than itself.
func lead(b byte) (need, lo, hi uint8) {
	switch {
	case b < 0xc2:
		return 0, 0, 0
	case b < 0xe0:
		return 1, 0x80, 0xbf
	case b == 0xe0:
		return 2, 0xa0, 0xbf
	case b == 0xed:
		return 2, 0x80, 0x9f
	case b < 0xf0:
		return 2, 0x80, 0xbf
	case b == 0xf0:
		return 3, 0x90, 0xbf
	case b < 0xf4:
		return 3, 0x80, 0xbf
	case b == 0xf4:
		return 3, 0x80, 0x8f
	}
	return 0, 0, 0
}

// sequence judges the multi-byte sequence in front of p, whose first byte is not ASCII. It returns its
// length; 0 if p ends inside of it; or the negative length of the longest beginning of a sequence there,
// at least one byte, which one replacement character stands for.
func sequence(p []byte) int {
	need, lo, hi := lead(p[0])
	if need == 0 {
		return -1
	}
	n := int(need) + 1
	for k := 1; k < n; k++ {
		if k == len(p) {
			return 0
		}
		if p[k] < lo || p[k] > hi {
			return -k
		}
		lo, hi = 0x80, 0xbf
	}
	return n
}
