package training

import (
	"bytes"

	"rolltap/internal/jsonx"
)

// smallMax is how long a member may be that is looked at itself. Longer ones are only located.
const smallMax = 64 << 10

// keyMax is how much of a member's name is kept, several times what the longest that is known takes with every character escaped.
const keyMax = 1 << 10

// member is one member of a line as the locator found it.
type member struct {
	key   []byte // as written, without quotes
	value []byte // nil when it is longer than smallMax
	span  Span
}

// Span is where a value stands in its file.
type Span struct {
	Offset, Size int64
	Count        int64 // elements, of an array
	Kind         jsonx.Kind
}

// locator finds the members of a JSON object that comes in pieces. It judges nothing: a Compactor reads the same bytes. What
// it finds is meaningful only when that one was content.
type locator struct {
	phase phase
	depth int
	str   bool // inside a string
	esc   bool // behind its backslash
	long  bool // the value does not fit
	any   bool // the array has an element
	key   []byte
	value []byte
	m     member
	found func(*member)
}

type phase uint8

const (
	beforeObject phase = iota
	beforeKey
	inKey
	beforeColon
	beforeValue
	inValue
	behindObject
)

func (l *locator) reset(found func(*member)) {
	*l = locator{key: l.key[:0], value: l.value[:0], found: found}
}

// feed takes the next piece, which stands at this offset of the file.
func (l *locator) feed(p []byte, offset int64) {
	from := 0 // of the value's part in p that is not kept yet
	for i := 0; i < len(p); i++ {
		b := p[i]
		if l.str {
			switch {
			case l.esc:
				l.esc = false
			case b == '\\':
				l.esc = true
			case b == '"':
				l.str = false
				if l.phase == inKey {
					l.phase = beforeColon
					continue
				}
			}
			if l.phase == inKey && len(l.key) < keyMax {
				l.key = append(l.key, b)
			}
			continue
		}
		switch l.phase {
		case inValue:
			switch b {
			case '"':
				l.str = true
				l.any = true
			case '[', '{':
				l.any = l.any || l.depth == 2
				l.depth++
			case ']', '}':
				if l.depth == 1 {
					l.keep(p[from:i])
					l.end(offset + int64(i))
					l.phase = behindObject
					continue
				}
				l.depth--
			case ',':
				if l.depth == 1 {
					l.keep(p[from:i])
					l.end(offset + int64(i))
					l.phase = beforeKey
				} else if l.depth == 2 {
					l.m.span.Count++
				}
			case ' ', '\t', '\r':
			default:
				l.any = true
			}
		case beforeObject:
			if b == '{' {
				l.phase, l.depth = beforeKey, 1
			}
		case beforeKey:
			switch b {
			case '"':
				l.phase, l.str, l.key = inKey, true, l.key[:0]
			case '}':
				l.phase = behindObject
			}
		case beforeColon:
			if b == ':' {
				l.phase = beforeValue
			}
		case beforeValue:
			if b == ' ' || b == '\t' || b == '\r' {
				continue
			}
			l.phase, from = inValue, i
			l.value, l.long, l.any = l.value[:0], false, false
			l.m.span = Span{Offset: offset + int64(i), Kind: jsonx.KindOf(p[i : i+1])}
			switch b {
			case '"':
				l.str = true
			case '[', '{':
				l.depth = 2
			}
		}
	}
	if l.phase == inValue {
		l.keep(p[from:])
	}
}

// keep adds to the value while it is small.
func (l *locator) keep(p []byte) {
	if l.long || len(l.value)+len(p) > smallMax {
		l.long = true
		return
	}
	l.value = append(l.value, p...)
}

// end reports the member whose value ends in front of this offset.
func (l *locator) end(at int64) {
	l.m.key, l.m.value = l.key, nil
	l.m.span.Size = at - l.m.span.Offset
	if l.any {
		l.m.span.Count++
	}
	if k := l.m.span.Kind; k != jsonx.KindArray {
		l.m.span.Count = 0
	}
	if !l.long {
		l.m.value = bytes.TrimRight(l.value, " \t\r")
	}
	l.depth = 1
	l.found(&l.m)
}
