package responses

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/fold"
)

// item is one element of output. Once done it is what the done event says; until then it is rest, in which content and summary are places for
// the parts.
type item struct {
	done    []byte
	rest    fold.Object
	content fold.List[fold.Object]
	summary fold.List[fold.Object]
}

// output folds an event that belongs to one output item: wire.md 3.2.4. What is not listed, progress of hosted tools say, changes no item.
func (f *folder) output(ev event) {
	kind, done := bytes.CutSuffix(ev.kind, []byte(".done"))
	if !done {
		if kind, done = bytes.CutSuffix(ev.kind, []byte(".delta")); !done {
			kind, _ = bytes.CutSuffix(ev.kind, []byte(".added"))
		}
		done = false
	}
	switch string(kind) {
	case "response.output_item":
		f.item(ev, done)
	case "response.content_part":
		f.part(ev, done, false, "")
	case "response.reasoning_summary_part":
		f.part(ev, done, true, "reasoning")
	case "response.output_text":
		f.text(ev, done, false, "message", "output_text", "text")
	case "response.refusal":
		f.text(ev, done, false, "message", "refusal", "refusal")
	case "response.reasoning_text":
		f.text(ev, done, false, "reasoning", "reasoning_text", "text")
	case "response.reasoning_summary_text":
		f.text(ev, done, true, "reasoning", "summary_text", "text")
	case "response.output_text.annotation":
		if p := f.partAt(ev, false, "message", "output_text"); p != nil && ev.annotation != nil {
			p.Add([]byte("annotations"), ev.annotation)
		}
	case "response.function_call_arguments":
		f.call(ev, done, "function_call", "arguments")
	case "response.mcp_call_arguments":
		f.call(ev, done, "mcp_call", "arguments")
	case "response.custom_tool_call_input":
		f.call(ev, done, "custom_tool_call", "input")
	case "response.code_interpreter_call_code":
		f.call(ev, done, "code_interpreter_call", "code")
	}
}

// itemAt is the item that an event belongs to; where no event added it, it begins with what the event lets one know. Nil when it is done, as
// nothing can be added then, or when there are too many.
func (f *folder) itemAt(ev event, kind string) *item {
	index, ok := jsonx.Int(ev.outputIndex)
	if !ok {
		index = f.items.Last()
	}
	it := f.items.At(index)
	if it == nil {
		f.full = true
		return nil
	}
	if it.done != nil {
		return nil
	}
	if it.rest.Len() == 0 {
		if ev.itemID != nil {
			it.rest.Set([]byte("id"), ev.itemID)
		}
		if kind != "" {
			it.rest.Default("type", `"`+kind+`"`)
		}
	}
	return it
}

func (f *folder) item(ev event, done bool) {
	if jsonx.KindOf(ev.item) != jsonx.KindObject {
		return
	}
	index, ok := jsonx.Int(ev.outputIndex)
	if !ok && done {
		index = f.items.Last()
	} else if !ok {
		index = f.items.Next()
	}
	it := f.items.At(index)
	if it == nil {
		f.full = true
		return
	}
	*it = item{}
	if done {
		it.done = bytes.Clone(ev.item)
		return
	}
	for members := jsonx.Object(ev.item); members.Next(); {
		switch name := fold.Name(members.Key()); string(name) {
		case "content":
			it.rest.Set(name, members.Value())
			f.seed(&it.content, members.Value())
		case "summary":
			it.rest.Set(name, members.Value())
			f.seed(&it.summary, members.Value())
		case "arguments", "input", "code":
			it.rest.Grow(name, members.Value())
		default:
			it.rest.Set(name, members.Value())
		}
	}
}

// seed takes the parts that an item was added with; further ones come as events.
func (f *folder) seed(parts *fold.List[fold.Object], raw []byte) {
	for elements := jsonx.Array(raw); elements.Next(); {
		if p := parts.At(parts.Next()); p != nil {
			openPart(p, elements.Value())
		} else {
			f.full = true
		}
	}
}

func openPart(p *fold.Object, raw []byte) {
	*p = fold.Object{}
	for members := jsonx.Object(raw); members.Next(); {
		switch name := fold.Name(members.Key()); string(name) {
		case "text", "refusal", "annotations", "logprobs":
			p.Grow(name, members.Value())
		default:
			p.Set(name, members.Value())
		}
	}
}

// partAt is the part of content or summary that an event belongs to.
func (f *folder) partAt(ev event, summary bool, itemKind, partKind string) *fold.Object {
	it := f.itemAt(ev, itemKind)
	if it == nil {
		return nil
	}
	place, parts, raw := "content", &it.content, ev.contentIndex
	if summary {
		place, parts, raw = "summary", &it.summary, ev.summaryIndex
	}
	it.rest.Default(place, "null")
	index, ok := jsonx.Int(raw)
	if !ok {
		index = parts.Last()
	}
	p := parts.At(index)
	if p == nil {
		f.full = true
		return nil
	}
	if p.Len() == 0 && partKind != "" {
		p.Default("type", `"`+partKind+`"`)
	}
	return p
}

// part opens a part or closes it. What closes it replaces what it names and leaves the rest: vLLM's says null for logprobs that came before.
func (f *folder) part(ev event, done, summary bool, itemKind string) {
	if jsonx.KindOf(ev.part) != jsonx.KindObject {
		return
	}
	p := f.partAt(ev, summary, itemKind, "")
	switch {
	case p == nil:
	case done:
		for members := jsonx.Object(ev.part); members.Next(); {
			p.Replace(fold.Name(members.Key()), members.Value())
		}
	default:
		openPart(p, ev.part)
	}
}

// text grows a member of a part by a delta; the done event repeats the whole under the member's own name.
func (f *folder) text(ev event, done, summary bool, itemKind, partKind, member string) {
	p := f.partAt(ev, summary, itemKind, partKind)
	if p == nil {
		return
	}
	if done {
		if whole := jsonx.Get(ev.object, member); whole != nil {
			p.Replace([]byte(member), whole)
		}
		if ev.logprobs != nil {
			p.Replace([]byte("logprobs"), ev.logprobs)
		}
		return
	}
	if ev.delta != nil {
		f.grow(p, member, ev.delta)
	}
	if !fold.Blank(ev.logprobs) {
		f.grow(p, "logprobs", ev.logprobs)
	}
}

// grow makes a member longer. It is the one place where a delta does that, so that an event with one growth is known as such.
func (f *folder) grow(o *fold.Object, member string, raw []byte) {
	name := []byte(member)
	o.Grow(name, raw)
	f.again.Grew(o, name, raw)
}

// call grows a member of a call item; the done event repeats the whole, and the name with it.
func (f *folder) call(ev event, done bool, kind, member string) {
	it := f.itemAt(ev, kind)
	switch {
	case it == nil:
	case done:
		for _, name := range []string{"name", member} {
			if whole := jsonx.Get(ev.object, name); whole != nil {
				it.rest.Replace([]byte(name), whole)
			}
		}
	case ev.delta != nil:
		f.grow(&it.rest, member, ev.delta)
	}
}

func (it *item) size() int {
	return cap(it.done) + it.rest.Size() + it.content.Size((*fold.Object).Size) + it.summary.Size((*fold.Object).Size)
}

func (it *item) append(dst []byte) []byte {
	if it.done != nil {
		return append(dst, it.done...)
	}
	return it.rest.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		switch {
		case name == "content" && it.content.Len() > 0:
			return it.content.Append(dst, (*fold.Object).Append), true
		case name == "summary" && it.summary.Len() > 0:
			return it.summary.Append(dst, (*fold.Object).Append), true
		}
		return dst, false
	})
}
