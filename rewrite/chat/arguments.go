package chat

// extent follows the JSON value that the arguments of a call spell, through the escapes of the string that they come in, and tells when it
// is complete. It looks at brackets and strings only. A value that is no object and no array is never complete: only its end would tell.
type extent struct {
	depth                        int
	text, escaped, ended, broken bool
}

// complete: the value is there, and nothing but white space behind it.
func (e *extent) complete() bool { return e.ended && !e.broken }

// add takes the inside of the next string. An escape is never split between two strings.
func (e *extent) add(interior []byte) {
	for i := 0; i < len(interior) && !e.broken; i++ {
		c := interior[i]
		if c == '\\' && i+1 < len(interior) {
			i++
			switch c = interior[i]; c {
			case 'n', 't', 'r':
				c = ' '
			case 'b', 'f':
				c = 0
			case 'u':
				c = ascii(interior[i+1:])
				i += 4
			}
		}
		e.step(c)
	}
}

func (e *extent) step(c byte) {
	if e.text {
		switch {
		case e.escaped:
			e.escaped = false
		case c == '\\':
			e.escaped = true
		case c == '"':
			e.text = false
		}
		return
	}
	switch c {
	case ' ', '\n', '\t', '\r':
		return
	case '{', '[':
		e.broken = e.ended
		e.depth++
		return
	}
	if e.depth == 0 {
		e.broken = true
		return
	}
	switch c {
	case '"':
		e.text = true
	case '}', ']':
		e.depth--
		e.ended = e.depth == 0
	}
}

// ascii is the character that four hex digits stand for, 0 when it is none of ASCII.
func ascii(hex []byte) byte {
	if len(hex) < 4 || hex[0] != '0' || hex[1] != '0' {
		return 0
	}
	c := digit(hex[2])<<4 | digit(hex[3])
	if c >= 0x80 {
		return 0
	}
	return c
}

func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return (c | 0x20) - 'a' + 10
	}
	return 0xf0
}
