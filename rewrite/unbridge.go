package rewrite

import (
	"bytes"

	"rolltap/rewrite/canon"
)

// filter changes an answer on its way to the client. It appends to dst what e becomes, e itself mostly; the events borrow from e and are
// valid as long as it is. One filter an answer, one goroutine.
type filter interface {
	next(dst []canon.Event, e *canon.Event) ([]canon.Event, error)
}

// filters are those that an answer to asked needs, in their order; nil none. Names are what prepare gave.
func (p *Policy) filters(asked *canon.Request, names *toolNames, l *canon.Losses) []filter {
	var all []filter
	if p.ThinkTags == "parse" {
		all = append(all, &thinkParser{})
	}
	if names.needed() {
		all = append(all, &unbridge{names: names, client: asked.From, l: l})
	}
	if asked.From == canon.Messages || asked.From == canon.Gemini || asked.From == canon.Responses && asked.Show.Encrypted {
		all = append(all, &sealer{p: p, client: asked.From})
	}
	return all
}

// unbridge gives calls the names that the client knows, and calls of bridged custom tools their free text.
type unbridge struct {
	names  *toolNames
	client canon.Dialect
	l      *canon.Losses
	calls  int                  // so far
	open   map[int]*bridgedCall // custom calls by their part
}

type bridgedCall struct {
	unwrapper
	number int // among the calls
}

func (f *unbridge) next(dst []canon.Event, e *canon.Event) ([]canon.Event, error) {
	switch e.Kind {
	case canon.Open:
		if e.Type != canon.CallPart {
			return append(dst, *e), nil
		}
		f.calls++
		known, ok := f.names.restore(e.Call.Name)
		if !ok {
			return append(dst, *e), nil
		}
		dst = append(dst, *e)
		c := &dst[len(dst)-1].Call
		c.Name, c.Namespace = known.Name, known.Namespace
		if known.Custom && f.names.bridged && !c.Custom {
			c.Custom = true
			if f.open == nil {
				f.open = map[int]*bridgedCall{}
			}
			f.open[e.Part] = &bridgedCall{number: f.calls - 1}
		}
		return dst, nil
	case canon.Delta:
		u := f.open[e.Part]
		if u == nil {
			return append(dst, *e), nil
		}
		if u.clear() && bytes.IndexByte(e.Text, '\\') < 0 {
			return append(dst, *e), nil
		}
		return appendDelta(dst, e, u.append(make(canon.Text, 0, len(e.Text)+16), e.Text)), nil
	case canon.Close:
		if u := f.open[e.Part]; u != nil {
			delete(f.open, e.Part)
			text, whole := u.finish(nil)
			if !whole {
				f.l.Add(f.path(u, e.Part)+".arguments", canon.NoEquivalent)
			}
			dst = appendDelta(dst, &canon.Event{Kind: canon.Delta, Part: e.Part}, text)
		}
	}
	return append(dst, *e), nil
}

// path is where a call is in the client's answer. Only OpenAI's clients have custom tools.
func (f *unbridge) path(u *bridgedCall, part int) string {
	if f.client == canon.Chat {
		return canon.At("choices[0].message.tool_calls", u.number)
	}
	return canon.At("output", part)
}

// appendDelta appends e with another text, unless there is none.
func appendDelta(dst []canon.Event, e *canon.Event, text canon.Text) []canon.Event {
	if len(text) == 0 {
		return dst
	}
	dst = append(dst, *e)
	dst[len(dst)-1].Text = text
	return dst
}
