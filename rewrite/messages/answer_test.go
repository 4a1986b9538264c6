package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
)

func textPart(s string) canon.Part { return canon.Part{Type: canon.TextPart, Text: canon.Text(s)} }

func callPart(name, arguments string) canon.Part {
	return canon.Part{Type: canon.CallPart, Call: canon.Call{ID: canon.Text("id_" + name), Name: canon.Text(name), Arguments: canon.Text(arguments)}}
}

var answers = []struct {
	name   string
	parts  []canon.Part
	want   string // content
	losses string
	cut    bool // its input is no object, which a stream says in fragments
}{
	{"text", []canon.Part{textPart(`H\u0069 \ud800 \"quoted\"`)}, `{"type":"text","text":"H\u0069 \ud800 \"quoted\""}`, "", false},
	{"nothing", nil, `{"type":"text","text":""}`, "", false},
	{"an empty text", []canon.Part{textPart("")}, `{"type":"text","text":""}`, "", false},
	{"reasoning, text and calls", []canon.Part{{Type: canon.ReasoningPart, Text: canon.Text("t"), Signature: canon.Text("S")}, textPart("a"), callPart("f", `{\"a\":1.50,\"b\":\"\\ud800\"}`), callPart("g", "")},
		`{"type":"thinking","thinking":"t","signature":"S"},{"type":"text","text":"a"},{"type":"tool_use","id":"id_f","name":"f","input":{"a":1.50,"b":"\ud800"}},` +
			`{"type":"tool_use","id":"id_g","name":"g","input":{}}`, "", false},
	{"reasoning that is a summary", []canon.Part{{Type: canon.ReasoningPart, Summary: canon.Text("s"), Signature: canon.Text("S"), SignedBy: canon.Messages}, textPart("a")},
		`{"type":"thinking","thinking":"s","signature":"S"},{"type":"text","text":"a"}`, "", false},
	{"reasoning with both", []canon.Part{{Type: canon.ReasoningPart, Text: canon.Text("t"), Summary: canon.Text("s"), Signature: canon.Text("S"), SignedBy: canon.Responses}},
		`{"type":"thinking","thinking":"t","signature":""}`, "content[0].summary no_equivalent\ncontent[0].signature foreign", false},
	{"a refusal behind a text", []canon.Part{textPart("Hm."), {Type: canon.RefusalPart, Text: canon.Text("no")}}, `{"type":"text","text":"Hm."},{"type":"text","text":"no"}`, "", false},
	{"citations", []canon.Part{{Type: canon.TextPart, Text: canon.Text("a"), Cites: []canon.Raw{canon.Raw(`{"type":"url_citation"}`), canon.Raw(`{"type":"char_location", "x":1}`), canon.Raw(`{"type":"page_location"}`)}}},
		`{"type":"text","text":"a","citations":[{"type":"char_location","x":1},{"type":"page_location"}]}`, "content[0].annotations no_equivalent", false},
	{"blocks of this family and others", []canon.Part{{Type: canon.HostedPart, Raw: canon.Raw(`{"type":"web_search_call"}`)}, {Type: canon.HostedPart, Raw: canon.Raw(`{"type":"server_tool_use", "id":"s"}`)},
		{Type: canon.RedactedPart, Signature: canon.Text("R"), SignedBy: canon.Messages}, {Type: canon.RedactedPart, Signature: canon.Text("R"), SignedBy: canon.Responses},
		{Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"new"}`)}},
		`{"type":"server_tool_use","id":"s"},{"type":"redacted_thinking","data":"R"}`,
		"content[0].web_search_call no_equivalent\ncontent[3].redacted_thinking foreign\ncontent[4].new unknown", false},
	{"what no block is made of", []canon.Part{{Type: canon.AudioPart}, {Type: canon.ImagePart}, {Type: canon.VideoPart}, {Type: canon.FilePart}, {Type: canon.ReferencePart}, {Type: canon.ResultPart},
		{Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"compaction","encrypted_content":"e"}`)}, {Type: canon.UnknownPart, Raw: canon.Raw(`{"type":"compaction","content":"c"}`)}},
		`{"type":"compaction","content":"c"}`, "content[0].audio no_equivalent\ncontent[1].image no_equivalent\ncontent[2].video no_equivalent\ncontent[3].file no_equivalent\n" +
			"content[4].item_reference foreign\ncontent[5].unknown unknown\ncontent[6].compaction unknown", false},
	{"a custom call", []canon.Part{{Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("exec"), Arguments: canon.Text(`say(\"\n\ud83d\ude00\")`), Custom: true}}},
		`{"type":"tool_use","id":"c","name":"exec","input":{"input":"say(\"\n\ud83d\ude00\")"}}`, "", false},
	{"a call into a namespace", []canon.Part{{Type: canon.CallPart, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("f"), Namespace: canon.Text("n")}}},
		`{"type":"tool_use","id":"c","name":"f","input":{}}`, "content[0].namespace no_equivalent", false},
	{"arguments that are cut", []canon.Part{textPart("a"), callPart("f", `{\"a\":`)}, `{"type":"text","text":"a"},{"type":"tool_use","id":"id_f","name":"f","input":{}}`, "content[1].input no_equivalent", true},
	{"arguments that are no object", []canon.Part{callPart("f", `[1]`)}, `{"type":"tool_use","id":"id_f","name":"f","input":{}}`, "content[0].input no_equivalent", true},
}

func TestAppendAnswer(t *testing.T) {
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			a := &canon.Answer{Model: canon.Text("served"), Parts: c.parts, Stop: canon.Stop{Reason: canon.StopLength}, Usage: canon.Usage{Prompt: 17, Completion: 7, Cached: 5, CacheWrite: 2, Reasoning: 3}}
			var l canon.Losses
			got, err := New().(dialect.Translator).AppendAnswer([]byte("x"), a, asked(), options(&l))
			want := `x{"id":"msg_x1","type":"message","role":"assistant","model":"asked","content":[` + c.want + `],"stop_reason":"max_tokens","stop_sequence":null,` +
				`"usage":{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":5,"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}}`
			if err != nil || string(got) != want || !jsonx.Valid(got[1:]) {
				t.Errorf("got %s, %v\nwant %s", got, err, want)
			}
			if lossLines(&l) != c.losses {
				t.Errorf("lost %s\nwant %s", lossLines(&l), c.losses)
			}

			// The stream says the same.
			var streamed canon.Losses
			e := New().(dialect.Translator).NewEncoder(asked(), options(&streamed))
			var frames []byte
			if err := a.Replay(func(ev *canon.Event) error { frames = e.Append(frames, ev); return nil }); err != nil {
				t.Fatal(err)
			}
			checkInvariants(t, string(frames))
			if c.cut {
				return
			}
			if folded := dialecttest.Fold(New(), frames).Response; folded != string(got[1:]) {
				t.Errorf("a stream folds to\n%s\nunary\n%s", folded, got[1:])
			}
			if lossLines(&streamed) != c.losses {
				t.Errorf("a stream lost %s\nwant %s", lossLines(&streamed), c.losses)
			}
		})
	}
}

func TestAppendAnswerKeepsTheBytesOfArguments(t *testing.T) {
	a := &canon.Answer{Parts: []canon.Part{callPart("f", ` {\"a\" : 1, \"a\": 2e0}\n`)}, Stop: canon.Stop{Reason: canon.StopEnd}}
	got, err := New().(dialect.Translator).AppendAnswer(nil, a, asked(), options(nil))
	if err != nil || !bytes.Contains(got, []byte(`"input":{"a" : 1, "a": 2e0}}`)) || !bytes.Contains(got, []byte(`"stop_reason":"tool_use"`)) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAppendAnswerOfAFailure(t *testing.T) {
	tr := New().(dialect.Translator)
	problem := &canon.Problem{Status: 503, Message: "m"}
	if got, err := tr.AppendAnswer(nil, &canon.Answer{Failed: problem}, asked(), options(nil)); !errors.Is(err, problem) || len(got) > 0 {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestReadAnswerMintsIDsAndFailsWithTheUpstream(t *testing.T) {
	read := func(reason string) *canon.Answer {
		a, err := New().(dialect.Translator).ReadAnswer([]byte(`{"type":"message","content":[{"type":"tool_use","name":"f","input":{}},{"type":"tool_use","id":"","name":"f","input":{}}],"stop_reason":"`+reason+`"}`), options(nil))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := read("tool_use")
	if one, two := string(a.Parts[0].Call.ID), string(a.Parts[1].Call.ID); one != "call_x1_0" || two != "call_x1_1" || a.Failed != nil {
		t.Errorf("got %s and %s, failed %v", one, two, a.Failed)
	}
	for word, status := range map[string]int{"error": 502, "abort": 503} {
		if a := read(word); a.Failed == nil || a.Failed.Status != status || a.Stop.Reason != 0 {
			t.Errorf("%s: %+v", word, a)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	var l canon.Losses
	body := []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"t","signature":"S"},{"type":"redacted_thinking","data":"R"},` +
		`{"type":"text","text":"a","citations":[{"type":"char_location"}],"x":1},{"type":"tool_use","id":"i","name":"f","input":{"a": "\n"}},{"type":"tool_use","id":"j","name":"g","input":{}},` +
		`{"type":"web_search_tool_result","content":[]},{"type":"new"}],"stop_reason":"stop_sequence","stop_sequence":"END","stop_details":{"a":1},"container":null,"y":2,` +
		`"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":7,"service_tier":"standard","server_tool_use":{"web_search_requests":1}}}`)
	a, err := New().(dialect.Translator).ReadAnswer(body, options(&l))
	if err != nil {
		t.Fatal(err)
	}
	if string(a.ID) != "msg_1" || string(a.Model) != "m" || a.Stop.Reason != canon.StopSequence || string(a.Stop.Sequence) != "END" || a.Failed != nil ||
		a.Usage != (canon.Usage{Prompt: 15, Completion: 7, Cached: 5, CacheWrite: -1, Reasoning: -1}) || len(a.Extra) != 1 || string(a.Extra[0].Name) != "y" {
		t.Errorf("got %+v", a)
	}
	if want := "stop_details no_equivalent\nusage.server_tool_use.web_search_requests no_equivalent"; lossLines(&l) != want {
		t.Errorf("lost %s", lossLines(&l))
	}
	var lines []string
	for i := range a.Parts {
		p := &a.Parts[i]
		line := tellType(p.Type) + " " + string(p.Text) + string(p.Signature) + string(p.Call.ID) + string(p.Call.Name) + string(p.Call.Arguments)
		if len(p.Extra)+len(p.Cites) > 0 {
			line += " with more"
		}
		lines = append(lines, line)
	}
	want := "reasoning tS\nredacted R\ntext a with more\ncall if{\\\"a\\\": \\\"\\\\n\\\"}\ncall jg{}\nhosted \nunknown "
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReadAnswerRefusesWhatIsNoMessage(t *testing.T) {
	for _, body := range []string{`{}`, `{"type":"message"}`, `{"type":"completion","content":[]}`, `{"content":{}}`, `{"content":[1]}`, `{"content":[{}]}`, `{"content":[],"id":1}`, `{"content":[],"model":[]}`,
		`{"content":[],"stop_reason":{}}`, `{"content":[{"type":"text","text":[]}]}`, `{"content":[{"type":"tool_use","id":"i"}]}`, `{"content":[{"type":"thinking","signature":1}]}`} {
		a, err := New().(dialect.Translator).ReadAnswer([]byte(body), options(nil))
		var p *canon.Problem
		if a != nil || !errors.As(err, &p) || p.Status != 502 {
			t.Errorf("%s: got %+v, %v", body, a, err)
		}
	}
}

func TestAMessageWithoutAStopReasonWasAborted(t *testing.T) {
	for _, body := range []string{`{"type":"message","content":[]}`, `{"type":"message","content":[],"stop_reason":null}`} {
		a, err := New().(dialect.Translator).ReadAnswer([]byte(body), options(nil))
		if err != nil || a.Failed == nil || a.Failed.Status != 503 || a.Stop.Reason != 0 {
			t.Errorf("%s: got %+v, %v", body, a, err)
		}
	}
}

// What a stream says folds to a unary answer; reading that must give what the stream's events fold to.
func TestUnaryAnswersReadAsStreamsDo(t *testing.T) {
	compared := 0
	for name, stream := range dialecttest.Streams(t) {
		streamed := decode(t, string(stream), nil)
		if streamed.answer.Failed != nil {
			continue
		}
		compared++
		checkSame(t, name, []byte(dialecttest.Fold(New(), stream).Response), streamed.answer)
	}
	if compared < 3 {
		t.Errorf("only %d streams compared", compared)
	}
}

func TestRecordedAnswersComeBack(t *testing.T) {
	files, err := filepath.Glob("testdata/unary/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("recorded answers: %q, %v", files, err)
	}
	tr := New().(dialect.Translator)
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if tr.IsError(body) {
			t.Errorf("%s: no error", file)
		}
		var l canon.Losses
		a, err := tr.ReadAnswer(body, options(&l))
		if err != nil || lossLines(&l) != "" {
			t.Errorf("%s: %v, lost %s", file, err, lossLines(&l))
			continue
		}
		written, err := tr.AppendAnswer(nil, a, asked(), options(&l))
		if err != nil || lossLines(&l) != "" {
			t.Errorf("%s: %v, lost %s", file, err, lossLines(&l))
		}
		if got, want := without(t, written, "id", "model"), without(t, body, "id", "model"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s", file, written)
		}
		// And through a stream.
		e := tr.NewEncoder(asked(), options(nil))
		var frames []byte
		if err := a.Replay(func(ev *canon.Event) error { frames = e.Append(frames, ev); return nil }); err != nil {
			t.Fatal(err)
		}
		streamed := decode(t, string(frames), nil).answer
		checkSame(t, file, written, streamed)
	}
}

// without is a message as a tree without some members, those that are null and those counts that are 0, which vLLM leaves out.
func without(t *testing.T, body []byte, names ...string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		delete(m, name)
	}
	for name, v := range m {
		if v == nil {
			delete(m, name)
		}
	}
	usage, _ := m["usage"].(map[string]any)
	for name, v := range usage {
		if v == 0.0 {
			delete(usage, name)
		}
	}
	return m
}

// checkSame reads a message and compares it with an answer.
func checkSame(t *testing.T, name string, message []byte, want *canon.Answer) {
	t.Helper()
	got, err := New().(dialect.Translator).ReadAnswer(message, options(nil))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if got.Usage != want.Usage || string(got.Stop.Native) != string(want.Stop.Native) || string(got.Stop.Sequence) != string(want.Stop.Sequence) || len(got.Parts) != len(want.Parts) {
		t.Errorf("%s: got %+v\nwant %+v", name, got, want)
		return
	}
	for i := range got.Parts {
		g, w := &got.Parts[i], &want.Parts[i]
		arguments := string(w.Call.Arguments)
		if w.Type == canon.CallPart && !jsonx.Valid(jsonx.AppendUnquoted(nil, w.Call.Arguments)) {
			arguments = string(g.Call.Arguments) // a message has no place for a cut input
		}
		if g.Type != w.Type || string(g.Text) != string(w.Text) || string(g.Signature) != string(w.Signature) || g.SignedBy != w.SignedBy || string(g.Call.ID) != string(w.Call.ID) ||
			string(g.Call.Name) != string(w.Call.Name) || compact(string(g.Call.Arguments)) != compact(arguments) {
			t.Errorf("%s: part %d: got %+v\nwant %+v", name, i, g, w)
		}
	}
}

// compact is arguments as a folded message has them.
func compact(arguments string) string {
	var c jsonx.Compactor
	out, err := c.Append(nil, jsonx.AppendUnquoted(nil, []byte(arguments)))
	if err != nil {
		return arguments
	}
	return string(out)
}
