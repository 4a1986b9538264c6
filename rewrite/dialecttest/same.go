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
	SameJSON(tb, body, written, tidy)
}

// SameJSON checks that two values are the same once they are tidy. Numbers keep their spelling, null is as good as absent.
func SameJSON(tb testing.TB, want, got []byte, tidy func(any) any) {
	tb.Helper()
	if diff := differentJSON("", tidy(decodeJSON(want)), tidy(decodeJSON(got))); diff != "" {
		tb.Errorf("they should be the same, and differ at %s\nwant %s\n got %s", diff, want, got)
	}
}
