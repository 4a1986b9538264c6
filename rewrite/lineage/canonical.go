package lineage

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"rolltap/internal/jsonx"
)

// canonical writes JSON values as Gym does before it hashes them. It reads a value once into a list of nodes and writes it from there, so
// that the cost does not grow with how deep values lie, as it would if every object walked over all that is inside it.
type canonical struct {
	text    []byte
	nodes   []node
	members []member // of the objects that are being written, innermost last
}

// node is a value or the name of a member. What a container holds comes behind it, names before values.
type node struct {
	from, to uint32 // where it is in the text
	next     uint32 // the node behind it and all that it holds
}

type member struct {
	name  []byte // decoded
	at    uint32 // the node of the name
	value uint32
}

// limits of what Python reads.
const (
	maxDigits = 4300 // of an integer
	maxText   = math.MaxUint32 - 1
)

// append appends the JSON value that text is. It reads what Python's json reads: NaN and the infinities are numbers, and white space may
// stand around the value; but no more than jsonx.MaxDepth containers inside each other. If text is no such value it returns false.
// blocks says that the value is a content block, a tool or a list of them, whose cache_control is left out.
func (c *canonical) append(dst, text []byte, how spelling, blocks bool) ([]byte, bool) {
	if len(text) > maxText {
		return dst, false
	}
	c.text, c.nodes, c.members = text, c.nodes[:0], c.members[:0]
	end := c.read(c.space(0), 0)
	if end < 0 || c.space(end) != len(text) {
		return dst, false
	}
	return c.write(dst, 0, how, blocks), true
}

func (c *canonical) space(i int) int {
	for i < len(c.text) && (c.text[i] == ' ' || c.text[i] == '\n' || c.text[i] == '\t' || c.text[i] == '\r') {
		i++
	}
	return i
}

// read adds the nodes of the value that begins at i and returns the index behind it, or -1. It lies inside of depth containers.
func (c *canonical) read(i, depth int) int {
	if i >= len(c.text) {
		return -1
	}
	at := len(c.nodes)
	c.nodes = append(c.nodes, node{from: uint32(i)})
	end := -1
	switch b := c.text[i]; b {
	case '{', '[':
		if depth < jsonx.MaxDepth {
			end = c.container(i, depth+1, b == '{')
		}
	case '"':
		end = stringEnd(c.text, i)
	case 't', 'f', 'n', 'N', 'I':
		end = c.word(i, "true", "false", "null", "NaN", "Infinity")
	case '-':
		if end = c.word(i, "-Infinity"); end < 0 {
			end = numberEnd(c.text, i)
		}
	default:
		end = numberEnd(c.text, i)
	}
	c.nodes[at].to, c.nodes[at].next = uint32(max(end, 0)), uint32(len(c.nodes))
	return end
}

func (c *canonical) word(i int, words ...string) int {
	for _, w := range words {
		if bytes.HasPrefix(c.text[i:], []byte(w)) {
			return i + len(w)
		}
	}
	return -1
}

// container reads the object or array that begins at i.
func (c *canonical) container(i, depth int, object bool) int {
	last := byte(']')
	if object {
		last = '}'
	}
	if i = c.space(i + 1); i < len(c.text) && c.text[i] == last {
		return i + 1
	}
	for {
		if object {
			if i >= len(c.text) || c.text[i] != '"' {
				return -1
			}
			end := stringEnd(c.text, i)
			if end < 0 {
				return -1
			}
			c.nodes = append(c.nodes, node{uint32(i), uint32(end), uint32(len(c.nodes) + 1)})
			if i = c.space(end); i >= len(c.text) || c.text[i] != ':' {
				return -1
			}
			i = c.space(i + 1)
		}
		if i = c.read(i, depth); i < 0 {
			return -1
		}
		if i = c.space(i); i >= len(c.text) {
			return -1
		}
		switch c.text[i] {
		case last:
			return i + 1
		case ',':
			i = c.space(i + 1)
		default:
			return -1
		}
	}
}

// stringEnd returns the index behind the string that begins at s[i], or -1.
func stringEnd(s []byte, i int) int {
	for i++; i < len(s); i++ {
		switch b := s[i]; {
		case b == '"':
			return i + 1
		case b < ' ':
			return -1
		case b == '\\':
			if i++; i >= len(s) {
				return -1
			}
			if s[i] == 'u' {
				if _, ok := hex4(s[i+1:]); !ok {
					return -1
				}
				i += 4
			} else if strings.IndexByte(`"\/bfnrt`, s[i]) < 0 {
				return -1
			}
		}
	}
	return -1
}

// numberEnd returns the index behind the number that begins at s[i], or -1.
func numberEnd(s []byte, i int) int {
	digits := func(from int) int {
		for i = from; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		}
		return i - from
	}
	if s[i] == '-' {
		i++
	}
	first := i
	whole := digits(i)
	if whole == 0 || whole > 1 && s[first] == '0' {
		return -1
	}
	integer := true
	if i < len(s) && s[i] == '.' {
		integer = false
		if digits(i+1) == 0 {
			return -1
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		integer = false
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if digits(i) == 0 {
			return -1
		}
	}
	if integer && whole > maxDigits {
		return -1
	}
	return i
}

// write appends the value of the node at.
func (c *canonical) write(dst []byte, at uint32, how spelling, blocks bool) []byte {
	n := c.nodes[at]
	raw := c.text[n.from:n.to]
	comma, colon := ",", ":"
	if how == spaced {
		comma, colon = ", ", ": "
	}
	switch raw[0] {
	case '"':
		return appendQuoted(dst, raw, how)
	case 't', 'f', 'n':
		return append(dst, raw...)
	case '[':
		dst = append(dst, '[')
		for i := at + 1; i < n.next; i = c.nodes[i].next {
			if i > at+1 {
				dst = append(dst, comma...)
			}
			dst = c.write(dst, i, how, blocks)
		}
		return append(dst, ']')
	case '{':
		base := len(c.members)
		c.sort(at, blocks)
		dst = append(dst, '{')
		for i := base; i < len(c.members); i++ {
			if i > base {
				dst = append(dst, comma...)
			}
			m := c.members[i]
			dst = appendQuoted(dst, c.text[c.nodes[m.at].from:c.nodes[m.at].to], how)
			dst = append(dst, colon...)
			dst = c.write(dst, m.value, how, false)
		}
		c.members = c.members[:base]
		return append(dst, '}')
	case 'N', 'I':
		return appendNotFinite(dst, raw, how)
	case '-':
		if raw[1] == 'I' {
			return appendNotFinite(dst, raw, how)
		}
	}
	return appendNumber(dst, raw, how)
}

// sort adds the members of the object at to c.members, by name; of those with one name the last.
func (c *canonical) sort(at uint32, blocks bool) {
	base := len(c.members)
	sorted := true
	for i := at + 1; i < c.nodes[at].next; {
		value := c.nodes[i].next
		name := c.text[c.nodes[i].from+1 : c.nodes[i].to-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = appendInterior(nil, name)
		}
		if !blocks || string(name) != "cache_control" {
			if last := len(c.members) - 1; last >= base && bytes.Compare(c.members[last].name, name) >= 0 {
				sorted = false
			}
			c.members = append(c.members, member{name, i, value})
		}
		i = c.nodes[value].next
	}
	if sorted {
		return
	}
	members := c.members[base:]
	slices.SortFunc(members, func(a, b member) int {
		if order := bytes.Compare(a.name, b.name); order != 0 {
			return order
		}
		return int(int64(a.at) - int64(b.at))
	})
	kept := members[:0]
	for i, m := range members {
		if i+1 == len(members) || !bytes.Equal(m.name, members[i+1].name) {
			kept = append(kept, m)
		}
	}
	c.members = c.members[:base+len(kept)]
}
