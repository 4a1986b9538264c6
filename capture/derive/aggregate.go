package derive

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"rolltap/internal/jsonx"
)

// Aggregates are sums over calls. The zero value is that of no calls. It is used by one goroutine.
type Aggregates struct {
	Calls                             int64
	In, Out, Reasoning, Total, Cached Sum                                                 // as the answers tell them
	Used                              struct{ Prompt, Completion, Cached, Reasoning Sum } // as far as anybody knows them
	FirstToken                        Sketch                                              // of streams, in milliseconds
	ByOutcome, ByLoss                 Tally
	BySide, ByDialect                 Tally
	Sessions, Agents                  Tally // calls by id; an agent that nobody started is not counted
	Streams, Truncated, SubAgents     int64
	latency                           floatSum
	cacheRead, cacheAsked             int64 // tokens of the calls that told both: from a cache, and in all
}

// Sum adds up known counts.
type Sum struct {
	N     int64 // known ones
	Value int64
}

func (s *Sum) add(n int64) {
	if n >= 0 {
		s.N++
		s.Value += n
	}
}

func (s *Sum) merge(o Sum) { s.N, s.Value = s.N+o.N, s.Value+o.Value }

// Known is the sum, -1 when no value was known.
func (s Sum) Known() int64 {
	if s.N == 0 {
		return -1
	}
	return s.Value
}

// floatSum adds up as Python's sum does (Neumaier), so that the result is the Gym reader's to the last bit.
type floatSum struct {
	n        int64
	sum, off float64 // off is what the additions lost
}

func (s *floatSum) add(x float64) {
	s.n++
	t := s.sum + x
	if math.Abs(s.sum) >= math.Abs(x) {
		s.off += (s.sum - t) + x
	} else {
		s.off += (x - t) + s.sum
	}
	s.sum = t
}

func (s *floatSum) merge(o floatSum) {
	if o.n > 0 {
		s.add(o.sum)
		s.off += o.off
		s.n += o.n - 1
	}
}

func (s *floatSum) value() float64 {
	if s.off != 0 && !math.IsInf(s.off, 0) && !math.IsNaN(s.off) {
		return s.sum + s.off
	}
	return s.sum
}

// tallied is how many words a Tally tells apart. What comes later counts as other: ids are the clients' choice.
const tallied = 4096

// Tally counts by word.
type Tally map[string]int64

func (t *Tally) add(word string, n int64) {
	if *t == nil {
		*t = Tally{}
	}
	if _, known := (*t)[word]; !known && len(*t) >= tallied {
		word = "other"
	}
	(*t)[word] += n
}

func (t *Tally) merge(o Tally) {
	for word, n := range o {
		t.add(word, n)
	}
}

// Words are the words in order, those that were counted most first.
func (t Tally) Words() []string {
	return slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		if t[a] != t[b] {
			return int(t[b] - t[a])
		}
		if a < b {
			return -1
		}
		return 1
	})
}

// Add counts a call. Nothing of it is kept.
func (a *Aggregates) Add(c *Call) {
	a.Calls++
	a.In.add(c.Tokens.In)
	a.Out.add(c.Tokens.Out)
	a.Reasoning.add(c.Tokens.Reasoning)
	a.Total.add(c.Tokens.Total)
	a.Cached.add(c.Tokens.Cached)
	if f, ok := number(c.Latency); f != nil && ok {
		a.latency.add(*f)
	}
	if ms, ok := c.FirstToken(); ok {
		a.FirstToken.Add(ms)
	}
	u := c.Used()
	a.Used.Prompt.add(u.Prompt)
	a.Used.Completion.add(u.Completion)
	a.Used.Cached.add(u.Cached)
	a.Used.Reasoning.add(u.Reasoning)
	if u.Cached >= 0 && u.Prompt > 0 {
		a.cacheRead += min(u.Cached, u.Prompt)
		a.cacheAsked += u.Prompt
	}
	a.ByOutcome.add(c.Own.Outcome, 1)
	a.ByDialect.add(word(c.Dialect), 1)
	for it := jsonx.Array(c.Own.Losses); it.Next(); {
		a.ByLoss.add(word(jsonx.Get(it.Value(), "reason")), 1)
	}
	if c.Own.Side.Aside() {
		a.BySide.add(string(c.Own.Side), 1)
	}
	if c.SubAgent() {
		a.SubAgents++
		if c.Own.Agent != "" {
			a.Agents.add(c.Own.Agent, 1)
		}
	}
	if c.Own.Session != "" {
		a.Sessions.add(c.Own.Session, 1)
	}
	if c.Own.Stream {
		a.Streams++
	}
	if c.Own.Truncated != nil {
		a.Truncated++
	}
}

// Merge adds the sums of o. Ids of sessions and agents are those of one rollout each and are not merged.
func (a *Aggregates) Merge(o *Aggregates) {
	a.Calls += o.Calls
	a.In.merge(o.In)
	a.Out.merge(o.Out)
	a.Reasoning.merge(o.Reasoning)
	a.Total.merge(o.Total)
	a.Cached.merge(o.Cached)
	a.Used.Prompt.merge(o.Used.Prompt)
	a.Used.Completion.merge(o.Used.Completion)
	a.Used.Cached.merge(o.Used.Cached)
	a.Used.Reasoning.merge(o.Used.Reasoning)
	a.latency.merge(o.latency)
	a.FirstToken.Merge(&o.FirstToken)
	a.cacheRead += o.cacheRead
	a.cacheAsked += o.cacheAsked
	a.ByOutcome.merge(o.ByOutcome)
	a.ByLoss.merge(o.ByLoss)
	a.BySide.merge(o.BySide)
	a.ByDialect.merge(o.ByDialect)
	a.Streams += o.Streams
	a.Truncated += o.Truncated
	a.SubAgents += o.SubAgents
}

// Latency is the sum of all known durations in milliseconds.
func (a *Aggregates) Latency() (ms float64, ok bool) { return a.latency.value(), a.latency.n > 0 }

// Errors is how many calls did not go well.
func (a *Aggregates) Errors() int64 { return a.Calls - a.ByOutcome["ok"] }

// CacheShare is the part of the prompt tokens that came from a cache, over the calls that told both.
func (a *Aggregates) CacheShare() (share float64, ok bool) {
	if a.cacheAsked == 0 {
		return 0, false
	}
	return float64(a.cacheRead) / float64(a.cacheAsked), true
}

// AppendMetrics appends the object metrics of the Gym attachment.
func (a *Aggregates) AppendMetrics(dst []byte) []byte {
	for i, s := range []struct {
		name string
		sum  Sum
	}{{"tokens_in", a.In}, {"tokens_out", a.Out}, {"tokens_reasoning", a.Reasoning}, {"tokens_total", a.Total}, {"cached_tokens", a.Cached}} {
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(append(append(dst, '"'), s.name...), `":`...)
		dst = appendCount(dst, s.sum.Known())
	}
	dst = append(dst, `,"latency_total_ms":`...)
	if v := a.latency.value(); a.latency.n == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	dst = append(dst, `,"num_calls":`...)
	return append(strconv.AppendInt(dst, a.Calls, 10), '}')
}

// AppendOwn appends what the Gym metrics have no member for. Percentiles are those of FirstToken, within 1 %.
func (a *Aggregates) AppendOwn(dst []byte) []byte {
	dst = append(dst, `{"errors":`...)
	dst = strconv.AppendInt(dst, a.Errors(), 10)
	for _, n := range []struct {
		name string
		n    int64
	}{{"streams", a.Streams}, {"truncated", a.Truncated}, {"subagent_calls", a.SubAgents}} {
		dst = append(append(append(dst, `,"`...), n.name...), `":`...)
		dst = strconv.AppendInt(dst, n.n, 10)
	}
	dst = append(dst, `,"usage":`...)
	dst = Usage{a.Used.Prompt.Known(), a.Used.Completion.Known(), a.Used.Cached.Known(), a.Used.Reasoning.Known()}.appendJSON(dst)
	dst = append(dst, `,"ttft_ms":{"count":`...)
	dst = strconv.AppendUint(dst, a.FirstToken.Count(), 10)
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}} {
		dst = append(append(append(dst, `,"`...), q.name...), `":`...)
		v, ok := a.FirstToken.Quantile(q.q)
		dst = appendMillis(dst, v, ok)
	}
	dst = append(dst, `},"cache_share":`...)
	if share, ok := a.CacheShare(); ok {
		dst = strconv.AppendFloat(dst, share, 'f', 4, 64)
	} else {
		dst = append(dst, "null"...)
	}
	for _, t := range []struct {
		name  string
		tally Tally
	}{{"outcomes", a.ByOutcome}, {"losses", a.ByLoss}, {"side_calls", a.BySide}, {"dialects", a.ByDialect}, {"sessions", a.Sessions}, {"agents", a.Agents}} {
		dst = append(append(append(dst, `,"`...), t.name...), `":{`...)
		for i, w := range t.tally.Words() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonx.AppendString(dst, w), ':')
			dst = strconv.AppendInt(dst, t.tally[w], 10)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendMillis(dst []byte, ms float64, ok bool) []byte {
	if !ok || math.IsInf(ms, 0) || math.IsNaN(ms) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, ms, 'f', 2, 64)
}
