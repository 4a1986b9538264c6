package jsonx

import (
	"bytes"
	"iter"
	"slices"
	"sync"

	"github.com/valyala/fastjson"
)

// fastjson builds trees very fast, but:
//
//   - it accepts what is no JSON: Parse validates first;
//   - it gives the first of members with the same name: Get looks for the last;
//   - it decodes lone surrogates wrongly and may swallow what follows them: Parse replaces them;
//   - it prints invalid JSON, and its errors quote the payload: neither is used;
//   - its values die with their parser: Value hands out copies.

// maxPooled is the largest input whose parser goes back to the pool. A parser keeps memory of many times
// the size of the largest input that it has seen.
const maxPooled = 1 << 20

// parsers holds memory for reuse, no state.
var parsers = sync.Pool{New: func() any { return new(fastjson.Parser) }}

// Doc is a parsed JSON value. It owns its Values: none may be used after Release. Neither a Doc nor its
// Values may be used by several goroutines at once, not even for reading.
type Doc struct {
	parser *fastjson.Parser
	root   Value
	pooled bool
}

// Parse builds the tree of b, which must be Valid, and which it copies. Its only error is ErrSyntax, also
// for more than 299 containers inside each other, which is as deep as trees go.
func Parse(b []byte) (*Doc, error) {
	if !Valid(b) {
		return nil, ErrSyntax
	}
	p := parsers.Get().(*fastjson.Parser)
	v, err := p.ParseBytes(replaceLone(b))
	if err != nil {
		// Not %w: the text quotes the payload.
		return nil, ErrSyntax
	}
	return &Doc{parser: p, root: Value{v}, pooled: len(b) <= maxPooled}, nil
}

// replaceLone returns b with every escape of a lone surrogate replaced by \ufffd, as long; b itself if
// there is none.
func replaceLone(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\ud`)) && !bytes.Contains(b, []byte(`\uD`)) {
		return b
	}
	out := b
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 {
			return out
		}
		i += n
		r, size := escape(b[i:])
		if r == '\uFFFD' && size == 6 {
			if &out[0] == &b[0] {
				out = slices.Clone(b)
			}
			copy(out[i:], `\ufffd`)
		}
		i += size
	}
}

// Root returns the value itself. After Release it is absent.
func (d *Doc) Root() Value { return d.root }

// Release gives the memory of the tree back. A second call does nothing.
func (d *Doc) Release() {
	if d.pooled {
		parsers.Put(d.parser)
	}
	*d = Doc{}
}

// Value is a value of a Doc, valid until its Release. The zero Value is an absent one: every method may be
// called on it.
type Value struct{ v *fastjson.Value }

// Kind returns the kind of the value, KindInvalid if it is absent.
func (v Value) Kind() Kind {
	if v.v == nil {
		return KindInvalid
	}
	switch v.v.Type() {
	case fastjson.TypeObject:
		return KindObject
	case fastjson.TypeArray:
		return KindArray
	case fastjson.TypeString:
		return KindString
	case fastjson.TypeNumber:
		return KindNumber
	case fastjson.TypeTrue, fastjson.TypeFalse:
		return KindBool
	default:
		return KindNull
	}
}

// Get follows names from object to object; of members with the same name it takes the last. It returns an
// absent Value when one is missing. Without names it returns v.
func (v Value) Get(names ...string) Value {
	for _, name := range names {
		var last *fastjson.Value
		v.object().Visit(func(key []byte, member *fastjson.Value) {
			if string(key) == name {
				last = member
			}
		})
		v = Value{last}
	}
	return v
}

// Str returns a copy of a string, decoded, with U+FFFD for every lone surrogate; "" for anything else.
func (v Value) Str() string {
	if v.v == nil {
		return ""
	}
	return string(v.v.GetStringBytes())
}

// Int returns a number without fraction and exponent that fits.
func (v Value) Int() (int64, bool) {
	if v.v == nil {
		return 0, false
	}
	n, err := v.v.Int64()
	return n, err == nil
}

// Items returns the elements of an array in their order.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for _, e := range v.array() {
			if !yield(Value{e}) {
				return
			}
		}
	}
}

func (v Value) object() *fastjson.Object {
	if v.v == nil {
		return nil
	}
	return v.v.GetObject()
}

func (v Value) array() []*fastjson.Value {
	if v.v == nil {
		return nil
	}
	return v.v.GetArray()
}
