package cli

import (
	"math"
	"strconv"
	"time"

	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// call is what the commands know of one record. Unknown numbers are below 0. Its slices are parts of the line.
type call struct {
	id, dialect, model string
	upstreamDialect    string // "" when nothing was sent
	outcome            string // derived for records that another program wrote
	category, finish   string
	started, completed time.Time
	latency, ttft      time.Duration
	status             int64
	stream             bool
	prompt, completion int64
	cached, reasoning  int64
	localReason        string
	losses, truncated  []string
	request, response  []byte
	rawRequest, rawRes []byte // raw JSON strings, nil when absent
	outlined           int64  // the length of a line that was read as an outline; 0: it is whole
}

// callReader reads records as stats and exports do, so that a call is the same wherever it is shown.
type callReader struct{ derived derive.Reader }

func newCallReader() *callReader { return &callReader{derive.Reader{NoSide: true}} }

// read makes a call of a line, which is valid JSON. The error says that it is no record.
func (r *callReader) read(line []byte) (call, error) {
	d, err := r.derived.Read(line, 0)
	if err != nil {
		return call{}, err
	}
	used := d.Used()
	c := call{
		upstreamDialect: d.Own.Upstream, outcome: d.Own.Outcome, finish: d.Own.Finish, stream: d.Own.Stream,
		started: instant(d.Started), completed: instant(d.Completed), latency: millis(d.Latency), ttft: millis(d.TTFT), status: -1,
		prompt: used.Prompt, completion: used.Completion, cached: used.Cached, reasoning: used.Reasoning,
		request: d.Request, response: d.Response, rawRequest: d.RequestRaw, rawRes: d.ResponseRaw,
	}
	if n, ok := jsonx.Int(d.Status); ok {
		c.status = n
	}
	c.id, _ = jsonx.Text(d.ID)
	c.dialect, _ = jsonx.Text(d.Dialect)
	if c.model, _ = jsonx.Text(d.Model); c.model == "" {
		c.model = d.Own.AskedFor
	}
	c.category, _ = jsonx.Text(d.Category)
	c.localReason, _ = jsonx.Text(d.LocalReason)
	for l := jsonx.Array(d.Own.Losses); l.Next(); {
		c.losses = append(c.losses, text(l.Value(), "path")+" ("+text(l.Value(), "reason")+")")
	}
	for t := jsonx.Array(d.Own.Truncated); t.Next(); {
		s, _ := jsonx.Text(t.Value())
		c.truncated = append(c.truncated, s)
	}
	return c, nil
}

func (c *call) failed() bool { return c.outcome != "ok" }

func float(raw []byte) (float64, bool) {
	if jsonx.KindOf(raw) != jsonx.KindNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// instant reads Unix seconds; the zero time is unknown.
func instant(raw []byte) time.Time {
	f, ok := float(raw)
	if !ok || f <= 0 || f > 1e11 {
		return time.Time{}
	}
	return time.UnixMicro(int64(f * 1e6))
}

func millis(raw []byte) time.Duration {
	f, ok := float(raw)
	if !ok || f < 0 || f > 1e12 {
		return -1
	}
	return time.Duration(f * float64(time.Millisecond))
}

// text is a string member, "" when it is absent or no string.
func text(obj []byte, key string) string {
	s, _ := jsonx.Text(jsonx.Get(obj, key))
	return s
}
