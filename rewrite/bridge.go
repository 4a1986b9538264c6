package rewrite

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// A custom tool, which is called with free text, is shown to an upstream without custom tools as a function with one string property
// (dialects.md 3.6). The free text T of a call is the string "input" in the arguments, whose JSON text is a string in its turn:
//
//	T          a "b"
//	arguments  {"input":"a \"b\""}
//	on the wire  "{\"input\":\"a \\\"b\\\"\"}"
//
// What is inside of the inner string's quotes is the inside of a JSON string already: the Text of the custom call, one level less escaped.

const (
	bridgeName       = "input"
	bridgeParameters = `{"type":"object","properties":{"` + bridgeName + `":{"type":"string"}},"required":["` + bridgeName + `"],"additionalProperties":false}`
	bridgeBefore     = `{\"` + bridgeName + `\":\"`
	bridgeAfter      = `\"}`
)

// bridge makes a function of a custom tool. Nobody enforces its grammar any more: it is told in the description, and a loss.
func (x *preparation) bridge(t *canon.Tool) {
	grammar := t.Grammar
	if inner := jsonx.Get(grammar, "grammar"); inner != nil { // Chat nests it
		grammar = inner
	}
	if definition, ok := jsonx.Interior(jsonx.Get(grammar, "definition")); ok {
		syntax, _ := jsonx.Interior(jsonx.Get(grammar, "syntax"))
		x.l.Add(lostAt(t.Path, "format"), canon.NoEquivalent)
		d := append(canon.Text{}, t.Description...)
		if len(d) > 0 {
			d = append(d, `\n\n`...)
		}
		d = append(d, `The input has to match this grammar`...)
		if len(syntax) > 0 {
			d = append(d, ` (`...)
			d = append(d, syntax...)
			d = append(d, ')')
		}
		d = append(d, `:\n`...)
		t.Description = append(d, definition...)
	}
	t.Kind, t.Parameters = canon.FunctionTool, canon.Raw(bridgeParameters)
	t.Strict, t.Grammar, t.Raw, t.Type = nil, nil, nil, nil
}

// bridgeArguments are the arguments of the function for a custom call's free text.
func bridgeArguments(input canon.Text) canon.Text {
	out := make(canon.Text, 0, len(input)+len(input)/8+len(bridgeBefore)+len(bridgeAfter))
	out = append(out, bridgeBefore...)
	out = jsonx.AppendEscaped(out, input)
	return append(out, bridgeAfter...)
}

// unwrapper takes the free text out of arguments that arrive in pieces. The pieces may end anywhere between two characters: the text is the
// same for every split. Arguments that do not begin as {"input":" are handed on as they are.
type unwrapper struct {
	state unwrapState
	at    int        // how much of the name has been seen
	held  canon.Text // the beginning, while it is not known what the arguments are
	// escape is the beginning of an escape in the inner string; high is the escape of a high surrogate whose other half may follow.
	escape, high []byte
	odd          bool // the arguments are not exactly what they should be
}

type unwrapState uint8

const (
	beforeObject unwrapState = iota
	beforeName
	beforeColon
	beforeValue
	inValue
	behindValue
	behindObject
	asTheyAre // everything from here on is text
)

// append appends what s, the next piece, adds to the free text.
func (u *unwrapper) append(dst canon.Text, s canon.Text) canon.Text {
	for i := 0; i < len(s); {
		if u.state == asTheyAre {
			return append(dst, s[i:]...)
		}
		if u.state == inValue && len(u.escape) == 0 && len(u.high) == 0 {
			from := i
			for i < len(s) && s[i] != '\\' {
				i++
			}
			if dst = append(dst, s[from:i]...); i == len(s) {
				return dst
			}
		}
		c, n := unit(s[i:])
		written := s[i : i+n]
		i += n
		switch u.state {
		case inValue:
			dst = u.character(dst, c, written)
		case behindValue:
			if c == '}' {
				u.state = behindObject
			} else if !isBlank(c) {
				u.odd, u.state = true, behindObject
			}
		case behindObject:
			u.odd = u.odd || !isBlank(c)
		default:
			if u.held = append(u.held, written...); !u.opening(c) {
				dst = append(dst, u.held...)
				u.held, u.state, u.odd = nil, asTheyAre, true
			}
		}
	}
	return dst
}

// opening takes a character of {"input":", and tells whether it fits there.
func (u *unwrapper) opening(c int) bool {
	const name = `"` + bridgeName + `"`
	switch {
	case isBlank(c) && u.at == 0:
	case u.state == beforeObject && c == '{':
		u.state = beforeName
	case u.state == beforeName && c == int(name[u.at]):
		if u.at++; u.at == len(name) {
			u.at, u.state = 0, beforeColon
		}
	case u.state == beforeColon && c == ':':
		u.state = beforeValue
	case u.state == beforeValue && c == '"':
		u.held, u.state = nil, inValue
	default:
		return false
	}
	return true
}

// character takes a character of the inner string; written is how it stands in the outer one. What needs no escape in the inner string is an
// escape of the outer one at most, and stays written so.
func (u *unwrapper) character(dst canon.Text, c int, written []byte) canon.Text {
	switch {
	case len(u.escape) == 0 && c == '\\':
		u.escape = append(u.escape, '\\')
		return dst
	case len(u.escape) == 0:
		if dst = u.flushHigh(dst); c == '"' {
			u.state = behindValue
			return dst
		}
		return append(dst, written...)
	case len(u.escape) == 1:
		switch c {
		case 'u':
			u.escape = append(u.escape, 'u')
			return dst
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			dst = append(u.flushHigh(dst), '\\', byte(c))
			u.escape = u.escape[:0]
			return dst
		}
	case hexDigit(c) >= 0:
		if u.escape = append(u.escape, byte(c)); len(u.escape) == len(`\uXXXX`) {
			return u.unicode(dst)
		}
		return dst
	}
	// No escape that JSON knows: a model's slip, taken as it was meant.
	dst = u.brokenEscape(dst)
	return u.character(dst, c, written)
}

// unicode ends an escape \uXXXX. A high surrogate waits for the other half, so that no piece of text ends between the two.
func (u *unwrapper) unicode(dst canon.Text) canon.Text {
	if isHigh(hex4(u.escape[2:])) {
		dst = u.flushHigh(dst)
		u.high = append(u.high, u.escape...)
	} else {
		dst = append(u.flushHigh(dst), u.escape...)
	}
	u.escape = u.escape[:0]
	return dst
}

func (u *unwrapper) flushHigh(dst canon.Text) canon.Text {
	dst = append(dst, u.high...)
	u.high = u.high[:0]
	return dst
}

func (u *unwrapper) brokenEscape(dst canon.Text) canon.Text {
	dst = append(u.flushHigh(dst), '\\')
	dst = append(dst, u.escape...)
	u.escape, u.odd = u.escape[:0], true
	return dst
}

// finish appends what was held back when the arguments have ended, and tells whether they were what they should be.
func (u *unwrapper) finish(dst canon.Text) (_ canon.Text, whole bool) {
	if len(u.escape) > 0 {
		dst = u.brokenEscape(dst)
	}
	dst = append(u.flushHigh(dst), u.held...)
	nothing := u.state == beforeObject && len(u.held) == 0
	u.held = nil
	return dst, !u.odd && (u.state == behindObject || nothing)
}

// clear: what comes next, up to the first backslash, is text as it is.
func (u *unwrapper) clear() bool { return u.state == inValue && len(u.escape) == 0 && len(u.high) == 0 }
