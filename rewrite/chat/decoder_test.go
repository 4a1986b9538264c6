package chat

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/sse"
)

func testOptions(losses *canon.Losses) dialect.Options {
	policy := dialect.DefaultPolicy()
	return dialect.Options{Policy: &policy, Losses: losses, ID: "x1", Created: 1700000000}
}

// frames cuts a stream into its events, which own their bytes.
func frames(tb testing.TB, stream []byte) (events []sse.Event) {
	tb.Helper()
	var split sse.Splitter
	var ev sse.Event
	more := func() {
		events = append(events, sse.Event{Name: bytes.Clone(ev.Name), Data: bytes.Clone(ev.Data)})
	}
	for split.Push(stream); split.Next(&ev); {
		more()
	}
	if split.Finish(&ev) {
		more()
	}
	return events
}

// decoded is what a stream says.
type decoded struct {
	lines  []string
	answer *canon.Answer
	losses []canon.Loss
	err    error
	finish error
}

// decode decodes a stream and folds it, which checks the grammar. What the decoder learns of the stream must not matter.
func decode(tb testing.TB, stream []byte) decoded {
	tb.Helper()
	got, slow := decodeWith(tb, stream, func(*decoder) {}), decodeWith(tb, stream, func(d *decoder) { d.known = familiar{} })
	if a, b := fmt.Sprint(got.lines, got.losses, got.err, got.finish), fmt.Sprint(slow.lines, slow.losses, slow.err, slow.finish); a != b {
		tb.Errorf("learned %s\nread    %s", a, b)
	}
	if a, b := fmt.Sprintf("%+v", *got.answer), fmt.Sprintf("%+v", *slow.answer); got.answer.Failed == nil && a != b {
		tb.Errorf("learned %s\nread    %s", a, b)
	}
	return got
}

func decodeWith(tb testing.TB, stream []byte, before func(*decoder)) decoded {
	tb.Helper()
	var losses canon.Losses
	var got decoded
	var fold canon.Folder
	d := &decoder{o: testOptions(&losses)}
	var events []canon.Event
	for _, frame := range frames(tb, stream) {
		before(d)
		if events, got.err = d.Frame(events[:0], frame.Name, frame.Data); got.err != nil {
			break
		}
		for i := range events {
			got.lines = append(got.lines, describe(&events[i]))
			if err := fold.Event(&events[i]); err != nil {
				tb.Fatalf("%v\n%s", err, strings.Join(got.lines, "\n"))
			}
		}
		for i := range frame.Data { // borrowed for the call only
			frame.Data[i] = 'x'
		}
	}
	got.finish, got.answer, got.losses = d.Finish(), fold.Answer(), losses.List()
	return got
}

func kindOf(t canon.PartType) string {
	switch t {
	case canon.TextPart:
		return "text"
	case canon.RefusalPart:
		return "refusal"
	case canon.ReasoningPart:
		return "reasoning"
	case canon.CallPart:
		return "call"
	}
	return fmt.Sprint("part type ", uint8(t))
}

// describe is an event as one line.
func describe(e *canon.Event) string {
	switch e.Kind {
	case canon.Start:
		return fmt.Sprintf("start %s %s %s prompt=%d", e.ID, e.Model, e.Created, e.Usage.Prompt)
	case canon.Open:
		s := fmt.Sprintf("open %d %s", e.Part, kindOf(e.Type))
		if e.Type == canon.CallPart {
			s += fmt.Sprintf(" %s %s", e.Call.ID, e.Call.Name)
			if e.Call.Custom {
				s += " custom"
			}
		}
		return s
	case canon.Delta:
		s := fmt.Sprintf("delta %d |%s|", e.Part, e.Text)
		if e.Logprobs != nil {
			s += fmt.Sprintf(" logprobs=%d", bytes.Count(e.Logprobs, []byte(`"bytes"`)))
		}
		return s
	case canon.Cite:
		return fmt.Sprintf("cite %d %s", e.Part, e.Raw)
	case canon.Close:
		return fmt.Sprintf("close %d", e.Part)
	case canon.Counted:
		return fmt.Sprintf("usage %+v", e.Usage)
	case canon.Ended:
		return fmt.Sprintf("end %d sequence=%q native=%q", e.Stop.Reason, e.Stop.Sequence, e.Stop.Native)
	case canon.Fail:
		return fmt.Sprintf("fail %d %q %q %q %q", e.Problem.Status, e.Problem.Code, e.Problem.Type, e.Problem.Param, e.Problem.Message)
	}
	return fmt.Sprint("event kind ", e.Kind)
}

// recordings are all recorded streams, by name.
func recordings(tb testing.TB) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"testdata/*/stream.sse", "testdata/streams/*.sse"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			tb.Fatalf("no recorded streams: %v", err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				tb.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".sse")
			if name == "stream" {
				name = filepath.Base(filepath.Dir(file))
			}
			all[name] = raw
		}
	}
	return all
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s", file, got)
	}
}

func TestRecordedStreamsDecodeToTheirEvents(t *testing.T) {
	for name, stream := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			got := decode(t, stream)
			if got.err != nil {
				t.Fatal(got.err)
			}
			text := strings.Join(got.lines, "\n") + "\n"
			for _, loss := range got.losses {
				text += fmt.Sprintf("lost %s %s\n", loss.Path, loss.Reason)
			}
			compareGolden(t, filepath.Join("testdata", "streams", name+".events"), text+fmt.Sprintf("finish %v\n", got.finish))
		})
	}
}

func TestDecode(t *testing.T) {
	const start, end = "start c m 7 prompt=-1", `end 1 sequence="" native="stop"`
	for _, c := range []struct {
		name   string
		chunks []string // deltas when they begin with {", else whole data
		want   []string // without start and end
		lost   []string
	}{
		{"a role chunk opens nothing", []string{`{"role":"assistant","content":""}`}, nil, nil},
		{"white space is text", []string{`{"content":" "}`}, []string{"open 0 text", "delta 0 | |", "close 0"}, nil},
		{"escapes stay as they came", []string{`{"content":"\u00e9\ud800\/"}`}, []string{"open 0 text", `delta 0 |\u00e9\ud800\/|`, "close 0"}, nil},
		{"reasoning comes before the content of its chunk", []string{`{"content":"c","reasoning":"r"}`},
			[]string{"open 0 reasoning", "delta 0 |r|", "close 0", "open 1 text", "delta 1 |c|", "close 1"}, nil},
		{"both names of reasoning are one", []string{`{"reasoning":"r","reasoning_content":"r"}`, `{"reasoning_content":"s"}`},
			[]string{"open 0 reasoning", "delta 0 |r|", "delta 0 |s|", "close 0"}, nil},
		{"both names with different texts", []string{`{"reasoning":"r","reasoning_content":"s"}`},
			[]string{"open 0 reasoning", "delta 0 |r|", "close 0"}, []string{"choices[0].message.reasoning_content"}},
		{"reasoning after text is new", []string{`{"reasoning":"r"}`, `{"content":"c"}`, `{"reasoning":"s"}`},
			[]string{"open 0 reasoning", "delta 0 |r|", "close 0", "open 1 text", "delta 1 |c|", "close 1", "open 2 reasoning", "delta 2 |s|", "close 2"}, nil},
		{"a refusal", []string{`{"refusal":"no","content":null}`}, []string{"open 0 refusal", "delta 0 |no|", "close 0"}, nil},
		{"text behind a call is new", []string{`{"content":"a"}`, `{"tool_calls":[{"index":0,"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"content":"b"}`},
			[]string{"open 0 text", "delta 0 |a|", "close 0", "open 1 call i f", "delta 1 |{}|", "close 1", "open 2 text", "delta 2 |b|", "close 2"}, nil},
		{"two elements of one index in one array", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f"}},{"index":0,"function":{"arguments":"{\""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"a\":1}"}}]}`},
			[]string{"open 0 call i f", `delta 0 |{\"|`, `delta 0 |a\":1}|`, "close 0"}, nil},
		{"calls one after the other", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{\"a\":\"}\"}"}}]}`,
			`{"tool_calls":[{"index":1,"id":"j","function":{"name":"g","arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":""}}]}`},
			[]string{"open 0 call i f", `delta 0 |{\"a\":\"}\"}|`, "close 0", "open 1 call j g", "close 1"}, nil},
		{"calls that are told in turns overlap", []string{
			`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{\"a"}},{"index":1,"id":"j","function":{"name":"g","arguments":"["}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":"]"}}]}`},
			[]string{"open 0 call i f", `delta 0 |{\"a|`, "open 1 call j g", "delta 1 |[|", `delta 0 |\":1}|`, "close 0", "delta 1 |]|", "close 1"}, nil},
		{"whole calls in one delta", []string{`{"content":"","tool_calls":[{"id":"i","index":0,"type":"function","function":{"name":"f","arguments":"{}"}},{"id":"j","index":1,"type":"function","function":{"name":"f","arguments":"{}"}}]}`},
			[]string{"open 0 call i f", "delta 0 |{}|", "close 0", "open 1 call j f", "delta 1 |{}|", "close 1"}, nil},
		{"whole calls that all have index 0", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"id":"j","function":{"name":"f","arguments":"{}"}}]}`},
			[]string{"open 0 call i f", "delta 0 |{}|", "close 0", "open 1 call j f", "delta 1 |{}|", "close 1"}, nil},
		{"a new id alone is no new call", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"id":"j","function":{"arguments":"}"}}]}`},
			[]string{"open 0 call i f", "delta 0 |{|", "delta 0 |}|", "close 0"}, nil},
		{"without an index a new id is a new call", []string{`{"tool_calls":[{"id":"i","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"function":{"arguments":"}"}}]}`,
			`{"tool_calls":[{"id":"j","function":{"name":"g","arguments":"{}"}}]}`},
			[]string{"open 0 call i f", "delta 0 |{|", "delta 0 |}|", "close 0", "open 1 call j g", "delta 1 |{}|", "close 1"}, nil},
		{"arguments that are JSON, not its text", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":{"a":"\n"}}}]}`},
			[]string{"open 0 call i f", `delta 0 |{\"a\":\"\\n\"}|`, "close 0"}, nil},
		{"an id that never comes is made", []string{`{"content":"a","tool_calls":[{"index":0,"function":{"name":"f"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`},
			[]string{"open 0 text", "delta 0 |a|", "close 0", "open 1 call call_x1_1 f", "delta 1 |{}|", "close 1"}, nil},
		{"an id that comes late, a name in pieces", []string{`{"tool_calls":[{"index":0,"function":{"name":"f"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"g"}}]}`, `{"tool_calls":[{"index":0,"id":"i","function":{"arguments":"{}"}}]}`},
			[]string{"open 0 call i fg", "delta 0 |{}|", "close 0"}, nil},
		{"a name that comes behind arguments", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"}"}}]}`},
			[]string{"open 0 call i f", "delta 0 |{}|", "close 0"}, nil},
		{"a call that waits for its id is opened before a text", []string{`{"tool_calls":[{"index":0,"function":{"name":"f"}}]}`, `{"content":"a"}`},
			[]string{"open 0 call call_x1_0 f", "open 1 text", "delta 1 |a|", "close 1", "close 0"}, nil},
		{"a call that says nothing is lost", []string{`{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":" "}}]}`}, nil, []string{"choices[0].message.tool_calls.name"}},
		{"a call with more", []string{`{"tool_calls":[{"index":0,"id":"i","x":1,"function":{"name":"f","arguments":"{}","y":1}}]}`, `{"tool_calls":[{"index":0,"function":{"y":2}}]}`},
			[]string{"open 0 call i f", "delta 0 |{}|", "close 0"}, []string{"choices[0].message.tool_calls.x", "choices[0].message.tool_calls.function.y"}},
		{"function_call with more", []string{`{"function_call":{"name":"f","arguments":"{}","y":1}}`}, []string{"open 0 call call_x1_0 f", "delta 0 |{}|", "close 0"}, []string{"choices[0].message.function_call.y"}},
		{"white space behind a call that is over says nothing", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{}"}}]}`, `{"content":"a"}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":" "}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"\n\t"}}]}`},
			[]string{"open 0 call i f", "delta 0 |{}|", "close 0", "open 1 text", "delta 1 |a|", "close 1"}, nil},
		{"a custom call", []string{`{"tool_calls":[{"index":0,"id":"i","type":"custom","custom":{"name":"f","input":""}}]}`, `{"tool_calls":[{"index":0,"custom":{"input":"ls"}}]}`},
			[]string{"open 0 call i f custom", "delta 0 |ls|", "close 0"}, nil},
		{"function_call of old", []string{`{"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{}"}}`}, []string{"open 0 call call_x1_0 f", "delta 0 |{}|", "close 0"}, nil},
		{"annotations of the open text", []string{`{"content":"a","annotations":[{"type":"url_citation","url_citation":{}}]}`},
			[]string{"open 0 text", "delta 0 |a|", `cite 0 {"type":"url_citation","url_citation":{}}`, "close 0"}, nil},
		{"content that is a list of parts", []string{`{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[]},{"type":"refusal","refusal":"b"}]}`},
			[]string{"open 0 text", "delta 0 |a|", "close 0", "open 1 refusal", "delta 1 |b|", "close 1"}, []string{"choices[0].message.content.thinking"}},
		{"what nobody knows is a loss", []string{`{"content":"a","audio":{"id":"x"},"reasoning_details":[{}],"x":null,"y":""}`, `{"reasoning_details":[{}]}`},
			[]string{"open 0 text", "delta 0 |a|", "close 0"}, []string{"choices[0].message.audio", "choices[0].message.reasoning_details"}},
		{"logprobs go with the text", []string{`{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","bytes":[97]}]}}`, `{"index":0,"delta":{"reasoning":"r"},"logprobs":{"content":[{"token":"r","bytes":[1]}]}}`},
			[]string{"open 0 text", "delta 0 |a| logprobs=1", "close 0", "open 1 reasoning", "delta 1 |r|", "close 1"}, nil},
		{"other choices are lost, once", []string{`{"index":1,"delta":{"content":"b"}}`, `{"index":0,"delta":{"content":"a"}}`, `{"delta":{"content":"c"},"index":2}`},
			[]string{"open 0 text", "delta 0 |a|", "close 0"}, []string{"choices[1]"}},
		{"a whole answer inside the stream", []string{`{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"i","function":{"name":"f","arguments":"{}"}},{"id":"i","function":{"name":"f","arguments":"{}"}}]}}`},
			[]string{"open 0 text", "delta 0 |a|", "close 0", "open 1 call i f", "delta 1 |{}|", "close 1", "open 2 call i f", "delta 2 |{}|", "close 2"}, nil},
		{"a whole answer behind deltas repeats them", []string{`{"content":"a"}`, `{"index":0,"delta":null,"message":{"content":"a"}}`}, []string{"open 0 text", "delta 0 |a|", "close 0"}, nil},
		{"arguments that only the end completes", []string{`{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{\"a"}}]}`, `{"content":"b"}`},
			[]string{"open 0 call i f", `delta 0 |{\"a|`, "open 1 text", "delta 1 |b|", "close 1", "close 0"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stream strings.Builder
			for _, chunk := range append(c.chunks, `{"index":0,"delta":{},"finish_reason":"stop"}`) {
				if !strings.Contains(chunk, `"delta"`) && !strings.Contains(chunk, `"message"`) {
					chunk = `{"index":0,"delta":` + chunk + `,"finish_reason":null}`
				}
				fmt.Fprintf(&stream, "data: {\"id\":\"c\",\"created\":7,\"model\":\"m\",\"choices\":[%s]}\n\n", chunk)
			}
			got := decode(t, []byte(stream.String()+"data: [DONE]\n\n"))
			want := append(append([]string{start}, c.want...), end)
			if fmt.Sprint(got.lines) != fmt.Sprint(want) || got.err != nil || got.finish != nil {
				t.Errorf("got  %s\nwant %s\n%v %v", strings.Join(got.lines, "\n     "), strings.Join(want, "\n     "), got.err, got.finish)
			}
			var lost []string
			for _, l := range got.losses {
				lost = append(lost, l.Path)
			}
			if fmt.Sprint(lost) != fmt.Sprint(c.lost) {
				t.Errorf("lost %v, want %v", lost, c.lost)
			}
		})
	}
}

func TestDecodeEnds(t *testing.T) {
	const chunk = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	const unnamed = `data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"i","type":"function"}]}}]}` + "\n\n"
	ended := func(finish string) string {
		return `data: {"id":"c","choices":[{"index":0,"delta":{},` + finish + `}]}` + "\n\ndata: [DONE]\n\n"
	}
	for _, c := range []struct {
		name, stream string
		last         string
		finish       error
	}{
		{"stop", chunk + ended(`"finish_reason":"stop","stop_reason":null`), `end 1 sequence="" native="stop"`, nil},
		{"a stop token", chunk + ended(`"finish_reason":"stop","stop_reason":2`), `end 1 sequence="" native="stop"`, nil},
		{"a stop string", chunk + ended(`"finish_reason":"stop","stop_reason":"END"`), `end 2 sequence="END" native="stop"`, nil},
		{"a stop string of SGLang", chunk + ended(`"finish_reason":"stop","matched_stop":"END"`), `end 2 sequence="END" native="stop"`, nil},
		{"length", chunk + ended(`"finish_reason":"length"`), `end 3 sequence="" native="length"`, nil},
		{"repetition", chunk + ended(`"finish_reason":"repetition"`), `end 3 sequence="" native="repetition"`, nil},
		{"a filter", chunk + ended(`"finish_reason":"content_filter"`), `end 5 sequence="" native="content_filter"`, nil},
		{"calls", chunk + ended(`"finish_reason":"tool_calls"`), `end 1 sequence="" native="tool_calls"`, nil},
		{"a word that nobody knows", chunk + ended(`"finish_reason":"eos"`), `end 1 sequence="" native="eos"`, nil},
		{"an abort", chunk + ended(`"finish_reason":"abort"`), `fail 503 "overloaded" "" "" "the upstream aborted the answer"`, nil},
		{"an error for a finish reason", chunk + ended(`"finish_reason":"error"`), `fail 502 "" "" "" "the upstream failed while it answered"`, nil},
		{"a call without a name", unnamed + ended(`"finish_reason":"tool_calls"`), `fail 502 "upstream_invalid" "" "" "the upstream sent a tool call without a name"`, nil},
		{"a call without a name behind the finish reason", strings.TrimSuffix(ended(`"finish_reason":"stop"`), "data: [DONE]\n\n") + unnamed + "data: [DONE]\n\n",
			`fail 502 "upstream_invalid" "" "" "the upstream sent a tool call without a name"`, nil},
		{"a call without a name in an answer that was cut", unnamed + ended(`"finish_reason":"length"`), `end 3 sequence="" native="length"`, nil},
		{"no finish reason", chunk + "data: [DONE]\n\n", `fail 502 "upstream_invalid" "" "" "the upstream ended the stream without a finish reason"`, nil},
		{"nothing at all", "data: [DONE]\n\n", `fail 502 "upstream_invalid" "" "" "the upstream ended the stream without a finish reason"`, nil},
		{"an empty finish reason", chunk + ended(`"finish_reason":""`), `fail 502 "upstream_invalid" "" "" "the upstream ended the stream without a finish reason"`, nil},
		{"cut before the end mark", chunk + strings.TrimSuffix(ended(`"finish_reason":"stop"`), "data: [DONE]\n\n"), "close 0", io.ErrUnexpectedEOF},
		{"cut", chunk, "delta 0 |a|", io.ErrUnexpectedEOF},
		{"an error frame", chunk + `data: {"error": {"message": "m", "type": "InternalServerError", "param": null, "code": 500}}` + "\n\ndata: [DONE]\n\n", `fail 500 "" "InternalServerError" "" "m"`, nil},
		{"an error frame with a word", `data: {"error":{"message":"m","type":"t","param":"p","code":"model_not_found"}}` + "\n\n", `fail 404 "model_not_found" "t" "p" "m"`, nil},
		{"a flat error", `data: {"object":"error","message":"m","type":"BadRequestError","code":400}` + "\n\n", `fail 400 "" "BadRequestError" "" "m"`, nil},
		{"an error that is text", `data: {"error":"m"}` + "\n\n", `fail 0 "" "" "" "m"`, nil},
		{"a detail", `data: {"detail":"m"}` + "\n\n", `fail 0 "" "" "" "m"`, nil},
		{"an event called error", "event: error\ndata: {\"message\":\"m\"}\n\n", `fail 0 "" "" "" "m"`, nil},
		{"an event called error without words", "event: error\ndata:\n\n", `fail 0 "" "" "" "the upstream failed and gave no reason"`, nil},
		{"nothing counts behind the end", ended(`"finish_reason":"stop"`) + chunk, `end 1 sequence="" native="stop"`, nil},
		{"ids are counted where usage is not", `data: {"id":"c","prompt_token_ids":[1,2,3],"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[4,5],"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
			`end 1 sequence="" native="stop"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decode(t, []byte(": comment\n\ndata:\n\n"+c.stream))
			if got.err != nil || len(got.lines) == 0 || got.lines[len(got.lines)-1] != c.last || got.finish != c.finish {
				t.Errorf("got %v %v %s", got.err, got.finish, strings.Join(got.lines, "\n"))
			}
			if strings.HasPrefix(c.name, "ids") && (got.answer.Usage.Prompt != 3 || got.answer.Usage.Completion != 2) {
				t.Errorf("usage %+v", got.answer.Usage)
			}
		})
	}
}

func TestDecodeRefusesWhatCannotBeUnderstood(t *testing.T) {
	const chunk = `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
	for name, stream := range map[string]string{
		"no JSON":                      "data: {\n\n",
		"an array":                     "data: []\n\n",
		"choices that are a text":      `data: {"choices":"x"}` + "\n\n",
		"choices that are an object":   `data: {"choices":{}}` + "\n\n",
		"a choice that is a number":    `data: {"choices":[1]}` + "\n\n",
		"a delta that is a text":       `data: {"choices":[{"delta":"a"}]}` + "\n\n",
		"a text that is a number":      `data: {"choices":[{"delta":{"content":1}}]}` + "\n\n",
		"calls that are an object":     `data: {"choices":[{"delta":{"tool_calls":{}}}]}` + "\n\n",
		"a call that is a number":      `data: {"choices":[{"delta":{"tool_calls":[1]}}]}` + "\n\n",
		"an index below 0":             `data: {"choices":[{"delta":{"tool_calls":[{"index":-1}]}}]}` + "\n\n",
		"a finish reason that is true": `data: {"choices":[{"delta":{},"finish_reason":true}]}` + "\n\n",
		"a call that goes on although it is over": chunk + `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}` + "\n\n",
		"a call that changes its name": strings.Replace(chunk, "{}", "{", 1) + `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"g"}}]}}]}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			got := decode(t, []byte(stream+"data: [DONE]\n\n"))
			if _, ok := got.err.(*canon.Problem); !ok || got.finish != io.ErrUnexpectedEOF {
				t.Errorf("got %v %v", got.err, got.finish)
			}
		})
	}
}

func TestDecodingADeltaAllocatesNothing(t *testing.T) {
	all := recordings(t)
	for name, text := range map[string]string{"chat-stream-tool-auto-bare": `"reasoning"`, "chat-stream-tool-parallel": `"arguments"`, "rust-chat-stream-capture": `"content"`} {
		d := chat{}.NewDecoder(testOptions(nil))
		var events []canon.Event
		deltas := 0
		for _, frame := range frames(t, all[name]) {
			var err error
			if events, err = d.Frame(events[:0], frame.Name, frame.Data); err != nil {
				t.Fatal(err)
			}
			if len(events) != 1 || events[0].Kind != canon.Delta || !bytes.Contains(frame.Data, []byte(text)) {
				continue
			}
			deltas++
			if n := testing.AllocsPerRun(10, func() { events, _ = d.Frame(events[:0], nil, frame.Data) }); n > 0 {
				t.Errorf("%s: %v allocations for %s", name, n, frame.Data)
			}
		}
		if deltas == 0 {
			t.Errorf("%s has no delta of %s", name, text)
		}
	}
}

func TestOnlyAFinishReasonThatNobodyKnowsIsALoss(t *testing.T) {
	for _, word := range []string{"stop", "length", "tool_calls", "function_call", "content_filter", "repetition", "eos"} {
		got := decode(t, []byte(`data: {"choices":[{"delta":{"content":"a"},"finish_reason":"`+word+`"}]}`+"\n\ndata: [DONE]\n\n"))
		want := "[]"
		if word == "eos" {
			want = "[{choices[0].finish_reason unknown}]"
		}
		if fmt.Sprint(got.losses) != want || string(got.answer.Stop.Native) != word {
			t.Errorf("%s: lost %v, stop %+v", word, got.losses, got.answer.Stop)
		}
	}
}

// FuzzDecode: any bytes give a stream of the grammar, and its end only behind the end mark.
func FuzzDecode(f *testing.F) {
	for _, stream := range recordings(f) {
		f.Add(stream)
	}
	for _, c := range streams {
		f.Add([]byte(c.stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		got := decode(t, stream)
		ended := got.answer.Stop.Reason != 0
		if ended != (got.finish == nil && got.answer.Failed == nil) {
			t.Errorf("stop %+v, failed %v, finish %v", got.answer.Stop, got.answer.Failed, got.finish)
		}
		if mark := bytes.Index(stream, []byte("[DONE]")); mark >= 0 {
			stream = stream[:mark]
		}
		if cut := decode(t, stream); cut.answer.Stop.Reason != 0 {
			t.Errorf("a cut stream must not end: %s", strings.Join(cut.lines, "\n"))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	all := recordings(b)
	for _, name := range []string{"chat-stream-plain", "chat-stream-tool-auto-bare", "chat-stream-reasoning", "chat-stream-tool-parallel", "rust-chat-stream-tool-parallel"} {
		b.Run(name, func(b *testing.B) {
			cut := frames(b, all[name])
			o := testOptions(nil)
			var events []canon.Event
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n = 0
				d := chat{}.NewDecoder(o)
				for i := range cut {
					events, _ = d.Frame(events[:0], cut[i].Name, cut[i].Data)
					n += len(events)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(cut)), "ns/frame")
			b.ReportMetric(float64(n), "events")
		})
	}
}
