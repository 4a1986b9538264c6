package gemini

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// schema makes JSON Schema of a schema of Google's, which is a subset of OpenAPI's: types are in capitals, a nullable one says so beside its
// type, and numbers that count are strings. Clients write such types into a parametersJsonSchema or responseJsonSchema as well. What is JSON
// Schema already stays as it is, byte for byte.
func (in *callReader) schema(raw []byte) canon.Raw {
	if !google(raw, 0) {
		return raw
	}
	return canon.Raw(in.make(func(dst []byte) []byte { return appendSchema(dst, raw, 0) }))
}

// keyword says what is behind a member of a schema.
type keyword uint8

const (
	plainKey keyword = iota
	typeKey
	countKey
	nullableKey
	enumKey
	schemaKey   // a schema, or a list of them
	schemasKey  // an object of them
	orderingKey // which only tells in which order to write
)

func keywordOf(name []byte) keyword {
	switch string(name) {
	case "type":
		return typeKey
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
		return countKey
	case "nullable":
		return nullableKey
	case "enum":
		return enumKey
	case "items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "additionalProperties", "contains", "if", "then", "else", "propertyNames":
		return schemaKey
	case "properties", "patternProperties", "$defs", "defs", "definitions", "dependentSchemas":
		return schemasKey
	case "propertyOrdering":
		return orderingKey
	}
	return plainKey
}

// spelling is how a keyword is written that Google's proto spells in either case; keywords of JSON Schema that begin with $ are their own.
func spelling(key []byte) []byte {
	if name := camel(key); keywordOf(name) != plainKey {
		return name
	}
	return fold.Name(key)
}

// google tells whether anything in a schema is not JSON Schema.
func google(raw []byte, depth int) bool {
	if depth > jsonx.MaxDepth {
		return false
	}
	if jsonx.KindOf(raw) == jsonx.KindArray {
		for it := jsonx.Array(raw); it.Next(); {
			if google(it.Value(), depth+1) {
				return true
			}
		}
		return false
	}
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		switch keywordOf(spelling(it.Key())) {
		case typeKey:
			if _, other := typeWord(value); other {
				return true
			}
		case countKey:
			if jsonx.KindOf(value) == jsonx.KindString {
				return true
			}
		case nullableKey, orderingKey:
			return true
		case schemaKey:
			if google(value, depth+1) {
				return true
			}
		case schemasKey:
			for m := jsonx.Object(value); m.Next(); {
				if google(m.Value(), depth+1) {
					return true
				}
			}
		}
	}
	return false
}

// typeWord is the type as JSON Schema writes it, "" for one that says nothing; other tells that it was written otherwise.
func typeWord(raw []byte) (word string, other bool) {
	text, _ := jsonx.Interior(raw)
	switch string(text) {
	case "STRING":
		return "string", true
	case "NUMBER":
		return "number", true
	case "INTEGER":
		return "integer", true
	case "BOOLEAN":
		return "boolean", true
	case "ARRAY":
		return "array", true
	case "OBJECT":
		return "object", true
	case "NULL":
		return "null", true
	case "TYPE_UNSPECIFIED":
		return "", true
	}
	return string(text), false
}

// appendSchema appends a schema, or a list of them, as JSON Schema.
func appendSchema(dst, raw []byte, depth int) []byte {
	kind := jsonx.KindOf(raw)
	if depth > jsonx.MaxDepth || kind != jsonx.KindObject && kind != jsonx.KindArray {
		return append(dst, raw...)
	}
	if kind == jsonx.KindArray {
		dst = append(dst, '[')
		for it := jsonx.Array(raw); it.Next(); {
			dst = appendSchema(comma(dst), it.Value(), depth+1)
		}
		return append(dst, ']')
	}
	nullable := string(get(raw, "nullable")) == "true"
	dst = append(dst, '{')
	for it := jsonx.Object(raw); it.Next(); {
		name, value := spelling(it.Key()), it.Value()
		k := keywordOf(name)
		word, other := typeWord(value)
		if k == nullableKey || k == orderingKey || k == typeKey && other && word == "" {
			continue
		}
		dst = append(append(append(comma(dst), '"'), name...), '"', ':')
		switch k {
		case typeKey:
			dst = appendType(dst, value, word, nullable)
		case countKey:
			if n, ok := jsonx.Interior(value); ok {
				if _, ok = jsonx.Int(n); ok {
					value = n
				}
			}
			dst = append(dst, value...)
		case enumKey:
			dst = append(dst, value...)
			if nullable && jsonx.Truthy(value) && jsonx.KindOf(value) == jsonx.KindArray && !hasNull(value) {
				dst = append(bytes.TrimRight(dst[:len(dst)-1], " \t\r\n"), ",null]"...)
			}
		case schemaKey:
			dst = appendSchema(dst, value, depth+1)
			if nullable && string(name) == "anyOf" && jsonx.KindOf(value) == jsonx.KindArray && jsonx.Truthy(value) {
				dst = append(dst[:len(dst)-1], `,{"type":"null"}]`...)
			}
		case schemasKey:
			dst = appendSchemas(dst, value, depth+1)
		default:
			dst = append(dst, value...)
		}
	}
	return append(dst, '}')
}

func appendType(dst, raw []byte, word string, nullable bool) []byte {
	if jsonx.KindOf(raw) != jsonx.KindString { // a list of types is JSON Schema
		return append(dst, raw...)
	}
	if nullable && word != "null" {
		return append(append(append(dst, `["`...), word...), `","null"]`...)
	}
	return append(append(append(dst, '"'), word...), '"')
}

func appendSchemas(dst, raw []byte, depth int) []byte {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return append(dst, raw...)
	}
	dst = append(dst, '{')
	for it := jsonx.Object(raw); it.Next(); {
		dst = append(append(append(comma(dst), '"'), it.Key()...), '"', ':')
		dst = appendSchema(dst, it.Value(), depth+1)
	}
	return append(dst, '}')
}

func hasNull(list []byte) bool {
	for it := jsonx.Array(list); it.Next(); {
		if jsonx.IsNull(it.Value()) {
			return true
		}
	}
	return false
}

// comma appends what is between two members or elements.
func comma(dst []byte) []byte {
	if last := dst[len(dst)-1]; last != '{' && last != '[' {
		return append(dst, ',')
	}
	return dst
}
