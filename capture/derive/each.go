package derive

import (
	"bytes"
	"errors"
	"io"
	"maps"

	"rolltap/capture"
)

// Source is a rollout of a store.
type Source struct {
	Dir, Rollout string
	Outline      int  // lines longer than this are read as outlines (capture.Lines.Outline); 0: all are read whole
	Refer        bool // nothing is lost in outlines: their texts have rests (capture.Lines.Refer), which Call.Rests writes out
	Record       bool // outlines have what the derived record is made of and no more, with rests (capture.Lines.Pick); it is whole
	NoSide       bool // as Reader.NoSide
}

// Found is what a rollout has besides its calls.
type Found struct {
	Exists  bool // a data file or a marker
	Marked  bool // a record was late or lost
	Lines   int  // that are not blank
	Damaged int  // of them: no JSON object, or no record
	Cut     int  // of them: read as outlines

	Err error // why the data file could not be read, or not to its end: an *Unreadable; nil when it was
}

// Unreadable says that the data file of a rollout cannot be read, or not to its end: something else has its name, it may not be opened, or the
// disk fails. It is about that rollout alone: whoever reads many goes on with the others.
type Unreadable struct {
	Rollout string
	Err     error
}

func (u *Unreadable) Error() string { return "read " + u.Rollout + ": " + u.Err.Error() }
func (u *Unreadable) Unwrap() error { return u.Err }

// Each visits the calls of a rollout in the order of its file, with their lines, and a nil Call for each line that is damaged. Both
// are valid until the visit is over. A rollout that does not exist has no calls. An error of the visit ends it and is returned as
// it is; any other is an *Unreadable, and Found counts what was read before it.
func (s Source) Each(visit func(*Call, capture.Line) error) (Found, error) {
	f := Found{Exists: capture.Exists(s.Dir, s.Rollout), Marked: capture.Marked(s.Dir, s.Rollout)}
	broken := func(err error) (Found, error) {
		f.Err = &Unreadable{s.Rollout, err}
		return f, f.Err
	}
	lines, err := capture.OpenLines(s.Dir, s.Rollout)
	if err != nil {
		return broken(err)
	}
	defer lines.Close()
	r := Reader{NoSide: s.NoSide}
	switch {
	case s.Record:
		lines.Pick(s.Outline, recordPicks())
		r.rests = lines.Rests()
	case s.Refer:
		lines.Refer(s.Outline)
		r.rests = lines.Rests()
	default:
		lines.Outline(s.Outline)
	}
	for {
		l, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return broken(err)
		}
		f.Lines++
		var c *Call
		if l.Damage == nil {
			raw := l.Raw
			if s.Record && l.Lossy { // no answer of a model is like that; it is better to take the room for it than to lose a part of it
				if raw, err = wholeLine(lines, l); err != nil {
					return broken(err)
				}
			}
			if read, err := r.Read(raw, l.Index); err == nil {
				c = &read
				c.Lossy = l.Lossy && !s.Record
				if s.Record && l.Cut {
					c.bodies = payloadsOf(l)
				}
			}
		}
		if c == nil {
			f.Damaged++
		} else if l.Cut {
			f.Cut++
		}
		err = visit(c, l)
		if r.rests != nil && r.rests.Err() != nil {
			return broken(r.rests.Err())
		}
		if err != nil {
			return f, err
		}
	}
}

func wholeLine(lines *capture.Lines, l capture.Line) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(l.Size()))
	err := lines.Copy(&b, l)
	return b.Bytes(), err
}

// recordPicks names the lists and objects of which a Call is made when its Side does not matter and its bodies are written from the file.
func recordPicks() capture.Picks {
	type picks = capture.Picks
	tokens := picks{"output_tokens_details": picks{}, "completion_tokens_details": picks{}, "prompt_tokens_details": picks{}, "input_tokens_details": picks{}}
	all := picks{}
	for _, name := range recordKeys() {
		all[name] = picks{} // a list or an object where none may be is to be seen
	}
	maps.Copy(all, picks{
		"model_ref": nil,
		"request":   picks{"model": nil},
		"response": picks{
			"model": nil, "usage": tokens, "usageMetadata": picks{}, "incomplete_details": picks{},
			"output": picks{"call_id": nil, "id": nil, "name": nil, "arguments": nil, "summary": picks{}},
			"choices": picks{"message": picks{
				"tool_calls":        picks{"id": nil, "function": picks{"name": nil, "arguments": nil}},
				"reasoning_content": nil,
			}},
			"candidates": picks{"content": picks{"parts": picks{"functionCall": picks{"id": nil, "name": nil, "args": nil}, "thought": nil}}},
			"content":    picks{"id": nil, "name": nil, "input": nil},
		},
		"rolltap": picks{"losses": nil, "truncated": nil, "usage": picks{}, "client": picks{}, "upstream": picks{}},
	})
	return all
}
