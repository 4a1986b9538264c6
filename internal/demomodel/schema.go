package demomodel

import (
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
)

// maker writes a value that fits a JSON schema. It covers what tool definitions
// use: types, enum, const, default, properties, items, anyOf and local references.
type maker struct {
	root  []byte   // for references
	names []string // capitalised words of the user's message, used as values
	call  int      // which of several parallel calls: their values differ
}

// depth bounds schemas that refer to themselves.
const maxSchemaDepth = 8

// arguments writes the object for a tool's parameters.
func (m maker) arguments(schema []byte) string {
	m.root = schema
	if v := string(m.value(nil, schema, "", 0)); strings.HasPrefix(v, "{") {
		return v
	}
	return "{}"
}

func (m maker) value(dst, schema []byte, name string, depth int) []byte {
	if depth > maxSchemaDepth {
		return append(dst, "null"...)
	}
	for _, key := range []string{"const", "default"} {
		if v := jsonx.Get(schema, key); v != nil {
			return append(dst, spaced(v)...)
		}
	}
	if v := first(jsonx.Get(schema, "enum")); v != nil {
		return append(dst, spaced(v)...)
	}
	if ref, ok := jsonx.Text(jsonx.Get(schema, "$ref")); ok {
		return m.value(dst, m.resolve(ref), name, depth+1)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if v := first(jsonx.Get(schema, key)); v != nil {
			return m.value(dst, v, name, depth+1)
		}
	}
	switch typeOf(schema) {
	case "object":
		return m.object(dst, schema, depth)
	case "array":
		dst = append(dst, '[')
		if items := jsonx.Get(schema, "items"); jsonx.KindOf(items) == jsonx.KindObject {
			dst = m.value(dst, items, name, depth+1)
		}
		return append(dst, ']')
	case "integer", "number":
		if n := jsonx.Get(schema, "minimum"); jsonx.KindOf(n) == jsonx.KindNumber {
			return append(dst, n...)
		}
		return strconv.AppendInt(dst, int64(1+m.call), 10)
	case "boolean":
		return append(dst, "true"...)
	case "null":
		return append(dst, "null"...)
	}
	return jsonx.AppendString(dst, m.word(name))
}

// object writes the required properties, or all of them when none is required.
func (m maker) object(dst, schema []byte, depth int) []byte {
	required := map[string]bool{}
	for it := jsonx.Array(jsonx.Get(schema, "required")); it.Next(); {
		if name, ok := jsonx.Text(it.Value()); ok {
			required[name] = true
		}
	}
	dst = append(dst, '{')
	n := 0
	for it := jsonx.Object(jsonx.Get(schema, "properties")); it.Next(); {
		name := string(jsonx.AppendUnquoted(nil, it.Key()))
		if len(required) > 0 && !required[name] {
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ", "...)
		}
		dst = jsonx.AppendString(dst, name)
		dst = append(dst, ": "...)
		dst = m.value(dst, it.Value(), name, depth+1)
	}
	return append(dst, '}')
}

// word is a text for the property of that name. The values are harmless: a real
// agent behind the demo runs what it is told to run.
func (m maker) word(name string) string {
	name = strings.ToLower(name)
	switch {
	case strings.Contains(name, "city"), strings.Contains(name, "location"), strings.Contains(name, "place"):
		if m.call < len(m.names) {
			return m.names[m.call]
		}
		return []string{"Paris", "Tokyo"}[m.call%2]
	case strings.Contains(name, "command"), strings.Contains(name, "cmd"):
		return "echo demo"
	case strings.Contains(name, "path"), strings.Contains(name, "file"):
		return "demo.txt"
	case strings.Contains(name, "url"):
		return "http://localhost/"
	}
	if m.call > 0 {
		return "demo " + strconv.Itoa(m.call+1)
	}
	return "demo"
}

// resolve finds "#/$defs/x" in the schema's root.
func (m maker) resolve(ref string) []byte {
	at := m.root
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		at = jsonx.Get(at, step)
	}
	return at
}

func first(array []byte) []byte {
	if it := jsonx.Array(array); it.Next() {
		return it.Value()
	}
	return nil
}

// typeOf reads "type", which may be a list (the first that is not null counts),
// or guesses it from the other members.
func typeOf(schema []byte) string {
	raw := jsonx.Get(schema, "type")
	if t, ok := jsonx.Text(raw); ok {
		return t
	}
	for it := jsonx.Array(raw); it.Next(); {
		if t, ok := jsonx.Text(it.Value()); ok && t != "null" {
			return t
		}
	}
	if jsonx.Get(schema, "properties") != nil {
		return "object"
	}
	if jsonx.Get(schema, "items") != nil {
		return "array"
	}
	return "string"
}
