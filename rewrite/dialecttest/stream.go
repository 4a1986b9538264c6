package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/sse"
)

// Square is the commuting square: what the client hears is what the upstream said. Allowed names the differences that are none here.
func Square(tb testing.TB, up, client Dialect, stream []byte, allowed ...string) {
	tb.Helper()
	t, err := Translate(up, client, stream)
	if err != nil {
		tb.Errorf("%s to %s: %v", up.Name(), client.Name(), err)
		return
	}
	for _, d := range differ(t.Said, t.Heard, allowed) {
		tb.Errorf("the client hears what the upstream said, %s to %s: %v\nof %q", up.Name(), client.Name(), d, t.Wire)
	}
	kept, err := translate(up, client, stream, true)
	if err != nil {
		tb.Errorf("with keep-alives, %s to %s: %v", up.Name(), client.Name(), err)
		return
	}
	for _, d := range Differences(t.Heard, kept.Heard) {
		tb.Errorf("keep-alives change nothing that is said, %s to %s: %v", up.Name(), client.Name(), d)
	}
}

// UnaryEqualsStream checks that a client hears the same as a stream, as one JSON body, and as a stream that was made of a whole answer. The
// two JSON bodies, the encoded one and the fold of the encoded stream, are equal as values, unless arguments that are no JSON differ.
func UnaryEqualsStream(tb testing.TB, up, client Dialect, stream []byte, allowed ...string) {
	tb.Helper()
	t, err := Translate(up, client, stream)
	if err != nil || !t.Ended {
		return // Square reports it, or there is no unary answer that says this
	}
	fail := func(rule string, args ...any) {
		tb.Helper()
		tb.Errorf("%s to %s: %s", up.Name(), client.Name(), fmt.Sprintf(rule, args...))
	}
	asked := askedFor(up, client, stream)
	body, err := client.AppendAnswer(nil, t.Said, asked, options(nil))
	if err != nil || !jsonx.Valid(body) {
		fail("a whole answer is one JSON body: %v, %s", err, body)
		return
	}
	if client.IsError(body) {
		fail("an answer is no error: %s", body)
	}
	sameJSON := true
	if heard, err := client.ReadAnswer(body, options(nil)); err != nil {
		fail("a dialect reads its own answer: %v, %s", err, body)
	} else {
		sameJSON = differentParts(t.Heard, heard) != "arguments"
		for _, d := range differ(t.Heard, heard, allowed) {
			fail("unary and stream say the same: %v\n%s", d, body)
		}
	}
	if folded := Fold(client, t.Wire).Response; sameJSON {
		if d := differentJSON("", decodeJSON(body), decodeJSON([]byte(folded))); d != "" {
			fail("the unary answer is the fold of the stream, and differs at %s\nunary %s\n fold %s", d, body, folded)
		}
	}
	w := newWriter(client, asked, nil)
	if err := t.Said.Replay(w.event); err != nil {
		fail("a replayed answer is a stream like any other: %v", err)
		return
	}
	for _, d := range Differences(t.Heard, w.client.folder.Answer()) {
		fail("a replayed answer says the same: %v", d)
	}
}

func decodeJSON(b []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	return v
}

// SplitInvariance checks that how a stream is cut into reads does not matter.
func SplitInvariance(tb testing.TB, d Dialect, stream []byte) {
	tb.Helper()
	want, err := Decode(d, stream)
	if err != nil {
		tb.Errorf("%v", err)
		return
	}
	single := make([]int, len(stream))
	for _, cuts := range [][]int{single, {len(stream) / 2}, {len(stream) - 1}, {1}} {
		got, err := Decode(d, stream, cuts...)
		if err != nil {
			tb.Errorf("in pieces of %v: %v", cuts[:1], err)
			continue
		}
		if !slices.Equal(got.Events, want.Events) || got.Finish != want.Finish {
			tb.Errorf("the events are the same however a stream is cut, in pieces of %v:\n got %v %q\nwant %v %q",
				cuts[:1], got.Finish, got.Events, want.Finish, want.Events)
		}
	}
}

// Truncation checks that a stream which was cut anywhere never looks complete: at the end of every frame, and at bytes in between.
func Truncation(tb testing.TB, d Dialect, stream []byte) {
	tb.Helper()
	whole, err := Decode(d, stream)
	if err != nil {
		tb.Errorf("%v", err)
		return
	}
	var cuts []int
	var split sse.Splitter
	var ev sse.Event
	for split.Push(stream); split.Next(&ev); {
		cuts = append(cuts, int(ev.Start), int(ev.Start+ev.End)/2, int(ev.End)-1, int(ev.End))
	}
	for _, n := range cuts {
		got, err := Decode(d, stream[:n])
		switch {
		case isBroken(err):
			tb.Errorf("cut at %d: %v", n, err)
		case err != nil || !got.Ended && !got.Failed:
		case int64(n) <= whole.last:
			tb.Errorf("a stream that was cut never looks complete: cut at %d, its end begins at %d", n, whole.last)
		case got.Failed:
		case len(differ(whole.Answer, got.Answer, nil)) > 0:
			tb.Errorf("an end that is understood is understood whole: cut at %d, %v", n, differ(whole.Answer, got.Answer, nil))
		}
		if err == nil && !got.Ended && !got.Failed && got.Finish != io.ErrUnexpectedEOF {
			tb.Errorf("a stream without an end is unexpected EOF: cut at %d, %v", n, got.Finish)
		}
	}
}

// Concurrent translates all streams at once, each several times, and compares with what one alone gives. It is worth most under -race.
func Concurrent(tb testing.TB, up, client Dialect, streams map[string][]byte) {
	tb.Helper()
	var group sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		want, err := Translate(up, client, streams[name])
		if err != nil {
			continue // Square reports it
		}
		for range 4 {
			group.Go(func() {
				got, err := Translate(up, client, streams[name])
				if err != nil || !bytes.Equal(got.Wire, want.Wire) {
					tb.Errorf("%s: streams of one dialect do not disturb each other: %v", name, err)
				}
			})
		}
	}
	group.Wait()
}

// CheckStream checks what holds for any bytes at all: decoders keep to the grammar, encoders and the client's decoder can do with it,
// and only what ended looks ended.
func CheckStream(tb testing.TB, up, client Dialect, stream []byte, cuts ...int) {
	tb.Helper()
	t, err := Translate(up, client, stream, cuts...)
	if isBroken(err) {
		tb.Errorf("%s to %s: %v", up.Name(), client.Name(), err)
	}
	if err != nil {
		return
	}
	if t.Ended != (t.Heard.Stop.Reason != 0) {
		tb.Errorf("%s to %s: the client sees the end, and only the end: said %+v, heard %+v", up.Name(), client.Name(), t.Said.Stop, t.Heard.Stop)
	}
	if _, err := client.AppendAnswer(nil, t.Said, Asked(client), options(nil)); err != nil {
		var p *canon.Problem
		if !errors.As(err, &p) {
			tb.Errorf("an error of AppendAnswer is a problem: %v", err)
		}
	}
}

// Answer is the square of a unary answer: upstream JSON to client JSON.
func Answer(tb testing.TB, up, client Dialect, body []byte, allowed ...string) {
	tb.Helper()
	if up.IsError(body) {
		tb.Errorf("an answer is no error: %s", body)
	}
	said, err := up.ReadAnswer(body, options(nil))
	if err != nil {
		tb.Errorf("an answer is read: %v", err)
		return
	}
	asked := Asked(client)
	if said.Stop.Sequence != nil {
		asked.Stop = []canon.Text{said.Stop.Sequence}
	}
	written, err := client.AppendAnswer([]byte("kept"), said, asked, options(nil))
	written, ok := bytes.CutPrefix(written, []byte("kept"))
	if err != nil || !ok || !jsonx.Valid(written) {
		tb.Errorf("AppendAnswer appends one JSON object: %v, %s", err, written)
		return
	}
	heard, err := client.ReadAnswer(written, options(nil))
	if err != nil {
		tb.Errorf("a dialect reads its own answer: %v, %s", err, written)
		return
	}
	for _, d := range differ(said, heard, allowed) {
		tb.Errorf("the client hears what the upstream said, %s to %s: %v\n%s", up.Name(), client.Name(), d, written)
	}
}

// Events is the round trip of a stream in one dialect: what a client hears of these events, which are of the grammar, is what they say.
func Events(tb testing.TB, d Dialect, events []canon.Event, allowed ...string) {
	tb.Helper()
	asked := Asked(d)
	var said canon.Folder
	for i := range events {
		if err := said.Event(&events[i]); err != nil {
			tb.Fatalf("the events must be of the grammar: %v", err)
		}
		if e := &events[i]; e.Kind == canon.Ended && e.Stop.Sequence != nil {
			asked.Stop = []canon.Text{e.Stop.Sequence}
		}
	}
	w := newWriter(d, asked, nil)
	for i := range events {
		if err := w.event(&events[i]); err != nil {
			tb.Fatalf("%s: %v", d.Name(), err)
		}
	}
	whole := said.Answer()
	if whole.Failed != nil {
		whole = w.said()
	}
	for _, d := range differ(whole, w.client.folder.Answer(), allowed) {
		tb.Errorf("a client hears what was said: %v\nof %q", d, w.wire)
	}
}
