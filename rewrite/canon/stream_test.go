package canon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Shorthands for the events of a stream.
func start() Event                 { return Event{Kind: Start, ID: Text("id"), Model: Text("m"), Usage: NoUsage()} }
func open(i int, t PartType) Event { return Event{Kind: Open, Part: i, Type: t} }
func delta(i int, s string) Event  { return Event{Kind: Delta, Part: i, Text: Text(s)} }
func closed(i int) Event           { return Event{Kind: Close, Part: i} }
func ended() Event                 { return Event{Kind: Ended, Stop: Stop{Reason: StopEnd}} }
func failed() Event                { return Event{Kind: Fail, Problem: &Problem{Status: 500, Message: "m"}} }

func fold(t *testing.T, events []Event) *Answer {
	t.Helper()
	var f Folder
	for i := range events {
		if err := f.Event(&events[i]); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	return f.Answer()
}

func TestFolderGrammar(t *testing.T) {
	ping, counted := Event{Kind: Ping}, Event{Kind: Counted}
	for _, c := range []struct {
		name   string
		events []Event
		want   string // what the error of the last event says, "" none
	}{
		{"nothing", nil, ""},
		{"the smallest answer", []Event{start(), ended()}, ""},
		{"a ping in front of the start", []Event{ping, start(), ping, ended()}, ""},
		{"a failure in front of the start", []Event{ping, failed()}, ""},
		{"parts one by one", []Event{start(), open(0, TextPart), delta(0, "a"), closed(0), open(1, TextPart), closed(1), ended()}, ""},
		{"parts that overlap", []Event{start(), open(0, TextPart), open(1, CallPart), delta(1, "{"), delta(0, "a"), closed(1), closed(0), ended()}, ""},
		{"usage and ping anywhere", []Event{start(), counted, open(0, TextPart), counted, ping, closed(0), counted, ended()}, ""},
		{"a failure inside a part", []Event{start(), open(0, TextPart), failed()}, ""},
		{"seal and cite", []Event{start(), open(0, ReasoningPart), {Kind: Seal, Text: Text("s")}, {Kind: Cite, Raw: Raw("{}")}, closed(0), ended()}, ""},

		{"a part in front of the start", []Event{open(0, TextPart)}, "open before the start of the stream"},
		{"usage in front of the start", []Event{counted}, "counted before the start of the stream"},
		{"an end without a start", []Event{ended()}, "ended before the start of the stream"},
		{"a second start", []Event{start(), start()}, "second start of the stream"},
		{"a number left out", []Event{start(), open(1, TextPart)}, "part 1 opened as number 0"},
		{"a number again", []Event{start(), open(0, TextPart), closed(0), open(0, TextPart)}, "part 0 opened as number 1"},
		{"a negative number", []Event{start(), delta(-1, "a")}, "delta of part -1, which was never opened"},
		{"a delta of no part", []Event{start(), delta(0, "a")}, "delta of part 0, which was never opened"},
		{"a delta behind the close", []Event{start(), open(0, TextPart), closed(0), delta(0, "a")}, "delta of part 0 after its close"},
		{"a second close", []Event{start(), open(0, TextPart), closed(0), closed(0)}, "close of part 0 after its close"},
		{"an end inside a part", []Event{start(), open(0, TextPart), ended()}, "end while part 0 is open"},
		{"an end without a reason", []Event{start(), {Kind: Ended}}, "end without a reason"},
		{"something behind the end", []Event{start(), ended(), ping}, "ping after the end of the stream"},
		{"something behind a failure", []Event{start(), failed(), ended()}, "ended after the end of the stream"},
		{"a failure without a problem", []Event{start(), {Kind: Fail}}, "fail without a problem"},
		{"a text for a hosted tool", []Event{start(), open(0, HostedPart), delta(0, "a")}, "delta of part 0, which has no text"},
		{"a seal of a text", []Event{start(), open(0, TextPart), {Kind: Seal}}, "seal of part 0, which is no reasoning"},
		{"a summary of a text", []Event{start(), open(0, TextPart), {Kind: Delta, Summary: true}}, "summary of part 0, which is no reasoning"},
		{"a part that no model says", []Event{start(), open(0, ResultPart)}, "part 0 of a type that no answer has: 6"},
		{"logprobs of another shape", []Event{start(), open(0, TextPart), {Kind: Delta, Logprobs: Raw("{}")}}, "logprobs of part 0 are no array"},
		{"no event at all", []Event{{}}, "no kind before the start of the stream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f Folder
			for i := range c.events {
				err := f.Event(&c.events[i])
				switch last := i == len(c.events)-1; {
				case err == nil && last && c.want != "":
					t.Errorf("accepted")
				case err != nil && (!last || err.Error() != c.want):
					t.Errorf("event %d: got %q, want %q", i, err, c.want)
				}
			}
		})
	}
}

func TestFolderKeepsWhatWasSaid(t *testing.T) {
	usage := Usage{1, 2, 3, 4, 5, 0}
	got := fold(t, []Event{
		{Kind: Start, ID: Text("id"), Model: Text(`m\u0041`), Created: Raw("7"), Usage: NoUsage()},
		{Kind: Open, Type: ReasoningPart, ItemID: Text("rs_1")},
		{Kind: Open, Part: 1, Type: TextPart},
		{Kind: Delta, Part: 1, Text: Text("b"), Logprobs: Raw(`[{"token":"b"}]`)},
		{Kind: Delta, Text: Text("a")}, {Kind: Delta, Text: Text(`\n`)}, {Kind: Delta, Text: Text("s"), Summary: true},
		{Kind: Seal, Text: Text("first"), SignedBy: Messages}, {Kind: Seal, Text: Text("last"), SignedBy: Responses},
		{Kind: Delta, Part: 1, Text: Text("c"), Logprobs: Raw(`[ ]`)},
		{Kind: Cite, Part: 1, Raw: Raw(`{"x":1}`)},
		closed(1), closed(0),
		{Kind: Open, Part: 2, Type: TextPart}, {Kind: Delta, Part: 2, Logprobs: Raw(`[1, 2]`)}, closed(2),
		{Kind: Open, Part: 3, Type: CallPart, Call: Call{ID: Text("c1"), Name: Text("f"), Arguments: Text("no")}}, delta(3, `{\"a\"`), delta(3, `:1}`), closed(3),
		{Kind: Open, Part: 4, Type: RedactedPart, Text: Text("sealed"), SignedBy: Messages}, closed(4),
		{Kind: Open, Part: 5, Type: HostedPart, Raw: Raw(`{"t":1}`)}, closed(5),
		{Kind: Open, Part: 6, Type: TextPart}, closed(6),
		{Kind: Counted, Usage: Usage{9, 9, 9, 9, 9, 0}}, {Kind: Counted, Usage: usage},
		{Kind: Ended, Stop: Stop{StopSequence, Text("END"), Text("stop")}},
	})
	want := &Answer{
		ID: Text("id"), Model: Text(`m\u0041`), Created: Raw("7"), Usage: usage, Stop: Stop{StopSequence, Text("END"), Text("stop")},
		Logprobs: Raw(`[{"token":"b"},1, 2]`),
		Parts: []Part{
			{Type: ReasoningPart, Text: Text(`a\n`), Summary: Text("s"), Signature: Text("last"), SignedBy: Responses, ItemID: Text("rs_1")},
			{Type: TextPart, Text: Text("bc"), Cites: []Raw{Raw(`{"x":1}`)}},
			{Type: TextPart, Text: Text{}},
			{Type: CallPart, Call: Call{ID: Text("c1"), Name: Text("f"), Arguments: Text(`{\"a\":1}`)}},
			{Type: RedactedPart, Signature: Text("sealed"), SignedBy: Messages},
			{Type: HostedPart, Raw: Raw(`{"t":1}`)},
			{Type: TextPart},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFolderOwnsItsAnswer(t *testing.T) {
	var f Folder
	frame := []byte("abc")
	for _, e := range []Event{start(), open(0, TextPart), {Kind: Delta, Text: frame}} {
		if err := f.Event(&e); err != nil {
			t.Fatal(err)
		}
	}
	early := f.Answer()
	copy(frame, "xyz")
	e := delta(0, "def")
	if err := f.Event(&e); err != nil {
		t.Fatal(err)
	}
	if got := string(early.Parts[0].Text); got != "abc" {
		t.Errorf("an answer must not change when the frame or the stream goes on: %q", got)
	}
	_ = append(early.Parts[0].Text, "???"...)
	if got := string(f.Answer().Parts[0].Text); got != "abcdef" {
		t.Errorf("who appends to an answer must not write into the folder: %q", got)
	}
}

func TestReplayStops(t *testing.T) {
	a := fold(t, []Event{start(), open(0, TextPart), delta(0, "a"), closed(0), ended()})
	stop := errors.New("stop")
	for n := range 5 {
		seen := 0
		err := a.Replay(func(*Event) error {
			if seen++; seen > n {
				return stop
			}
			return nil
		})
		if err != stop || seen != n+1 {
			t.Errorf("after %d: %v, %d", n, err, seen)
		}
	}
}

func sequence(s *Sequencer, events []Event) (out []Event, err error) {
	for i := range events {
		if out, err = s.Next(out, &events[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

func show(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e.Kind {
		case Open, Seal, Cite, Close:
			fmt.Fprintf(&b, "%v%d ", e.Kind, e.Part)
		case Delta:
			fmt.Fprintf(&b, "%d:%s ", e.Part, e.Text)
		default:
			fmt.Fprintf(&b, "%v ", e.Kind)
		}
	}
	return strings.TrimSpace(b.String())
}

func TestSequencer(t *testing.T) {
	ping := Event{Kind: Ping}
	for _, c := range []struct {
		name   string
		events []Event
		want   string
	}{
		{"no overlap", []Event{start(), open(0, TextPart), delta(0, "a"), closed(0), open(1, CallPart), delta(1, "b"), closed(1), ended()},
			"start open0 0:a close0 open1 1:b close1 ended"},
		{"the open part is not delayed", []Event{start(), open(0, TextPart), open(1, CallPart), delta(1, "x"), delta(0, "a")}, "start open0 0:a"},
		{"a part that waits comes whole, its pieces joined", []Event{open(0, TextPart), open(1, CallPart), delta(1, "x"), delta(0, "a"), delta(1, "y"), closed(1), closed(0), ended()},
			"open0 0:a close0 open1 1:xy close1 ended"},
		{"a part whose turn comes in the middle goes on live", []Event{open(0, TextPart), open(1, CallPart), delta(1, "x"), closed(0), delta(1, "y"), delta(1, "z"), closed(1)},
			"open0 close0 open1 1:x 1:y 1:z close1"},
		{"three parts close in the opposite order", []Event{open(0, TextPart), open(1, TextPart), open(2, TextPart), delta(2, "c"), closed(2), delta(1, "b"), closed(1), delta(0, "a"), closed(0)},
			"open0 0:a close0 open1 1:b close1 open2 2:c close2"},
		{"the part behind an open one keeps waiting", []Event{open(0, TextPart), open(1, TextPart), open(2, TextPart), closed(2), closed(0), delta(1, "b"), closed(1), ended()},
			"open0 close0 open1 1:b close1 open2 close2 ended"},
		{"a text and a summary are not joined", []Event{open(0, TextPart), open(1, ReasoningPart), delta(1, "a"), {Kind: Delta, Part: 1, Text: Text("s"), Summary: true}, delta(1, "b"), closed(0)},
			"open0 close0 open1 1:a 1:s 1:b"},
		{"ping and usage pass", []Event{open(0, TextPart), open(1, TextPart), ping, {Kind: Counted}}, "open0 ping counted"},
		{"a failure passes at once", []Event{open(0, TextPart), open(1, TextPart), delta(1, "x"), failed()}, "open0 fail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Sequencer
			got, err := sequence(&s, c.events)
			if err != nil || show(got) != c.want {
				t.Errorf("%v\n got %s\nwant %s", err, show(got), c.want)
			}
		})
	}
}

func TestSequencerRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []Event
	}{
		{"a delta of no part", []Event{delta(0, "a")}},
		{"a delta of a part to come", []Event{open(0, TextPart), delta(1, "a")}},
		{"a delta of a part that has closed", []Event{open(0, TextPart), closed(0), delta(0, "a")}},
		{"a delta of a waiting part that has closed", []Event{open(0, TextPart), open(1, TextPart), closed(1), delta(1, "a")}},
		{"a part opened twice", []Event{open(0, TextPart), open(0, TextPart)}},
		{"a waiting part opened twice", []Event{open(0, TextPart), open(1, TextPart), open(1, TextPart)}},
		{"a part left out", []Event{open(0, TextPart), open(2, TextPart)}},
		{"a first part that is not the first", []Event{open(1, TextPart)}},
		{"a negative part", []Event{open(-1, TextPart)}},
		{"an end inside a part", []Event{open(0, TextPart), ended()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Sequencer
			if got, err := sequence(&s, c.events); err == nil {
				t.Errorf("accepted: %s", show(got))
			}
		})
	}
}

func TestSequencerIsBounded(t *testing.T) {
	var s Sequencer
	piece := delta(1, strings.Repeat("x", 1<<20))
	if _, err := sequence(&s, []Event{open(0, TextPart), open(1, TextPart)}); err != nil {
		t.Fatal(err)
	}
	for i := range 15 {
		if _, err := s.Next(nil, &piece); err != nil {
			t.Fatalf("%d MiB: %v", i, err)
		}
	}
	if _, err := sequence(&s, []Event{closed(0), closed(1), open(2, TextPart), open(3, TextPart)}); err != nil {
		t.Fatal(err)
	}
	piece.Part = 3
	for i := range 15 {
		if _, err := s.Next(nil, &piece); err != nil {
			t.Fatalf("what was let go must not count: %d MiB, %v", i, err)
		}
	}
	if _, err := sequence(&s, []Event{piece, piece}); err == nil {
		t.Errorf("more than 16 MiB were held back")
	}
	var many Sequencer
	for i := range maxHeld/heldEvent + 10 {
		e := open(i, TextPart)
		if _, err := many.Next(nil, &e); err != nil {
			return
		}
	}
	t.Errorf("parts without text were held back without a bound")
}

func TestSequencerAllocatesNothingWithoutOverlap(t *testing.T) {
	events := []Event{start(), open(0, TextPart), delta(0, "a"), closed(0), open(1, CallPart), delta(1, "b"), closed(1), ended()}
	dst := make([]Event, 0, 4)
	if n := testing.AllocsPerRun(100, func() {
		var s Sequencer
		for i := range events {
			if _, err := s.Next(dst, &events[i]); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSequencerOwnsWhatItHolds(t *testing.T) {
	var s Sequencer
	frame := []byte("abc")
	if _, err := sequence(&s, []Event{open(0, TextPart), open(1, TextPart), {Kind: Delta, Part: 1, Text: frame}}); err != nil {
		t.Fatal(err)
	}
	copy(frame, "xyz")
	if got, err := sequence(&s, []Event{closed(0)}); err != nil || show(got) != "close0 open1 1:abc" {
		t.Errorf("%s, %v", show(got), err)
	}
}

// stream draws a legal stream, overlap and all.
func stream(t *rapid.T) []Event {
	text := func(label string) Text { return Text(rapid.StringMatching(`[a-c]{0,3}`).Draw(t, label)) }
	raw := rapid.SampledFrom([]Raw{nil, Raw("{}"), Raw("[1]")})
	logprobs := rapid.SampledFrom([]Raw{nil, nil, Raw("[]"), Raw("[1]"), Raw("[ 2,3 ]")})
	count := rapid.Int64Range(-1, 3)
	usage := func() Usage {
		return Usage{count.Draw(t, "n"), count.Draw(t, "n"), count.Draw(t, "n"), count.Draw(t, "n"), count.Draw(t, "n"), 0}
	}
	begin := start()
	begin.Usage = usage()
	events := []Event{begin}
	var types []PartType
	var alive []int
	for range rapid.IntRange(0, 40).Draw(t, "steps") {
		kind := rapid.SampledFrom([]Kind{Ping, Open, Delta, Delta, Delta, Seal, Cite, Close, Counted}).Draw(t, "kind")
		e := Event{Kind: kind}
		switch kind {
		case Open:
			e.Part, e.Raw = len(types), raw.Draw(t, "raw")
			e.Type = rapid.SampledFrom([]PartType{TextPart, RefusalPart, ReasoningPart, RedactedPart, CallPart, HostedPart, UnknownPart}).Draw(t, "type")
			switch e.Type {
			case CallPart:
				e.Call = Call{ID: text("id"), Name: text("name"), Custom: rapid.Bool().Draw(t, "custom")}
			case RedactedPart:
				e.Text, e.SignedBy = text("sealed"), Messages
			}
			types, alive = append(types, e.Type), append(alive, e.Part)
		case Counted:
			e.Usage = usage()
		case Delta, Seal, Cite, Close:
			if len(alive) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(alive)-1).Draw(t, "part")
			e.Part = alive[at]
			typ := types[e.Part]
			switch {
			case kind == Close:
				alive = slices.Delete(alive, at, at+1)
			case kind == Cite:
				e.Raw = Raw("{}")
			case kind == Seal && typ == ReasoningPart:
				e.Text, e.SignedBy = text("seal"), Messages
			case kind == Delta && typ <= ReasoningPart, kind == Delta && typ == CallPart:
				e.Text = text("text")
				e.Summary = typ == ReasoningPart && rapid.Bool().Draw(t, "summary")
				if typ == TextPart {
					e.Logprobs = logprobs.Draw(t, "logprobs")
				}
			default:
				continue
			}
		}
		events = append(events, e)
	}
	if rapid.Bool().Draw(t, "fails") {
		return append(events, failed())
	}
	for _, i := range alive {
		events = append(events, closed(i))
	}
	return append(events, ended())
}

func TestAnyStream(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := stream(rt)
		var f Folder
		for i := range events {
			if err := f.Event(&events[i]); err != nil {
				rt.Fatalf("a legal stream is accepted: %v in %s", err, show(events[:i+1]))
			}
		}
		want := f.Answer()

		var s Sequencer
		sequenced, err := sequence(&s, events)
		if err != nil {
			rt.Fatalf("%v in %s", err, show(events))
		}
		opened, alive := 0, 0
		var g Folder
		for i := range sequenced {
			switch sequenced[i].Kind {
			case Open:
				opened, alive = opened+1, alive+1
			case Close:
				alive--
			}
			if alive > 1 {
				rt.Fatalf("more than one part is open: %s", show(sequenced[:i+1]))
			}
			if err := g.Event(&sequenced[i]); err != nil {
				rt.Fatalf("what a Sequencer gives is legal: %v in %s", err, show(sequenced[:i+1]))
			}
		}
		if want.Failed == nil {
			if d := cmp.Diff(want, g.Answer()); d != "" {
				rt.Fatalf("a Sequencer changes nothing that is said (-want +got):\n%s", d)
			}
		}

		var again Folder
		if err := want.Replay(again.Event); err != nil {
			rt.Fatalf("a replay is legal: %v", err)
		}
		if d := cmp.Diff(want, again.Answer()); d != "" {
			rt.Fatalf("the fold of a replay is the answer (-want +got):\n%s", d)
		}
	})
}
