package rewrite

import (
	"errors"
	"fmt"
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// PolicyFromJSON reads the `rewrite:` mapping of a configuration, given as a JSON object, over the defaults. Null is as good as absent. It
// joins what it does not understand, each with its key; what the values mean is judged by Validate, once the key file has been read.
func PolicyFromJSON(obj []byte) (Policy, error) {
	p := DefaultPolicy()
	if !jsonx.ValidObject(obj) {
		return p, &KeyError{Err: errors.New("is no mapping")}
	}
	keys := p.keys()
	var bad []error
	for it := jsonx.Object(obj); it.Next(); {
		key, value := string(jsonx.Unquoted(it.Key())), it.Value()
		var err error
		switch {
		case !slices.Contains(keys, key):
			err = errUnknownKey
		case !jsonx.IsNull(value):
			err = p.set(key, value)
		}
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			bad = append(bad, several.Unwrap()...)
		} else if err != nil {
			bad = append(bad, &KeyError{key, err})
		}
	}
	return p, errors.Join(bad...)
}

// KeyError is what is wrong with one key of the `rewrite:` mapping.
type KeyError struct {
	Key string // with its place inside the mapping: "sampling[0].model"; "" the mapping itself
	Err error
}

func (e *KeyError) Error() string {
	if e.Key == "" {
		return "rewrite: " + e.Err.Error()
	}
	return "rewrite." + e.Key + ": " + e.Err.Error()
}

func (e *KeyError) Unwrap() error { return e.Err }

// otherKey is a key that is no word.
type otherKey struct {
	name string
	set  func(value []byte) error
}

func (p *Policy) others() []otherKey {
	object := func(to *canon.Raw) func([]byte) error { return func(v []byte) error { return setObject(to, v) } }
	boolean := func(to *bool) func([]byte) error { return func(v []byte) error { return setBool(to, v) } }
	integer := func(to *int64) func([]byte) error { return func(v []byte) error { return setInt(to, v) } }
	return []otherKey{
		{"extra_body", object(&p.ExtraBody)},
		{"override", object(&p.Override)},
		{"metadata_extras", boolean(&p.MetadataExtras)},
		{"chat_extensions", boolean(&p.ChatExtensions)},
		{"default_max_tokens", integer(&p.DefaultMaxTokens)},
		{"thinking_budget_tokens", integer(&p.ThinkingBudgetTokens)},
		{"max_tokens_limit", p.setMaxTokensLimit},
		{"reasoning_seal_key_file", func(v []byte) error { return setWord(&p.SealKeyFile, v) }},
		{"sampling", p.setSampling},
	}
}

// keys are the names of all keys.
func (p *Policy) keys() (names []string) {
	for _, k := range p.words() {
		names = append(names, k.name)
	}
	for _, k := range p.others() {
		names = append(names, k.name)
	}
	return names
}

var errUnknownKey = errors.New("unknown key")

// set sets a key to a value that is not null.
func (p *Policy) set(key string, value []byte) error {
	for _, k := range p.words() {
		if k.name == key {
			return setWord(k.value, value)
		}
	}
	for _, k := range p.others() {
		if k.name == key {
			return k.set(value)
		}
	}
	return errUnknownKey
}

func (p *Policy) setMaxTokensLimit(value []byte) error {
	if s, ok := jsonx.Text(value); ok && s == "auto" {
		p.MaxTokensLimit = autoLimit
		return nil
	}
	if n, ok := jsonx.Int(value); !ok || n < 0 {
		return errors.New("is neither auto nor an integer of 0 or more")
	}
	return setInt(&p.MaxTokensLimit, value)
}

func (p *Policy) setSampling(value []byte) error {
	if jsonx.KindOf(value) != jsonx.KindArray {
		return errors.New("is no list")
	}
	p.Sampling = nil
	var bad []error
	for it, i := jsonx.Array(value), 0; it.Next(); i++ {
		rule := SamplingRule{Action: "error"}
		if jsonx.KindOf(it.Value()) != jsonx.KindObject {
			bad = append(bad, &KeyError{samplingAt(i), errors.New("is no mapping")})
			continue
		}
		for m := jsonx.Object(it.Value()); m.Next(); {
			var err error
			switch key := string(jsonx.Unquoted(m.Key())); key {
			case "model":
				err = setWord(&rule.Model, m.Value())
			case "action":
				err = setWord(&rule.Action, m.Value())
			case "forbid":
				err = setWords(&rule.Forbid, m.Value())
			default:
				err = errUnknownKey
			}
			if err != nil {
				bad = append(bad, &KeyError{fmt.Sprintf("%s.%s", samplingAt(i), jsonx.Unquoted(m.Key())), err})
			}
		}
		p.Sampling = append(p.Sampling, rule)
	}
	return errors.Join(bad...)
}

func setWord(to *string, value []byte) error {
	s, ok := jsonx.Text(value)
	if !ok {
		return errors.New("is no string")
	}
	*to = s
	return nil
}

func setWords(to *[]string, value []byte) error {
	if jsonx.KindOf(value) != jsonx.KindArray {
		return errors.New("is no list of strings")
	}
	for it := jsonx.Array(value); it.Next(); {
		s, ok := jsonx.Text(it.Value())
		if !ok {
			return errors.New("is no list of strings")
		}
		*to = append(*to, s)
	}
	return nil
}

func setBool(to *bool, value []byte) error {
	if jsonx.KindOf(value) != jsonx.KindBool {
		return errors.New("is neither true nor false")
	}
	*to = jsonx.Truthy(value)
	return nil
}

func setInt(to *int64, value []byte) error {
	n, ok := jsonx.Int(value)
	if !ok {
		return errors.New("is no integer")
	}
	*to = n
	return nil
}

func setObject(to *canon.Raw, value []byte) error {
	if jsonx.KindOf(value) != jsonx.KindObject {
		return errors.New("is no mapping")
	}
	*to = slices.Clone(value)
	return nil
}

// Overrides names the members that override gives every upstream request, in their order.
func (p *Policy) Overrides() []string {
	names := []string{}
	for it := jsonx.Object(p.Override); it.Next(); {
		names = append(names, plainText(it.Key()))
	}
	return names
}
