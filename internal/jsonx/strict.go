package jsonx

// Valid reports whether b is one strict JSON value with optional white space around it: RFC 8259, valid
// UTF-8, at most MaxDepth containers inside each other. A byte-order mark is not accepted.
func Valid(b []byte) bool {
	end := valueEnd(b, skipSpace(b, 0), 0)
	return end >= 0 && skipSpace(b, end) == len(b)
}

// ValidObject reports whether b is Valid and an object.
func ValidObject(b []byte) bool { return KindOf(b) == KindObject && Valid(b) }

// ValueEnd returns the index after the strict value that begins at b[i], or -1 if none does; white space
// is no beginning. It judges the value as part of a text in which it lies inside of depth containers. A
// number reaches as far as it can.
func ValueEnd(b []byte, i, depth int) int {
	if i < 0 || depth < 0 {
		return -1
	}
	return valueEnd(b, i, depth)
}

// The functions below take what they name at p[i] and return the index after it, or -1 if it is not there.

func valueEnd(p []byte, i, depth int) int {
	if i >= len(p) {
		return -1
	}
	switch p[i] {
	case '"':
		return stringEnd(p, i+1)
	case '{':
		if depth >= MaxDepth {
			return -1
		}
		return objectEnd(p, i+1, depth+1)
	case '[':
		if depth >= MaxDepth {
			return -1
		}
		return arrayEnd(p, i+1, depth+1)
	case 't':
		return wordEnd(p, i, "true")
	case 'f':
		return wordEnd(p, i, "false")
	case 'n':
		return wordEnd(p, i, "null")
	}
	return numberEnd(p, i)
}

// objectEnd takes an object from behind its brace on; depth counts it.
func objectEnd(p []byte, i, depth int) int {
	if i = skipSpace(p, i); i < len(p) && p[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(p) || p[i] != '"' {
			return -1
		}
		if i = stringEnd(p, i+1); i < 0 {
			return -1
		}
		if i >= len(p) || p[i] != ':' {
			if i = skipSpace(p, i); i >= len(p) || p[i] != ':' {
				return -1
			}
		}
		if i = valueEnd(p, skipSpace(p, i+1), depth); i < 0 {
			return -1
		}
		if i = skipSpace(p, i); i >= len(p) {
			return -1
		}
		if p[i] != ',' {
			if p[i] == '}' {
				return i + 1
			}
			return -1
		}
		i = skipSpace(p, i+1)
	}
}

// arrayEnd is objectEnd for an array.
func arrayEnd(p []byte, i, depth int) int {
	if i = skipSpace(p, i); i < len(p) && p[i] == ']' {
		return i + 1
	}
	for {
		if i = valueEnd(p, i, depth); i < 0 {
			return -1
		}
		if i = skipSpace(p, i); i >= len(p) {
			return -1
		}
		if p[i] != ',' {
			if p[i] == ']' {
				return i + 1
			}
			return -1
		}
		i = skipSpace(p, i+1)
	}
}

// stringEnd takes a string from behind its quote on.
func stringEnd(p []byte, i int) int {
	for {
		if i = plain(p, i); i >= len(p) {
			return -1
		}
		switch b := p[i]; {
		case b == '"':
			return i + 1
		case b == '\\':
			for i < len(p) && p[i] == '\\' { // often several stand together
				switch {
				case i+1 < len(p) && isEscape(p[i+1]):
					i += 2
				case unit(p[i:]) >= 0:
					i += 6
				default:
					return -1
				}
			}
		case b < ' ':
			return -1
		default:
			from := i
			if i = wide(p, i); i == from {
				return -1
			}
		}
	}
}

func wordEnd(p []byte, i int, word string) int {
	if len(p)-i >= len(word) && string(p[i:i+len(word)]) == word {
		return i + len(word)
	}
	return -1
}

func numberEnd(p []byte, i int) int {
	if i < len(p) && p[i] == '-' {
		i++
	}
	if i < len(p) && p[i] == '0' {
		i++
	} else if i = digitsEnd(p, i); i < 0 {
		return -1
	}
	if i < len(p) && p[i] == '.' {
		if i = digitsEnd(p, i+1); i < 0 {
			return -1
		}
	}
	if i < len(p) && p[i]|0x20 == 'e' {
		if i++; i < len(p) && (p[i] == '+' || p[i] == '-') {
			i++
		}
		return digitsEnd(p, i)
	}
	return i
}

// digitsEnd takes one digit or more.
func digitsEnd(p []byte, i int) int {
	from := i
	for i < len(p) && p[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return -1
	}
	return i
}
