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
	if !jsonx.Valid(obj) || jsonx.KindOf(obj) != jsonx.KindObject {
		return p, &KeyError{Err: errors.New("is no mapping")}
	}
	words := p.words()
	var bad []error
	for it := jsonx.Object(obj); it.Next(); {
		key, value := string(jsonx.Unquoted(it.Key())), it.Value()
		if jsonx.IsNull(value) {
			if !p.has(key) {
				bad = append(bad, &KeyError{key, errUnknownKey})
			}
			continue
		}
		var err error
		if i := slices.IndexFunc(words, func(k wordKey) bool { return k.name == key }); i >= 0 {
			err = setWord(words[i].value, value)
		} else {
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

// has tells whether there is a key of that name.
func (p *Policy) has(key string) bool {
	if slices.ContainsFunc(p.words(), func(k wordKey) bool { return k.name == key }) {
		return true
	}
	var scratch Policy
	return !errors.Is(scratch.set(key, []byte("null")), errUnknownKey)
}

var errUnknownKey = errors.New("unknown key")

// set sets a key that is no word.
func (p *Policy) set(key string, value []byte) error {
	switch key {
	case "extra_body":
		return setObject(&p.ExtraBody, value)
	case "override":
		return setObject(&p.Override, value)
	case "metadata_extras":
		return setBool(&p.MetadataExtras, value)
	case "chat_extensions":
		return setBool(&p.ChatExtensions, value)
	case "default_max_tokens":
		return setInt(&p.DefaultMaxTokens, value)
	case "thinking_budget_tokens":
		return setInt(&p.ThinkingBudgetTokens, value)
	case "max_tokens_limit":
		if s, ok := jsonx.Text(value); ok && s == "auto" {
			p.MaxTokensLimit = autoLimit
			return nil
		}
		if n, ok := jsonx.Int(value); !ok || n < 0 {
			return errors.New("is neither auto nor an integer of 0 or more")
		}
		return setInt(&p.MaxTokensLimit, value)
	case "reasoning_seal_key_file":
		return setWord(&p.SealKeyFile, value)
	case "sampling":
		return p.setSampling(value)
	}
	return errUnknownKey
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
			bad = append(bad, &KeyError{fmt.Sprintf("sampling[%d]", i), errors.New("is no mapping")})
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
				bad = append(bad, &KeyError{fmt.Sprintf("sampling[%d].%s", i, jsonx.Unquoted(m.Key())), err})
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
