package messages

import (
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// asked is the request of the tests' client.
func asked() *canon.Request {
	return &canon.Request{From: canon.Messages, Model: canon.Text("asked"), Stop: []canon.Text{canon.Text("END"), canon.Text(`of Fr\u0061nce`)}}
}

func options(l *canon.Losses) dialect.Options {
	p := dialect.DefaultPolicy()
	return dialect.Options{Policy: &p, Losses: l, ID: "x1"}
}

// Events by hand.

func starts(prompt, cached int64) canon.Event {
	u := canon.NoUsage()
	u.Prompt, u.Cached = prompt, cached
	return canon.Event{Kind: canon.Start, ID: canon.Text("chatcmpl-9"), Model: canon.Text("served"), Usage: u}
}

func opens(part int, kind canon.PartType) canon.Event {
	return canon.Event{Kind: canon.Open, Part: part, Type: kind}
}

func calls(part int, id, name string) canon.Event {
	return canon.Event{Kind: canon.Open, Part: part, Type: canon.CallPart, Call: canon.Call{ID: canon.Text(id), Name: canon.Text(name)}}
}

func says(part int, text string) canon.Event {
	return canon.Event{Kind: canon.Delta, Part: part, Text: canon.Text(text)}
}

func sums(part int, text string) canon.Event {
	return canon.Event{Kind: canon.Delta, Part: part, Text: canon.Text(text), Summary: true}
}

func seals(part int, text string, by canon.Dialect) canon.Event {
	return canon.Event{Kind: canon.Seal, Part: part, Text: canon.Text(text), SignedBy: by}
}

func cites(part int, raw string) canon.Event {
	return canon.Event{Kind: canon.Cite, Part: part, Raw: canon.Raw(raw)}
}

func closes(part int) canon.Event { return canon.Event{Kind: canon.Close, Part: part} }

func counts(u canon.Usage) canon.Event { return canon.Event{Kind: canon.Counted, Usage: u} }

func ends(why canon.StopReason) canon.Event {
	return canon.Event{Kind: canon.Ended, Stop: canon.Stop{Reason: why}}
}

// encode is what the encoder writes for events.
func encode(l *canon.Losses, events ...canon.Event) string {
	e := New().(dialect.Translator).NewEncoder(asked(), options(l))
	var out []byte
	for i := range events {
		out = e.Append(out, &events[i])
	}
	return string(out)
}

// lossLines are what was lost, one a line.
func lossLines(l *canon.Losses) string {
	var lines []string
	for _, one := range l.List() {
		lines = append(lines, one.Path+" "+string(one.Reason))
	}
	return strings.Join(lines, "\n")
}

const (
	head = `{"id":"msg_x1","type":"message","role":"assistant","model":"asked","content":[],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`
	opened  = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":" + head + "}\n\n"
	pings   = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	stopped = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

func beginBlock(index, raw string) string {
	return "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":" + index + ",\"content_block\":" + raw + "}\n\n"
}

func endBlock(index string) string {
	return "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":" + index + "}\n\n"
}

func ended(reason, sequence, usage string) string {
	return "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" + reason + ",\"stop_sequence\":" + sequence + "},\"usage\":" + usage + "}\n\n" + stopped
}

const counted = `{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`

func TestEncoder(t *testing.T) {
	textBlock := beginBlock("0", `{"type":"text","text":""}`)
	for _, c := range []struct {
		name   string
		events []canon.Event
		want   string
		losses string
	}{
		{"thinking, text and a call, as in wire.md 5.9", []canon.Event{starts(5, -1), opens(0, canon.ReasoningPart), says(0, "Let"), says(0, " me"), says(0, ""), seals(0, "SIG", ""), closes(0),
			opens(1, canon.TextPart), says(1, `H\u0069`), closes(1), calls(2, "call_1", "f"), says(2, `{\"a\":`), says(2, `1}`), closes(2),
			counts(canon.Usage{Prompt: 5, Completion: 9, Cached: 0, CacheWrite: -1, Reasoning: 3}), ends(canon.StopEnd)},
			opened + beginBlock("0", `{"type":"thinking","thinking":"","signature":""}`) + delta("0", `{"type":"thinking_delta","thinking":"Let"}`) +
				delta("0", `{"type":"thinking_delta","thinking":" me"}`) + delta("0", `{"type":"signature_delta","signature":"SIG"}`) + endBlock("0") +
				beginBlock("1", `{"type":"text","text":""}`) + delta("1", `{"type":"text_delta","text":"H\u0069"}`) + endBlock("1") +
				beginBlock("2", `{"type":"tool_use","id":"call_1","name":"f","input":{}}`) + input("2", `{\"a\":`) + input("2", `1}`) + endBlock("2") +
				ended(`"tool_use"`, "null", `{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9,"output_tokens_details":{"thinking_tokens":3}}`), ""},
		{"the usage of the start stands when nothing else is counted", []canon.Event{starts(5, -1), opens(0, canon.TextPart), closes(0), ends(canon.StopEnd)},
			opened + textBlock + endBlock("0") + ended(`"end_turn"`, "null", counted), ""},
		{"an answer that says nothing has an empty text", []canon.Event{starts(5, -1), ends(canon.StopLength)}, opened + textBlock + endBlock("0") + ended(`"max_tokens"`, "null", counted), ""},
		{"a refusal is a text", []canon.Event{starts(5, -1), opens(0, canon.RefusalPart), says(0, "no"), closes(0), ends(canon.StopFilter)},
			opened + textBlock + delta("0", `{"type":"text_delta","text":"no"}`) + endBlock("0") + ended(`"refusal"`, "null", counted), ""},
		{"the last of several signatures is sent, once and last", []canon.Event{starts(5, -1), opens(0, canon.ReasoningPart), seals(0, "A", canon.Messages), says(0, "t"), seals(0, "B", ""), closes(0), ends(canon.StopEnd)},
			opened + beginBlock("0", `{"type":"thinking","thinking":"","signature":""}`) + delta("0", `{"type":"thinking_delta","thinking":"t"}`) +
				delta("0", `{"type":"signature_delta","signature":"B"}`) + endBlock("0") + ended(`"end_turn"`, "null", counted), ""},
		{"a signature of another family is lost", []canon.Event{starts(5, -1), opens(0, canon.ReasoningPart), says(0, "t"), seals(0, "A", canon.Responses), closes(0), ends(canon.StopEnd)},
			opened + beginBlock("0", `{"type":"thinking","thinking":"","signature":""}`) + delta("0", `{"type":"thinking_delta","thinking":"t"}`) + endBlock("0") + ended(`"end_turn"`, "null", counted),
			"content[0].signature foreign"},
		{"a summary is thinking when there is no text", []canon.Event{starts(5, -1), opens(0, canon.ReasoningPart), sums(0, "s"), says(0, "t"), says(0, "t"), sums(0, "u"), closes(0), ends(canon.StopEnd)},
			opened + beginBlock("0", `{"type":"thinking","thinking":"","signature":""}`) + delta("0", `{"type":"thinking_delta","thinking":"s"}`) +
				delta("0", `{"type":"thinking_delta","thinking":"u"}`) + endBlock("0") + ended(`"end_turn"`, "null", counted), "content[0].text no_equivalent"},
		{"redacted thinking comes whole", []canon.Event{starts(5, -1), {Kind: canon.Open, Type: canon.RedactedPart, Text: canon.Text("R"), SignedBy: canon.Messages}, closes(0), ends(canon.StopEnd)},
			opened + beginBlock("0", `{"type":"redacted_thinking","data":"R"}`) + endBlock("0") + ended(`"end_turn"`, "null", counted), ""},
		{"what has no block takes no index", []canon.Event{starts(5, -1), {Kind: canon.Open, Type: canon.RedactedPart, Text: canon.Text("R"), SignedBy: canon.Responses}, closes(0),
			{Kind: canon.Open, Part: 1, Type: canon.HostedPart, Raw: canon.Raw(`{"type":"web_search_call"}`)}, closes(1), {Kind: canon.Open, Part: 2, Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"new"}`)}, closes(2),
			opens(3, canon.TextPart), says(3, "a"), closes(3), ends(canon.StopEnd)},
			opened + textBlock + delta("0", `{"type":"text_delta","text":"a"}`) + endBlock("0") + ended(`"end_turn"`, "null", counted),
			"content[0].redacted_thinking foreign\ncontent[1].web_search_call no_equivalent\ncontent[2].new unknown"},
		{"a hosted block of this family comes whole and on one line", []canon.Event{starts(5, -1), {Kind: canon.Open, Type: canon.HostedPart, Raw: canon.Raw("{\"type\":\"server_tool_use\",\n\"id\":\"s\"}")}, closes(0), ends(canon.StopPause)},
			opened + beginBlock("0", `{"type":"server_tool_use","id":"s"}`) + endBlock("0") + ended(`"pause_turn"`, "null", counted), ""},
		{"citations of this family", []canon.Event{starts(5, -1), opens(0, canon.TextPart), says(0, "a"), cites(0, "{\"type\":\"char_location\",\n\"x\":1}"), cites(0, `{"type":"url_citation"}`), closes(0), ends(canon.StopEnd)},
			opened + textBlock + delta("0", `{"type":"text_delta","text":"a"}`) + delta("0", `{"type":"citations_delta","citation":{"type":"char_location","x":1}}`) + endBlock("0") + ended(`"end_turn"`, "null", counted),
			"content[0].annotations no_equivalent"},
		{"a custom call's text becomes a member of its input", []canon.Event{starts(5, -1), {Kind: canon.Open, Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("exec"), Custom: true}},
			says(0, `say(\"`), says(0, `\n\ud83d`), says(0, `\ude00\")`), closes(0), ends(canon.StopEnd)},
			opened + beginBlock("0", `{"type":"tool_use","id":"c","name":"exec","input":{}}`) + input("0", `{\"input\":\"say(\\\"`) + input("0", `\\n\\ud83d`) + input("0", `\\ude00\\\")`) + input("0", `\"}`) +
				endBlock("0") + ended(`"tool_use"`, "null", counted), ""},
		{"a custom call without text", []canon.Event{starts(5, -1), {Kind: canon.Open, Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("exec"), Custom: true}}, closes(0), ends(canon.StopEnd)},
			opened + beginBlock("0", `{"type":"tool_use","id":"c","name":"exec","input":{}}`) + input("0", `{\"input\":\"\"}`) + endBlock("0") + ended(`"tool_use"`, "null", counted), ""},
		{"a cut call still reaches the client", []canon.Event{starts(5, -1), calls(0, "c", "f"), says(0, `{\"a\": \"`), closes(0), ends(canon.StopLength)},
			opened + beginBlock("0", `{"type":"tool_use","id":"c","name":"f","input":{}}`) + input("0", `{\"a\": \"`) + endBlock("0") + ended(`"max_tokens"`, "null", counted), ""},
		{"a failure ends the stream whatever is open", []canon.Event{starts(5, -1), opens(0, canon.TextPart), says(0, "a"), {Kind: canon.Fail, Problem: &canon.Problem{Status: 503, Message: "gone\n"}}},
			opened + textBlock + delta("0", `{"type":"text_delta","text":"a"}`) + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"gone\\n\"}}\n\n", ""},
		{"a failure before the start", []canon.Event{{Kind: canon.Fail, Problem: &canon.Problem{Message: "m"}}}, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"m\"}}\n\n", ""},
		{"pings", []canon.Event{{Kind: canon.Ping}, starts(5, -1), {Kind: canon.Ping}}, pings + opened + pings, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l canon.Losses
			if got := encode(&l, c.events...); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := lossLines(&l); got != c.losses {
				t.Errorf("lost %s\nwant %s", got, c.losses)
			}
			if c.name != "pings" {
				checkInvariants(t, c.want)
			}
		})
	}
}

// checkInvariants: at most one open block, indices without holes, deltas that fit, one end (wire.md 5.5).
func checkInvariants(t *testing.T, stream string) {
	t.Helper()
	openIndex, next, done := int64(-1), int64(0), false
	for one := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(one, "\ndata: ")
		name = strings.TrimPrefix(name, "event: ")
		if kind, _ := jsonx.Text(jsonx.Get([]byte(data), "type")); !ok || kind != name || !jsonx.Valid([]byte(data)) {
			t.Fatalf("no frame: %q", one)
		}
		if done {
			t.Fatalf("a frame behind the end: %s", one)
		}
		index, _ := jsonx.Int(jsonx.Get([]byte(data), "index"))
		switch name {
		case "content_block_start":
			if openIndex >= 0 || index != next {
				t.Fatalf("block %d opens while %d is open and %d is next", index, openIndex, next)
			}
			openIndex, next = index, next+1
		case "content_block_delta", "content_block_stop":
			if index != openIndex {
				t.Fatalf("%s for %d while %d is open", name, index, openIndex)
			}
			if name == "content_block_stop" {
				openIndex = -1
			}
		case "message_stop", "error":
			done = true
		}
	}
	if !done {
		t.Fatalf("no end: %s", stream)
	}
}

func TestStopReasons(t *testing.T) {
	call := []canon.Event{calls(0, "c", "f"), closes(0)}
	for _, c := range []struct {
		name string
		call bool
		stop canon.Stop
		want string
	}{
		{"an end", false, canon.Stop{Reason: canon.StopEnd}, `"stop_reason":"end_turn","stop_sequence":null`},
		{"a call", true, canon.Stop{Reason: canon.StopEnd, Native: canon.Text("stop")}, `"stop_reason":"tool_use","stop_sequence":null`},
		{"a cut wins over a call", true, canon.Stop{Reason: canon.StopLength}, `"stop_reason":"max_tokens","stop_sequence":null`},
		{"a refusal wins over a call", true, canon.Stop{Reason: canon.StopFilter}, `"stop_reason":"refusal","stop_sequence":null`},
		{"a full context", true, canon.Stop{Reason: canon.StopContext}, `"stop_reason":"model_context_window_exceeded","stop_sequence":null`},
		{"a stop sequence", false, canon.Stop{Reason: canon.StopSequence, Sequence: canon.Text("END")}, `"stop_reason":"stop_sequence","stop_sequence":"END"`},
		{"one that is spelled in another way", false, canon.Stop{Reason: canon.StopSequence, Sequence: canon.Text("of France")}, `"stop_reason":"stop_sequence","stop_sequence":"of France"`},
		{"one that is not known", false, canon.Stop{Reason: canon.StopSequence}, `"stop_reason":"stop_sequence","stop_sequence":null`},
		{"one that the client did not ask for", false, canon.Stop{Reason: canon.StopSequence, Sequence: canon.Text("<|im_end|>")}, `"stop_reason":"end_turn","stop_sequence":null`},
		{"a stop sequence behind a call", true, canon.Stop{Reason: canon.StopSequence, Sequence: canon.Text("END")}, `"stop_reason":"tool_use","stop_sequence":null`},
	} {
		events := []canon.Event{starts(5, -1)}
		a := &canon.Answer{Stop: c.stop, Usage: canon.NoUsage()}
		if c.call {
			events = append(events, call...)
			a.Parts = []canon.Part{{Type: canon.CallPart}}
		}
		if got := encode(nil, append(events, canon.Event{Kind: canon.Ended, Stop: c.stop})...); !strings.Contains(got, `"delta":{`+c.want+`}`) {
			t.Errorf("%s: got %s", c.name, got)
		}
		if got, err := New().(dialect.Translator).AppendAnswer(nil, a, asked(), options(nil)); err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: unary got %s, %v", c.name, got, err)
		}
	}
}

func TestUsageOnTheWire(t *testing.T) {
	for _, c := range []struct {
		usage canon.Usage
		want  string
	}{
		{canon.NoUsage(), `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`},
		{canon.Usage{Prompt: 320, Completion: 4, Cached: 256, CacheWrite: -1, Reasoning: -1}, `{"input_tokens":64,"cache_creation_input_tokens":0,"cache_read_input_tokens":256,"output_tokens":4}`},
		{canon.Usage{Prompt: 17, Completion: 7, Cached: 5, CacheWrite: 2, Reasoning: 0}, `{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":5,"output_tokens":7,"output_tokens_details":{"thinking_tokens":0}}`},
		{canon.Usage{Prompt: 3, Completion: 1, Cached: 9223372036854775807, CacheWrite: 9223372036854775807, Reasoning: -1},
			`{"input_tokens":0,"cache_creation_input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807,"output_tokens":1}`},
	} {
		if got := string(appendUsage(nil, &c.usage)); got != c.want {
			t.Errorf("%+v: got %s", c.usage, got)
		}
	}
}

func TestKeepAliveOpensTheStreamOnce(t *testing.T) {
	e := New().(dialect.Translator).NewEncoder(asked(), options(nil))
	first := string(e.AppendKeepAlive(nil))
	if want := strings.Replace(opened, `"input_tokens":5`, `"input_tokens":0`, 1) + pings; first != want {
		t.Errorf("the first: %s", first)
	}
	if second := string(e.AppendKeepAlive(nil)); second != pings {
		t.Errorf("the second: %s", second)
	}
	start, end := starts(5, 3), ends(canon.StopEnd)
	if got := e.Append(nil, &start); len(got) > 0 {
		t.Errorf("a second start: %s", got)
	}
	if got := string(e.Append(nil, &end)); !strings.Contains(got, `"usage":{"input_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,`) {
		t.Errorf("the usage of the start is remembered: %s", got)
	}
	if e.Overlap() {
		t.Error("one block is open at a time")
	}
}

func TestEncoderDoesNotAllocate(t *testing.T) {
	e := New().(dialect.Translator).NewEncoder(asked(), options(&canon.Losses{}))
	events := stretch()
	out := make([]byte, 0, 1<<16)
	run := func() {
		out = out[:0]
		for i := range events {
			out = e.Append(out, &events[i])
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// stretch is a part of each kind, as often told.
func stretch() []canon.Event {
	events := []canon.Event{opens(0, canon.ReasoningPart)}
	events = append(events, slices.Repeat([]canon.Event{says(0, " some words")}, 20)...)
	events = append(events, seals(0, strings.Repeat("s", 200), ""), closes(0), opens(1, canon.TextPart))
	events = append(events, slices.Repeat([]canon.Event{says(1, " some \\\"words\\\"")}, 40)...)
	events = append(events, closes(1), calls(2, "call_1", "f"))
	events = append(events, slices.Repeat([]canon.Event{says(2, `\"a\":1,`)}, 20)...)
	return append(events, closes(2))
}

func BenchmarkEncoder(b *testing.B) {
	e := New().(dialect.Translator).NewEncoder(asked(), options(&canon.Losses{}))
	events := stretch()
	out := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		out = out[:0]
		for i := range events {
			out = e.Append(out, &events[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}
