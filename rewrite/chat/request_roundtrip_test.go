package chat

import (
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
)

// recordedRequests are the bodies that clients sent, by name.
func recordedRequests(tb testing.TB) map[string][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no recorded requests: %v", err)
	}
	bodies := make(map[string][]byte, len(files))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		bodies[strings.TrimSuffix(filepath.Base(file), ".json")] = raw
	}
	return bodies
}

// callOptions are those of a default policy that replays reasoning under one name.
func callOptions() dialect.Options {
	p := dialect.DefaultPolicy()
	p.ReasoningReplay = "reasoning_content"
	return dialect.Options{Policy: &p, Losses: &canon.Losses{}, ID: "test"}
}

func readRequest(tb testing.TB, body string, o dialect.Options) *canon.Request {
	tb.Helper()
	r, err := chat{}.ReadCall([]byte(body), o)
	if err != nil {
		tb.Fatalf("ReadCall: %v", err)
	}
	return r
}

func writeRequest(tb testing.TB, r *canon.Request, o dialect.Options) string {
	tb.Helper()
	out, err := chat{}.AppendCall([]byte("before"), r, o)
	if err != nil {
		tb.Fatalf("AppendCall: %v", err)
	}
	if string(out[:6]) != "before" {
		tb.Fatal("what was there is gone")
	}
	if out = out[6:]; !jsonx.Valid(out) {
		tb.Fatalf("no JSON: %s", out)
	}
	return string(out)
}

// sameForm takes a request apart and brings what says the same into one form.
func sameForm(tb testing.TB, body string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		tb.Fatal(err)
	}
	dropNulls(m)
	if v, ok := m["max_completion_tokens"]; ok {
		delete(m, "max_completion_tokens")
		m["max_tokens"] = v
	}
	if m["stream"] != true {
		delete(m, "stream")
	}
	delete(m, "stream_options")
	if s, ok := m["stop"].(string); ok {
		m["stop"] = []any{s}
	}
	for _, v := range m["messages"].([]any) {
		if message := v.(map[string]any); message["content"] == nil {
			message["content"] = ""
		}
	}
	return m
}

func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			}
			dropNulls(value)
		}
	case []any:
		for _, value := range v {
			dropNulls(value)
		}
	}
}

func TestRecordedRequestsComeBackEqual(t *testing.T) {
	for name, body := range recordedRequests(t) {
		t.Run(name, func(t *testing.T) {
			o := callOptions()
			out := writeRequest(t, readRequest(t, string(body), o), o)
			if got, want := sameForm(t, out), sameForm(t, string(body)); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %s\nwant %s", out, body)
			}
			if l := o.Losses.List(); len(l) > 0 {
				t.Errorf("losses: %v", l)
			}
			if strings.Contains(string(body), `"stream":true`) && !strings.Contains(out, `"stream_options":{"include_usage":true}`) {
				t.Error("a stream without usage was asked for")
			}
		})
	}
}

// fullRequest has every member that this side knows, in a form that comes back as it was.
const fullRequest = `{"model":"m","messages":[
{"role":"developer","content":"d","name":"n"},
{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"x_message":1},
{"role":"user","content":[{"type":"text","text":"a\u00e9\ud800","x_part":[1]},
 {"type":"image_url","image_url":{"url":"https://e/x.png","detail":"high"},"uuid":"u"},
 {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},
 {"type":"input_audio","input_audio":{"data":"AA==","format":"m4a"}},
 {"type":"audio_url","audio_url":{"url":"https://e/x.ogg"}},
 {"type":"video_url","video_url":{"url":"https://e/x.mp4"},"cache_control":{"type":"ephemeral"}},
 {"type":"file","file":{"file_id":"file-1"}},
 {"type":"file","file":{"file_data":"data:application/pdf;base64,AA==","filename":"a.pdf"}},
 {"type":"file","file":{"file_data":"AA==","filename":"b"}},
 {"type":"image_embeds","image_embeds":"AA=="}]},
{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[
 {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": \"\u00e9\"}"},"extra_content":{"g":1},"index":0},
 {"id":"c2","type":"custom","custom":{"name":"exec","input":"ls"}},
 {"id":"c3","type":"builtin_function","function":{"name":"$web_search","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c1","content":"1","name":"f","cache_control":{"type":"ephemeral"}},
{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"2"},{"type":"text","text":"3"}]},
{"role":"assistant","content":[{"type":"text","text":"t","annotations":[]},{"type":"refusal","refusal":"no"}]},
{"role":"assistant","content":"x","refusal":"no","annotations":[{"type":"url_citation"}],"audio":{"id":"a"}},
{"role":"assistant","content":"","tool_calls":[{"id":"c4","type":"function","function":{"name":"f","arguments":"{cut"}}]}],
"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true,"x_function":1},"cache_control":{"type":"ephemeral"},"defer_loading":true},
 {"type":"function","function":{"name":"g"}},
 {"type":"custom","custom":{"name":"exec","description":"e","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /x/"}}}},
 {"type":"custom","custom":{"name":"free","format":{"type":"text"}}},
 {"type":"builtin_function","function":{"name":"$web_search"}}],
"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}},
"parallel_tool_calls":false,"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","schema":{"type":"object"},"strict":true}},
"stop":["a","b"],"stream":true,"max_tokens":10,"logprobs":true,"top_logprobs":0,"reasoning_effort":"xhigh","thinking_token_budget":-1,
"temperature":0.10,"top_p":1,"top_k":-1,"min_p":0,"seed":1,"frequency_penalty":0,"presence_penalty":0,"repetition_penalty":1,"logit_bias":{"1":2},
"n":2,"verbosity":"low","user":"u","metadata":{"a":"b"},"service_tier":"flex","store":false,"prompt_cache_key":"k","prompt_cache_retention":"24h",
"safety_identifier":"s","modalities":["text"],"audio":{"voice":"v"},"prediction":{"type":"content"},"web_search_options":{},"moderation":{},
"cache_control":{"type":"ephemeral"},"chat_template_kwargs":{"enable_thinking":true},"return_token_ids":true,"structured_outputs":{"regex":"x"},
"continue_final_message":true,"add_generation_prompt":false,"x_top":{}}`

func TestEveryMemberOfChatComesBack(t *testing.T) {
	o := callOptions()
	r := readRequest(t, fullRequest, o)
	out := writeRequest(t, r, o)
	if got, want := sameForm(t, out), sameForm(t, fullRequest); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", out, fullRequest)
	}
	if l := o.Losses.List(); len(l) > 0 {
		t.Errorf("losses: %v", l)
	}
	if !strings.Contains(out, `a\u00e9\ud800`) || !strings.Contains(out, `"temperature":0.10`) {
		t.Errorf("escapes or numbers were written anew: %s", out)
	}
	for p, v := range r.Params {
		name := canon.Param(p).String()
		if q, _ := paramOf(name); v != nil && p != 0 && q != canon.Param(p) {
			t.Errorf("%s is read as parameter %d and written as %d", name, q, p)
		}
	}
}

func TestTheSameRequestGivesTheSameBytes(t *testing.T) {
	o := callOptions()
	want := writeRequest(t, readRequest(t, fullRequest, o), o)
	for range 20 {
		if got := writeRequest(t, readRequest(t, fullRequest, o), o); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	// What was written reads as the same request.
	if got := writeRequest(t, readRequest(t, want, o), o); got != want {
		t.Errorf("read again\ngot  %s\nwant %s", got, want)
	}
}

func FuzzReadCall(f *testing.F) {
	for _, body := range recordedRequests(f) {
		f.Add(body)
	}
	f.Add([]byte(fullRequest))
	for _, c := range refusedCalls {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if jsonx.KindOf(body) != jsonx.KindObject || !jsonx.Valid(body) {
			return
		}
		o := callOptions()
		r, err := chat{}.ReadCall(body, o)
		if err != nil {
			var p *canon.Problem
			if r != nil || !errors.As(err, &p) || p.Status != 400 || p.Param == "" {
				t.Fatalf("%v with %v", r, err)
			}
			return
		}
		for _, from := range []canon.Dialect{canon.Chat, canon.Messages, canon.Responses} {
			r.From = from
			out, err := chat{}.AppendCall(nil, r, o)
			if err == nil && !jsonx.Valid(out) {
				t.Fatalf("as from %s: no JSON: %s", from, out)
			}
			if err != nil && out != nil {
				t.Fatalf("as from %s: a partial result", from)
			}
		}
	})
}
