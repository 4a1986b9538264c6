package responses

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
	"rolltap/rewrite/sse"
)

func options(reasoningOutput string) dialect.Options {
	p := dialect.DefaultPolicy()
	p.ReasoningOutput = reasoningOutput
	return dialect.Options{Policy: &p, Losses: new(canon.Losses), ID: "x7", Created: 1700000000}
}

// everything is a client that wants to see all there is.
func everything() *canon.Request {
	return &canon.Request{From: canon.Responses, Model: canon.Text("m"), Body: canon.Raw(`{"model":"m"}`), Show: canon.Show{Logprobs: true, Encrypted: true}}
}

// frames splits a stream and hands its events to f.
func frames(stream []byte, f func(name, data []byte)) {
	var split sse.Splitter
	var ev sse.Event
	split.Push(stream)
	for split.Next(&ev) {
		f(ev.Name, ev.Data)
	}
}

// decode decodes a stream into events of their own, and into what they say.
func decode(t *testing.T, stream []byte, o dialect.Options) ([]canon.Event, *canon.Answer) {
	t.Helper()
	d := responses{}.NewDecoder(o)
	var all, some []canon.Event
	var folder canon.Folder
	frames(stream, func(name, data []byte) {
		var err error
		if some, err = d.Frame(some[:0], name, data); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for i := range some {
			if err := folder.Event(&some[i]); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			all = append(all, own(some[i]))
		}
	})
	if err := d.Finish(); err != nil {
		t.Fatalf("finish: %v", err)
	}
	return all, folder.Answer()
}

func own(e canon.Event) canon.Event {
	e.Text, e.Raw, e.Logprobs = bytes.Clone(e.Text), bytes.Clone(e.Raw), bytes.Clone(e.Logprobs)
	e.ID, e.Model, e.Created, e.ItemID = bytes.Clone(e.ID), bytes.Clone(e.Model), bytes.Clone(e.Created), bytes.Clone(e.ItemID)
	e.Call = canon.Call{ID: bytes.Clone(e.Call.ID), Name: bytes.Clone(e.Call.Name), Namespace: bytes.Clone(e.Call.Namespace), Custom: e.Call.Custom}
	e.Stop = canon.Stop{Reason: e.Stop.Reason, Sequence: bytes.Clone(e.Stop.Sequence), Native: bytes.Clone(e.Stop.Native)}
	return e
}

func encode(events []canon.Event, asked *canon.Request, o dialect.Options) []byte {
	e := responses{}.NewEncoder(asked, o)
	var out []byte
	for i := range events {
		out = e.Append(out, &events[i])
	}
	return out
}

func folded(t *testing.T, events []canon.Event) *canon.Answer {
	t.Helper()
	var f canon.Folder
	for i := range events {
		if err := f.Event(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return f.Answer()
}

// describeEvent leaves out what is made anew for each client: ids, the time and the model's name.
func describeEvent(e canon.Event) string {
	s := fmt.Sprintf("%v part %d type %d", e.Kind, e.Part, e.Type)
	switch e.Kind {
	case canon.Open:
		if e.Type != canon.HostedPart && e.Type != canon.UnknownPart {
			e.Raw = nil
		}
		s += fmt.Sprintf(" call %q %q %q %v raw %q", e.Call.ID, e.Call.Name, e.Call.Namespace, e.Call.Custom, e.Raw)
	case canon.Delta, canon.Seal, canon.Cite:
		s += fmt.Sprintf(" %q summary %v by %q raw %q logprobs %s", e.Text, e.Summary, e.SignedBy, e.Raw, e.Logprobs)
	case canon.Start, canon.Counted:
		s += fmt.Sprintf(" usage %+v", e.Usage)
	case canon.Ended:
		s += fmt.Sprintf(" %d %q", e.Stop.Reason, e.Stop.Native)
	case canon.Fail:
		s += fmt.Sprintf(" %+v", *e.Problem)
	}
	return s
}

func describeEvents(events []canon.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(describeEvent(e) + "\n")
	}
	return b.String()
}

// recordedAnswers are the recorded streams that have an end.
func recordedAnswers(t testing.TB) map[string][]byte {
	all := dialecttest.Streams(t)
	maps.DeleteFunc(all, func(_ string, s []byte) bool { return !bytes.Contains(s, []byte("event: response.completed")) })
	if len(all) < 8 {
		t.Fatalf("only %d recorded streams", len(all))
	}
	return all
}

func TestARecordedStreamComesBackTheSame(t *testing.T) {
	for name, stream := range recordedAnswers(t) {
		t.Run(name, func(t *testing.T) {
			first, _ := decode(t, stream, options("content"))
			if len(first) < 5 {
				t.Fatalf("only %d events", len(first))
			}
			again := encode(first, everything(), options("content"))
			checkStream(t, again)
			second, _ := decode(t, again, options("content"))
			if got, want := describeEvents(second), describeEvents(first); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// sayings are streams that were not recorded; all end well.
func sayings() map[string][]canon.Event {
	start := canon.Event{Kind: canon.Start, ID: canon.Text("u"), Model: canon.Text("um"), Usage: canon.NoUsage()}
	open := func(part int, kind canon.PartType) canon.Event {
		return canon.Event{Kind: canon.Open, Part: part, Type: kind}
	}
	call := func(part int, c canon.Call) canon.Event {
		return canon.Event{Kind: canon.Open, Part: part, Type: canon.CallPart, Call: c}
	}
	delta := func(part int, text string) canon.Event {
		return canon.Event{Kind: canon.Delta, Part: part, Text: canon.Text(text)}
	}
	closed := func(part int) canon.Event { return canon.Event{Kind: canon.Close, Part: part} }
	seal := func(part int, text string, by canon.Dialect) canon.Event {
		return canon.Event{Kind: canon.Seal, Part: part, Text: canon.Text(text), SignedBy: by}
	}
	end := func(r canon.StopReason) canon.Event {
		return canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: r}}
	}
	counted := canon.Event{Kind: canon.Counted, Usage: canon.Usage{Prompt: 5, Completion: 7, Cached: 3, CacheWrite: canon.Unknown, Reasoning: 2}}
	custom := canon.Call{ID: canon.Text("c2"), Name: canon.Text("exec"), Custom: true}
	spaced := canon.Call{ID: canon.Text("c1"), Name: canon.Text("get_weather"), Namespace: canon.Text("mcp__weather")}
	scored := delta(0, "Hi")
	scored.Logprobs = canon.Raw(`[{"token":"Hi","logprob":-0.10,"bytes":[72,105],"top_logprobs":[{"token":"Hi","logprob":-1e-1,"bytes":[72,105]}]}]`)
	ending := delta(0, "")
	ending.Logprobs = canon.Raw(`[{"token":"","logprob":-2,"bytes":null,"top_logprobs":[]}]`)
	summary := canon.Event{Kind: canon.Delta, Part: 0, Text: canon.Text("in short"), Summary: true}
	return map[string][]canon.Event{
		"worked":      worked(),
		"nothing":     {start, end(canon.StopLength)},
		"empty text":  {start, open(0, canon.TextPart), closed(0), counted, end(canon.StopEnd)},
		"refusal":     {start, open(0, canon.RefusalPart), delta(0, "no"), delta(0, "pe"), closed(0), counted, end(canon.StopFilter)},
		"calls":       {start, call(0, spaced), call(1, custom), delta(0, `{\"a\"`), delta(1, `let\n`), delta(0, `:1}`), closed(1), delta(0, " "), closed(0), end(canon.StopEnd)},
		"broken call": {start, call(0, spaced), delta(0, `{\"a\":\"`), closed(0), counted, end(canon.StopLength)},
		"sealed":      {start, open(0, canon.ReasoningPart), delta(0, "hm"), seal(0, "SEAL", ""), seal(0, "other", canon.Messages), closed(0), end(canon.StopEnd)},
		"only sealed": {start, open(0, canon.ReasoningPart), seal(0, "SEAL", canon.Responses), closed(0), end(canon.StopEnd)},
		"summary too": {start, open(0, canon.ReasoningPart), delta(0, "long"), summary, closed(0), end(canon.StopEnd)},
		"surrogates":  {start, open(0, canon.TextPart), delta(0, `\ud83d`), delta(0, `\ude00`), closed(0), end(canon.StopSequence)},
		"scored":      {start, open(0, canon.TextPart), scored, ending, closed(0), counted, end(canon.StopEnd)},
		"left out": {start, {Kind: canon.Open, Part: 0, Type: canon.RedactedPart, Text: canon.Text("S"), SignedBy: canon.Messages}, closed(0),
			{Kind: canon.Open, Part: 1, Type: canon.HostedPart, Raw: canon.Raw(`{"type":"server_tool_use"}`)}, closed(1),
			{Kind: canon.Open, Part: 2, Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"x"}`)}, closed(2), open(3, canon.TextPart), delta(3, "a"), closed(3), end(canon.StopEnd)},
		"hosted": {start, {Kind: canon.Open, Part: 0, Type: canon.HostedPart, Raw: canon.Raw("{\"type\":\"web_search_call\",\n \"id\":\"ws_1\"}")}, closed(0), end(canon.StopPause)},
		"cited": {start, open(0, canon.TextPart), delta(0, "see"),
			{Kind: canon.Cite, Part: 0, Raw: canon.Raw(`{"type":"url_citation","url_citation":{"url":"https://a.example","start_index":0}}`)},
			{Kind: canon.Cite, Part: 0, Raw: canon.Raw(`{"type":"char_location"}`)},
			{Kind: canon.Cite, Part: 0, Raw: canon.Raw("{\"type\":\"file_citation\",\r\n\"file_id\":\"f\"}")}, closed(0), end(canon.StopEnd)},
	}
}

// worked is the worked stream of wire.md 5.9.
func worked() []canon.Event {
	call := canon.Call{ID: canon.Text("call_1"), Name: canon.Text("f")}
	text := func(part int, s string) canon.Event {
		return canon.Event{Kind: canon.Delta, Part: part, Text: canon.Text(s)}
	}
	return []canon.Event{
		{Kind: canon.Start, ID: canon.Text("chatcmpl-1"), Model: canon.Text("up"), Usage: canon.NoUsage()},
		{Kind: canon.Open, Part: 0, Type: canon.ReasoningPart}, text(0, "Let"), text(0, " me"), {Kind: canon.Close, Part: 0},
		{Kind: canon.Open, Part: 1, Type: canon.TextPart}, text(1, "Hi"), {Kind: canon.Close, Part: 1},
		{Kind: canon.Open, Part: 2, Type: canon.CallPart, Call: call}, text(2, `{\"a\":`), text(2, `1}`), {Kind: canon.Close, Part: 2},
		{Kind: canon.Counted, Usage: canon.Usage{Prompt: 5, Completion: 9, Cached: canon.Unknown, CacheWrite: canon.Unknown, Reasoning: canon.Unknown}},
		{Kind: canon.Ended, Stop: canon.Stop{Reason: canon.StopEnd, Native: canon.Text("tool_calls")}},
	}
}

func TestTheWorkedStream(t *testing.T) {
	for _, output := range []string{"summary", "content", "both"} {
		t.Run(output, func(t *testing.T) {
			asked := everything()
			asked.Show = canon.Show{}
			asked.Body = canon.Raw("{\"model\":\"m\",\n\"tools\":[{\"type\":\"function\",\n \"name\":\"f\"}],\"instructions\":\"I\",\"store\":false,\"tool_choice\":\"required\",\"text\":null}")
			got := encode(worked(), asked, options(output))
			checkStream(t, got)
			file := filepath.Join("testdata", "encode", output+".sse")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAStreamSaysWhatTheUnaryAnswerSays(t *testing.T) {
	all := sayings()
	for name, stream := range recordedAnswers(t) {
		all[name], _ = decode(t, stream, options("content"))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, output := range []string{"summary", "content", "both"} {
			for _, show := range []canon.Show{{}, {Logprobs: true, Encrypted: true}} {
				t.Run(fmt.Sprint(name, " ", output, " ", show.Logprobs), func(t *testing.T) {
					asked := everything()
					asked.Show = show
					streamed, at := options(output), options(output)
					stream := encode(all[name], asked, streamed)
					checkStream(t, stream)
					unary, err := responses{}.AppendAnswer(nil, folded(t, all[name]), asked, at)
					if err != nil || !jsonx.Valid(unary) {
						t.Fatalf("%v: %s", err, unary)
					}
					if got := dialecttest.Fold(New(), stream).Response; got != string(unary) {
						t.Errorf("the stream\n%s\nthe answer\n%s", got, unary)
					}
					if got, want := fmt.Sprint(streamed.Losses.List()), fmt.Sprint(at.Losses.List()); got != want {
						t.Errorf("losses of the stream %s, of the answer %s", got, want)
					}
					// Without its end the stream says the same output.
					cut := bytes.LastIndex(stream, []byte("event: "))
					items := []byte(dialecttest.Fold(New(), stream[:cut]).Response)
					if got, want := jsonx.Get(items, "output"), jsonx.Get(unary, "output"); string(got) != string(want) {
						t.Errorf("the items\n%s\nthe answer's\n%s", got, want)
					}
				})
			}
		}
	}
}

// checkStream checks what holds for every stream that is written (wire.md 5.5, dialects.md 2.2.3).
func checkStream(t *testing.T, stream []byte) {
	t.Helper()
	n, said := int64(0), map[string]string{}
	var kinds []string
	var total int
	frames(stream, func(name, data []byte) {
		total += len("event: \ndata: \n\n") + len(name) + len(data)
		if !jsonx.Valid(data) {
			t.Fatalf("not JSON: %s", data)
		}
		kind, _ := jsonx.Text(jsonx.Get(data, "type"))
		if kind != string(name) {
			t.Errorf("event %q of type %q", name, kind)
		}
		if got, _ := jsonx.Int(jsonx.Get(data, "sequence_number")); got != n {
			t.Errorf("number %d, want %d", got, n)
		}
		if jsonx.Get(data, "error") != nil {
			t.Errorf("openai-go takes a member error, even null, for an error: %s", data)
		}
		n++
		kinds = append(kinds, kind)
		id, _ := jsonx.Text(jsonx.Get(data, "item_id"))
		base, end, _ := cutLast(kind)
		switch delta, _ := jsonx.Interior(jsonx.Get(data, "delta")); end {
		case "delta":
			said[id+base] += string(delta)
		case "done":
			for _, member := range []string{"text", "refusal", "arguments", "input"} {
				if whole, ok := jsonx.Interior(jsonx.Get(data, member)); ok && string(whole) != said[id+base] {
					t.Errorf("%s says %q, its deltas %q", kind, whole, said[id+base])
				}
			}
		}
		if usage := jsonx.Get(jsonx.Get(data, "response"), "usage"); usage != nil {
			if _, ok := jsonx.Int(jsonx.Get(usage, "total_tokens")); ok != terminal(kind) {
				t.Errorf("usage in %s: %s", kind, usage)
			}
		}
	})
	if total != len(stream) {
		t.Errorf("%d of %d bytes are events of two lines", total, len(stream))
	}
	if len(kinds) < 3 || kinds[0] != "response.created" || kinds[1] != "response.in_progress" || !terminal(kinds[len(kinds)-1]) {
		t.Errorf("%v", kinds)
	}
}

func cutLast(kind string) (before, end string, ok bool) {
	i := strings.LastIndexByte(kind, '.')
	if i < 0 {
		return kind, "", false
	}
	return kind[:i], kind[i+1:], true
}

func terminal(kind string) bool {
	return kind == "response.completed" || kind == "response.incomplete" || kind == "response.failed"
}

// A stream that is cut anywhere never ends, whatever it had said.
func TestACutStreamNeverEnds(t *testing.T) {
	for name, stream := range dialecttest.Streams(t) {
		d := responses{}.NewDecoder(options("content"))
		var events []canon.Event
		frames(stream, func(kind, data []byte) {
			if terminal(string(kind)) {
				return
			}
			var err error
			if events, err = d.Frame(events[:0], kind, data); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, e := range events {
				if e.Kind == canon.Ended || e.Kind == canon.Fail {
					t.Errorf("%s: ended by %s", name, data)
				}
			}
			if err := d.Finish(); err != io.ErrUnexpectedEOF {
				t.Errorf("%s: finish %v", name, err)
			}
		})
	}
}
