package responses

import (
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// members are those of one JSON object while a request is read. Each is taken once; what nobody takes is the rest. The memory is used again
// for the next object that is read.
type members struct{ list []member }

type member struct {
	key, name []byte // as written, and unquoted
	value     []byte
	taken     bool
}

func (m *members) read(object canon.Raw) *members {
	m.list = m.list[:0]
	for it := jsonx.Object(object); it.Next(); {
		m.list = append(m.list, member{key: it.Key(), name: jsonx.Unquoted(it.Key()), value: it.Value()})
	}
	return m
}

// take is the last member of that name; nil when it is absent or null.
func (m *members) take(name string) canon.Raw {
	var found canon.Raw
	for i := range m.list {
		if e := &m.list[i]; string(e.name) == name {
			e.taken, found = true, e.value
		}
	}
	if jsonx.IsNull(found) {
		return nil
	}
	return found
}

// has tells whether take would give something, and takes nothing.
func (m *members) has(name string) bool {
	return slices.ContainsFunc(m.list, func(e member) bool { return string(e.name) == name && !jsonx.IsNull(e.value) })
}

// takeOf is take for a member that must be of one kind.
func (m *members) takeOf(kind jsonx.Kind, path, name string) (canon.Raw, error) {
	raw := m.take(name)
	if raw != nil && jsonx.KindOf(raw) != kind {
		return nil, canon.Invalid(inside(path, name), dialect.MustBe(kind))
	}
	return raw, nil
}

// text is takeOf for a string.
func (m *members) text(path, name string) (canon.Text, error) {
	raw, err := m.takeOf(jsonx.KindString, path, name)
	if raw == nil || err != nil {
		return nil, err
	}
	text, _ := jsonx.Interior(raw)
	return text, nil
}

// needed is text for a member that must be there and not empty.
func (m *members) needed(path, name string) (canon.Text, error) {
	text, err := m.text(path, name)
	if err == nil && len(text) == 0 {
		err = canon.Invalid(inside(path, name), "is missing")
	}
	return text, err
}

// rest is what nobody took, without members that are null and without the status of what is complete, which says nothing.
func (m *members) rest() []canon.Member {
	var rest []canon.Member
	for i := range m.list {
		e := &m.list[i]
		if e.taken || jsonx.IsNull(e.value) || string(e.name) == "status" && string(e.value) == `"completed"` {
			continue
		}
		rest = append(rest, canon.Member{Name: e.key, Value: e.value})
	}
	return rest
}

// inside is the path of a member: "text.format".
func inside(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
