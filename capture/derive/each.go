package derive

import (
	"errors"
	"io"

	"rolltap/capture"
)

// Source is a rollout of a store.
type Source struct {
	Dir, Rollout string
	Outline      int      // lines longer than this are read as outlines (capture.Lines.Outline); 0: all are read whole
	Whole        []string // members that outlines keep whole
	Refer        bool     // nothing is lost in outlines: their texts have rests (capture.Lines.Refer), which Call.Rests writes out
	NoSide       bool     // as Reader.NoSide
}

// Found is what a rollout has besides its calls.
type Found struct {
	Exists  bool // a data file or a marker
	Marked  bool // a record was late or lost
	Lines   int  // that are not blank
	Damaged int  // of them: no JSON object, or no record
	Cut     int  // of them: read as outlines
}

// Each visits the calls of a rollout in the order of its file, with their lines, and a nil Call for each line that is damaged. Both
// are valid until the visit is over. A rollout that does not exist has no calls. An error of the visit ends it and is returned as
// it is; any other is the file system's, and Found counts what was read before it.
func (s Source) Each(visit func(*Call, capture.Line) error) (Found, error) {
	f := Found{Exists: capture.Exists(s.Dir, s.Rollout), Marked: capture.Marked(s.Dir, s.Rollout)}
	lines, err := capture.OpenLines(s.Dir, s.Rollout)
	if err != nil {
		return f, err
	}
	defer lines.Close()
	lines.Outline(s.Outline, s.Whole...)
	r := Reader{NoSide: s.NoSide}
	if s.Refer {
		lines.Refer(s.Outline)
		r.rests = lines.Rests()
	}
	for {
		l, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		f.Lines++
		var c *Call
		if l.Damage == nil {
			if read, err := r.Read(l.Raw, l.Index); err == nil {
				c = &read
				c.Lossy = l.Lossy
			}
		}
		if c == nil {
			f.Damaged++
		} else if l.Cut {
			f.Cut++
		}
		err = visit(c, l)
		if s.Refer && r.rests.Err() != nil {
			return f, r.rests.Err()
		}
		if err != nil {
			return f, err
		}
	}
}

// Attach reads the attachment of a rollout. Reading that fails is a gap of it and is also returned. Without payloads it needs memory
// for the answers, with payloads for all lines.
func Attach(dir, rollout string, payloads bool) (*Attachment, error) {
	a := &Attachment{Rollout: rollout, Payloads: payloads}
	s := Source{Dir: dir, Rollout: rollout}
	if !payloads {
		s.Outline, s.Whole = 4<<20, []string{"response"} // the request counts for its model's name only
	}
	f, err := s.Each(func(c *Call, _ capture.Line) error {
		if c != nil {
			a.Add(c)
		}
		return nil
	})
	a.Exists, a.Marked, a.Damaged, a.Failed = f.Exists, f.Marked, f.Damaged, err != nil
	return a, err
}
