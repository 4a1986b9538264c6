package derive

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// Gap says that something is missing: a code, and a detail for people.
type Gap struct {
	Code   string
	Detail string // "" is none
}

// The codes that the Gym reader knows for a capture (spec of the attachment; readers compare them).
const (
	GapNoRecords   = "model_call_capture_no_records"
	GapUnreadable  = "model_call_capture_records_unreadable"
	GapIncomplete  = "model_call_capture_incomplete"
	GapReadFailed  = "model_call_capture_unreadable"
	AttachmentName = "ng_model_call_capture"
)

// Attachment is the object ng_model_call_capture of one rollout, without its calls, which WriteJSON reads once more. The zero value is that of a
// rollout without files.
type Attachment struct {
	Dir, Rollout string
	Payloads     bool

	Exists     bool // there is a data file or a marker
	Marked     bool // the rollout is incomplete
	Failed     bool // reading broke off: what was read before it is not attached
	Damaged    int  // lines that are no record
	aggregates Aggregates
	last       int // index of the last call
}

// Attach reads the attachment of a rollout. Reading that fails is a gap of it and is also returned.
func Attach(dir, rollout string, payloads bool) (*Attachment, error) {
	a := &Attachment{Dir: dir, Rollout: rollout, Payloads: payloads}
	f, err := a.each(func(c *Call) error {
		a.aggregates.Add(c)
		a.last = c.Index
		return nil
	})
	a.Exists, a.Marked, a.Damaged, a.Failed = f.Exists, f.Marked, f.Damaged, f.Err != nil
	return a, err
}

// each visits the calls.
func (a *Attachment) each(visit func(*Call) error) (Found, error) {
	s := Source{Dir: a.Dir, Rollout: a.Rollout, Outline: capture.OutlineFrom, Record: true, NoSide: true}
	return s.Each(func(c *Call, _ capture.Line) error {
		if c == nil {
			return nil
		}
		return visit(c)
	})
}

// Calls is how many calls were taken.
func (a *Attachment) Calls() int64 { return a.aggregates.Calls }

// Gaps are what is missing, in the order of the Gym reader.
func (a *Attachment) Gaps() []Gap {
	switch {
	case !a.Exists:
		return []Gap{{Code: GapNoRecords}}
	case a.Failed:
		return []Gap{{Code: GapReadFailed}}
	}
	var gaps []Gap
	if a.Damaged > 0 {
		gaps = append(gaps, Gap{GapUnreadable, fmt.Sprintf("count=%d", a.Damaged)})
	}
	if a.Marked {
		gaps = append(gaps, Gap{Code: GapIncomplete})
	} else if a.aggregates.Calls == 0 && a.Damaged == 0 {
		gaps = append(gaps, Gap{Code: GapNoRecords})
	}
	return gaps
}

// errEnough ends the second reading behind the last call that the first one saw.
var errEnough = errors.New("enough")

// errChanged says that a rollout was cleared, or cleared and written anew, between two readings.
var errChanged = errors.New("the rollout was replaced while it was read; try again")

// WriteJSON writes {"rollout_id", "metrics", "calls"} and "gaps" when there are some, in small memory. What was appended since Attach is not in
// it. After an error a part of it is written: calls that are not those of the metrics are one, found at the end.
func (a *Attachment) WriteJSON(w io.Writer) error {
	sums := &a.aggregates
	if a.Failed {
		sums = &Aggregates{}
	}
	metrics := sums.AppendMetrics(nil)
	buf := jsonx.AppendString([]byte(`{"rollout_id":`), a.Rollout)
	buf = append(append(buf, `,"metrics":`...), metrics...)
	buf = append(buf, `,"calls":[`...)
	if sums.Calls > 0 {
		var again Aggregates
		_, err := a.each(func(c *Call) error {
			if again.Calls > 0 {
				buf = append(buf, ',')
			}
			again.Add(c)
			buf = c.AppendJSON(buf, Form{Payloads: a.Payloads})
			if err := c.Rests.Write(w, buf); err != nil {
				return err
			}
			if buf = buf[:0]; c.Index >= a.last {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if !bytes.Equal(again.AppendMetrics(nil), metrics) {
			return errChanged
		}
	}
	buf = append(buf, ']')
	if gaps := a.Gaps(); gaps != nil {
		buf = append(buf, `,"gaps":`...)
		buf = AppendGaps(buf, gaps)
	}
	_, err := w.Write(append(buf, '}'))
	return err
}

// AppendGaps appends a list of {"code", "detail"}; a detail that is empty is left out.
func AppendGaps(dst []byte, gaps []Gap) []byte {
	dst = append(dst, '[')
	for i, g := range gaps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"code":`...)
		dst = jsonx.AppendString(dst, g.Code)
		if g.Detail != "" {
			dst = append(dst, `,"detail":`...)
			dst = jsonx.AppendString(dst, g.Detail)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// WriteWith writes the JSON object row with the member name set to what value writes: in its place when the row has it, else as the last. All
// other bytes of the row are kept.
func WriteWith(w io.Writer, row []byte, name string, value func(io.Writer) error) error {
	var at []byte
	members := 0
	for it := jsonx.Object(row); it.Next(); members++ {
		in := it.Key()
		if string(jsonx.Unquoted(in)) == name {
			at = it.Value()
		}
	}
	if at != nil {
		from := cap(row) - cap(at) // at is part of row
		return writeAround(w, row[:from], nil, value, row[from+len(at):])
	}
	end := len(row) - 1
	for end > 0 && row[end] != '}' {
		end--
	}
	var key []byte
	if members > 0 {
		key = append(key, ',')
	}
	return writeAround(w, row[:end], append(jsonx.AppendString(key, name), ':'), value, row[end:])
}

func writeAround(w io.Writer, before, key []byte, value func(io.Writer) error, behind []byte) error {
	for _, p := range [][]byte{before, key} {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	if err := value(w); err != nil {
		return err
	}
	_, err := w.Write(behind)
	return err
}
