package metrics

import "github.com/prometheus/client_golang/prometheus"

// other is the label value of every word that is not in its list.
const other = "other"

// The closed lists of label values. Order is of no consequence outside.
var (
	dialectWords  = words{"chat", "messages", "responses", "gemini"}
	upstreamWords = words{"chat", "messages", "responses", "none"}
	outcomeWords  = words{"ok", "client_gone", "upstream_cut", "upstream_error", "upstream_timeout", "refused", "aborted"}
	// The upstream writes these, so "other" is an ordinary value here.
	finishWords     = words{"stop", "length", "tool_calls", "function_call", "content_filter", "abort", other}
	lossWords       = words{"no_equivalent", "policy", "foreign", "unknown"}
	uncapturedWords = words{"no_prefix", "capture_off", "invalid_rollout_id"}
	resultWords     = words{"ok", "late", "lost"}
	bodyWords       = words{"request", "response", "upstream.request", "upstream.response"}
	// ok, or why a call has no tokens: the reasons of rewrite/tokens, then what became of the call or its entry.
	tokenWords = words{"ok", "no_token_ids", "no_prompt_ids", "no_logprobs", "logprobs_mismatch", "count_mismatch", "invalid_ids", "invalid_logprobs",
		"several_choices", "conflicting_sources", "truncated", "hidden_reasoning", "too_large", "unreadable", "upstream_error",
		"context_overflow", "client_gone", "not_asked", "failed", "store"}
)

// words is a closed list of label values.
type words []string

// index returns the place of w, len(ws) when it is not in the list. The lists
// are so short that comparing beats hashing.
func (ws words) index(w string) int {
	for i := range ws {
		if ws[i] == w {
			return i
		}
	}
	return len(ws)
}

// at is the inverse of index.
func (ws words) at(i int) string {
	if i < len(ws) {
		return ws[i]
	}
	return other
}

// family is a counter with one closed label, its handles resolved once.
type family struct {
	words    words
	vec      *prometheus.CounterVec
	counters []prometheus.Counter
}

func newFamily(r prometheus.Registerer, name, help, label string, ws words) family {
	f := family{
		words: ws,
		vec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: name, Help: help,
		}, []string{label}),
	}
	r.MustRegister(f.vec)
	for _, w := range ws {
		f.counters = append(f.counters, f.vec.WithLabelValues(w))
	}
	return f
}

func (f family) inc(w string) {
	if i := f.words.index(w); i < len(f.counters) {
		f.counters[i].Inc()
		return
	}
	// A word nobody should send: rare enough to look its series up each time.
	f.vec.WithLabelValues(other).Inc()
}
