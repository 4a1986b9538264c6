package chat

import (
	"bytes"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

func (chat) Judge(name, data []byte) dialect.Signal {
	s, chunk := open(name, data)
	for it := jsonx.Object(chunk); it.Next(); {
		switch key := fold.Name(it.Key()); string(key) {
		case "choices":
			for choices := jsonx.Array(it.Value()); choices.Next() && !s.Content; {
				s.Content = hasContent(choices.Value())
			}
		default:
			judgeMember(&s, key, it.Value())
		}
	}
	return s
}

// open returns the JSON object of a chunk, if it is one, and what is clear without it. The end of a chat stream is [DONE], not a
// finish_reason: usage may follow that.
func open(name, data []byte) (s dialect.Signal, chunk []byte) {
	chunk, s.Invalid = fold.Open(data)
	switch {
	case string(bytes.TrimSpace(name)) == "error":
		s.Verdict = dialect.Failed
	case chunk == nil && fold.IsDone(data):
		s.Verdict = dialect.Complete
	}
	return s, chunk
}

// judgeMember: an error member ends the stream, whatever comes behind it (spec/capture.md 3.3).
func judgeMember(s *dialect.Signal, name, value []byte) {
	if string(name) == "error" && !jsonx.IsNull(value) || string(name) == "object" && isFlatError(value) {
		s.Verdict = dialect.Failed
	}
}

func hasContent(choice []byte) bool {
	for it := jsonx.Object(choice); it.Next(); {
		if key := fold.Name(it.Key()); string(key) != "delta" && string(key) != "message" {
			continue
		}
		for members := jsonx.Object(it.Value()); members.Next(); {
			if isContent(fold.Name(members.Key()), members.Value()) {
				return true
			}
		}
	}
	return false
}

func isContent(name, value []byte) bool {
	switch string(name) {
	case "content", "reasoning", "reasoning_content", "refusal", "tool_calls", "function_call":
		return jsonx.Truthy(value)
	}
	return false
}

// folder is a chat stream folded into a chat.completion.
type folder struct {
	top     fold.Object // members of the chunks; choices is a place only
	choices fold.List[choice]
	again   fold.Again
	signal  dialect.Signal // of the event that again may recognise
	full    bool           // more indices than anybody keeps: the fold would be short
	failed  bool
	status  int
}

// choice is what one index said. Index and message are places in rest, tool_calls is a place in message.
type choice struct {
	rest    fold.Object
	message fold.Object
	calls   fold.List[fold.Object]
	lastID  []byte // of the last call that came without an index
}

func (chat) NewFolder() dialect.Folder { return new(folder) }

func (f *folder) Event(name, data []byte) dialect.Signal {
	if f.again.Fold(name, data) {
		return f.signal
	}
	f.again.Forget()
	s, chunk := open(name, data)
	if chunk != nil {
		f.chunk(&s, chunk)
	}
	if s.Verdict == dialect.Failed {
		f.failed = true
		if f.status = dialect.StatusOf(jsonx.Get(chunk, "error")); f.status == 0 {
			f.status = dialect.StatusOf(chunk)
		}
	} else if chunk != nil {
		f.again.Learn(name, data)
		f.signal = s
	}
	return s
}

func (f *folder) chunk(s *dialect.Signal, raw []byte) {
	for it := jsonx.Object(raw); it.Next(); {
		name := fold.Name(it.Key())
		switch string(name) {
		case "choices":
			f.top.Default("choices", "[]")
			for choices := jsonx.Array(it.Value()); choices.Next(); {
				if f.choice(choices.Value()) {
					s.Content = true
				}
			}
			continue
		case "object":
			f.top.Default("object", `"chat.completion"`)
		case "error": // told by the Summary; the answer is what was said before it
		default:
			f.top.Set(name, it.Value())
		}
		judgeMember(s, name, it.Value())
	}
	f.top.Default("object", `"chat.completion"`)
}

// choice folds one element of choices and tells whether it has content.
func (f *folder) choice(raw []byte) (content bool) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return false
	}
	it := jsonx.Object(raw)
	more := it.Next()
	var index int64
	if more && string(it.Key()) == "index" {
		index, _ = jsonx.Int(it.Value())
		more = it.Next()
	} else {
		index, _ = jsonx.Int(jsonx.Get(raw, "index"))
	}
	c := f.choices.At(index)
	if c == nil {
		f.full = true
		return hasContent(raw)
	}
	if c.rest.Len() == 0 {
		f.again.Grew(nil, nil, nil)
		c.rest.Default("index", strconv.FormatInt(index, 10))
		c.rest.Default("message", "null")
		c.rest.Default("finish_reason", "null")
		c.message.Default("role", `"assistant"`)
		c.message.Default("content", "null")
	}
	for ; more; more = it.Next() {
		switch name := fold.Name(it.Key()); string(name) {
		case "index":
		case "delta":
			content = f.delta(c, it.Value()) || content
		case "message": // a whole answer inside a stream; where deltas came too it only repeats them
			f.again.Grew(nil, nil, nil)
			if c.message.Len() == 2 && !c.message.Has("content") {
				content = f.delta(c, it.Value()) || content
			} else {
				content = content || hasContent(raw)
			}
		case "token_ids":
			f.grow(&c.rest, name, it.Value())
		case "logprobs":
			f.logprobs(&c.rest, name, it.Value())
		default:
			c.rest.Set(name, it.Value())
		}
	}
	return content
}

// grow makes a member longer. It is the one place for that, so that an event with one growth is known as such.
func (f *folder) grow(o *fold.Object, name, raw []byte) {
	o.Grow(name, raw)
	if !jsonx.IsNull(raw) {
		f.again.Grew(o, name, raw)
	}
}

// logprobs joins the arrays inside: content and refusal.
func (f *folder) logprobs(o *fold.Object, name, raw []byte) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		o.Set(name, raw)
		return
	}
	sub := o.Sub(name)
	for it := jsonx.Object(raw); it.Next() && sub != nil; {
		if name := fold.Name(it.Key()); jsonx.KindOf(it.Value()) == jsonx.KindArray {
			f.grow(sub, name, it.Value())
		} else {
			sub.Set(name, it.Value())
		}
	}
}

func (f *folder) delta(c *choice, raw []byte) (content bool) {
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		content = content || isContent(name, value)
		switch string(name) {
		case "content", "refusal", "reasoning", "reasoning_content":
			f.grow(&c.message, name, value)
		case "function_call":
			f.growText(&c.message, name, "arguments", value)
		case "tool_calls":
			if jsonx.KindOf(value) != jsonx.KindArray {
				continue
			}
			for calls := jsonx.Array(value); calls.Next(); {
				c.message.Default("tool_calls", "null")
				f.call(c, calls.Value())
			}
		default:
			if jsonx.KindOf(value) == jsonx.KindArray { // annotations, images, reasoning details: a delta brings more of them
				f.grow(&c.message, name, value)
			} else {
				c.message.Set(name, value)
			}
		}
	}
	return content
}

// call folds one element of tool_calls. One array may hold two elements of the same index (wire.md 1.6).
func (f *folder) call(c *choice, raw []byte) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return
	}
	index, ok := jsonx.Int(jsonx.Get(raw, "index"))
	if !ok {
		// Without indices a new id begins a new call; what has no id belongs to the call before.
		index = c.calls.Last()
		f.again.Grew(nil, nil, nil)
		if id := jsonx.Get(raw, "id"); !fold.Blank(id) && !bytes.Equal(id, c.lastID) {
			index, c.lastID = c.calls.Next(), bytes.Clone(id)
		}
	}
	call := c.calls.At(index)
	if call == nil {
		f.full = true
		return
	}
	for it := jsonx.Object(raw); it.Next(); {
		switch name := fold.Name(it.Key()); string(name) {
		case "index":
		case "function":
			f.growText(call, name, "arguments", it.Value())
			call.Default("type", `"function"`)
		case "custom":
			f.growText(call, name, "input", it.Value())
			call.Default("type", `"custom"`)
		default:
			call.Set(name, it.Value())
		}
	}
}

// growText merges an object of which one member is text that comes in pieces; the unary form always has that member.
func (f *folder) growText(o *fold.Object, name []byte, text string, raw []byte) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		o.Set(name, raw)
		return
	}
	sub := o.Sub(name)
	if sub == nil {
		return
	}
	for it := jsonx.Object(raw); it.Next(); {
		if name := fold.Name(it.Key()); string(name) == text {
			f.grow(sub, name, it.Value())
		} else {
			sub.Set(name, it.Value())
		}
	}
	sub.Default(text, `""`)
}

func (f *folder) AppendResponse(dst []byte) []byte {
	if f.choices.Len() == 0 || f.full {
		return dst
	}
	start := len(dst)
	return fold.Finish(f.append(dst), start)
}

func (f *folder) append(dst []byte) []byte {
	return f.top.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		if name != "choices" {
			return dst, false
		}
		return f.choices.Append(dst, (*choice).append), true
	})
}

func (f *folder) Size() int { return f.top.Size() + f.choices.Size((*choice).size) }

func (c *choice) size() int {
	return c.rest.Size() + c.message.Size() + c.calls.Size((*fold.Object).Size)
}

func (c *choice) append(dst []byte) []byte {
	return c.rest.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		if name != "message" {
			return dst, false
		}
		return c.message.AppendWith(dst, c.appendMember), true
	})
}

func (c *choice) appendMember(dst []byte, name string) ([]byte, bool) {
	switch {
	case name == "content" && !c.message.Has("content"):
		return append(dst, "null"...), true // an opening "" alone says no more than the unary form's null
	case name == "tool_calls" && c.calls.Len() > 0:
		return c.calls.Append(dst, (*fold.Object).Append), true
	}
	return dst, false
}

func (f *folder) Summary() dialect.Summary {
	var finish []byte
	for _, c := range f.choices.Sorted {
		finish = c.rest.Value("finish_reason")
		break
	}
	s := summary(f.top.Value("model"), finish, f.top.Value("usage"))
	s.HasError, s.ErrorStatus = f.failed, f.status
	return s
}
