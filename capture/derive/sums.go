package derive

import (
	"errors"
	"fmt"
	"io"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// RolloutSums is what one rollout adds up to, as far as it could be read (Found.Err). The sums are valid until the next rollout begins.
type RolloutSums struct {
	ID string
	Found
	*Aggregates
	Bytes int64
}

// Sums takes the calls of rollouts and what they add up to, rollout by rollout: Begin, Call for each, Rollout; at last Total. A Call is
// valid until it returns.
type Sums interface {
	Begin(id string)
	Call(*Call)
	Rollout(RolloutSums) error
	Total(all *Aggregates, rollouts int) error
}

// SumsOptions say what is read.
type SumsOptions struct {
	Rollouts []string                // in this order; nil is the whole store
	Calls    bool                    // WriteSums writes every derived call record, too
	Progress func(bytes int64) error // told of each line; an error ends the reading. May be nil

	Unreadable func(error) // told of each rollout that cannot be read, with an *Unreadable. May be nil
}

// EachSums reads rollouts, each line once and in small memory. One that cannot be read is told as such and keeps nobody from the others.
func EachSums(dir string, o SumsOptions, to Sums) error {
	if o.Rollouts == nil {
		var err error
		if o.Rollouts, err = capture.Rollouts(dir); err != nil {
			return err
		}
	}
	total, one := &Aggregates{}, &Aggregates{}
	for _, id := range o.Rollouts {
		to.Begin(id)
		*one = Aggregates{}
		var bytes int64
		f, err := Source{Dir: dir, Rollout: id, Outline: capture.OutlineFrom}.Each(func(c *Call, l capture.Line) error {
			bytes += l.Size()
			if c != nil {
				one.Add(c)
				to.Call(c)
			}
			if o.Progress != nil {
				return o.Progress(l.Size())
			}
			return nil
		})
		if err != nil && f.Err == nil {
			return fmt.Errorf("read %s: %w", id, err)
		}
		if f.Err != nil && o.Unreadable != nil {
			o.Unreadable(f.Err)
		}
		total.Merge(one)
		if err := to.Rollout(RolloutSums{id, f, one, bytes}); err != nil {
			return err
		}
	}
	return to.Total(total, len(o.Rollouts))
}

// WriteSums writes {"rollouts": […], "total": {…}} as it reads, an object a rollout.
func WriteSums(w io.Writer, dir string, o SumsOptions) error {
	return EachSums(dir, o, &sumsObject{w: w, calls: o.Calls})
}

// sumsObject writes one object, rollout by rollout.
type sumsObject struct {
	w        io.Writer
	calls    bool
	rollouts int
	n        int // calls of the rollout in progress
	buf      []byte
	err      error
}

func (o *sumsObject) write() {
	if o.err == nil {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
}

func (o *sumsObject) Begin(id string) {
	if o.rollouts++; o.rollouts == 1 {
		o.buf = append(o.buf, `{"rollouts":[`+"\n"...)
	} else {
		o.buf = append(o.buf, ",\n"...)
	}
	o.buf = append(o.buf, `{"rollout_id":`...)
	o.buf = jsonx.AppendString(o.buf, id)
	o.n = 0
	if o.calls {
		o.buf = append(o.buf, `,"calls":[`...)
	}
	o.write()
}

func (o *sumsObject) Call(c *Call) {
	if !o.calls {
		return
	}
	if o.n++; o.n > 1 {
		o.buf = append(o.buf, ",\n"...)
	}
	o.buf = c.AppendJSON(o.buf, Form{Own: true})
	o.write()
}

func (o *sumsObject) Rollout(r RolloutSums) error {
	if o.calls {
		o.buf = append(o.buf, ']')
	}
	o.buf = r.AppendMetrics(append(o.buf, `,"metrics":`...))
	o.buf = r.AppendOwn(append(o.buf, `,"rolltap":`...))
	o.buf = fmt.Appendf(o.buf, `,"damaged_lines":%d,"incomplete":%t,"bytes":%d`, r.Damaged, r.Marked, r.Bytes)
	if r.Err != nil {
		o.buf = jsonx.AppendString(append(o.buf, `,"unreadable":`...), r.Err.Error())
	}
	o.buf = append(o.buf, '}')
	o.write()
	return o.err
}

func (o *sumsObject) Total(a *Aggregates, rollouts int) error {
	if rollouts == 0 {
		o.buf = append(o.buf, `{"rollouts":[`...)
	}
	o.buf = fmt.Appendf(o.buf, "\n],\"total\":{\"rollouts\":%d,\"metrics\":", rollouts)
	o.buf = a.AppendMetrics(o.buf)
	o.buf = a.AppendOwn(append(o.buf, `,"rolltap":`...))
	o.buf = append(o.buf, "}}\n"...)
	o.write()
	return o.err
}

// What WriteCall finds in place of a call.
var (
	ErrNoCall  = errors.New("no such call")
	ErrDamaged = errors.New("its line is damaged")
)

// WriteCall writes the record with a call_index as it stands in its file: one JSON object and a line end. Until it writes an error wraps ErrNoCall,
// ErrDamaged, or is the file system's.
func WriteCall(w io.Writer, dir, id string, index int) error {
	lines, err := capture.OpenLines(dir, id)
	if err != nil {
		return err
	}
	defer lines.Close()
	lines.Outline(capture.OutlineFrom)
	for {
		l, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("call_index %d: %w", index, ErrNoCall)
		case err != nil:
			return err
		case l.Index < index:
			continue
		case l.Index > index:
			return fmt.Errorf("call_index %d: %w", index, ErrNoCall)
		case l.Damage != nil:
			return fmt.Errorf("call_index %d: %w: %w", index, ErrDamaged, l.Damage)
		}
		if err := lines.Copy(w, l); err != nil {
			return err
		}
		_, err = w.Write([]byte{'\n'})
		return err
	}
}
