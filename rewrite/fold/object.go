package fold

import (
	"bytes"
	"unicode/utf8"

	"rolltap/internal/grow"
	"rolltap/internal/jsonx"
)

// Object is a JSON object that grows. Members are written in the order in which they first came. The zero Object is empty and ready; one
// goroutine at a time.
type Object struct {
	members []member
	byName  map[string]int // only beyond searchable members: names are the other side's choice, so a scan must stay bounded
}

const searchable = 16

type member struct {
	name  []byte // interior of the key as written
	shape shape
	buf   []byte // raw value; interior of the text; elements with commas between them
	sub   *Object
}

type shape uint8

const (
	value shape = iota
	text
	elements
	object
)

// Name is a key in the spelling that names are compared in: escapes that need not be there are resolved.
func Name(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	plain := jsonx.AppendUnquoted(nil, key)
	if bytes.ContainsRune(plain, utf8.RuneError) {
		return key // a lone surrogate has no other spelling
	}
	return jsonx.AppendEscaped(nil, plain)
}

// Blank tells that a value says nothing: absent, null, or an empty string, array or object. A blank never replaces what was said before.
func Blank(raw []byte) bool {
	switch len(raw) {
	case 0:
		return true
	case 2:
		return raw[0] == '"' || raw[0] == '[' || raw[0] == '{'
	case 4:
		return raw[0] == 'n'
	}
	switch raw[0] {
	case '[', '{':
		return !jsonx.Truthy(raw) // white space inside
	}
	return false
}

func (o *Object) find(name []byte) *member {
	if o.byName != nil {
		if i, ok := o.byName[string(name)]; ok {
			return &o.members[i]
		}
		return nil
	}
	for i := range o.members {
		if string(o.members[i].name) == string(name) {
			return &o.members[i]
		}
	}
	return nil
}

func (o *Object) member(name []byte) *member {
	if m := o.find(name); m != nil {
		return m
	}
	o.members = append(o.members, member{name: bytes.Clone(name)})
	if n := len(o.members); o.byName != nil {
		o.byName[string(name)] = n - 1
	} else if n > searchable {
		o.byName = make(map[string]int, 2*n)
		for i := range o.members {
			o.byName[string(o.members[i].name)] = i
		}
	}
	return &o.members[len(o.members)-1]
}

// Set keeps the last value of a member that is not Blank; a first blank one keeps the member's place and its spelling of nothing.
func (o *Object) Set(name, raw []byte) {
	m := o.member(name)
	if m.shape == value && (len(m.buf) == 0 || !Blank(raw)) || m.empty() && !Blank(raw) {
		m.shape, m.buf, m.sub = value, append(m.buf[:0], raw...), nil
	}
}

// Replace is Set for a member that may have grown: the value that ends a series of deltas says all of it once more.
func (o *Object) Replace(name, raw []byte) {
	if m := o.member(name); !Blank(raw) {
		m.shape, m.buf, m.sub = value, append(m.buf[:0], raw...), nil
	}
}

// Grow appends raw to a member that is text when raw is a string and a list when it is an array. Null adds nothing. A value that does not
// fit what is there replaces it only while that is empty.
func (o *Object) Grow(name, raw []byte) {
	if jsonx.IsNull(raw) {
		o.Set(name, null)
		return
	}
	want, piece := value, raw
	switch raw[0] {
	case '"':
		want = text
		piece, _ = jsonx.Interior(raw)
	case '[':
		want, piece = elements, bytes.TrimSpace(raw[1:len(raw)-1])
	}
	m := o.member(name)
	if m.shape != want {
		if !m.empty() {
			return
		}
		m.shape, m.buf, m.sub = want, m.buf[:0], nil
	}
	switch {
	case want == value:
		m.buf = append(m.buf[:0], raw...)
	case want == elements && len(piece) > 0 && len(m.buf) > 0:
		m.buf = grow.Append(append(m.buf, ','), piece)
	default:
		m.buf = grow.Append(m.buf, piece)
	}
}

// Add appends raw as one element to the list that a member is.
func (o *Object) Add(name, raw []byte) {
	m := o.member(name)
	if m.shape != elements {
		if !m.empty() {
			return
		}
		m.shape, m.buf, m.sub = elements, m.buf[:0], nil
	}
	if len(m.buf) > 0 {
		m.buf = append(m.buf, ',')
	}
	m.buf = grow.Append(m.buf, raw)
}

// Sub is the object that a member is; nil when something else is there already.
func (o *Object) Sub(name []byte) *Object {
	m := o.member(name)
	if m.shape != object {
		if !m.empty() {
			return nil
		}
		m.shape, m.buf, m.sub = object, nil, new(Object)
	}
	return m.sub
}

// Merge sets every member of the object raw.
func (o *Object) Merge(raw []byte) {
	for it := jsonx.Object(raw); it.Next(); {
		o.Set(Name(it.Key()), it.Value())
	}
}

// Has tells that a member is there and not blank.
func (o *Object) Has(name string) bool {
	m := o.find([]byte(name))
	return m != nil && !m.empty()
}

// Known tells that a member is there, blank or not.
func (o *Object) Known(name string) bool { return o.find([]byte(name)) != nil }

// Value is the raw value that Set gave a member, borrowed until the next change; nil for anything else.
func (o *Object) Value(name string) []byte {
	if m := o.find([]byte(name)); m != nil && m.shape == value {
		return m.buf
	}
	return nil
}

// Text is the interior of a member that grew as text, borrowed until the next change; nil for anything else.
func (o *Object) Text(name string) []byte {
	if m := o.find([]byte(name)); m != nil && m.shape == text {
		return m.buf
	}
	return nil
}

// Default sets a member that is not there.
func (o *Object) Default(name, raw string) {
	if !o.Known(name) {
		o.Set([]byte(name), []byte(raw))
	}
}

// Len is the number of members.
func (o *Object) Len() int { return len(o.members) }

// memberSize is about what a member takes beside its bytes.
const memberSize = 96

// Size is about how much memory the object takes, in bytes.
func (o *Object) Size() int {
	n := 0
	for i := range o.members {
		m := &o.members[i]
		n += memberSize + len(m.name) + cap(m.buf)
		if m.sub != nil {
			n += m.sub.Size()
		}
	}
	return n
}

// Append appends the object.
func (o *Object) Append(dst []byte) []byte { return o.AppendWith(dst, nil) }

// AppendWith appends the object; with, when not nil, writes the value of a member itself and tells so by returning true.
func (o *Object) AppendWith(dst []byte, with func(dst []byte, name string) ([]byte, bool)) []byte {
	dst = append(dst, '{')
	for i := range o.members {
		m := &o.members[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, m.name...)
		dst = append(dst, '"', ':')
		if with != nil {
			var done bool
			if dst, done = with(dst, string(m.name)); done {
				continue
			}
		}
		dst = m.append(dst)
	}
	return append(dst, '}')
}

var null = []byte("null")

func (m *member) empty() bool {
	switch m.shape {
	case value:
		return Blank(m.buf)
	case object:
		return len(m.sub.members) == 0
	}
	return len(m.buf) == 0
}

func (m *member) append(dst []byte) []byte {
	switch m.shape {
	case text:
		return append(append(append(dst, '"'), m.buf...), '"')
	case elements:
		return append(append(append(dst, '['), m.buf...), ']')
	case object:
		return m.sub.Append(dst)
	}
	if len(m.buf) == 0 {
		return append(dst, null...)
	}
	return append(dst, m.buf...)
}

// Open is the JSON object that an event carries, trimmed. It is nil for no data and for the [DONE] that some put behind any stream; other data
// that is no valid JSON object is invalid.
func Open(data []byte) (raw []byte, invalid bool) {
	data = bytes.Trim(data, " \t\r\n")
	if len(data) == 0 || IsDone(data) {
		return nil, false
	}
	if data[0] != '{' || !jsonx.Valid(data) {
		return nil, true
	}
	return data, false
}

// IsDone recognises the end mark of Chat, which is no JSON; blanks around it are forgiven.
func IsDone(data []byte) bool {
	return len(data) >= 6 && len(data) < 64 && string(bytes.Trim(data, " \t")) == "[DONE]"
}

// Finish makes what was appended to dst from start on compact. What is no valid JSON object then, which takes nesting near the limit, is
// taken back: a record never holds a document that its readers refuse.
func Finish(dst []byte, start int) []byte {
	var c jsonx.Compactor
	if c.Check(dst[start:]) != nil {
		return dst[:start]
	}
	if kind, err := c.Finish(); err != nil || kind != jsonx.KindObject {
		return dst[:start]
	}
	if c.Tight() {
		return dst
	}
	c.Reset()
	tight, err := c.Append(nil, dst[start:])
	if err != nil {
		return dst[:start]
	}
	return append(dst[:start], tight...)
}
