package derive

import (
	"fmt"
	"strconv"

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

// Attachment is the object ng_model_call_capture of one rollout, filled call by call. What it holds grows with the calls' answers,
// and with Payloads by all of their lines. The zero value is that of a rollout without files.
type Attachment struct {
	Rollout  string
	Payloads bool

	Exists     bool // there is a data file or a marker
	Marked     bool // the rollout is incomplete
	Failed     bool // reading broke off: what was read before it is not attached
	Damaged    int  // lines that are no record
	aggregates Aggregates
	calls      []byte
}

// Add takes a call.
func (a *Attachment) Add(c *Call) {
	if a.aggregates.Calls > 0 {
		a.calls = append(a.calls, ',')
	}
	a.aggregates.Add(c)
	a.calls = c.AppendJSON(a.calls, Form{Payloads: a.Payloads})
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

// AppendJSON appends {"rollout_id", "metrics", "calls"} and "gaps" when there are some.
func (a *Attachment) AppendJSON(dst []byte) []byte {
	sums, calls := &a.aggregates, a.calls
	if a.Failed {
		sums, calls = &Aggregates{}, nil
	}
	dst = append(dst, `{"rollout_id":`...)
	dst = jsonx.AppendString(dst, a.Rollout)
	dst = append(dst, `,"metrics":`...)
	dst = sums.AppendMetrics(dst)
	dst = append(append(dst, `,"calls":[`...), calls...)
	dst = append(dst, ']')
	if gaps := a.Gaps(); gaps != nil {
		dst = append(dst, `,"gaps":`...)
		dst = AppendGaps(dst, gaps)
	}
	return append(dst, '}')
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

// AppendWith appends the JSON object row with the member name set to value: in its place when the row has it, else as the last. All
// other bytes of the row are kept.
func AppendWith(dst, row []byte, name string, value []byte) []byte {
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
		dst = append(dst, row[:from]...)
		dst = append(dst, value...)
		return append(dst, row[from+len(at):]...)
	}
	end := len(row) - 1
	for end > 0 && row[end] != '}' {
		end--
	}
	dst = append(dst, row[:end]...)
	if members > 0 {
		dst = append(dst, ',')
	}
	dst = strconv.AppendQuote(dst, name)
	dst = append(append(dst, ':'), value...)
	return append(dst, row[end:]...)
}
