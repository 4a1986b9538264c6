package dialecttest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/sse"
)

// Result is what a stream folds to.
type Result struct {
	Response string
	Summary  dialect.Summary
	Signals  []dialect.Signal // of every event up to the terminal one
	Verdict  dialect.Verdict
}

// Fold folds a stream up to its terminal event. Cuts are the lengths of the pieces that it is pushed in; what is left comes in one.
func Fold(d dialect.Dialect, stream []byte, cuts ...int) Result {
	var (
		split sse.Splitter
		ev    sse.Event
		r     Result
	)
	folder := d.NewFolder()
	event := func() bool {
		s := folder.Event(ev.Name, ev.Data)
		r.Signals = append(r.Signals, s)
		r.Verdict = s.Verdict
		return s.Verdict == dialect.None
	}
	for more := true; more && len(stream) > 0; {
		n := len(stream)
		if len(cuts) > 0 {
			n, cuts = min(n, max(1, cuts[0])), cuts[1:]
		}
		split.Push(stream[:n])
		for more && split.Next(&ev) {
			more = event()
		}
		stream = stream[n:]
		if more && len(stream) == 0 && split.Finish(&ev) {
			event()
		}
	}
	r.Response = string(folder.AppendResponse(nil))
	r.Summary = folder.Summary()
	return r
}

// Streams are the recorded streams of a dialect, testdata/<case>/stream.sse, by case.
func Streams(tb testing.TB) map[string][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/*/stream.sse")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no recorded streams: %v", err)
	}
	streams := make(map[string][]byte, len(files))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		streams[filepath.Base(filepath.Dir(file))] = raw
	}
	return streams
}

// Golden folds every recorded stream and compares with fold.json and summary.txt beside it, or writes them.
func Golden(t *testing.T, d dialect.Dialect, update bool) {
	for name, stream := range Streams(t) {
		t.Run(name, func(t *testing.T) {
			r := Fold(d, stream)
			compare(t, filepath.Join("testdata", name, "fold.json"), r.Response+"\n", update)
			compare(t, filepath.Join("testdata", name, "summary.txt"), describe(r), update)
		})
	}
}

func describe(r Result) string {
	invalid := 0
	for _, s := range r.Signals {
		if s.Invalid {
			invalid++
		}
	}
	s := r.Summary
	return fmt.Sprintf("events to the end: %d, of them invalid: %d\nfirst content: event %d\nverdict: %v\n"+
		"model: %q\nfinish: %q\nprompt %d, completion %d, cached %d, reasoning %d\nerror: %v, status %d\n",
		len(r.Signals), invalid, slices.IndexFunc(r.Signals, func(s dialect.Signal) bool { return s.Content })+1, r.Verdict,
		s.Model, s.Finish, s.Usage.Prompt, s.Usage.Completion, s.Usage.Cached, s.Usage.Reasoning, s.HasError, s.ErrorStatus)
}

func compare(t *testing.T, file, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n got %s\nwant %s", file, got, want)
	}
}

// Fuzz is the body of a dialect's FuzzFold: streams are its table of hand-made ones. Mutated bytes seldom stay JSON, so a part of the work is
// done on whole events of all these streams in an order that the fuzzer picks.
func Fuzz(f *testing.F, d dialect.Dialect, streams []string) {
	recorded := Streams(f)
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		f.Add(recorded[name], []byte(nil), uint16(7), uint16(100))
		streams = append(streams, string(recorded[name]))
	}
	var events []string
	for i, stream := range streams {
		f.Add([]byte(stream), []byte{byte(i), 0, byte(i), 0, byte(i + 1), 1}, uint16(1), uint16(3))
		for event := range strings.SplitAfterSeq(stream, "\n\n") {
			events = append(events, event)
		}
	}
	f.Fuzz(func(t *testing.T, stream, picks []byte, cut, next uint16) {
		CheckFold(t, d, stream, int(cut), int(next), int(cut))
		var picked []byte
		for ; len(picks) >= 2; picks = picks[2:] {
			picked = append(picked, events[(int(picks[0])<<8|int(picks[1]))%len(events)]...)
		}
		CheckFold(t, d, picked, int(cut), int(next), int(cut))
	})
}

// CheckFold checks what holds for any bytes at all.
func CheckFold(t *testing.T, d dialect.Dialect, stream []byte, cuts ...int) {
	t.Helper()
	whole := Fold(d, stream)
	if cut := Fold(d, stream, cuts...); cut.Response != whole.Response || cut.Summary != whole.Summary || cut.Verdict != whole.Verdict {
		t.Errorf("how a stream is split must not matter:\nwhole %+v\n cut  %+v", whole, cut)
	}
	if raw := []byte(whole.Response); len(raw) > 0 && (!jsonx.Valid(raw) || raw[0] != '{') {
		t.Errorf("a fold is one JSON object or nothing: %s", raw)
	}

	// Judge needs no state and says the same as Event; a response may be asked for at any time and changes nothing; nor does an event that is
	// no JSON, except that the event after it cannot be taken for the one before it again.
	var split sse.Splitter
	var ev sse.Event
	folder, apart := d.NewFolder(), d.NewFolder()
	split.Push(stream)
	for more := split.Next(&ev); more; more = split.Next(&ev) {
		judged := d.Judge(ev.Name, ev.Data)
		if got := folder.Event(ev.Name, ev.Data); got != judged {
			t.Errorf("Judge must say what Event says: %+v, %+v for %q %q", judged, got, ev.Name, ev.Data)
		}
		if got := apart.Event(ev.Name, ev.Data); got != judged {
			t.Errorf("Event must say the same whatever came before: %+v, %+v for %q %q", judged, got, ev.Name, ev.Data)
		}
		apart.Event(nil, []byte("no JSON"))
		if len(stream) < 2048 {
			folder.AppendResponse(nil)
		}
	}
	const fixed = 128 // what an answer has without anybody having said it
	if n := len(folder.AppendResponse(nil)); n > folder.Size()+fixed {
		t.Errorf("a fold of %d bytes says that it takes %d", n, folder.Size())
	}
	if one, other := string(folder.AppendResponse(nil)), string(apart.AppendResponse(nil)); one != other {
		t.Errorf("an event that is recognised must fold as one that is read:\n%s\n%s", one, other)
	}
	first := folder.AppendResponse([]byte("kept"))
	if second := folder.AppendResponse([]byte("kept")); !bytes.Equal(first, second) || !bytes.HasPrefix(first, []byte("kept")) {
		t.Errorf("AppendResponse must append, and the same each time: %q, %q", first, second)
	}
	if len(first) > len("kept") {
		d.ReadResponse(first[len("kept"):])
	}
}
