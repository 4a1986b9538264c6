package rewrite

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// SetMember gives the top-level member of a JSON object a value, or adds it as the last one. Every other byte stays; body is not written to.
func SetMember(body []byte, name string, value []byte) []byte {
	out := make([]byte, 0, len(body)+len(name)+len(value)+4)
	if old := jsonx.Get(body, name); old != nil {
		from := cap(body) - cap(old) // a part of body, whose capacity runs to the same end
		out = append(out, body[:from]...)
		out = append(out, value...)
		return append(out, body[from+len(old):]...)
	}
	end := bytes.LastIndexByte(body, '}')
	if end < 0 {
		return append(out, body...)
	}
	out = append(out, body[:end]...)
	if members := jsonx.Object(body); members.Next() {
		out = append(out, ',')
	}
	out = jsonx.AppendString(out, name)
	out = append(out, ':')
	out = append(out, value...)
	return append(out, body[end:]...)
}

// dropMember takes the top-level members of that name out of a JSON object. Every other byte stays; body is not written to.
func dropMember(body []byte, name string) []byte {
	for {
		old := jsonx.Get(body, name)
		if old == nil {
			return body
		}
		var begins, before int // of the member's name; the end of the value in front of it
		for it := jsonx.Object(body); it.Next(); {
			value := cap(body) - cap(it.Value())
			if value == cap(body)-cap(old) {
				begins = cap(body) - cap(it.Key()) - 1
				break
			}
			before = value + len(it.Value())
		}
		end := cap(body) - cap(old) + len(old)
		if before > 0 { // with the comma in front of it
			begins = before
		} else if rest := bytes.TrimLeft(body[end:], " \t\r\n"); len(rest) > 0 && rest[0] == ',' {
			end = len(body) - len(rest) + 1
		}
		out := make([]byte, 0, len(body))
		out = append(out, body[:begins]...)
		body = append(out, body[end:]...)
	}
}

const templateArgs = "chat_template_kwargs"

// mergeExtras gives the encoded request of an upstream what the configuration and the client's metadata add to it (dialects.md 4.2). Metadata
// is the client's member of that name, nil none. The request wins over the metadata's texts, these over extra_body; override wins over all.
// chat_template_kwargs are merged member by member. Every other byte of the body stays, and it is not written to.
func (p *Policy) mergeExtras(body []byte, metadata canon.Raw) ([]byte, error) {
	extra := p.ExtraBody
	if p.MetadataExtras && metadata != nil {
		for _, name := range []string{"extra_body", templateArgs} {
			text, err := metadataObject(metadata, name)
			if err != nil {
				return nil, err
			}
			if text == nil {
				continue
			}
			if name == templateArgs {
				text = SetMember([]byte("{}"), templateArgs, text)
			}
			if extra == nil {
				extra = canon.Raw("{}")
			}
			extra = mergeOver(extra, text)
		}
	}
	if extra != nil {
		body = mergeUnder(body, extra)
	}
	if p.Override != nil {
		body = mergeOver(body, p.Override)
	}
	return body, nil
}

// metadataObject is the JSON object that a member of the metadata spells; nil when there is none.
func metadataObject(metadata canon.Raw, name string) ([]byte, error) {
	raw := jsonx.Get(metadata, name)
	if jsonx.IsNull(raw) {
		return nil, nil
	}
	in, ok := jsonx.Interior(raw)
	text := jsonx.AppendUnquoted(nil, in)
	if !ok || !jsonx.ValidObject(text) {
		return nil, canon.Invalid("metadata."+name, "must be a string that holds a JSON object")
	}
	return text, nil
}

// mergeOver sets the members of over in base.
func mergeOver(base, over []byte) []byte {
	for it := jsonx.Object(over); it.Next(); {
		name, value := plainText(it.Key()), it.Value()
		if name == templateArgs && jsonx.KindOf(value) == jsonx.KindObject {
			if known := jsonx.Get(base, name); jsonx.KindOf(known) == jsonx.KindObject {
				value = setAll(known, value)
			}
		}
		base = SetMember(base, name, value)
	}
	return base
}

// mergeUnder adds the members of under that base does not have.
func mergeUnder(base, under []byte) []byte {
	for it := jsonx.Object(mergeOver([]byte("{}"), under)); it.Next(); { // each name once: the last one counts
		name, value := plainText(it.Key()), it.Value()
		known := jsonx.Get(base, name)
		switch {
		case known == nil:
			base = SetMember(base, name, value)
		case name == templateArgs && jsonx.KindOf(known) == jsonx.KindObject && jsonx.KindOf(value) == jsonx.KindObject:
			base = SetMember(base, name, setAll(value, known))
		}
	}
	return base
}

func setAll(base, over []byte) []byte {
	for it := jsonx.Object(over); it.Next(); {
		base = SetMember(base, plainText(it.Key()), it.Value())
	}
	return base
}
