package messages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
	"rolltap/rewrite/sse"
)

// decoded is what a stream decodes to. The events are told in words, as they are valid for a moment only.
type decoded struct {
	events []string
	answer *canon.Answer
	err    error // of a frame
	end    error
	lost   string
}

// decode decodes a stream and holds its events against canon's grammar.
func decode(t testing.TB, stream string, each func(*canon.Event)) (r decoded) {
	t.Helper()
	var (
		split  sse.Splitter
		ev     sse.Event
		losses canon.Losses
		folded canon.Folder
		events []canon.Event
	)
	d := New().(dialect.Translator).NewDecoder(options(&losses))
	frame := func() {
		// A copy that is destroyed afterwards: nothing may be borrowed for longer.
		name, data := bytes.Clone(ev.Name), bytes.Clone(ev.Data)
		if events, r.err = d.Frame(events[:0], name, data); r.err == nil {
			for i := range events {
				if err := folded.Event(&events[i]); err != nil {
					t.Fatalf("not of the grammar: %v in %s", err, stream)
				}
				r.events = append(r.events, tell(&events[i]))
				if each != nil {
					each(&events[i])
				}
			}
		}
		for i := range data {
			data[i] = '#'
		}
	}
	split.Push([]byte(stream))
	for r.err == nil && split.Next(&ev) {
		frame()
	}
	if r.err == nil && split.Finish(&ev) {
		frame()
	}
	r.end, r.answer, r.lost = d.Finish(), folded.Answer(), lossLines(&losses)
	return r
}

// tell says an event in a line.
func tell(e *canon.Event) string {
	switch e.Kind {
	case canon.Start:
		return fmt.Sprintf("start %s %s %s", e.ID, e.Model, tellUsage(e.Usage))
	case canon.Open:
		return strings.TrimRight(fmt.Sprintf("open %d %s %s %s %s %s", e.Part, tellType(e.Type), e.Call.ID, e.Call.Name, e.Text, e.Raw), " ")
	case canon.Delta:
		return fmt.Sprintf("delta %d %s", e.Part, e.Text)
	case canon.Seal:
		return fmt.Sprintf("seal %d %s %s", e.Part, e.Text, e.SignedBy)
	case canon.Cite:
		return fmt.Sprintf("cite %d %s", e.Part, e.Raw)
	case canon.Close:
		return fmt.Sprintf("close %d", e.Part)
	case canon.Counted:
		return "counted " + tellUsage(e.Usage)
	case canon.Ended:
		return strings.TrimRight(fmt.Sprintf("ended %d %s %s", e.Stop.Reason, e.Stop.Native, e.Stop.Sequence), " ")
	case canon.Fail:
		return fmt.Sprintf("fail %d %q %q %s", e.Problem.Status, e.Problem.Code, e.Problem.Type, e.Problem.Message)
	}
	return e.Kind.String()
}

func tellUsage(u canon.Usage) string {
	return fmt.Sprintf("%d+%d cached %d written %d reasoning %d", u.Prompt, u.Completion, u.Cached, u.CacheWrite, u.Reasoning)
}

func tellType(p canon.PartType) string {
	switch p {
	case canon.TextPart:
		return "text"
	case canon.ReasoningPart:
		return "reasoning"
	case canon.RedactedPart:
		return "redacted"
	case canon.CallPart:
		return "call"
	case canon.HostedPart:
		return "hosted"
	case canon.UnknownPart:
		return "unknown"
	}
	return "other"
}

const (
	startTold = "start msg_1 m 17+0 cached 5 written 2 reasoning -1\n"
	close0    = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	close1    = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
	textOpen  = `{"type":"text","text":""}`
	endTurn   = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":7}}\n\n" + stop
	endTold   = "counted 17+7 cached 5 written 2 reasoning -1\nended 1 end_turn"
)

func TestDecoder(t *testing.T) {
	for _, c := range []struct{ name, stream, want, lost string }{
		{"a text", start + open("0", textOpen) + delta("0", `{"type":"text_delta","text":"H\u0069"}`) + "event: ping\ndata: {\"type\":\"ping\"}\n\n" + close0 + endTurn,
			startTold + "open 0 text\ndelta 0 H\\u0069\nping\nclose 0\n" + endTold, ""},
		{"thinking and a tool", start + open("0", `{"type":"thinking","thinking":"","signature":""}`) + delta("0", `{"type":"thinking_delta","thinking":"t"}`) + delta("0", `{"type":"signature_delta","signature":"S"}`) + close0 +
			open("1", tool) + input("1", "") + input("1", `{\"a\"`) + input("1", `:1}`) + close1 + strings.Replace(endTurn, "end_turn", "tool_use", 1),
			startTold + "open 0 reasoning\ndelta 0 t\nseal 0 S messages\nclose 0\nopen 1 call t1 calc\ndelta 1 {\\\"a\\\"\ndelta 1 :1}\nclose 1\ncounted 17+7 cached 5 written 2 reasoning -1\nended 1 tool_use", ""},
		{"blocks that hold something when they open", start + open("0", `{"type":"text","text":"A","citations":[{"type":"char_location"}]}`) + close0 + open("1", `{"type":"thinking","thinking":"T","signature":"S"}`) + close1 +
			open("2", `{"type":"tool_use","id":"t","name":"f","input":{"x": "\n"}}`) + frame("content_block_stop", `"index":2`) + endTurn,
			startTold + "open 0 text\ndelta 0 A\ncite 0 {\"type\":\"char_location\"}\nclose 0\nopen 1 reasoning\ndelta 1 T\nseal 1 S messages\nclose 1\n" +
				`open 2 call t f` + "\n" + `delta 2 {\"x\": \"\\n\"}` + "\nclose 2\n" + endTold, ""},
		{"tools without an id get one each", start + open("0", `{"type":"tool_use","name":"f","input":{}}`) + close0 + open("1", `{"type":"tool_use","id":"","name":"f","input":{}}`) + close1 + endTurn,
			startTold + "open 0 call call_x1_0 f\ndelta 0 {}\nclose 0\nopen 1 call call_x1_1 f\ndelta 1 {}\nclose 1\n" + endTold, ""},
		{"white space behind an input that is over says nothing", start + open("0", tool) + input("0", "{}") + close0 + input("0", " ") + input("null", `\u0020`) + open("1", `{"type":"tool_use","id":"t","name":"f","input":{"x":1}}`) + input("1", `\n`) + close1 + endTurn,
			startTold + "open 0 call t1 calc\ndelta 0 {}\nclose 0\nopen 1 call t f\ndelta 1 {\\\"x\\\":1}\nclose 1\n" + endTold, ""},
		{"an error for a stop reason", start + strings.Replace(endTurn, "end_turn", "error", 1), startTold + "counted 17+7 cached 5 written 2 reasoning -1\nfail 502 \"\" \"\" the upstream failed while it answered", ""},
		{"an abort for a stop reason", start + strings.Replace(endTurn, "end_turn", "abort", 1), startTold + "counted 17+7 cached 5 written 2 reasoning -1\nfail 503 \"overloaded\" \"\" the upstream aborted the answer", ""},
		{"a tool without input has an empty one", start + open("0", tool) + input("0", "") + close0 + endTurn, startTold + "open 0 call t1 calc\ndelta 0 {}\nclose 0\n" + endTold, ""},
		{"citations", start + open("0", textOpen) + delta("0", `{"type":"citations_delta","citation":{"type":"char_location"}}`) + close0 + endTurn,
			startTold + "open 0 text\ncite 0 {\"type\":\"char_location\"}\nclose 0\n" + endTold, ""},
		{"redacted thinking", start + open("0", `{"type":"redacted_thinking","data":"R"}`) + close0 + endTurn, startTold + "open 0 redacted   R\nclose 0\n" + endTold, ""},
		{"a server tool is whole when it closes", start + open("0", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`) + input("0", `{\"q\"`) + input("0", `:1}`) + close0 +
			open("1", `{"type":"web_search_tool_result","content":[]}`) + close1 + endTurn,
			startTold + `open 0 hosted    {"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}` + "\nclose 0\n" + `open 1 hosted    {"type":"web_search_tool_result","content":[]}` + "\nclose 1\n" + endTold, ""},
		{"a block that nobody knows", start + open("0", `{"type":"new","x":1.0}`) + delta("0", `{"type":"new_delta","y":1}`) + close0 + endTurn,
			startTold + `open 0 unknown    {"type":"new","x":1.0,"extra_deltas":[{"type":"new_delta","y":1}]}` + "\nclose 0\n" + endTold, ""},
		{"members, deltas and events that nobody knows", start + frame("news", "") + open("0", `{"type":"text","text":"","x":1,"y":null}`) + delta("0", `{"type":"text_delta","text":"A","z":1}`) +
			delta("0", `{"type":"new_delta"}`) + close0 + frame("message_delta", `"delta":{"stop_reason":"end_turn","stop_details":{"a":1},"w":1},"v":1,"usage":{"output_tokens":7,"service_tier":"standard","cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":4}}`) + stop,
			startTold + "open 0 text\ndelta 0 A\nclose 0\n" + endTold,
			"events.news unknown\ncontent[0].x unknown\ncontent[0].z unknown\ncontent[0].new_delta unknown\nstop_details no_equivalent\nw unknown\nv unknown\nusage.cache_creation.ephemeral_1h_input_tokens no_equivalent"},
		{"a direct caller is nothing to lose", start + open("0", `{"type":"tool_use","id":"t","name":"f","input":{},"caller":{"type":"direct"}}`) + close0 + endTurn, startTold + "open 0 call t f\ndelta 0 {}\nclose 0\n" + endTold, ""},
		{"kinds by name alone, indices left out", strings.ReplaceAll(strings.ReplaceAll(start+open("0", textOpen)+delta("0", `{"type":"text_delta","text":"A"}`)+close0+endTurn, `"index":0`, `"index":null`), `"type":"content_block_delta",`, ""),
			startTold + "open 0 text\ndelta 0 A\nclose 0\n" + endTold, ""},
		{"kinds by type alone", strings.ReplaceAll(start+open("0", textOpen)+close0+endTurn, "event: ", "id: "), startTold + "open 0 text\nclose 0\n" + endTold, ""},
		{"a block that is still open at the end closes", start + open("0", textOpen) + endTurn, startTold + "open 0 text\nclose 0\n" + endTold, ""},
		{"blocks that overlap", start + open("0", textOpen) + open("3", tool) + delta("0", `{"type":"text_delta","text":"A"}`) + input("3", "{}") + close0 + frame("content_block_stop", `"index":3`) + endTurn,
			startTold + "open 0 text\nopen 1 call t1 calc\ndelta 0 A\ndelta 1 {}\nclose 0\nclose 1\n" + endTold, ""},
		{"content in the start", strings.Replace(start, `"content":[]`, `"content":[{"type":"text","text":"A"}]`, 1) + open("1", textOpen) + close1 + endTurn,
			startTold + "open 0 text\ndelta 0 A\nclose 0\nopen 1 text\nclose 1\n" + endTold, ""},
		{"a stop reason in the start is no end", strings.Replace(start, `"stop_reason":null`, `"stop_reason":"end_turn"`, 1) + stop,
			startTold + "counted 17+0 cached 5 written 2 reasoning -1\nfail 503 \"overloaded\" \"\" the upstream aborted the answer", ""},
		{"the last usage and the last word count", start + frame("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":1,"output_tokens":3,"output_tokens_details":{"thinking_tokens":2}}`) +
			frame("message_delta", `"delta":{"stop_reason":"stop_sequence","stop_sequence":"END"},"usage":{"input_tokens":null,"output_tokens":4}`) + stop,
			startTold + "counted 8+4 cached 5 written 2 reasoning 2\nended 2 stop_sequence END", ""},
		{"a word that nobody knows ends too", start + strings.Replace(endTurn, "end_turn", "compaction", 1), startTold + "counted 17+7 cached 5 written 2 reasoning -1\nended 1 compaction", "stop_reason unknown"},
		{"an error", start + open("0", textOpen) + frame("error", `"error":{"type":"overloaded_error","message":"Overloaded"}`) + stop, startTold + "open 0 text\nfail 529 \"overloaded\" \"overloaded_error\" Overloaded", ""},
		{"an error first", frame("error", `"error":{"type":"rate_limit_error","message":"slow"}`), "fail 429 \"rate_limit_exceeded\" \"rate_limit_error\" slow", ""},
		{"an error by name whose data is broken", "event: error\ndata: {\n\n", "fail 502 \"\" \"\" the upstream failed and gave no reason", ""},
		{"an error as OpenAI's servers send it", `data: {"error":{"message":"m","type":"BadRequestError","code":400}}` + "\n\n", "fail 400 \"\" \"BadRequestError\" m", ""},
		{"a stop whose data is broken stops", start + strings.Replace(endTurn, `{"type":"message_stop"}`, "{", 1), startTold + endTold, ""},
		{"nothing counts behind the end", start + endTurn + open("0", textOpen) + "data: x\n\n", startTold + endTold, ""},
		{"done is nothing", start + "data: [DONE]\n\n" + endTurn, startTold + endTold, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := decode(t, c.stream, nil)
			if got := strings.Join(r.events, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if r.err != nil || r.end != nil || r.lost != c.lost {
				t.Errorf("error %v, end %v, lost %s\nwant %s", r.err, r.end, r.lost, c.lost)
			}
		})
	}
}

func TestStopWords(t *testing.T) {
	for word, want := range map[string]canon.StopReason{"end_turn": canon.StopEnd, "tool_use": canon.StopEnd, "stop_sequence": canon.StopSequence, "max_tokens": canon.StopLength,
		"model_context_window_exceeded": canon.StopContext, "refusal": canon.StopFilter, "pause_turn": canon.StopPause} {
		r := decode(t, start+strings.Replace(endTurn, "end_turn", word, 1), nil)
		if got := r.answer.Stop; got.Reason != want || string(got.Native) != word {
			t.Errorf("%s: got %v %s", word, got.Reason, got.Native)
		}
		a, err := New().(dialect.Translator).ReadAnswer([]byte(`{"type":"message","content":[],"stop_reason":"`+word+`"}`), options(nil))
		if err != nil || a.Stop.Reason != want || string(a.Stop.Native) != word {
			t.Errorf("%s: unary got %+v, %v", word, a, err)
		}
	}
}

func TestDecoderRefusesWhatIsNotOfTheDialect(t *testing.T) {
	call := start + open("0", tool)
	for _, c := range []struct{ name, stream, want string }{
		{"no JSON", start + "event: content_block_start\ndata: {\n\n", "no JSON object"},
		{"no start", open("0", textOpen), "message_start"},
		{"an end without a start", stop, "message_start"},
		{"two starts", start + start, "second message_start"},
		{"a start without a message", frame("message_start", `"message":null`), "no message"},
		{"a block that opens twice", start + open("0", textOpen) + open("0", textOpen), "opens twice"},
		{"a block that opens again", start + open("0", textOpen) + close0 + open("0", textOpen), "opens twice"},
		{"an index that is none", start + open(`"a"`, textOpen), "index"},
		{"an index below zero", start + open("-1", textOpen), "index"},
		{"a block that is no object", start + open("0", "1"), "no object"},
		{"a block without a type", start + open("0", `{"text":""}`), "without a type"},
		{"a text that is none", start + open("0", `{"type":"text","text":1}`), "wrong type"},
		{"an input that is no object", start + open("0", `{"type":"tool_use","name":"f","input":[1]}`), "wrong type"},
		{"a tool without a name", start + open("0", `{"type":"tool_use","id":"i"}`), "without a name"},
		{"a delta for a closed block", start + open("0", textOpen) + close0 + delta("0", `{"type":"text_delta","text":"a"}`), "not open"},
		{"a delta for an unknown block", start + open("0", textOpen) + delta("1", `{"type":"text_delta","text":"a"}`), "not open"},
		{"an input for a closed block", call + close0 + input("0", "{}"), "not open"},
		{"content that is none in the start", strings.Replace(start, `"content":[]`, `"content":"x"`, 1), "no array"},
		{"a text in a tool", call + delta("0", `{"type":"text_delta","text":"a"}`), "does not fit"},
		{"a signature in a text", start + open("0", textOpen) + delta("0", `{"type":"signature_delta","signature":"a"}`), "does not fit"},
		{"a citation in a tool", call + delta("0", `{"type":"citations_delta","citation":{}}`), "does not fit"},
		{"an input in thinking", start + open("0", `{"type":"thinking","thinking":""}`) + input("0", "a"), "does not fit"},
		{"a delta whose text is none", start + open("0", textOpen) + delta("0", `{"type":"text_delta","text":{}}`), "is none"},
		{"two inputs", start + open("0", `{"type":"tool_use","name":"f","input":{"a":1}}`) + input("0", "{}"), "second input"},
		{"a stop for a block that is not open", start + close0, "not open"},
		{"a stop reason that is none", start + frame("message_delta", `"delta":{"stop_reason":1}`), "wrong type"},
		{"too many open blocks", start + strings.Join(manyBlocks(), ""), "too many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := decode(t, c.stream, nil)
			var p *canon.Problem
			if !errors.As(r.err, &p) || p.Status != 502 || p.Code != "upstream_invalid" || !strings.Contains(p.Message, c.want) {
				t.Errorf("got %v, want %q", r.err, c.want)
			}
			if !errors.Is(r.end, io.ErrUnexpectedEOF) {
				t.Errorf("it has not ended: %v", r.end)
			}
		})
	}
}

func manyBlocks() (all []string) {
	for i := range maxOpen + 1 {
		all = append(all, open(fmt.Sprint(i), textOpen))
	}
	return all
}

func TestACutStreamNeverEnds(t *testing.T) {
	for name, stream := range dialecttest.Streams(t) {
		whole := decode(t, string(stream), nil)
		if whole.end != nil || whole.err != nil {
			t.Errorf("%s: %v, %v", name, whole.end, whole.err)
		}
		last := bytes.LastIndex(bytes.TrimRight(stream, "\n"), []byte("\n\n")) // before the terminal event
		for cut := range max(0, last) {
			if r := decode(t, string(stream[:cut]), nil); !errors.Is(r.end, io.ErrUnexpectedEOF) || r.answer.Stop.Reason != 0 {
				t.Fatalf("%s cut at %d: %v", name, cut, r.end)
			}
		}
	}
}

func TestRecordedStreamsComeBackFromTheEncoder(t *testing.T) {
	for name, stream := range dialecttest.Streams(t) {
		t.Run(name, func(t *testing.T) {
			e := New().(dialect.Translator).NewEncoder(asked(), options(nil))
			var out []byte
			once := decode(t, string(stream), func(ev *canon.Event) { out = e.Append(out, ev) })
			checkInvariants(t, string(out))
			again := decode(t, string(out), nil)
			if again.err != nil || again.end != nil || again.lost != "" {
				t.Fatalf("%v, %v, lost %s", again.err, again.end, again.lost)
			}
			if got, want := sameEvents(again.events), sameEvents(once.events); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// sameEvents leaves out what an encoder says in its own way: ids, its pings, counts that are not known, a failure's words.
func sameEvents(events []string) string {
	var kept []string
	for _, e := range events {
		switch {
		case e == "ping":
			continue
		case strings.HasPrefix(e, "start"), strings.HasPrefix(e, "counted"):
			e = strings.NewReplacer("-1", "0").Replace(e)
			if i := strings.Index(e, "served"); i > 0 {
				e = e[i:]
			}
			if strings.HasPrefix(e, "start") {
				e = "start"
			}
		case strings.HasPrefix(e, "fail"):
			e = "fail"
		}
		kept = append(kept, e)
	}
	if n := len(kept); n > 1 && kept[n-1] == "fail" && strings.HasPrefix(kept[n-2], "counted") {
		kept = slices.Delete(kept, n-2, n-1) // a failure tells no usage
	}
	return strings.Join(kept, "\n")
}

func FuzzDecoder(f *testing.F) {
	recorded := dialecttest.Streams(f)
	var events []string // whole ones, in an order that the fuzzer picks: mutated bytes seldom stay JSON
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		f.Add(string(recorded[name]), []byte(nil))
		events = append(events, strings.SplitAfter(string(recorded[name]), "\n\n")...)
	}
	for i, c := range streams {
		f.Add(c.stream, []byte{byte(i), byte(i + 1)})
		f.Add(start+c.stream+endTurn, []byte{0, byte(i), 0, byte(i + 2)})
		events = append(events, strings.SplitAfter(c.stream, "\n\n")...)
	}
	f.Fuzz(func(t *testing.T, stream string, picks []byte) {
		if len(picks) >= 2 {
			stream = start
			for ; len(picks) >= 2; picks = picks[2:] {
				stream += events[(int(picks[0])<<8|int(picks[1]))%len(events)]
			}
			stream += endTurn
		}
		e := New().(dialect.Translator).NewEncoder(asked(), options(nil))
		var s canon.Sequencer
		var in []canon.Event
		var out []byte
		r := decode(t, stream, func(ev *canon.Event) {
			var err error
			if in, err = s.Next(in[:0], ev); err != nil {
				t.Skip(err)
			}
			for i := range in {
				out = e.Append(out, &in[i])
			}
		})
		ended := r.answer.Stop.Reason != 0 || r.answer.Failed != nil
		if (r.end == nil) != ended || r.end == nil && r.err != nil {
			t.Errorf("end %v, error %v, answer %+v", r.end, r.err, r.answer)
		}
		if r.end != nil {
			return
		}
		checkInvariants(t, string(out))
		if again := decode(t, string(out), nil); again.err != nil || again.end != nil {
			t.Errorf("%v, %v: %s", again.err, again.end, out)
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	d := New().(dialect.Translator).NewDecoder(options(&canon.Losses{}))
	name, data := []byte("content_block_delta"), []byte(`{"type":"content_block_delta","delta":{"type":"text_delta","text":" some words"},"index":0}`)
	var events []canon.Event
	var err error
	for _, opening := range []string{start, open("0", textOpen)} {
		n, data, _ := strings.Cut(strings.TrimSpace(opening), "\ndata: ")
		if events, err = d.Frame(events[:0], []byte(strings.TrimPrefix(n, "event: ")), []byte(data)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if events, err = d.Frame(events[:0], name, data); err != nil || len(events) != 1 {
			b.Fatal(err)
		}
	}
}
