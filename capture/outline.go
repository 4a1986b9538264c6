package capture

import (
	"bytes"

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

// The same where texts refer to their rests. It is more, since nothing is to be missing of what any conversation holds.
const (
	referText = 1 << 10 // of a string
	referLess = 128     // and where there are very many
	referMany = 1 << 20 // bytes of a container with very many strings
)

// fullAt is the size at which a container of this depth is full.
func (o *outline) fullAt(depth int) int {
	if o.refer {
		switch depth {
		case 1:
			return 16 << 20
		case 2:
			return 10 << 20
		case 3:
			return 8 << 20
		}
		return 4 << 20
	}
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

	refer bool  // bodies have rests in the place of what their texts lack
	lossy bool  // something is missing that no rest is there for and that is picked
	body  int   // which body the member in progress is, -1: none
	rests bool  // its texts have rests
	at    int64 // where the bytes that add was given begin in the file
	lacks int64 // where what the string in progress lacks begins in the file
	most  int   // so much of the string in progress is kept

	picks Picks // of the line
	pick  Picks // of the member in progress in the innermost container
	drop  bool  // that member is not picked
	spans [bodies]bodySpan
}

// level is an open container that is kept.
type level struct {
	from  int // where it begins in out
	mark  int // where the member begins that the next one replaces; 0: it is not full
	close byte
	picks Picks
}

type outlineState uint8

const (
	between outlineState = iota // tokens
	inText
	inWord // a number, true, false or null
)

func newOutline() *outline { return &outline{body: -1} }

// add takes the next bytes of the line.
func (o *outline) add(p []byte) {
	end := o.at + int64(len(p))
	defer func() { o.at = end }()
	if !o.front {
		rest := bytes.TrimLeft(p, "\x00 \t\r\n")
		o.hole = o.hole || bytes.IndexByte(p[:len(p)-len(rest)], 0) >= 0
		o.at = end - int64(len(rest))
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
			o.token(p[i], o.at+int64(i))
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

// token takes a byte between strings and words, which stands at this place of the file.
func (o *outline) token(b byte, at int64) {
	switch b {
	case ' ', '\t', '\r', '\n':
	case '"':
		o.state, o.cut, o.hex, o.most = inText, false, 0, o.textMost()
		if o.skip == 0 {
			o.begins(b, at)
			o.from = len(o.out)
			o.out = append(o.out, b)
		}
	case '{', '[':
		if o.skip > 0 {
			o.skip++
			return
		}
		o.begins(b, at)
		picks, picked := o.picked()
		if deep := len(o.open) >= o.deepest(); deep || !picked {
			o.out = append(o.out, "null"...)
			o.skip, o.lossy = 1, o.lossy || picked
			return
		}
		o.open = append(o.open, level{from: len(o.out), close: b + 2, picks: picks}) // '{'+2 is '}', '['+2 is ']'
		o.out = append(o.out, b)
	case '}', ']':
		if o.skip > 0 {
			if o.skip--; o.skip == 0 {
				o.ends(at + 1)
			}
			return
		}
		o.out = append(o.out, b)
		o.open = o.open[:len(o.open)-1]
		o.ends(at + 1)
	case ',':
		if o.skip == 0 {
			o.comma()
		}
	case ':':
		if o.skip == 0 {
			o.member()
			o.out = append(o.out, b)
		}
	default:
		o.state = inWord
		if o.skip == 0 {
			o.begins(b, at)
			o.from = len(o.out)
			o.out = append(o.out, b)
		}
	}
}

// member looks at the name of a member, which out ends with.
func (o *outline) member() {
	in := &o.open[len(o.open)-1]
	if len(o.open) > 1 && in.picks == nil {
		return
	}
	key := jsonx.Unquoted(o.out[min(o.from+1, len(o.out)-1) : len(o.out)-1])
	if len(o.open) == 1 {
		o.body = bodyOf(key)
		o.rests = o.refer && (o.body >= 0 || o.picks != nil) // what is short elsewhere, or cut by its writer, need not be whole
	}
	if in.picks != nil {
		pick, picked := in.picks[string(key)]
		o.pick, o.drop = pick, !picked
	}
}

// textMost is how much is kept of a string that begins now.
func (o *outline) textMost() int {
	switch {
	case !o.rests || o.body < 0:
		return outlineText
	case len(o.out) > referMany:
		return referLess
	}
	return referText
}

func (o *outline) deepest() int {
	if o.refer {
		return jsonx.MaxDepth
	}
	return outlineDepth
}

// comma begins another member: in the place of the last one when the container is full.
func (o *outline) comma() {
	in := &o.open[len(o.open)-1]
	if len(o.open) == 1 {
		o.body, o.rests = -1, false
	}
	switch {
	case in.mark > 0:
		o.out, o.lossy = o.out[:in.mark], true
	case len(o.out)-in.from > o.fullAt(len(o.open)):
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
		if !o.cut && o.skip == 0 && len(o.out)-o.from > o.most && (p[i] < 0x80 || p[i] >= 0xc0) {
			o.cut, o.lacks = true, o.at+int64(i) // before a whole character
			if n := len(o.out) - 6; o.rests && halfEnds(o.out) {
				o.out, o.lacks = o.out[:n], o.lacks-6
			}
		}
		n := i
		limit := len(p)
		if !o.cut && o.skip == 0 { // up to where it may be cut, or from there on byte by byte to a character's end
			limit = min(limit, i+max(1, o.most+1-(len(o.out)-o.from)))
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
			if end := o.at + int64(n); o.cut && o.rests && end > o.lacks {
				o.out = appendRest(o.out, textRest{restRaw, o.lacks, end - o.lacks})
			}
			o.out = append(o.out, '"')
			o.ends(o.at + int64(n) + 1)
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
			if o.skip == 0 && len(o.out)-o.from > outlineText {
				o.out, o.lossy = append(o.out[:o.from], "null"...), true
			}
			o.state = between
			return i
		}
		if o.skip == 0 && len(o.out)-o.from <= outlineText {
			o.out = append(o.out, p[i])
		}
	}
	return i
}
