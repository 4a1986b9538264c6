// Package jsonx reads and writes JSON where speed or exactness rules out encoding/json.
//
// It has four parts, from the cheapest to the dearest:
//
//   - Valid and ValueEnd judge bytes in one piece, a Compactor such as arrive in several.
//   - Object, Array, Get and their like walk valid bytes in place. Nothing is decoded and nothing is
//     allocated, so unknown members, the spelling of numbers and lone surrogates survive.
//   - AppendString and its like write strings into a caller's buffer.
//   - Parse builds a tree for readers of small documents that are not ours, such as answers about models.
//
// Strict means RFC 8259, valid UTF-8 and at most MaxDepth containers inside each other. Escapes of lone
// surrogates (\ud800) are valid JSON text and are kept; numbers may have any size. Of members with the
// same name the last one counts, as in encoding/json and in Python.
//
// No function panics on any input, and no error quotes what it was given: payloads are private.
// The package knows nothing about dialects, and it never reorders or re-prints what it has read.
package jsonx

import "errors"

// MaxDepth is how many arrays and objects may lie inside each other.
const MaxDepth = 512

// ErrSyntax says that the input is no strict JSON. It carries no position and no excerpt.
var ErrSyntax = errors.New("invalid JSON")

// Kind is the type of a JSON value.
type Kind uint8

// The kinds. KindInvalid is the zero value; an absent value has it too.
const (
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)
