package gemini

import (
	"bytes"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

func (gemini) Judge(_, data []byte) dialect.Signal {
	s, _ := judge(data)
	return s
}

// judge says what a chunk means, and returns it. The end is a finish reason of the first candidate, or that the prompt was blocked; an error ends
// the stream, whatever is beside it.
func judge(data []byte) (s dialect.Signal, chunk []byte) {
	chunk, s.Invalid = fold.Open(data)
	failed := false
	for it := jsonx.Object(chunk); it.Next(); {
		value := it.Value()
		switch string(camel(it.Key())) {
		case "error":
			failed = failed || !jsonx.IsNull(value)
		case "promptFeedback":
			if blocked(value) {
				s.Verdict = dialect.Complete
			}
		case "candidates":
			for list := jsonx.Array(value); list.Next(); {
				if judgeCandidate(&s, list.Value()) {
					s.Verdict = dialect.Complete
				}
			}
		}
	}
	if failed {
		s.Verdict = dialect.Failed
	}
	return s, chunk
}

func judgeCandidate(s *dialect.Signal, raw []byte) (ended bool) {
	first := true
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		switch string(camel(it.Key())) {
		case "index":
			n, _ := jsonx.Int(value)
			first = n == 0
		case "finishReason":
			text, ok := jsonx.Interior(value)
			ended = ok && len(text) > 0
		case "content":
			for parts := jsonx.Array(jsonx.Get(value, "parts")); parts.Next() && !s.Content; {
				p := readSaid(parts.Value())
				s.Content = p.kind != 0 && (p.text == nil || jsonx.Truthy(p.text))
			}
		}
	}
	return first && ended
}

// folder is a stream folded into one answer. Texts of one kind that follow each other are one part.
type folder struct {
	top        fold.Object // candidates is a place only
	candidates fold.List[candidate]
	again      fold.Again
	signal     dialect.Signal // of the event that again may recognise
	full       bool           // more indices than anybody keeps: the fold would be short
	failed     bool
	status     int
}

// candidate is what one index said. Content and index are places in rest, parts is one in content.
type candidate struct {
	rest, content fold.Object
	parts         []byte       // those that do not grow any more, with commas between them
	text          *fold.Object // the last part, where that is a text; nil: it is not
	thought       bool         // it is reasoning
	called        bool         // a function was
	empty         bool         // some part was a text without a character
}

func (gemini) NewFolder() dialect.Folder { return new(folder) }

func (f *folder) Event(name, data []byte) dialect.Signal {
	if f.again.Fold(name, data) {
		return f.signal
	}
	f.again.Forget()
	s, chunk := judge(data)
	for it := jsonx.Object(chunk); it.Next(); {
		switch key := camel(it.Key()); string(key) {
		case "candidates":
			f.top.Default("candidates", "[]")
			for list := jsonx.Array(it.Value()); list.Next(); {
				f.candidate(list.Value())
			}
		case "error": // told by the Summary; the answer is what was said before it
			if s.Verdict == dialect.Failed && !jsonx.IsNull(it.Value()) {
				f.failed, f.status = true, dialect.StatusOf(it.Value())
			}
		default:
			f.top.Set(key, it.Value())
		}
	}
	if s.Verdict == dialect.None && chunk != nil {
		f.again.Learn(name, data)
		f.signal = s
	}
	return s
}

func (f *folder) candidate(raw []byte) {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return
	}
	index, _ := jsonx.Int(jsonx.Get(raw, "index"))
	c := f.candidates.At(index)
	if c == nil {
		f.full = true
		return
	}
	if c.rest.Len() == 0 {
		f.again.Grew(nil, nil, nil)
		c.rest.Default("content", "{}")
		c.rest.Default("index", strconv.FormatInt(index, 10))
	}
	for it := jsonx.Object(raw); it.Next(); {
		switch key := camel(it.Key()); string(key) {
		case "index":
		case "content":
			f.content(c, it.Value())
		default:
			c.rest.Set(key, it.Value())
		}
	}
}

func (f *folder) content(c *candidate, raw []byte) {
	for it := jsonx.Object(raw); it.Next(); {
		if key := camel(it.Key()); string(key) != "parts" {
			c.content.Set(key, it.Value())
			continue
		}
		c.content.Default("parts", "[]")
		for parts := jsonx.Array(it.Value()); parts.Next(); {
			f.part(c, parts.Value())
		}
	}
}

// part folds a part. A text without a signature of its own goes on with the text in front. One without a character is a part only of an answer
// that has no other: chunks that have nothing to say have it, as a chunk without a part is none.
func (f *folder) part(c *candidate, raw []byte) {
	p := readSaid(raw)
	c.called = c.called || p.call != nil
	bare := p.text != nil && jsonx.KindOf(p.text) == jsonx.KindString && p.call == nil && p.strange == nil
	for it := jsonx.Object(raw); it.Next() && bare; {
		switch string(camel(it.Key())) {
		case "text", "thought", "thoughtSignature":
		default:
			bare = false
		}
	}
	if bare && p.signature == nil && string(p.text) == `""` {
		c.empty = true
		f.again.Grew(nil, nil, nil)
		return
	}
	if bare && p.signature == nil && c.text != nil && c.thought == p.thought {
		c.text.Grow([]byte("text"), p.text)
		f.again.Grew(c.text, []byte("text"), p.text)
		return
	}
	f.again.Grew(nil, nil, nil)
	c.flush()
	if !bare {
		if len(c.parts) > 0 {
			c.parts = append(c.parts, ',')
		}
		c.parts = append(c.parts, raw...)
		return
	}
	c.text, c.thought = new(fold.Object), p.thought
	for it := jsonx.Object(raw); it.Next(); {
		if key := camel(it.Key()); string(key) == "text" {
			c.text.Grow(key, it.Value())
		} else {
			c.text.Set(key, it.Value())
		}
	}
}

// flush ends the text that may grow.
func (c *candidate) flush() {
	if c.text == nil {
		return
	}
	if len(c.parts) > 0 {
		c.parts = append(c.parts, ',')
	}
	c.parts, c.text = c.text.Append(c.parts), nil
}

// appendParts appends the parts with commas between them.
func (c *candidate) appendParts(dst []byte) []byte {
	dst = append(dst, c.parts...)
	if c.text != nil {
		if len(c.parts) > 0 {
			dst = append(dst, ',')
		}
		dst = c.text.Append(dst)
	}
	if c.empty && len(c.parts) == 0 && c.text == nil {
		dst = append(dst, emptyText...)
	}
	return dst
}

func (f *folder) AppendResponse(dst []byte) []byte {
	if f.candidates.Len() == 0 && !f.top.Has("promptFeedback") || f.full {
		return dst
	}
	start := len(dst)
	return fold.Finish(f.append(dst), start)
}

func (f *folder) append(dst []byte) []byte {
	return f.top.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		if name != "candidates" {
			return dst, false
		}
		return f.candidates.Append(dst, (*candidate).append), true
	})
}

func (c *candidate) append(dst []byte) []byte {
	return c.rest.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		if name != "content" {
			return dst, false
		}
		return c.content.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
			if name != "parts" {
				return dst, false
			}
			return append(c.appendParts(append(dst, '[')), ']'), true
		}), true
	})
}

func (f *folder) Size() int { return f.top.Size() + f.candidates.Size((*candidate).size) }

func (c *candidate) size() int {
	n := c.rest.Size() + c.content.Size() + cap(c.parts)
	if c.text != nil {
		n += c.text.Size()
	}
	return n
}

func (f *folder) Summary() dialect.Summary {
	var reason []byte
	called := false
	for _, c := range f.candidates.Sorted {
		reason, called = c.rest.Value("finishReason"), c.called
		break
	}
	s := summary(f.top.Value("modelVersion"), nil, f.top.Value("promptFeedback"), f.top.Value("usageMetadata"))
	if word, _ := jsonx.Text(bytes.TrimSpace(reason)); word != "" {
		s.Finish = finish(word, called)
	}
	s.HasError, s.ErrorStatus = f.failed, f.status
	return s
}
