package rewrite

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// forAnswers is what answers of the client's dialect need of a request, in memory of its own: of the body only the members that they repeat.
// A prompt is long, and an answer takes its time.
func forAnswers(client dialect.Dialect, r *canon.Request) *canon.Request {
	kept := &canon.Request{From: r.From, Model: bytes.Clone(r.Model), Stream: r.Stream, Show: r.Show}
	for _, s := range r.Stop {
		kept.Stop = append(kept.Stop, bytes.Clone(s))
	}
	if repeater, ok := client.(dialect.Repeater); ok {
		names := repeater.Repeats()
		found := make([][]byte, len(names))
		jsonx.GetAll(r.Body, names, found)
		kept.Body = jsonx.AppendMembers(nil, names, found)
	}
	return kept
}
