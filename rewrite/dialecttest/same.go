package dialecttest

import (
	"slices"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// SameCall checks that a request which is read and written in its own dialect is the same value, but for members that nobody knows and that are told as lost. Tidy makes spellings
// alike that mean the same; it may change what it is given.
func SameCall(tb testing.TB, d Dialect, body []byte, tidy func(any) any) {
	tb.Helper()
	var losses canon.Losses
	o := options(&losses)
	r, err := d.ReadCall(body, o)
	if err != nil {
		tb.Errorf("a request is read: %v\n%s", err, body)
		return
	}
	written, err := d.AppendCall(nil, r, o)
	if err != nil || !jsonx.Valid(written) {
		tb.Errorf("a request is written in its own dialect: %v\n%s", err, body)
		return
	}
	for told := true; told; {
		told = false
		EachWithout(body, func(path string, _, without []byte) {
			if !told && slices.ContainsFunc(losses.List(), func(l canon.Loss) bool { return l.Path == path && l.Reason == canon.NotKnown }) {
				body, told = without, true
			}
		})
	}
	if diff := differentJSON("", tidy(decodeJSON(body)), tidy(decodeJSON(written))); diff != "" {
		tb.Errorf("a request that is read and written is the same, and differs at %s\n in %s\nout %s", diff, body, written)
	}
}
