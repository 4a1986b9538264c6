package dialecttest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// stranger is a member that no dialect knows; the kit plants some into requests.
const stranger = "x_kit"

// RequestRoundTrip checks that a request which is read and written in its own dialect is the same request, that members nobody knows are
// kept or listed, and that nothing else is listed as lost. Allowed names parts of the canonical request that may differ, and losses.
func RequestRoundTrip(tb testing.TB, d Dialect, body []byte, allowed ...string) {
	tb.Helper()
	planted := plant(body)
	var losses canon.Losses
	o := options(&losses)
	first, err := d.ReadCall(planted, o)
	if err != nil {
		tb.Errorf("a request is read: %v", err)
		return
	}
	if got := first.From; got != d.Name() {
		tb.Errorf("a request says whose it is: %q", got)
	}
	written, err := d.AppendCall([]byte("kept"), first, o)
	if err != nil {
		tb.Errorf("a request is written in its own dialect: %v", err)
		return
	}
	written, ok := bytes.CutPrefix(written, []byte("kept"))
	if !ok || !jsonx.Valid(written) {
		tb.Errorf("AppendCall appends one JSON object: %s", written)
		return
	}
	second, err := d.ReadCall(written, options(nil))
	if err != nil {
		tb.Errorf("what was written is read: %v in %s", err, written)
		return
	}
	for _, difference := range differentRequests(first, second) {
		if !slices.ContainsFunc(allowed, func(a string) bool { return strings.Contains(difference, a) }) {
			tb.Errorf("a request that is read and written is the same: %s\n%s", difference, written)
		}
	}
	for n := range bytes.Count(planted, []byte(stranger)) {
		name := fmt.Sprintf("%s%d", stranger, n)
		lost := slices.ContainsFunc(losses.List(), func(l canon.Loss) bool { return strings.Contains(l.Path, name) })
		if kept := bytes.Contains(written, []byte(`"`+name+`"`)); kept == lost {
			tb.Errorf("a member that nobody knows is kept or lost, not both and not neither: %s, kept %v, lost %v\n%s", name, kept, lost, written)
		}
	}
	for _, l := range losses.List() {
		if !strings.Contains(l.Path, stranger) && !slices.Contains(allowed, l.Path) {
			tb.Errorf("a dialect can say what it says: lost %s (%s)", l.Path, l.Reason)
		}
	}
}

// plant puts a member that nobody knows into the request and into every object of its lists.
func plant(body []byte) []byte {
	n := 0
	object := func(dst, raw []byte) []byte {
		dst = fmt.Appendf(dst, `{"%s%d":{"a":[1,"\u00e9"]}`, stranger, n)
		n++
		for it := jsonx.Object(raw); it.Next(); {
			dst = append(append(dst, ',', '"'), it.Key()...)
			dst = append(append(dst, '"', ':'), it.Value()...)
		}
		return append(dst, '}')
	}
	out := fmt.Appendf(nil, `{"%s%d":true`, stranger, n)
	n++
	for it := jsonx.Object(body); it.Next(); {
		out = append(append(append(out, ',', '"'), it.Key()...), '"', ':')
		value := it.Value()
		if jsonx.KindOf(value) != jsonx.KindArray {
			out = append(out, value...)
			continue
		}
		out = append(out, '[')
		comma := false
		for items := jsonx.Array(value); items.Next(); comma = true {
			if comma {
				out = append(out, ',')
			}
			if item := items.Value(); jsonx.KindOf(item) == jsonx.KindObject {
				out = object(out, item)
			} else {
				out = append(out, item...)
			}
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

// differentRequests compares two canonical requests member by member, but for where things were and how they looked. That usage is shown
// is not compared either: an upstream is always asked for it.
func differentRequests(a, b *canon.Request) []string {
	x, y := *a, *b
	x.Body, y.Body = nil, nil
	x.Show.Usage, y.Show.Usage = true, true
	var out []string
	differentValues("", reflect.ValueOf(x), reflect.ValueOf(y), &out)
	return out
}

func differentValues(path string, a, b reflect.Value, out *[]string) {
	note := func() { *out = append(*out, fmt.Sprintf("%s: %s, %s", path, printed(a), printed(b))) }
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if name := a.Type().Field(i).Name; name != "Raw" && name != "Path" {
				differentValues(path+"."+name, a.Field(i), b.Field(i), out)
			}
		}
	case reflect.Slice, reflect.Array:
		if a.Type().Elem().Kind() == reflect.Uint8 {
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				note()
			}
			return
		}
		if a.Len() != b.Len() {
			note()
			return
		}
		for i := range a.Len() {
			differentValues(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i), out)
		}
	default:
		if !a.Equal(b) {
			note()
		}
	}
}

func printed(v reflect.Value) string {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return fmt.Sprintf("%q", v.Bytes())
	}
	return fmt.Sprintf("%+q", v.Interface())
}

// CheckCall checks what holds for any request body that is a JSON object: it is read, or refused with a problem that is the client's.
// When it is read, it is written in the other dialect, or refused likewise; and what is written is JSON that the other dialect reads or,
// where the first one is not so strict, refuses.
func CheckCall(tb testing.TB, from, to Dialect, body []byte) {
	tb.Helper()
	var losses canon.Losses
	r, err := from.ReadCall(body, options(&losses))
	if err != nil {
		checkProblem(tb, err)
		return
	}
	out, err := to.AppendCall(nil, r, options(&losses))
	if err != nil {
		checkProblem(tb, err)
		return
	}
	if !jsonx.Valid(out) {
		tb.Errorf("%s to %s: a call is JSON: %s", from.Name(), to.Name(), out)
		return
	}
	if _, err := to.ReadCall(out, options(nil)); err != nil {
		checkProblem(tb, err)
	}
	for _, l := range losses.List() {
		if l.Reason == "" {
			tb.Errorf("%s to %s: a loss says why: %+v", from.Name(), to.Name(), l)
		}
	}
}

func checkProblem(tb testing.TB, err error) {
	tb.Helper()
	var p *canon.Problem
	if !errors.As(err, &p) {
		tb.Errorf("what is wrong with a request is a problem: %v", err)
		return
	}
	if p.Status < 400 || p.Status > 499 || p.Message == "" || p.Code == "" {
		tb.Errorf("a problem with a request is the client's, and says what it is: %+v", *p)
	}
}
