package lineage

import (
	"bytes"
	"fmt"

	"rolltap/internal/jsonx"
)

// Gemini has its turns in contents, and the members of its parts in two spellings. Its tools and system text are the envelope. Contents of the
// model behind each other are one turn, and its texts behind each other one part: SDKs keep the chunks of a stream so. Left out are thoughts,
// their signatures, and ids of calls, which clients need not send back.

// contents hashes the turns of a Gemini request; done is called behind each.
func (r *reader) contents(raw []byte, done func()) error {
	var run [][]byte // the parts of the model's contents at hand
	flush := func() error {
		if run == nil {
			return nil
		}
		err := r.parts(run, true)
		run = nil
		done()
		return err
	}
	for it := jsonx.Array(raw); it.Next(); {
		if jsonx.IsNull(it.Value()) {
			continue
		}
		if jsonx.KindOf(it.Value()) != jsonx.KindObject {
			return fmt.Errorf("%w: no object", ErrUnsupported)
		}
		parts := jsonx.Get(it.Value(), "parts")
		if is(jsonx.Get(it.Value(), "role"), "model") {
			run = append(run, parts)
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if err := r.parts([][]byte{parts}, false); err != nil {
			return err
		}
		done()
	}
	return flush()
}

// parts hashes one turn: its texts and other parts, then the calls, then the results.
func (r *reader) parts(lists [][]byte, model bool) error {
	r.authored, r.wrote = model, r.wrote || model
	r.calls, r.results = r.calls[:0], r.results[:0]
	role := "user"
	if model {
		role = "model"
	}
	r.both(0, no, []byte(role))
	var said []byte
	flush := func() {
		if len(said) > 0 {
			r.part([]byte("text"), said)
			said = said[:0]
		}
	}
	for _, list := range lists {
		if !jsonx.IsNull(list) && jsonx.KindOf(list) != jsonx.KindArray {
			return fmt.Errorf("%w: parts are no list", ErrUnsupported)
		}
		for it := jsonx.Array(list); it.Next(); {
			part := it.Value()
			if jsonx.KindOf(part) != jsonx.KindObject {
				return fmt.Errorf("%w: a part is no object", ErrUnsupported)
			}
			text, call, result := jsonx.Get(part, "text"), either(part, "functionCall", "function_call"), either(part, "functionResponse", "function_response")
			switch {
			case model && string(jsonx.Get(part, "thought")) == "true":
			case !jsonx.IsNull(call):
				r.calls = append(r.calls, call)
			case !jsonx.IsNull(result):
				r.results = append(r.results, result)
			case jsonx.KindOf(text) == jsonx.KindString:
				if said = appendText(said, text); !model {
					flush()
				}
			default:
				flush()
				if err := r.otherPart(part); err != nil {
					return err
				}
			}
		}
	}
	flush()
	for _, call := range r.calls {
		arguments := jsonx.Get(call, "args")
		if jsonx.IsNull(arguments) {
			arguments = []byte("{}")
		}
		if err := r.call([2][]byte{}, jsonx.Get(call, "name"), nil, arguments); err != nil {
			return err
		}
	}
	for _, result := range r.results {
		said := []byte(nil)
		for it := jsonx.Object(result); it.Next(); {
			if key := it.Key(); string(key) == "response" || string(key) == "parts" {
				said = append(append(append(append(said, ','), '"'), key...), '"', ':')
				said = append(said, it.Value()...)
			}
		}
		said = append(append([]byte{'{'}, bytes.TrimPrefix(said, []byte{','})...), '}')
		if err := r.result([2][]byte{jsonx.Get(result, "name")}, said); err != nil {
			return err
		}
	}
	return nil
}

// otherPart hashes a part that is neither text nor call; one that has nothing but a signature is none.
func (r *reader) otherPart(part []byte) error {
	var kind, rest []byte
	for it := jsonx.Object(part); it.Next(); {
		switch key := it.Key(); string(key) {
		case "thoughtSignature", "thought_signature", "thought", "text":
		default:
			if kind == nil {
				kind = key
			}
			rest = append(append(append(append(rest, ','), '"'), key...), '"', ':')
			rest = append(rest, it.Value()...)
		}
	}
	if kind == nil {
		return nil
	}
	rest[0] = '{'
	if err := r.canonical(append(rest, '}')); err != nil {
		return err
	}
	r.part(kind, r.text)
	return nil
}

// either is the member of an object under one name or the other.
func either(object []byte, name, other string) []byte {
	if found := jsonx.Get(object, name); found != nil {
		return found
	}
	return jsonx.Get(object, other)
}
