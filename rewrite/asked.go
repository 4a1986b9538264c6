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
		kept.Body = pick(r.Body, repeater.Repeats())
	}
	return kept
}

// pick is an object with the members of body that are named, compacted.
func pick(body []byte, names []string) []byte {
	found := make([][]byte, len(names))
	jsonx.GetAll(body, names, found)
	size := 2
	for i, value := range found {
		size += len(names[i]) + len(value) + 4
	}
	picked := append(make([]byte, 0, size), '{')
	for i, value := range found {
		if value == nil {
			continue
		}
		if len(picked) > 1 {
			picked = append(picked, ',')
		}
		picked = append(jsonx.AppendString(picked, names[i]), ':')
		picked = jsonx.AppendCompact(picked, value)
	}
	return append(picked, '}')
}
