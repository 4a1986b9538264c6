package capture

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"rolltap/internal/jsonx"
)

// inlineMax is the size up to which a line is built in memory. Longer ones stay where their bodies are, in copies that may
// be spool files, and are streamed into the rollout's file by the committer.
const inlineMax = 1 << 20

// freeLine is the size up to which a line asks no budget.
const freeLine = 32 << 10

// encode makes the line of r. It reads each copy once to judge it, and once more to copy it in when the line is small and budget, which may be
// nil, has the memory. The line then owns r. An error means that a spool file could not be read again; r is still the caller's.
func encode(r *Record, lines *memoryPool, budget *Budget) (*line, error) {
	size := estimate(r)
	room := size + size/3 + besides // text grows by its escapes
	if size <= freeLine {
		budget = nil
	}
	e := encoder{inline: size <= inlineMax && budget.take(room), r: r, room: MaxLine - restMax}
	if !e.inline {
		budget, size = nil, 0
	}
	e.allot()
	text := size - e.parsed() // which grows by its escapes
	e.b = lines.get(int(size+text/3) + besides)
	e.record()
	if e.err != nil {
		lines.put(e.b, pooledBuf)
		budget.give(room)
		return nil, e.err
	}
	l := &line{buf: e.b, hole: e.hole, cuts: e.cuts, record: r, size: int64(len(e.b)) + holeSpace, lines: budget, taken: room, truncated: e.cutBodies}
	for _, c := range e.cuts {
		l.size += cmp.Or(c.text, c.body.Len())
	}
	if e.inline {
		r.release()
		l.record = nil
	}
	return l, nil
}

// besides is about what a line takes beside its bodies.
const besides = 1 << 10

// parsed is how much of the bodies is written once and as JSON, which does not grow.
func (e *encoder) parsed() (n int64) {
	if e.r.Raw == RawAlways {
		return 0
	}
	if e.request.object {
		n += e.r.Request.Len()
	}
	if e.response.object {
		n += e.r.Response.Len()
	}
	if e.fold {
		n += e.r.Folded.Len()
	}
	if u := e.r.Upstream; u != nil {
		for _, c := range [...]*Copy{u.Request, u.Response} {
			if c != nil && c.IsJSON() {
				n += c.Len()
			}
		}
	}
	return n
}

// estimate is about how long the line will be.
func estimate(r *Record) int64 {
	n := int64(0)
	for _, c := range r.copies() {
		if c != nil {
			n += c.Len()
		}
	}
	return n
}

// encoder appends the members of a record in their fixed order.
type encoder struct {
	b      []byte
	r      *Record
	inline bool
	hole   int
	cuts   []cut
	err    error // the first of reading a copy

	// What there is room for, see allot.
	request, response share
	fold              bool
	room              int64    // bytes of the line that are not spoken for
	lost              []string // members that are cut because there was no room
	cutBodies         []string // what the record names as cut, whatever for
}

func (e *encoder) record() {
	r := e.r
	e.raw(`{"model_call_id":`)
	e.str(r.CallID)
	e.raw(`,"dialect":`)
	e.str(r.Dialect)
	e.raw(`,"model_ref":`)
	if r.ModelRef == "" {
		e.raw(`null`)
	} else {
		e.raw(`{"type":"responses_api_models","name":`)
		e.str(r.ModelRef)
		e.raw(`}`)
	}
	e.raw(`,"started_at":`)
	e.b = appendUnix(e.b, r.Started)
	e.raw(`,"completed_at":`)
	e.b = appendUnix(e.b, r.Completed)
	e.raw(`,"latency_ms":`)
	e.b = appendMillis(e.b, r.Latency)
	e.raw(`,"latency_ttft_ms":`)
	if r.TTFT < 0 {
		e.raw(`null`)
	} else {
		e.b = appendMillis(e.b, r.TTFT)
	}
	e.raw(`,"status_code":`)
	e.intOrNull(r.StatusCode)
	e.raw(`,"error_category":`)
	e.strOrNull(r.ErrorCategory)
	e.raw(`,"request":`)
	e.object(r.Request, e.request.object)
	e.raw(`,"response":`)
	if e.fold {
		e.object(r.Folded, true)
	} else {
		e.object(r.Response, e.response.object)
	}
	if r.ClientSessionID != "" {
		e.raw(`,"client_session_id":`)
		e.str(r.ClientSessionID)
	}
	e.raw(`,"upstream_attempted":`)
	e.bool(r.UpstreamAttempted)
	e.raw(`,"response_source":`)
	e.strOrNull(r.ResponseSource)
	e.raw(`,"upstream_status_code":`)
	e.intOrNull(r.UpstreamStatus)
	e.raw(`,"local_response_reason":`)
	e.strOrNull(r.LocalReason)
	e.text(`,"request_raw":"`, r.Request, e.request.text)
	e.text(`,"response_raw":"`, r.Response, e.response.text)
	e.ours()
	e.raw("}\n")
}

// ours writes the rolltap member.
func (e *encoder) ours() {
	r := e.r
	e.raw(`,"rolltap":{"v":1,"rollout_id":`)
	e.str(r.Rollout)
	e.raw(`,"writer":"`)
	e.hole = len(e.b)
	e.raw(`,"method":`)
	e.str(r.Method)
	e.raw(`,"path":`)
	e.str(r.Path)
	e.raw(`,"query":`)
	e.str(r.Query)
	e.raw(`,"stream":`)
	e.bool(r.Stream)
	e.raw(`,"outcome":`)
	e.str(r.Outcome)
	e.raw(`,"finish_reason":`)
	e.strOrNull(r.Finish)
	e.raw(`,"losses":[`)
	for i, l := range r.Losses {
		if i > 0 {
			e.raw(`,`)
		}
		e.raw(`{"path":`)
		e.str(l.Path)
		e.raw(`,"reason":`)
		e.str(l.Reason)
		e.raw(`}`)
	}
	e.raw(`],"upstream":`)
	e.upstream(r.Upstream)
	e.raw(`,"usage":`)
	e.usage(r.Usage)
	e.raw(`,"client":{`)
	sep := ``
	for _, m := range [...]struct{ name, value string }{
		{`"session":`, r.Client.Session}, {`"agent":`, r.Client.Agent},
		{`"parent_agent":`, r.Client.ParentAgent}, {`"user_agent":`, r.Client.UserAgent},
	} {
		if m.value != "" {
			e.raw(sep)
			e.raw(m.name)
			e.str(m.value)
			sep = `,`
		}
	}
	e.raw(`},"request_bytes":`)
	e.b = strconv.AppendInt(e.b, r.RequestBytes, 10)
	e.raw(`,"response_bytes":`)
	e.b = strconv.AppendInt(e.b, r.ResponseBytes, 10)
	e.raw(`,"truncated":[`)
	e.cutBodies = e.truncated()
	for i, name := range e.cutBodies {
		if i > 0 {
			e.raw(`,`)
		}
		e.str(name)
	}
	e.raw(`]`)
	if len(r.Tokens) > 0 {
		e.raw(`,"tokens":`)
		e.b = append(e.b, r.Tokens...)
	}
	e.raw(`}`)
}

func (e *encoder) upstream(u *Upstream) {
	if u == nil {
		e.raw(`null`)
		return
	}
	e.raw(`{"dialect":`)
	e.str(u.Dialect)
	e.raw(`,"path":`)
	e.str(u.Path)
	e.raw(`,"status":`)
	e.intOrNull(u.Status)
	e.raw(`,"model":`)
	e.str(u.Model)
	e.upstreamBody("upstream.request", u.Request)
	e.upstreamBody("upstream.response", u.Response)
	e.raw(`}`)
}

// upstreamBody writes a body of the upstream side, named as in truncated: compacted JSON, or text when it is none or too long.
func (e *encoder) upstreamBody(full string, c *Copy) {
	if c == nil || c.Len() == 0 || e.err != nil {
		return
	}
	n, name := c.Len(), strings.TrimPrefix(full, "upstream.")
	if c.Truncated() {
		e.lost = append(e.lost, full)
	}
	e.raw(`,"`)
	e.raw(name)
	if n <= e.room && c.IsJSON() {
		e.room -= n
		e.raw(`":`)
		e.object(c, true)
		return
	}
	if e.r.Raw == RawNever {
		e.raw(`":null`)
		return
	}
	keep := e.fitText(c, min(e.room, textMax(n)), full)
	if keep == 0 {
		e.raw(`_raw":""`)
		return
	}
	e.text(`_raw":"`, c, keep)
}

func (e *encoder) usage(u *Usage) {
	if u == nil || u.Prompt < 0 && u.Completion < 0 && u.Cached < 0 && u.Reasoning < 0 {
		e.raw(`null`)
		return
	}
	for _, m := range [...]struct {
		name  string
		count int64
	}{
		{`{"prompt_tokens":`, u.Prompt}, {`,"completion_tokens":`, u.Completion},
		{`,"cached_tokens":`, u.Cached}, {`,"reasoning_tokens":`, u.Reasoning},
	} {
		e.raw(m.name)
		if m.count < 0 {
			e.raw(`null`)
		} else {
			e.b = strconv.AppendInt(e.b, m.count, 10)
		}
	}
	e.raw(`}`)
}

// object writes a body that was judged to be whole and JSON, else null.
func (e *encoder) object(c *Copy, judged bool) {
	switch {
	case !judged:
		e.raw(`null`)
	case e.err != nil:
	case e.inline:
		e.b, e.err = c.appendCompact(e.b)
	default:
		e.cuts = append(e.cuts, cut{at: len(e.b), body: c})
	}
}

// text writes a raw member with the first n bytes of the copy; there is none when n is 0.
func (e *encoder) text(name string, c *Copy, n int64) {
	if n == 0 {
		return
	}
	e.raw(name)
	switch {
	case e.err != nil:
	case e.inline:
		e.b, e.err = c.appendText(e.b, n)
	default:
		e.cuts = append(e.cuts, cut{at: len(e.b), body: c, text: n})
	}
	e.raw(`"`)
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }
func (e *encoder) str(s string) { e.b = jsonx.AppendString(e.b, s) }
func (e *encoder) bool(v bool)  { e.b = strconv.AppendBool(e.b, v) }

func (e *encoder) strOrNull(s string) {
	if s == "" {
		e.raw(`null`)
	} else {
		e.str(s)
	}
}

func (e *encoder) intOrNull(n int) {
	if n == 0 {
		e.raw(`null`)
	} else {
		e.b = strconv.AppendInt(e.b, int64(n), 10)
	}
}

func isObject(c *Copy) bool { return c != nil && c.IsObject() }

// appendUnix appends seconds since 1970 with microseconds, and always a fraction: readers take the type from it.
func appendUnix(dst []byte, t time.Time) []byte {
	us := t.UnixMicro()
	if us < 0 { // a clock before 1970; the zero time is one
		us = 0
	}
	dst = strconv.AppendInt(dst, us/1e6, 10)
	frac := [7]byte{'.', '0', '0', '0', '0', '0', '0'}
	for i, n := 6, us%1e6; i > 0; i, n = i-1, n/10 {
		frac[i] = byte('0' + n%10)
	}
	return append(dst, trimZeros(frac[:])...)
}

// appendMillis appends milliseconds with at most two decimals, correctly rounded, and always a fraction.
func appendMillis(dst []byte, d time.Duration) []byte {
	dst = strconv.AppendFloat(dst, float64(max(d, 0))/1e6, 'f', 2, 64)
	return trimZeros(dst)
}

// trimZeros drops zeros at the end but leaves one digit behind the point.
func trimZeros(b []byte) []byte {
	for len(b) > 2 && b[len(b)-1] == '0' && b[len(b)-2] != '.' {
		b = b[:len(b)-1]
	}
	return b
}
