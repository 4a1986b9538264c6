package trajectory

import (
	"errors"
	"io"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// errEnough ends a second reading behind the last call that the first one saw.
var errEnough = errors.New("enough")

// Again reads the calls of a rollout once more, in the order of the file, and visits those that Read has placed. Both are valid until
// the visit is over; the kind of side call is the Rollout's to tell. What was appended meanwhile is not read.
func (r *Rollout) Again(dir string, visit func(at int, c *derive.Call) error) error {
	if len(r.Calls) == 0 {
		return nil
	}
	last := r.Calls[len(r.Calls)-1].Index
	_, err := derive.Source{Dir: dir, Rollout: r.ID, NoSide: true, Outline: capture.OutlineFrom, Refer: true}.Each(func(c *derive.Call, l capture.Line) error {
		if c != nil {
			if at := r.At(c.Index); at >= 0 {
				if id, _ := jsonx.Text(c.ID); id != r.Calls[at].ID {
					return errChanged
				}
				if err := visit(at, c); err != nil {
					return err
				}
			}
		}
		if r.Progress != nil {
			if err := r.Progress(l.Size()); err != nil {
				return err
			}
		}
		if l.Index >= last {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}

// errChanged says that a rollout was cleared and written anew between two readings.
var errChanged = errors.New("the rollout was replaced while it was read; try again")

// longNews is how many elements of a request that is too long are news.
const longNews = 32

// News is what a call adds to what was said before it: the items of its request behind its parent's answer, and its own answer. Of a call
// that is too long it is the beginning.
func (r *Rollout) News(at int, c *derive.Call) (asked, answered []Item) {
	dialect, _ := jsonx.Text(c.Dialect)
	i := 0
	elements(dialect, c.Request, func(e element) {
		if i++; i > r.Calls[at].New && (!r.Calls[at].Long || i <= longNews) {
			asked = e.items(asked)
		}
	})
	if ErrorText(c.Response) == "" {
		answered = ResponseItems(dialect, c.Response)
	}
	return asked, answered
}

// out collects what is written and keeps the first error.
type out struct {
	w     io.Writer
	rests *capture.Rests // of the line that buf has parts of
	buf   []byte
	err   error
}

func (o *out) flush() error {
	if o.err == nil && len(o.buf) > 0 {
		o.err = o.rests.Write(o.w, o.buf)
	}
	o.buf = o.buf[:0]
	return o.err
}
