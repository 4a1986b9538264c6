package capture

import (
	"bytes"
	"slices"

	"rolltap/internal/jsonx"
)

// OutlineFrom is from which length on, in bytes, a line is read in outline where its texts are not wanted whole.
const OutlineFrom = 4 << 20

// What an outline keeps. A container is full when it has this many bytes, by its depth; the last entry is for all below. A full
// one keeps of what follows only the last member, since what matters of a conversation stands at its ends, and rolltap's own
// member at the end of the line.
const (
	outlineText  = 16 << 10 // of a string
	outlineDepth = 24       // containers inside each other; what is deeper becomes null
)

// fullAt is the size at which a container of this depth is full.
func fullAt(depth int) int {
	switch depth {
	case 1: // the record
		return 8 << 20
	case 2: // a body
		return 2 << 20
	case 3: // messages, output, choices
		return 768 << 10
	case 4: // a message
		return 192 << 10
	case 5:
		return 64 << 10
	}
	return 16 << 10
}

// outline makes a small object of a line that arrives in pieces. Whether the line is JSON is judged by a Compactor that sees the
// same bytes; what comes out for a line that is none is dropped.
type outline struct {
	check  jsonx.Compactor
	failed bool
	front  bool // something but white space and NUL bytes was there
	hole   bool // NUL bytes were in front
	done   bool // the line was handed out whole

	out   []byte
	open  []level // the containers that the next byte is in
	skip  int     // containers that are open and not kept, below open
	state outlineState
	from  int // where the string or word in progress begins in out
	cut   bool
	hex   int // bytes of an escape that are still to come

	keepers []string // members of the line that stay whole
	whole   bool     // the member in progress is one of them
	free    int      // bytes of out that such members take
	began   int      // where the one in progress begins in out
}

// level is an open container that is kept.
type level struct {
	from  int // where it begins in out
	mark  int // where the member begins that the next one replaces; 0: it is not full
	close byte
}

type outlineState uint8

const (
	between outlineState = iota // tokens
	inText
	inWord // a number, true, false or null
)

func newOutline(whole []string) *outline { return &outline{keepers: whole} }

// add takes the next bytes of the line.
func (o *outline) add(p []byte) {
	if !o.front {
		rest := bytes.TrimLeft(p, "\x00 \t\r\n")
		o.hole = o.hole || bytes.IndexByte(p[:len(p)-len(rest)], 0) >= 0
		if p = rest; len(p) == 0 {
			return
		}
		o.front = true
	}
	if o.failed || o.check.Check(p) != nil {
		o.failed = true
		return
	}
	for i := 0; i < len(p); {
		switch o.state {
		case inText:
			i = o.text(p, i)
		case inWord:
			i = o.word(p, i)
		default:
			o.token(p[i])
			i++
		}
	}
}

// result is the outline, as a line is judged.
func (o *outline) result() (raw []byte, hole bool, damage error) {
	if !o.front {
		if o.hole {
			return nil, true, ErrHole
		}
		return nil, false, nil
	}
	if o.failed {
		return nil, o.hole, ErrNoJSON
	}
	switch kind, err := o.check.Finish(); {
	case err != nil:
		return nil, o.hole, ErrNoJSON
	case kind != jsonx.KindObject:
		return nil, o.hole, ErrNoObject
	}
	return o.out, o.hole, nil
}

// token takes a byte between strings and words.
func (o *outline) token(b byte) {
	switch b {
	case ' ', '\t', '\r', '\n':
	case '"':
		o.state, o.cut, o.hex = inText, false, 0
		if o.skip == 0 {
			o.from = len(o.out)
			o.out = append(o.out, b)
		}
	case '{', '[':
		switch {
		case o.skip > 0:
			o.skip++
		case len(o.open) >= outlineDepth && !o.whole:
			o.out = append(o.out, "null"...)
			o.skip = 1
		default:
			o.open = append(o.open, level{from: len(o.out), close: b + 2}) // '{'+2 is '}', '['+2 is ']'
			o.out = append(o.out, b)
		}
	case '}', ']':
		if o.skip > 0 {
			o.skip--
			return
		}
		o.out = append(o.out, b)
		o.open = o.open[:len(o.open)-1]
	case ',':
		if o.skip == 0 {
			o.comma()
		}
	case ':':
		if o.skip > 0 {
			return
		}
		if len(o.open) == 1 {
			key := o.out[min(o.from+1, len(o.out)-1) : len(o.out)-1]
			o.whole, o.began = slices.ContainsFunc(o.keepers, func(k string) bool { return k == string(key) }), len(o.out)
		}
		o.out = append(o.out, b)
	default:
		o.state = inWord
		if o.skip == 0 {
			o.from = len(o.out)
			o.out = append(o.out, b)
		}
	}
}

// comma begins another member: in the place of the last one when the container is full.
func (o *outline) comma() {
	in := &o.open[len(o.open)-1]
	if o.whole && len(o.open) == 1 {
		o.free += len(o.out) - o.began
		if in.mark > 0 {
			in.mark = len(o.out)
		}
		o.whole = false
	}
	switch {
	case o.whole:
	case in.mark > 0:
		o.out = o.out[:in.mark]
	case len(o.out)-in.from-o.free > fullAt(len(o.open)):
		in.mark = len(o.out)
	}
	o.out = append(o.out, ',')
}

// text takes bytes of a string up to its closing quote.
func (o *outline) text(p []byte, i int) int {
	for i < len(p) {
		if o.hex > 0 { // inside an escape
			o.keep(p[i : i+1])
			if o.hex--; o.hex == 0 && p[i] == 'u' {
				o.hex = -4
			}
			i++
			continue
		}
		if o.hex < 0 {
			o.keep(p[i : i+1])
			o.hex++
			i++
			continue
		}
		if !o.cut && o.skip == 0 && !o.whole && len(o.out)-o.from > outlineText && (p[i] < 0x80 || p[i] >= 0xc0) {
			o.cut = true // before a whole character
		}
		n := i
		limit := len(p)
		if !o.cut {
			limit = min(limit, i+outlineText)
		}
		for n < limit && p[n] != '"' && p[n] != '\\' {
			n++
		}
		o.keep(p[i:n])
		if i = n; n == limit {
			continue
		}
		if p[n] == '\\' {
			o.keep(p[n : n+1])
			o.hex = 1
			i++
			continue
		}
		if o.skip == 0 {
			o.out = append(o.out, '"')
		}
		o.state = between
		return n + 1
	}
	return i
}

// keep appends what belongs to a string that is not cut.
func (o *outline) keep(p []byte) {
	if o.skip == 0 && !o.cut {
		o.out = append(o.out, p...)
	}
}

// word takes bytes of a number or a literal; one that no reader can want becomes null.
func (o *outline) word(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch p[i] {
		case ' ', '\t', '\r', '\n', ',', ':', '}', ']':
			if o.skip == 0 && !o.whole && len(o.out)-o.from > outlineText {
				o.out = append(o.out[:o.from], "null"...)
			}
			o.state = between
			return i
		}
		if o.skip == 0 && (o.whole || len(o.out)-o.from <= outlineText) {
			o.out = append(o.out, p[i])
		}
	}
	return i
}
