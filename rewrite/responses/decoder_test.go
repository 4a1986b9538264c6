package responses

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialecttest"
)

// tell says an answer in one line a part.
func tell(a *canon.Answer) string {
	var b strings.Builder
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Type {
		case canon.TextPart:
			fmt.Fprintf(&b, "text %s", p.Text)
		case canon.RefusalPart:
			fmt.Fprintf(&b, "refusal %s", p.Text)
		case canon.ReasoningPart:
			fmt.Fprintf(&b, "reasoning %s/%s/%s %s", p.Text, p.Summary, p.Signature, p.SignedBy)
		case canon.CallPart:
			fmt.Fprintf(&b, "call %s %s.%s %v %s", p.Call.ID, p.Call.Namespace, p.Call.Name, p.Call.Custom, p.Call.Arguments)
		default:
			fmt.Fprintf(&b, "%d %s", p.Type, p.Raw)
		}
		for _, c := range p.Cites {
			fmt.Fprintf(&b, " cite %s", c)
		}
		b.WriteString("\n")
	}
	if a.Failed != nil {
		fmt.Fprintf(&b, "failed %d %s: %s\n", a.Failed.Status, a.Failed.Code, a.Failed.Message)
	} else {
		fmt.Fprintf(&b, "stop %d %s\n", a.Stop.Reason, a.Stop.Native)
	}
	return b.String()
}

func done(index, item string) string {
	return frame("response.output_item.done", `"output_index":`+index+`,"item":`+item)
}

func partAdded(index, at, part string) string {
	return frame("response.content_part.added", `"output_index":`+index+`,"content_index":`+at+`,"part":`+part)
}

func partDone(index, at, part string) string {
	return frame("response.content_part.done", `"output_index":`+index+`,"content_index":`+at+`,"part":`+part)
}

func completed(output string) string {
	return frame("response.completed", `"response":{"status":"completed","output":[`+output+`]}`)
}

// whole is a message that is whole.
func whole(id, text string) string {
	return `{"type":"message","id":"` + id + `","status":"completed","content":[{"type":"output_text","text":"` + text + `"}]}`
}

const (
	emptyText = `{"type":"output_text","text":"","annotations":[]}`
	thought   = `{"id":"r","type":"reasoning","summary":[],"status":"in_progress"}`
)

var decodings = []struct{ name, stream, want string }{
	{"nothing but the end", completed(""), "stop 1 completed\n"},
	{"two content parts, an annotation", created + added("0", message) + partAdded("0", "0", emptyText) + deltaOf("output_text", "0", "0", "a") +
		frame("response.output_text.annotation.added", `"output_index":0,"content_index":0,"annotation_index":0,"annotation":{"n":1}`) +
		partDone("0", "0", `{"type":"output_text","text":"a","annotations":[{"n":1},{"n":2}]}`) + partAdded("0", "1", `{"type":"refusal","refusal":""}`) +
		deltaOf("refusal", "0", "1", "no") + done("0", `{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]}`) + completed(""),
		"text a cite {\"n\":1} cite {\"n\":2}\nrefusal no\nstop 1 completed\n"},
	{"deltas without content parts", created + added("0", message) + deltaOf("output_text", "0", "0", "a") + deltaOf("output_text", "0", "0", "b") + completed(""), "text ab\nstop 1 completed\n"},
	{"done events alone", created + added("0", message) + partAdded("0", "0", emptyText) + frame("response.output_text.done", `"output_index":0,"content_index":0,"text":"whole"`) +
		partDone("0", "0", `{"type":"output_text","text":"whole"}`) + done("0", `{"type":"message","content":[{"type":"output_text","text":"whole"}]}`) +
		added("1", call) + frame("response.function_call_arguments.done", `"output_index":1,"arguments":"{}"`) + completed(""),
		"text whole\ncall c1 .f false {}\nstop 1 completed\n"},
	{"items told only when done", created + done("0", `{"type":"message","content":[{"type":"output_text","text":"a"}]}`) + done("1", `{"type":"custom_tool_call","call_id":"c","name":"exec","input":"x\n"}`) + completed(""),
		"text a\ncall c .exec true x\\n\nstop 1 completed\n"},
	{"items told only at the end", created + added("0", message) + completed(`{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"f","namespace":"n","arguments":"{}"}`),
		"text a\ncall c n.f false {}\nstop 1 completed\n"},
	{"reasoning of both kinds, sealed", created + added("0", thought) + frame("response.reasoning_summary_part.added", `"output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}`) +
		frame("response.reasoning_summary_text.delta", `"output_index":0,"summary_index":0,"delta":"a"`) + frame("response.reasoning_summary_text.delta", `"output_index":0,"summary_index":1,"delta":"b"`) +
		frame("response.reasoning_summary_text.done", `"output_index":0,"summary_index":1,"text":"b"`) + frame("response.reasoning_summary_text.done", `"output_index":0,"summary_index":2,"text":"c"`) +
		deltaOf("reasoning_text", "0", "0", "t") + deltaOf("reasoning_text", "0", "1", "u") +
		done("0", `{"type":"reasoning","summary":[{"text":"a"},{"text":"b"},{"text":"c"}],"content":[{"text":"tu"}],"encrypted_content":"E"}`) + completed(""),
		"reasoning tu/a\\n\\nb\\n\\nc/E responses\nstop 1 completed\n"},
	{"reasoning told when done", created + done("0", `{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}],"content":[{"text":"t"},{"text":"u"}]}`) + completed(""),
		"reasoning tu/a\\n\\nb/ \nstop 1 completed\n"},
	{"Open Responses' name for reasoning", created + added("0", thought) + frame("response.reasoning.delta", `"output_index":0,"delta":"t"`) + completed(""), "reasoning t// \nstop 1 completed\n"},
	{"calls that overlap", created + added("0", call) + added("1", strings.ReplaceAll(call, "c1", "c2")) + deltaOf("function_call_arguments", "0", "0", "{") + deltaOf("function_call_arguments", "1", "0", "[") +
		deltaOf("function_call_arguments", "0", "0", "}") + completed(""), "call c1 .f false {}\ncall c2 .f false [\nstop 1 completed\n"},
	{"a call that has no name until it is done", created + added("0", `{"type":"function_call","call_id":"c"}`) + deltaOf("function_call_arguments", "0", "0", "{}") +
		done("0", `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`) + completed(""), "call c .f false {}\nstop 1 completed\n"},
	{"hosted and unknown items", created + added("0", `{"type":"web_search_call","id":"w"}`) + frame("response.web_search_call.searching", `"output_index":0`) + done("0", `{"type":"web_search_call","id":"w","status":"completed"}`) +
		added("1", `{"type":"vendor:thing"}`) + frame("response.vendor.delta", `"output_index":1,"delta":"x"`) + done("1", `{"type":"vendor:thing","n":1}`) + completed(""),
		"11 {\"type\":\"web_search_call\",\"id\":\"w\",\"status\":\"completed\"}\n13 {\"type\":\"vendor:thing\",\"n\":1}\nstop 1 completed\n"},
	{"cut by length in a response.completed, as vLLM says it", created + frame("response.completed", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`), "stop 3 max_output_tokens\n"},
	{"cut by a filter", created + frame("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`), "stop 5 content_filter\n"},
	{"an end without a response", created + added("0", message) + frame("response.incomplete", ""), "stop 3 incomplete\n"},
	{"failed", created + added("0", call) + frame("response.failed", `"response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down, see https://up.example/v1/x"}}`),
		"call c1 .f false \nfailed 429 rate_limit_exceeded: slow down, see [url]\n"},
	{"an error event", created + frame("error", `"code":"context_length_exceeded","message":"m","param":null`), "failed 400 context_length_exceeded: m\n"},
	{"a nested error first of all", frame("error", `"error":{"type":"server_error","message":"m"}`), "failed 500 : m\n"},
	{"an error frame without a type", created + "data: {\"error\": {\"message\": \"died\", \"type\": \"InternalServerError\", \"code\": 500}}\n\n", "failed 500 : died\n"},
	{"failed in a response.completed", created + frame("response.completed", `"response":{"status":"failed","error":{"code":"server_error","message":"m"}}`), "failed 500 server_error: m\n"},
	{"[DONE] and more behind the end", created + completed("") + "data: [DONE]\n\ndata: {\n\n" + added("0", call), "stop 1 completed\n"},
	{"cancelled in a response.completed", created + frame("response.completed", `"response":{"status":"cancelled","output":[]}`), "failed 0 server_error: the response was cancelled at the upstream\n"},
	{"an error for a status", created + frame("response.completed", `"response":{"status":"error","output":[]}`), "failed 502 : the upstream failed while it answered\n"},
	{"an error beside a status that says completed", created + frame("response.completed", `"response":{"status":"completed","error":{"code":"server_error","message":"m"},"output":[]}`), "failed 500 server_error: m\n"},
	{"a status that says completed in a response.incomplete", created + frame("response.incomplete", `"response":{"status":"completed","output":[]}`), "stop 3 incomplete\n"},
	{"a status that nobody knows", created + frame("response.completed", `"response":{"status":"paused","output":[]}`), "stop 1 completed\n"},
	{"a reason that nobody knows", created + frame("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"steps"}}`), "stop 3 steps\n"},
	{"an output that is a text", created + frame("response.completed", `"response":{"status":"completed","output":"x"}`), "failed 502 upstream_invalid: the upstream ended its answer with an output that is no array\n"},
	{"calls without a call_id", created + added("0", `{"type":"function_call","id":"i","name":"f"}`) + deltaOf("function_call_arguments", "0", "0", "{}") + done("0", `{"type":"function_call","id":"i","name":"f","call_id":"","arguments":"{}"}`) +
		done("1", `{"type":"custom_tool_call","name":"e","input":"x"}`) + completed(`{"type":"function_call","id":"i","name":"f","arguments":"{}"},{"type":"custom_tool_call","name":"e","input":"x"}`),
		"call call_x7_0 .f false {}\ncall call_x7_1 .e true x\nstop 1 completed\n"},
	{"a call without a name", created + added("0", `{"type":"function_call","call_id":"c"}`) + done("0", `{"type":"function_call","call_id":"c","arguments":"{}"}`) + completed(""), "failed 502 upstream_invalid: the upstream sent a tool call without a name\n"},
	{"a call without a name that was never done", created + added("0", `{"type":"function_call","call_id":"c"}`) + completed(""), "failed 502 upstream_invalid: the upstream sent a tool call without a name\n"},
	{"a call without a name in an answer that was cut", created + added("0", `{"type":"function_call","call_id":"c"}`) + frame("response.incomplete", `"response":{"output":[{"type":"function_call","call_id":"c"}]}`), "stop 3 incomplete\n"},
	{"a call without a name that is incomplete itself", created + done("0", `{"type":"function_call","call_id":"c","status":"incomplete"}`) + frame("response.incomplete", ""), "stop 3 incomplete\n"},
	{"white space behind a call that is over", created + added("0", call) + deltaOf("function_call_arguments", "0", "0", "{}") + done("0", call) + deltaOf("function_call_arguments", "0", "0", " ") + completed(""),
		"call c1 .f false {}\nstop 1 completed\n"},
	{"indices that count from 1", created + added("1", message) + deltaOf("output_text", "1", "0", "a") + done("1", whole("i0", "a")) + added("2", call) + deltaOf("function_call_arguments", "2", "0", "{}") +
		completed(whole("i0", "a")+`,{"id":"i1","type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`), "text a\ncall c1 .f false {}\nstop 1 completed\n"},
	{"indices that count from 1, without ids", created + added("1", `{"type":"message"}`) + deltaOf("output_text", "1", "0", "a") + done("1", whole("", "a")) + added("2", `{"type":"message"}`) + deltaOf("output_text", "2", "0", "b") +
		done("2", whole("", "b")) + completed(whole("", "a")+","+whole("", "b")), "text a\ntext b\nstop 1 completed\n"},
	{"indices with gaps", created + done("3", whole("i0", "a")) + done("7", whole("i1", "b")) + completed(whole("i0", "a")+","+whole("i1", "b")), "text a\ntext b\nstop 1 completed\n"},
	{"ids that are other ones in the end", created + done("0", whole("i0", "a")) + done("1", whole("i1", "b")) + completed(whole("j0", "a")+","+whole("j1", "b")), "text a\ntext b\nstop 1 completed\n"},
	{"an item in front of those that were told", created + done("0", whole("i1", "b")) + completed(whole("i0", "a")+","+whole("i1", "b")), "text b\ntext a\nstop 1 completed\n"},
	{"an item in front, without ids", created + done("1", whole("", "b")) + completed(whole("", "a")+","+whole("", "b")), "text b\ntext a\nstop 1 completed\n"},
	{"an item of another type in front, without ids", created + done("0", whole("", "b")) + completed(`{"type":"reasoning","content":[{"text":"r"}]},`+whole("", "b")), "text b\nreasoning r// \nstop 1 completed\n"},
	{"an item that is done under another index", created + added("0", message) + deltaOf("output_text", "0", "0", "a") + done("1", whole("i0", "a")) + completed(""), "text a\nstop 1 completed\n"},
	{"a call known by its call_id", created + added("0", strings.Replace(call, "i1", "", 1)) + deltaOf("function_call_arguments", "0", "0", "{}") + added("1", strings.NewReplacer("i1", "", "c1", "c2").Replace(call)) +
		completed(`{"type":"function_call","call_id":"c2","name":"f","arguments":"[]"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`), "call c1 .f false {}\ncall c2 .f false []\nstop 1 completed\n"},
	{"without response.created", added("0", call) + completed(""), "call c1 .f false \nstop 1 completed\n"},
	{"without indices", frame("response.output_item.added", `"item":`+call) + frame("response.function_call_arguments.delta", `"delta":"{}"`) + frame("response.output_item.done", `"item":`+call) +
		frame("response.output_item.added", `"item":`+thought) + frame("response.reasoning_text.delta", `"delta":"t"`) + completed(""), "call c1 .f false {}\nreasoning t// \nstop 1 completed\n"},
}

func TestDecode(t *testing.T) {
	for _, c := range decodings {
		t.Run(c.name, func(t *testing.T) {
			_, a := decode(t, []byte(c.stream), options("content"))
			if got := tell(a); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestPings(t *testing.T) {
	progress := frame("response.in_progress", `"response":{"id":"r1"}`)
	events, _ := decode(t, []byte(created+progress+progress+progress+completed("")), options("content"))
	var got []string
	for _, e := range events {
		got = append(got, e.Kind.String())
	}
	if want := fmt.Sprint([]canon.Kind{canon.Start, canon.Ping, canon.Ping, canon.Ended}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAFrameThatCannotBeUnderstood(t *testing.T) {
	for name, stream := range map[string]string{
		"no JSON":                         created + "data: {\n\n",
		"a broken end":                    created + "event: response.completed\ndata: {\n\n",
		"an array":                        created + "data: []\n\n",
		"a delta of no item":              created + deltaOf("output_text", "0", "0", "a"),
		"a delta of another item":         created + added("0", message) + deltaOf("output_text", "1", "0", "a"),
		"a delta of an item that is done": created + added("0", call) + done("0", call) + deltaOf("function_call_arguments", "0", "0", "a"),
		"a delta of a part that is done":  created + added("0", message) + partAdded("0", "0", emptyText) + partDone("0", "0", emptyText) + deltaOf("output_text", "0", "0", "a"),
		"arguments of a message":          created + added("0", message) + deltaOf("function_call_arguments", "0", "0", "a"),
		"text of a call":                  created + added("0", call) + deltaOf("output_text", "0", "0", "a"),
		"a delta that is no text":         created + added("0", call) + frame("response.function_call_arguments.delta", `"output_index":0,"delta":{}`),
		"an item that is none":            created + added("0", `"x"`),
	} {
		t.Run(name, func(t *testing.T) {
			d := responses{}.NewDecoder(options("content"))
			var err error
			frames([]byte(stream), func(kind, data []byte) {
				if err == nil {
					_, err = d.Frame(nil, kind, data)
				}
			})
			if p, ok := err.(*canon.Problem); !ok || p.Status != 502 || p.Message == "" {
				t.Errorf("%v", err)
			}
			if d.Finish() != io.ErrUnexpectedEOF {
				t.Error("it must not have ended")
			}
		})
	}
}

func TestWhatADecoderLoses(t *testing.T) {
	o := options("content")
	decode(t, []byte(created+done("0", `{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"a","new":1,"logprobs":null}]}`)+
		added("1", `{"type":"web_search_call"}`)+completed("")), o)
	if got, want := fmt.Sprint(o.Losses.List()), "[{output[0].content[0].new unknown} {output[0].phase unknown} {output[1] unknown}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnEndThatNobodyKnowsIsALoss(t *testing.T) {
	for response, want := range map[string]string{
		`{"status":"completed"}`: "[]",
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`: "[]",
		`{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`:    "[]",
		`{"status":"incomplete","incomplete_details":{"reason":"steps"}}`:             "[{incomplete_details.reason unknown}]",
		`{"status":"in_progress"}`: "[]",
		`{"status":"paused"}`:      "[{status unknown}]",
	} {
		o := options("content")
		decode(t, []byte(created+frame("response.completed", `"response":`+response)), o)
		if got := fmt.Sprint(o.Losses.List()); got != want {
			t.Errorf("%s: got %s, want %s", response, got, want)
		}
	}
}

func TestTheTotalIsWrittenAsItWasTold(t *testing.T) {
	for usage, want := range map[string]string{
		`{"input_tokens":11,"output_tokens":5,"total_tokens":19}`:                  `"total_tokens":19}`,
		`{"input_tokens":11,"output_tokens":5,"total_tokens":null}`:                `"total_tokens":16}`,
		`{"input_tokens":9223372036854775807,"output_tokens":9223372036854775807}`: `"total_tokens":9223372036854775807}`,
	} {
		if got := string(appendUsage(nil, readUsage([]byte(usage)))); !strings.HasSuffix(got, want) {
			t.Errorf("%s became %s", usage, got)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"all sorts", `{"id":"r","status":"completed","output":[{"type":"reasoning","summary":[{"text":"s"}],"encrypted_content":"E"},{"type":"message","content":[{"type":"output_text","text":"a","annotations":[{"n":1}]},` +
			`{"type":"refusal","refusal":"b"},{"type":"output_audio"}]},{"type":"function_call","id":"fc","name":"f","arguments":"{"},{"type":"custom_tool_call","call_id":"c","name":"e","input":"i"},{"type":"web_search_call"},{"type":"z"}]}`,
			"reasoning /s/E responses\ntext a cite {\"n\":1}\nrefusal b\n13 {\"type\":\"output_audio\"}\ncall call_x7_4 .f false {\ncall c .e true i\n11 {\"type\":\"web_search_call\"}\n13 {\"type\":\"z\"}\nstop 1 completed\n"},
		{"wrong types", `{"status":"completed","output":[1,{"type":7},{"type":"message","content":"x"},{"type":"function_call","arguments":{},"name":"f"}]}`,
			"13 1\n13 {\"type\":7}\ncall call_x7_2 .f false \nstop 1 completed\n"},
		{"a call without a name that is incomplete", `{"status":"incomplete","output":[{"type":"function_call","call_id":"c"}]}`, "stop 3 incomplete\n"},
		{"a reason that nobody knows", `{"status":"incomplete","incomplete_details":{"reason":"steps"},"output":[]}`, "stop 3 steps\n"},
		{"an error for a status", `{"status":"error","output":[]}`, "failed 502 : the upstream failed while it answered\n"},
		{"an error beside a status that says completed", `{"status":"completed","error":{"message":"m"},"output":[]}`, "failed 0 : m\n"},
		{"cut", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, "stop 3 max_output_tokens\n"},
		{"without a status", `{"output":[]}`, "stop 1 completed\n"},
		{"failed", `{"status":"failed","output":[],"error":{"code":"server_error","message":"m"}}`, "failed 500 server_error: m\n"},
		{"cancelled", `{"status":"cancelled","output":[]}`, "failed 0 server_error: the response was cancelled at the upstream\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := responses{}.ReadAnswer([]byte(c.body), options("content"))
			if err != nil {
				t.Fatal(err)
			}
			if got := tell(a); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	for _, body := range []string{`{}`, `{"output":{}}`, `{"status":"in_progress","output":[]}`, `{"status":"queued","output":[]}`, `{"object":"chat.completion","choices":[]}`,
		`{"status":"paused","output":[]}`, `{"output":[{"type":"function_call","call_id":"c","arguments":"{}"}]}`} {
		if _, err := (responses{}).ReadAnswer([]byte(body), options("content")); err == nil {
			t.Errorf("%s is no answer", body)
		}
	}
	a, err := responses{}.ReadAnswer([]byte(`{"output":[],"kv_transfer_params":null,"tools":[],"new":1}`), options("content"))
	if err != nil || len(a.Extra) != 1 || string(a.Extra[0].Name) != "new" {
		t.Errorf("%v %v", a.Extra, err)
	}
}

// FuzzDecode: whatever comes, the events are a stream of canon's grammar, it ends only with its own end, and what is made of it is a stream.
func FuzzDecode(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(dialecttest.Streams(f))) {
		f.Add(dialecttest.Streams(f)[name], uint8(0), uint8(0))
	}
	var events []string
	for i, c := range decodings {
		f.Add([]byte(c.stream), uint8(i), uint8(i+1))
		for event := range strings.SplitAfterSeq(c.stream, "\n\n") {
			events = append(events, event)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, pick, step uint8) {
		checkDecode(t, stream)
		// Mutated bytes seldom stay JSON; whole events in another order do.
		var picked []byte
		for i := range 12 {
			picked = append(picked, events[(int(pick)+i*int(step))%len(events)]...)
		}
		checkDecode(t, picked)
	})
}

func checkDecode(t *testing.T, stream []byte) {
	o, asked := options("content"), everything()
	asked.Show.Logprobs = false // a unary answer does not say which part they are of
	d, e := responses{}.NewDecoder(o), responses{}.NewEncoder(asked, o)
	var folder canon.Folder
	var events []canon.Event
	var out []byte
	ended, broken := false, false
	frames(stream, func(name, data []byte) {
		if broken {
			return
		}
		var err error
		if events, err = d.Frame(events[:0], name, data); err != nil {
			broken = true
			return
		}
		for i := range events {
			if err := folder.Event(&events[i]); err != nil {
				t.Fatalf("%v, from %s", err, stream)
			}
			ended = ended || events[i].Kind == canon.Ended || events[i].Kind == canon.Fail
			out = e.Append(out, &events[i])
		}
	})
	if got := d.Finish() == nil; got != ended {
		t.Fatalf("finish says %v, the events %v: %s", got, ended, stream)
	}
	if ended {
		checkStream(t, out)
	}
	unary, err := responses{}.AppendAnswer(nil, folder.Answer(), asked, o)
	if err != nil || !jsonx.Valid(unary) {
		t.Fatalf("%v %s", err, unary)
	}
	if a := folder.Answer(); a.Stop.Reason != 0 && !bytes.Equal(unary, []byte(dialecttest.Fold(New(), out).Response)) {
		t.Errorf("the stream\n%s\nthe answer\n%s", dialecttest.Fold(New(), out).Response, unary)
	}
}

// BenchmarkDecode is the cost of one event of a recorded stream, its beginning and end among them.
func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"responses-stream-reasoning", "responses-stream-logprobs-reasoning", "responses-stream-tool-parallel"} {
		b.Run(name, func(b *testing.B) {
			var names, datas [][]byte
			frames(dialecttest.Streams(b)[name], func(name, data []byte) {
				names, datas = append(names, bytes.Clone(name)), append(datas, bytes.Clone(data))
			})
			o := options("summary")
			b.ReportAllocs()
			var events []canon.Event
			n := 0
			for d := (responses{}).NewDecoder(o); b.Loop(); n++ {
				if n == len(names) {
					n, d = 0, responses{}.NewDecoder(o)
				}
				var err error
				if events, err = d.Frame(events[:0], names[n], datas[n]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
