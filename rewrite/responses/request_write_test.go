package responses

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialecttest"
)

// normal is a request in the words that AppendCall uses. It is all that a request which is read and written may differ in:
// nulls and empty lists that say nothing go; the tools of additional_tools items stand among the others; items have a type; texts are
// input_text, or output_text with annotations; logprobs of the past and a status "completed" go; images have a detail, namespaces a description; Chat's words for
// calls, results and reasoning are those of items.
func normal(t testing.TB, body []byte) map[string]any {
	r := decoded(t, body)
	dropNulls(r)
	tools, _ := r["tools"].([]any)
	if s, ok := r["reasoning"].(map[string]any); ok && s["generate_summary"] != nil {
		s["summary"] = s["generate_summary"]
		delete(s, "generate_summary")
	}
	if text, ok := r["text"].(map[string]any); ok && reflect.DeepEqual(text["format"], map[string]any{"type": "text"}) {
		delete(text, "format")
	}
	if items, ok := r["input"].([]any); ok {
		input := []any{}
		for _, e := range items {
			item := e.(map[string]any)
			if item["type"] == "additional_tools" {
				more, _ := item["tools"].([]any)
				tools = append(tools, more...)
				continue
			}
			input = append(input, normalItems(item)...)
		}
		r["input"] = input
	}
	r["tools"] = tools
	if len(tools) == 0 {
		delete(r, "tools")
		delete(r, "tool_choice")
		delete(r, "parallel_tool_calls")
	}
	for _, e := range tools {
		if tool := e.(map[string]any); tool["type"] == nil {
			tool["type"] = "function"
		}
	}
	for _, name := range []string{"include", "text", "reasoning", "instructions"} {
		if v := reflect.ValueOf(r[name]); v.IsValid() && v.Len() == 0 {
			delete(r, name)
		}
	}
	if r["stream"] == false {
		delete(r, "stream")
	}
	return r
}

func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, e any) bool { return e == nil })
		for _, e := range v {
			dropNulls(e)
		}
	case []any:
		for _, e := range v {
			dropNulls(e)
		}
	}
}

func normalItems(item map[string]any) []any {
	if item["type"] == nil && item["role"] != nil {
		item["type"] = "message"
	}
	if item["status"] == "completed" && item["type"] != "tool_search_call" && item["type"] != "tool_search_output" && item["type"] != "web_search_call" {
		delete(item, "status")
	}
	switch item["type"] {
	case "reasoning":
		if item["summary"] == nil {
			item["summary"] = []any{}
		}
	case "message":
		normalParts(item["content"], item["role"] == "assistant")
	case "function_call_output", "custom_tool_call_output":
		normalParts(item["output"], false)
	}
	if item["role"] == "tool" {
		return []any{map[string]any{"type": "function_call_output", "call_id": item["tool_call_id"], "output": item["content"]}}
	}
	calls, _ := item["tool_calls"].([]any)
	delete(item, "tool_calls")
	all := []any{item}
	for _, c := range calls {
		c := c.(map[string]any)
		f := c["function"].(map[string]any)
		all = append(all, map[string]any{"type": "function_call", "call_id": c["id"], "name": f["name"], "arguments": f["arguments"]})
	}
	return all
}

func normalParts(content any, assistant bool) {
	parts, _ := content.([]any)
	for _, e := range parts {
		p := e.(map[string]any)
		switch p["type"] {
		case "text", "input_text", "output_text":
			p["type"] = "input_text"
			if assistant {
				p["type"] = "output_text"
				if p["annotations"] == nil {
					p["annotations"] = []any{}
				}
			}
			delete(p, "logprobs")
		case "input_image":
			if p["detail"] == nil {
				p["detail"] = "auto"
			}
		}
	}
}

// ownWritten reads and writes a request in this dialect.
func ownWritten(t testing.TB, body []byte) []byte {
	t.Helper()
	r, err := responses{}.ReadCall(body, callOptions(nil))
	if err != nil {
		t.Fatalf("ReadCall: %v", err)
	}
	written, err := responses{}.AppendCall(nil, r, callOptions(nil))
	if err != nil {
		t.Fatalf("AppendCall: %v", err)
	}
	return written
}

// written is one request with everything that is written as it came.
const written = `{"model":"m","instructions":"I","input":[{"type":"message","role":"user","content":"u"},
	{"type":"message","role":"user","id":"m1","content":[{"type":"input_text","text":"a","new":1},{"type":"input_image","image_url":"http://i","detail":"high"},{"type":"input_image","file_id":"f"},
	{"type":"input_file","file_data":"data:application/pdf;base64,AA","filename":"a.pdf"},{"type":"input_file","file_url":"http://f"},{"type":"input_file","file_data":"AA","file_id":"f9"},{"type":"input_audio","input_audio":{"data":"BB","format":"wav"}},{"type":"brand_new","x":[1]}],"phase":"x"},
	{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B\n"}],"content":[{"type":"reasoning_text","text":"raw"}],"encrypted_content":"enc"},
	{"type":"message","id":"m2","role":"assistant","phase":"commentary","status":"incomplete","content":[{"type":"output_text","text":"one","annotations":[{"type":"url_citation","url":"u"}],"k":1},{"type":"refusal","refusal":"no"}]},
	{"type":"message","role":"assistant","content":"two"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"three"}],"meta":{}},
	{"type":"function_call","id":"f1","call_id":"c1","name":"f","namespace":"n","arguments":"{\"a\": 1}","caller":{"type":"direct"}},{"type":"custom_tool_call","call_id":"c2","name":"exec","input":"x\ny"},
	{"type":"web_search_call","id":"w","status":"completed"},{"type":"compaction","encrypted_content":"e"},{"type":"item_reference","id":"rs_9"},
	{"type":"function_call_output","id":"o1","call_id":"c1","output":[{"type":"input_text","text":"r"},{"type":"input_image","image_url":"data:image/png;base64,AA","detail":"auto"}]},
	{"type":"custom_tool_call_output","call_id":"c2","output":"out"},{"type":"tool_search_output","call_id":"t","tools":[{"type":"function","name":"found"}]},{"type":"message","role":"developer","content":"late"}],
	"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true,"defer_loading":false},{"type":"custom","name":"exec","format":{"type":"grammar","syntax":"lark","definition":"x"}},
	{"type":"namespace","name":"n","description":"N","tools":[{"type":"function","name":"f","parameters":{}},{"type":"custom","name":"g"}]},{"type":"namespace","name":"n","description":"M","tools":[{"type":"function","name":"h"}]},{"type":"web_search","external_web_access":true}],
	"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f","namespace":"n"},{"type":"web_search"}]},"parallel_tool_calls":false,
	"text":{"format":{"type":"json_schema","name":"n","description":"d","schema":{"type":"object"},"strict":true},"verbosity":"low","x":1},"reasoning":{"effort":"high","summary":"auto","context":"c"},
	"include":["reasoning.encrypted_content","message.output_text.logprobs","web_search_call.results"],"stream":true,"max_output_tokens":9,"temperature":0.5,"top_p":1,"top_logprobs":2,"user":"u","metadata":{"a":"b"},
	"service_tier":"flex","store":false,"prompt_cache_key":"k","safety_identifier":"s","truncation":"auto","max_tool_calls":3,"client_metadata":{"a":"b"},"context_management":[1],"brand_new":{"x":null}}`

func TestARequestReadAndWrittenIsTheSame(t *testing.T) {
	requests := recorded(t)
	requests["everything"] = []byte(written)
	requests["chat-shaped turns"] = []byte(`{"input":[{"role":"assistant","content":"hey","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"ok"}]}`)
	requests["a string"] = []byte(`{"input":"h","text":{"format":{"type":"json_object"}},"reasoning":{"generate_summary":"auto"}}`)
	requests["a choice"] = []byte(`{"input":[{"role":"user","content":"h"}],"tools":[{"name":"f"}],"tool_choice":{"type":"function","name":"f"}}`)
	requests["an unknown choice"] = []byte(`{"input":[{"role":"user","content":"h"}],"tools":[{"type":"mcp"}],"tool_choice":{"type":"mcp","server_label":"x"}}`)
	requests["no-ops"] = []byte(`{"input":[],"include":[],"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"background":false,"stream":false}`)
	for name, body := range requests {
		t.Run(name, func(t *testing.T) {
			out := ownWritten(t, body)
			got, want := normal(t, out), normal(t, body)
			for _, member := range slices.Sorted(maps.Keys(want)) {
				if member == "input" {
					continue
				}
				if !reflect.DeepEqual(got[member], want[member]) {
					t.Errorf("%s: got\n%v\nwant\n%v", member, got[member], want[member])
				}
			}
			for member := range got {
				if _, ok := want[member]; !ok {
					t.Errorf("%s was not there", member)
				}
			}
			gotItems, isList := got["input"].([]any)
			wantItems, _ := want["input"].([]any)
			if !isList || len(gotItems) != len(wantItems) {
				if !reflect.DeepEqual(got["input"], want["input"]) {
					t.Errorf("input: got\n%v\nwant\n%v", got["input"], want["input"])
				}
				return
			}
			for i := range wantItems {
				if !reflect.DeepEqual(gotItems[i], wantItems[i]) {
					t.Errorf("input[%d]: got\n%v\nwant\n%v", i, gotItems[i], wantItems[i])
				}
			}
			if again := ownWritten(t, out); !bytes.Equal(again, out) {
				t.Errorf("written twice it is not the same:\n%s\n%s", out, again)
			}
		})
	}
}

func TestAppendCallWritesMembersInOneOrder(t *testing.T) {
	var names []string
	for it := jsonx.Object(ownWritten(t, []byte(written))); it.Next(); {
		names = append(names, string(it.Key()))
	}
	const want = "model instructions input tools tool_choice parallel_tool_calls text reasoning include stream max_output_tokens temperature top_p top_logprobs user metadata service_tier store " +
		"prompt_cache_key safety_identifier truncation max_tool_calls client_metadata context_management brand_new"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRequestsPassTheKit(t *testing.T) {
	requests := recorded(t)
	requests["everything"] = []byte(written)
	for name, body := range requests {
		t.Run(name, func(t *testing.T) {
			dialecttest.RequestRoundTrip(t, responses{}, body, "client_metadata", "truncation", "max_tool_calls", "Media.Detail")
		})
	}
}

func FuzzCall(f *testing.F) {
	for _, body := range recorded(f) {
		f.Add(body)
	}
	f.Add([]byte(written))
	f.Add([]byte(`{"input":[{"type":"message","role":"user","content":[{"type":"input_file","file_data":"x"}]},{"type":"function_call_output","call_id":"c","output":[]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.KindObject {
			return
		}
		dialecttest.CheckCall(t, responses{}, responses{}, body)
		// The same as if it came from elsewhere.
		var losses canon.Losses
		r, err := responses{}.ReadCall(body, callOptions(nil))
		if err != nil {
			return
		}
		r.From = canon.Chat
		out, err := responses{}.AppendCall(nil, r, callOptions(&losses))
		var p *canon.Problem
		if err != nil {
			if !errors.As(err, &p) {
				t.Errorf("no problem: %v", err)
			}
			return
		}
		if !jsonx.Valid(out) {
			t.Errorf("no JSON: %s", out)
		}
		if _, err := (responses{}).ReadCall(out, callOptions(nil)); err != nil {
			t.Errorf("what is written is read: %v in %s", err, out)
		}
	})
}
