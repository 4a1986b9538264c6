package jsonx

import "slices"

// Compactor validates one JSON value that arrives in pieces and drops the white space between its tokens.
// The input may be split anywhere, inside a UTF-8 sequence or an escape as well: output and verdict are the
// same for every split. A UTF-8 byte-order mark in front is dropped too. Tokens are kept as written.
//
// The zero value is ready. An error is sticky until Reset. A Compactor holds no input and never allocates;
// it is not safe for concurrent use.
type Compactor struct {
	// open has a bit for every open container, set for objects; the innermost is bit depth-1.
	open  [MaxDepth / 64]uint64
	depth int

	state state
	name  bool  // the string in progress is a member's name
	need  uint8 // bytes still to come: hex digits of an escape, or continuation bytes
	lo    uint8 // bounds of the next continuation byte
	hi    uint8
	lit   string // what is still to come of true, false or null

	kind  Kind
	loose bool // something was dropped
}

// state says what may come next. The order matters: white space may come in the states up to stEnd.
type state uint8

const (
	stStart     state = iota // the top-level value or a byte-order mark
	stTop                    // the top-level value
	stValue                  // a member's value, or an element after a comma
	stElement                // the first element or ]
	stName                   // a member's name after a comma
	stMember                 // the first member's name or }
	stColon                  // :
	stNext                   // , or the end of the container
	stEnd                    // nothing but white space
	stMark1                  // the second byte of a byte-order mark
	stMark2                  // the third
	stString                 // inside a string
	stEscape                 // after a backslash
	stHex                    // need hex digits
	stUTF8                   // need continuation bytes
	stLiteral                // lit
	stMinus                  // a digit
	stZero                   // the number is 0 or -0 so far
	stInt                    // digits of the integer part
	stPoint                  // the first digit of the fraction
	stFraction               // digits of the fraction
	stExp                    // the exponent's sign or first digit
	stExpSign                // the exponent's first digit
	stExpDigits              // digits of the exponent
	stBad                    // an error was found
)

var bom = [3]byte{0xef, 0xbb, 0xbf}

// Reset makes c as good as new.
func (c *Compactor) Reset() { *c = Compactor{} }

// Append appends p, compacted, to dst and returns the extended slice. It grows dst at most once.
// dst and p must not overlap. It returns ErrSyntax as soon as no continuation can make the input valid;
// dst then comes back without anything of p.
func (c *Compactor) Append(dst, p []byte) ([]byte, error) {
	return c.run(dst, p, true)
}

// Check is Append without the output.
func (c *Compactor) Check(p []byte) error {
	_, err := c.run(nil, p, false)
	return err
}

// Finish reports the kind of the value that was pushed, or ErrSyntax when it is incomplete or absent.
// It changes nothing: asking early does no harm.
func (c *Compactor) Finish() (Kind, error) {
	switch c.state {
	case stEnd:
		return c.kind, nil
	case stZero, stInt, stFraction, stExpDigits: // only its context ends a number
		if c.depth == 0 {
			return c.kind, nil
		}
	}
	return KindInvalid, ErrSyntax
}

// Checker is Valid for JSON that is written to it in pieces, split anywhere. The zero value is ready.
type Checker struct {
	c     Compactor
	begun bool
}

// Write fails as soon as no continuation can make the input valid.
func (c *Checker) Write(p []byte) (int, error) {
	if !c.begun && len(p) > 0 {
		if c.begun = true; p[0] == bom[0] { // a Compactor takes one
			return 0, ErrSyntax
		}
	}
	if err := c.c.Check(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Valid is asked when everything is written. It is for who has looked at the errors of Write.
func (c *Checker) Valid() bool {
	_, err := c.c.Finish()
	return err == nil
}

// AppendCompact appends a valid value without the white space between its tokens: a line end among it would tear an event of a stream apart.
// dst and raw must not overlap.
func AppendCompact(dst, raw []byte) []byte {
	if kind := KindOf(raw); kind != KindObject && kind != KindArray {
		return append(dst, trim(raw)...)
	}
	var c Compactor
	whole, err := c.Append(dst, raw)
	if err != nil {
		return append(dst, "null"...) // never: the value is valid
	}
	return whole
}

// Tight reports whether output and input are the same so far.
func (c *Compactor) Tight() bool { return !c.loose }

// run is the automaton. It copies whole stretches: p[from:i] is what was accepted and not yet copied.
func (c *Compactor) run(dst, p []byte, emit bool) ([]byte, error) {
	if c.state == stBad {
		return dst, ErrSyntax
	}
	before := len(dst)
	if emit {
		dst = slices.Grow(dst, len(p))
	}
	from := 0
	for i := 0; i < len(p); {
		b := p[i]
		if b <= ' ' && c.state <= stEnd {
			if !isSpace(b) {
				c.state = stBad
				return dst[:before], ErrSyntax
			}
			if emit {
				dst = append(dst, p[from:i]...)
			}
			for i++; i < len(p) && isSpace(p[i]); i++ {
			}
			from, c.loose = i, true
			if c.state == stStart {
				c.state = stTop
			}
			continue
		}
		switch c.state {
		case stColon:
			if b != ':' {
				c.state = stBad
				break
			}
			c.state = stValue
			i++
		case stNext:
			i++
			switch {
			case b == ',' && c.inObject():
				c.state = stName
			case b == ',':
				c.state = stValue
			case b == '}' && c.inObject(), b == ']' && !c.inObject():
				c.pop()
			default:
				c.state = stBad
			}
		case stName, stMember:
			if b == '"' {
				c.name = true
				i = c.text(p, i+1)
				break
			}
			i++
			if b == '}' && c.state == stMember {
				c.pop()
			} else {
				c.state = stBad
			}
		case stStart, stTop, stValue, stElement:
			i = c.value(p, i)
			if c.state == stMark1 {
				from, c.loose = i, true
			}
		case stMark1, stMark2:
			switch {
			case b != bom[1+c.state-stMark1]:
				c.state = stBad
			case c.state == stMark1:
				c.state = stMark2
			default:
				c.state = stTop
			}
			i++
			from = i
		case stString:
			i = c.text(p, i)
		case stEscape, stHex, stUTF8:
			i = c.inner(p, i)
		case stLiteral:
			if b != c.lit[0] {
				c.state = stBad
				break
			}
			if c.lit = c.lit[1:]; c.lit == "" {
				c.close()
			}
			i++
		case stMinus, stZero, stInt, stPoint, stFraction, stExp, stExpSign, stExpDigits:
			i = c.number(p, i)
		default: // stEnd
			c.state = stBad
		}
		if c.state == stBad {
			return dst[:before], ErrSyntax
		}
	}
	if emit {
		dst = append(dst, p[from:]...)
	}
	return dst, nil
}

// value begins the value at p[i] and returns the index after what it consumed.
func (c *Compactor) value(p []byte, i int) int {
	b := p[i]
	if c.state <= stTop {
		if b == bom[0] && c.state == stStart {
			c.state = stMark1
			return i + 1
		}
		c.kind = KindOf(p[i : i+1])
	}
	switch b {
	case '"':
		c.name = false
		return c.text(p, i+1)
	case '{':
		c.push(true)
	case '[':
		c.push(false)
	case ']':
		if c.state == stElement {
			c.pop()
		} else {
			c.state = stBad
		}
	case 't':
		return c.literal(p, i, "true")
	case 'f':
		return c.literal(p, i, "false")
	case 'n':
		return c.literal(p, i, "null")
	case '-':
		c.state = stMinus
		return c.number(p, i+1)
	case '0':
		c.state = stZero
		return c.number(p, i+1)
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		c.state = stInt
		return c.number(p, i+1)
	default:
		c.state = stBad
	}
	return i + 1
}

// literal consumes word at p[i], whose first byte is known to match.
func (c *Compactor) literal(p []byte, i int, word string) int {
	if len(p)-i >= len(word) && string(p[i:i+len(word)]) == word {
		c.close()
		return i + len(word)
	}
	c.state, c.lit = stLiteral, word[1:]
	return i + 1
}

// number consumes what belongs to the number in progress; the byte that ends it stays.
func (c *Compactor) number(p []byte, i int) int {
	st := c.state
	for ; i < len(p); i++ {
		b := p[i]
		if '0' <= b && b <= '9' {
			switch st {
			case stMinus:
				st = stInt
				if b == '0' {
					st = stZero
				}
			case stZero:
				c.state = stBad
				return i
			case stPoint:
				st = stFraction
			case stExp, stExpSign:
				st = stExpDigits
			}
			continue
		}
		switch {
		case b == '.' && (st == stZero || st == stInt):
			st = stPoint
		case b|0x20 == 'e' && (st == stZero || st == stInt || st == stFraction):
			st = stExp
		case (b == '+' || b == '-') && st == stExp:
			st = stExpSign
		case st == stZero || st == stInt || st == stFraction || st == stExpDigits:
			c.close()
			return i
		default:
			c.state = stBad
			return i
		}
	}
	c.state = st
	return i
}

func (c *Compactor) inObject() bool {
	d := c.depth - 1
	return c.open[d/64]>>(d%64)&1 != 0
}

func (c *Compactor) push(object bool) {
	d := c.depth
	if d == MaxDepth {
		c.state = stBad
		return
	}
	bit := uint64(1) << (d % 64)
	if object {
		c.open[d/64] |= bit
		c.state = stMember
	} else {
		c.open[d/64] &^= bit
		c.state = stElement
	}
	c.depth++
}

func (c *Compactor) pop() {
	c.depth--
	c.close()
}

// close ends a value.
func (c *Compactor) close() {
	if c.depth > 0 {
		c.state = stNext
	} else {
		c.state = stEnd
	}
}
