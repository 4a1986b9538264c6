package sse

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// event is an Event that outlives its Splitter's next call.
type event struct {
	name, data string
	hasData    bool
	start, end int64
	oversized  bool
}

func (e event) String() string {
	s := fmt.Sprintf("[%d,%d)", e.start, e.end)
	if e.name != "" {
		s += fmt.Sprintf(" %q", e.name)
	}
	if e.hasData {
		s += fmt.Sprintf(" %q", e.data)
	}
	if e.oversized {
		s += " oversized"
	}
	return s
}

func keep(ev *Event) event {
	return event{string(ev.Name), string(ev.Data), ev.HasData, ev.Start, ev.End, ev.Oversized}
}

var cases = []struct {
	name, in string
	want     string // events, one per line
	comments int64
	safe     int64 // before Finish
}{
	{"nothing", "", "", 0, 0},
	{"one event", "data: a\n\n", `[0,9) "a"`, 0, 9},
	{"event and data", "event: e\ndata: a\n\n", `[0,18) "e" "a"`, 0, 18},
	{"data before event", "data: a\nevent: e\n\n", `[0,18) "e" "a"`, 0, 18},
	{"a name without data", "event: e\n\n", `[0,10) "e"`, 0, 10},
	{"the last name counts", "event: e\nevent: f\ndata\n\n", `[0,24) "f" ""`, 0, 24},
	{"an empty name takes the name back", "event: e\nevent\n\n", "", 0, 16},
	{"no space after colon", "event:e\ndata:a\n\n", `[0,16) "e" "a"`, 0, 16},
	{"only one space is dropped", "data:  a \n\n", `[0,11) " a "`, 0, 11},
	{"a tab is not dropped", "data:\ta\n\n", `[0,9) "\ta"`, 0, 9},
	{"a colon in the value", "data: a: b\n\n", `[0,12) "a: b"`, 0, 12},
	{"data without colon", "data\n\n", `[0,6) ""`, 0, 6},
	{"empty data", "data:\n\ndata: \n\n", "[0,7) \"\"\n[7,15) \"\"", 0, 15},
	{"several data lines", "data: a\ndata:\ndata: b\ndata\n\n", `[0,28) "a\n\nb\n"`, 0, 28},
	{"other fields are ignored", "id: 1\nretry: 10\ndatabase: x\ndata: a\n\n", `[0,37) "a"`, 0, 37},
	{"an error field", "error: {\"a\":1}\n\ndata: a\n\n", "[0,16) \"error\" \"{\\\"a\\\":1}\"\n[16,25) \"a\"", 0, 25},
	{"an error field without an object is ignored", "error\nerror: x\nerrors:{}\ndata: a\n\n", `[0,34) "a"`, 0, 34},
	{"an error field behind an event's name", "event: e\nerror:{}\n\n", `[0,19) "error" "{}"`, 0, 19},
	{"names that are nearly data are ignored", "dat: y\n data: z\nDATA: z\ndata: a\n\n", `[0,33) "a"`, 0, 33},
	{"names that are nearly event are ignored", "events: q\nEvent: e\ndata: a\n\n", `[0,28) "a"`, 0, 28},
	{"a block without data and name is skipped", "id: 1\n\ndata: a\n\n", `[7,16) "a"`, 0, 16},
	{"crlf", "event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", "[0,21) \"e\" \"a\"\n[21,32) \"b\"", 0, 32},
	{"cr only", "event: e\rdata: a\r\rdata: b\r\r", "[0,18) \"e\" \"a\"\n[18,27) \"b\"", 0, 27},
	{"mixed line ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\rdata: d\n\r", "[0,10) \"a\"\n[10,20) \"b\"\n[20,30) \"c\"\n[30,39) \"d\"", 0, 39},
	{"lf then cr are two line ends", "data: a\n\rdata: b\n\n", "[0,9) \"a\"\n[9,18) \"b\"", 0, 18},
	{"blank lines between events", "\n\r\n\r\ndata: a\n\n\n\n", `[5,14) "a"`, 0, 16},
	{"bom", "\ufeffdata: a\n\n", `[3,12) "a"`, 0, 12},
	{"bom before a comment", "\ufeff: x\ndata: a\n\n", `[7,16) "a"`, 1, 16},
	{"only the first bom is one", "\ufeff\ufeffdata: a\ndata: b\n\n", `[3,23) "b"`, 0, 23},
	{"half a bom", "\xef\xbbdata: a\ndata: b\n\n", `[0,19) "b"`, 0, 19},
	{"a bom later is text", "data: a\n\n\ufeffdata: b\n\n", `[0,9) "a"`, 0, 21},
	{"comments only", ": a\n:\n: keep-alive\n\n", "", 3, 20},
	{"a comment before an event", ": a\ndata: b\n\n", `[4,13) "b"`, 1, 13},
	{"a comment inside an event", "data: a\n: c\ndata: b\n\n", `[0,21) "a\nb"`, 1, 21},
	{"a comment that looks like data", ":data: a\n\n", "", 1, 10},
	{"other unicode line ends are text", "data: a\u0085b\u2028c\u2029d\vq\f\n\n", `[0,23) "a` + `\u0085b\u2028c\u2029d\vq\f"`, 0, 23},
	{"nul and invalid utf-8 are text", "data: \x00\xff\n\n", `[0,10) "\x00\xff"`, 0, 10},
	{"the last event lacks its blank line", "data: a\n\ndata: [DONE]\n", "[0,9) \"a\"\n[9,22) \"[DONE]\"", 0, 9},
	{"the last event lacks its line end", "data: a\n\ndata: [DONE]", "[0,9) \"a\"\n[9,21) \"[DONE]\"", 0, 9},
	{"the last event ends with a cr", "data: a\r", `[0,8) "a"`, 0, 0},
	{"an unfinished block without data", "data: a\n\nid: 1", `[0,9) "a"`, 0, 9},
	{"an unfinished comment", "data: a\n\n: x", `[0,9) "a"`, 0, 9},
	{"an unfinished field name", "dat", "", 0, 0},
	{"bom alone", "\ufeff", "", 0, 3},
	{"half a bom alone", "\xef\xbb", "", 0, 0},
	{"exactly max", "data: " + strings.Repeat("x", max-8) + "\n\n", `[0,40) "` + strings.Repeat("x", max-8) + `"`, 0, 40},
	{"one more than max", "data: " + strings.Repeat("x", max-7) + "\n\ndata: b\n\n", "[0,41) oversized\n[41,50) \"b\"", 0, 50},
	{"exactly max with crlf", "data: " + strings.Repeat("x", max-9) + "\r\n\r\n", `[0,41) "` + strings.Repeat("x", max-9) + `"`, 0, 41},
	{"oversized by many lines", strings.Repeat("data: a\n", 9) + "event: late\n\ndata: b\n\n", "[0,85) oversized\n[85,94) \"b\"", 0, 94},
	{"oversized after its name", "event: early\ndata: " + strings.Repeat("x", max) + "\n\n", `[0,61) "early" oversized`, 0, 61},
	{"oversized and cut", "data: a\n\ndata: " + strings.Repeat("x", max), "[0,9) \"a\"\n[9,55) oversized", 0, 9},
	{"a long comment is no event", ": " + strings.Repeat("x", 3*max) + "\ndata: a\n\n", `[123,132) "a"`, 1, 132},
	{"a long comment inside an event", "data: a\n: " + strings.Repeat("x", max) + "\n\n", `[0,52) oversized`, 1, 52},
}

// max is the Max of the small tests.
const max = 40

// run pushes the parts of in between the cuts and checks what holds after every push.
func run(t testing.TB, in []byte, most int, cuts ...int) (events []event, safe, comments int64) {
	t.Helper()
	s := Splitter{Max: most}
	var ev Event
	from := 0
	for _, cut := range append(cuts, len(in)) {
		p := bytes.Clone(in[from:cut])
		s.Push(p)
		for s.Next(&ev) {
			events = append(events, keep(&ev))
		}
		for i := range p { // the bytes belong to the caller again
			p[i] = '#'
		}
		from = cut
		if s.Safe() < safe || s.Safe() > int64(cut) {
			t.Fatalf("cut at %v: safe went from %d to %d of %d", cuts, safe, s.Safe(), cut)
		}
		if safe = s.Safe(); len(events) > 0 && safe < events[len(events)-1].end {
			t.Fatalf("cut at %v: safe %d before the end of %v", cuts, safe, events[len(events)-1])
		}
		if want := reference(in[:cut], most).safe; safe != want {
			t.Fatalf("cut at %v: after %d bytes safe is %d, want %d", cuts, cut, safe, want)
		}
	}
	if s.Finish(&ev) {
		events = append(events, keep(&ev))
	}
	if s.Finish(&ev) || s.Next(&ev) {
		t.Fatalf("cut at %v: an event after the end: %v", cuts, keep(&ev))
	}
	if s.Safe() != int64(len(in)) {
		t.Fatalf("cut at %v: safe %d after Finish", cuts, s.Safe())
	}
	any := slices.ContainsFunc(events, func(e event) bool { return e.oversized })
	if any && !s.Oversized() {
		t.Fatalf("cut at %v: Oversized is false", cuts)
	}
	return events, safe, s.Comments()
}

// same compares events; an LF of a CRLF that came in a later push may lie outside.
func same(in []byte, got, want []event) bool {
	return slices.EqualFunc(got, want, func(g, w event) bool {
		if g.end == w.end-1 && in[g.end] == '\n' && in[g.end-1] == '\r' {
			g.end++
		}
		return g == w
	})
}

func TestSplitter(t *testing.T) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := []byte(tc.in)
			whole, safe, comments := run(t, in, max)
			var lines []string
			for _, e := range whole {
				lines = append(lines, e.String())
			}
			if got := strings.Join(lines, "\n"); got != tc.want || safe != tc.safe || comments != tc.comments {
				t.Fatalf("safe %d, want %d; %d comments, want %d\n got %s\nwant %s", safe, tc.safe, comments, tc.comments, got, tc.want)
			}
			var bytewise []int
			for i := range in {
				bytewise = append(bytewise, i)
				for _, cuts := range [][]int{{i}, {i, i}, {i, min(i+1, len(in))}, {i / 2, i}} {
					if got, _, n := run(t, in, max, cuts...); !same(in, got, whole) || n != comments {
						t.Fatalf("cut at %v: %v, %d comments; want %v, %d", cuts, got, n, whole, comments)
					}
				}
			}
			if got, _, n := run(t, in, max, bytewise...); !same(in, got, whole) || n != comments {
				t.Fatalf("byte by byte: %v, %d comments; want %v, %d", got, n, whole, comments)
			}
		})
	}
}

func TestSplitterCRLFSplitAcrossReads(t *testing.T) {
	var s Splitter
	var ev Event
	s.Push([]byte("data: a\r\n\r"))
	if !s.Next(&ev) || string(ev.Data) != "a" || ev.End != 10 {
		t.Fatalf("the last event waits for the next read: %v", keep(&ev))
	}
	if s.Next(&ev) || s.Safe() != 10 {
		t.Fatalf("safe %d", s.Safe())
	}
	s.Push([]byte("\n"))
	if s.Next(&ev) || s.Safe() != 11 {
		t.Fatalf("the LF that belongs to the CR is held back: safe %d", s.Safe())
	}
	s.Push([]byte("data: b\n\n"))
	if !s.Next(&ev) || string(ev.Data) != "b" || ev.Start != 11 {
		t.Fatalf("%v", keep(&ev))
	}
}

func TestSplitterSafe(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     int64
	}{
		{"a complete event", "data: a\n\n", 9},
		{"an event without its blank line", "data: a\n", 0},
		{"the beginning of a line behind an event", "data: a\n\nd", 9},
		{"a field that means nothing may begin an event", "data: a\n\nid: 1\n", 9},
		{"a complete comment line", ": a\n", 4},
		{"an unfinished comment line", ": a\n: b", 4},
		{"a comment line inside an event", "data: a\n: b\n", 0},
		{"blank lines", "\n\n\r\n", 4},
		{"a byte-order mark", "\ufeff", 3},
		{"a part of a byte-order mark", "\xef\xbb", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, safe, _ := run(t, []byte(tc.in), max); safe != tc.want {
				t.Errorf("safe %d, want %d", safe, tc.want)
			}
		})
	}
}

func TestSplitterSeesOversizedBeforeItEnds(t *testing.T) {
	s := Splitter{Max: max}
	var ev Event
	s.Push([]byte("data: " + strings.Repeat("x", max-6)))
	if s.Next(&ev) || s.Oversized() {
		t.Fatal("too early")
	}
	s.Push([]byte("x"))
	if s.Next(&ev) || !s.Oversized() || s.Safe() != 0 {
		t.Fatalf("oversized %v, safe %d", s.Oversized(), s.Safe())
	}
	if s.line != nil || s.dataBuf != nil {
		t.Error("the bytes are still kept")
	}
}

func TestSplitterPushWithoutNext(t *testing.T) {
	var s Splitter
	var ev Event
	for _, p := range []string{"data: a\n\nda", "ta: b\n", "", "\ndata: c\n"} {
		s.Push([]byte(p))
	}
	var got []string
	for s.Next(&ev) {
		got = append(got, keep(&ev).String())
	}
	if s.Finish(&ev) {
		got = append(got, keep(&ev).String())
	}
	if want := `[0,9) "a" [9,18) "b" [18,26) "c"`; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// A long line is not scanned again for every push: this test would take minutes.
func TestSplitter8MiBLine(t *testing.T) {
	for step, size := range map[int]int{1: 256 << 10, 32 << 10: 8 << 20, 16 << 20: 8 << 20} {
		for _, in := range [][]byte{
			[]byte("data: " + strings.Repeat("x", size) + "\n\n"),
			[]byte("data: " + strings.Repeat("x", size) + "\r\r"),
			[]byte(strings.Repeat("data: y\r", size/64) + "\r"),
		} {
			var s Splitter
			var ev Event
			count := 0
			for p := range slices.Chunk(in, step) {
				s.Push(p)
				for s.Next(&ev) {
					if count++; ev.End != int64(len(in)) || len(ev.Data) < size/64 {
						t.Fatalf("[%d,%d) with %d bytes", ev.Start, ev.End, len(ev.Data))
					}
				}
			}
			if count != 1 || s.Oversized() {
				t.Fatalf("%d events, oversized %v", count, s.Oversized())
			}
		}
	}
}

func TestSplitterAllocatesNothing(t *testing.T) {
	whole := []byte("event: e\ndata: {\"a\":1}\n\n: ping\n\ndata: x\ndata: y\n\n")
	for _, step := range []int{1, 7, len(whole)} {
		var s Splitter
		var ev Event
		if n := testing.AllocsPerRun(20, func() {
			for i := 0; i < len(whole); i += step {
				s.Push(whole[i:min(i+step, len(whole))])
				for s.Next(&ev) {
				}
			}
		}); n != 0 {
			t.Errorf("in steps of %d: %v allocations", step, n)
		}
	}
}

func TestSplitterDoesNotCopyAWholeEvent(t *testing.T) {
	p := []byte("event: e\ndata: a\n\n")
	var s Splitter
	var ev Event
	s.Push(p)
	if !s.Next(&ev) || &ev.Name[0] != &p[7] || &ev.Data[0] != &p[15] {
		t.Error("name or data are copies")
	}
}

// fixtures returns the recorded streams.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(names) == 0 {
		t.Fatalf("no recorded streams (%v)", err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = b
	}
	return all
}

func TestSplitterOnRecordedStreams(t *testing.T) {
	for name, in := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			want := reference(in, defaultMax).events
			if n := bytes.Count(in, []byte("data: ")); len(want) == 0 || len(want) > n {
				t.Fatalf("%d events, %d data lines", len(want), n)
			}
			for _, style := range []string{"\n", "\r\n", "\r"} {
				in := bytes.ReplaceAll(in, []byte("\n"), []byte(style))
				want := reference(in, defaultMax).events
				for _, step := range []int{5, 512, len(in)} {
					var got []event
					var s Splitter
					var ev Event
					for p := range slices.Chunk(in, step) {
						s.Push(p)
						for s.Next(&ev) {
							got = append(got, keep(&ev))
						}
					}
					if s.Finish(&ev) {
						got = append(got, keep(&ev))
					}
					if !same(in, got, want) {
						t.Fatalf("lines end with %q, steps of %d: %d events, want %d", style, step, len(got), len(want))
					}
				}
			}
		})
	}
}
