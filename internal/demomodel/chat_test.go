package demomodel

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// folded is what a stream says, put together again.
type folded struct {
	content, reasoning, finish string
	stop                       any
	names, args, callIDs       []string
	ids                        []int
	logprobs                   []float64
}

func fold(t *testing.T, chunks []object, choice int) (f folded) {
	t.Helper()
	for _, c := range chunks {
		for _, ch := range list(at(c, "choices")) {
			if number(at(ch, "index")) != choice {
				continue
			}
			d := at(ch, "delta")
			f.content += text(at(d, "content"))
			f.reasoning += text(at(d, "reasoning"))
			for _, tc := range list(at(d, "tool_calls")) {
				if id := text(at(tc, "id")); id != "" {
					if n := number(at(tc, "index")); n != len(f.names) {
						t.Errorf("call index: got %d, want %d", n, len(f.names))
					}
					f.callIDs = append(f.callIDs, id)
					f.names = append(f.names, text(at(tc, "function", "name")))
					f.args = append(f.args, "")
				}
				f.args[number(at(tc, "index"))] += text(at(tc, "function", "arguments"))
			}
			f.ids = append(f.ids, ints(at(ch, "token_ids"))...)
			f.logprobs = append(f.logprobs, logprobsOf(ch)...)
			if s := text(at(ch, "finish_reason")); s != "" {
				f.finish, f.stop = s, at(ch, "stop_reason")
			}
		}
	}
	return f
}

func logprobsOf(choice any) (ps []float64) {
	for _, e := range list(at(choice, "logprobs", "content")) {
		n, _ := at(e, "logprob").(json.Number)
		p, _ := n.Float64()
		ps = append(ps, p)
	}
	return ps
}

// fromUnary brings a whole answer into the same form.
func fromUnary(v object, choice int) (f folded) {
	ch := at(v, "choices", choice)
	m := at(ch, "message")
	f.content, f.reasoning = text(at(m, "content")), text(at(m, "reasoning"))
	f.finish, f.stop = text(at(ch, "finish_reason")), at(ch, "stop_reason")
	for _, tc := range list(at(m, "tool_calls")) {
		f.callIDs = append(f.callIDs, text(at(tc, "id")))
		f.names = append(f.names, text(at(tc, "function", "name")))
		f.args = append(f.args, text(at(tc, "function", "arguments")))
	}
	f.ids, f.logprobs = ints(at(ch, "token_ids")), logprobsOf(ch)
	return f
}

var requests = map[string]object{
	"plain":                ask("Hello there"),
	"reasoning":            ask("Why is the sky blue?"),
	"unicode":              ask("Say something in unicode"),
	"unicode with stop":    ask("Say something in unicode", object{"stop": []any{"界 🙂", "never"}}),
	"unicode cut":          ask("Say something in unicode", object{"max_tokens": 12}),
	"markup as text":       ask("echo: <think>no</think><tool_call>{}</tool_call><|im_end|>"),
	"length":               ask("Count to 100", object{"max_tokens": 9}),
	"length in reasoning":  ask("Why?", object{"max_completion_tokens": 5}),
	"stop":                 ask("What is the capital of France?", object{"stop": "of France"}),
	"stop kept":            ask("What is the capital of France?", object{"stop": "of France", "include_stop_str_in_output": true}),
	"stop in reasoning":    ask("Why is the sky blue?", object{"stop": "short"}),
	"stop that never":      ask("Why is the sky blue?", object{"stop": []any{"zzzzzzzzz"}}),
	"tool":                 ask("What is the weather in Oslo?", tools),
	"tool after thinking":  ask("Think: what is the weather in Oslo?", tools),
	"tool with stop":       ask("Think: what is the weather in Oslo?", tools, object{"stop": []any{"nothing of this"}}),
	"tools in parallel":    ask("The weather in Oslo and Rome, in parallel", tools),
	"one tool at a time":   ask("The weather in Oslo and Rome, in parallel", tools, object{"parallel_tool_calls": false}),
	"tool required":        ask("Hello", tools, object{"tool_choice": "required"}),
	"tool named":           ask("Hello", tools, object{"tool_choice": object{"type": "function", "function": object{"name": "read_file"}}}),
	"tool none":            ask("What is the weather in Oslo?", tools, object{"tool_choice": "none"}),
	"two choices":          ask("Hello there", object{"n": 2}),
	"two choices of calls": ask("Think: what is the weather in Oslo?", tools, object{"n": 2}),
	"top logprobs":         ask("Hello there", object{"top_logprobs": 3}),
	"schema": ask("Hello", object{"response_format": object{"type": "json_schema", "json_schema": object{"name": "x", "schema": object{
		"type": "object", "properties": object{"answer": object{"type": "string"}, "n": object{"type": "integer"}}}}}}),
}

// TestStreamEqualsUnary: the fold of a stream is the whole answer, the sum of the
// ids is completion_tokens, there is a logprob for each id, and none is above 0.
func TestStreamEqualsUnary(t *testing.T) {
	s := server(t, Options{})
	for name, q := range requests {
		q := with(q, capture)
		if q["top_logprobs"] != nil {
			q["logprobs"] = true
		}
		chunks := stream(t, s, q)
		v := unary(t, s, q)
		choices := len(list(at(v, "choices")))
		sum := 0
		for i := range choices {
			got, want := fold(t, chunks, i), fromUnary(v, i)
			if len(want.names) > 0 && want.content == "" {
				// The white space behind the thinking: vLLM's streams show it, its
				// whole answers do not.
				got.content = strings.TrimPrefix(got.content, afterThinking)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\nstream %+v\nunary  %+v", name, got, want)
			}
			if len(got.logprobs) != len(got.ids) || slices.Max(got.logprobs) > 0 {
				t.Errorf("%s: %d logprobs for %d ids, highest %v", name, len(got.logprobs), len(got.ids), slices.Max(got.logprobs))
			}
			sum += len(got.ids)
		}
		last := chunks[len(chunks)-1]
		if n, m := number(at(last, "usage", "completion_tokens")), number(at(v, "usage", "completion_tokens")); n != sum || m != sum {
			t.Errorf("%s: %d ids, usage says %d in the stream and %d in the whole", name, sum, n, m)
		}
		prompt := ints(at(chunks[0], "prompt_token_ids"))
		if !slices.Equal(prompt, ints(at(v, "prompt_token_ids"))) || len(prompt) != number(at(v, "usage", "prompt_tokens")) {
			t.Errorf("%s: the prompt's ids differ, or their number", name)
		}
		w := post(t, s.URL+"/tokenize", with(q))
		b, _ := io.ReadAll(w.Body)
		if !slices.Equal(ints(at(parse(t, b), "tokens")), prompt) {
			t.Errorf("%s: /tokenize gives other ids than prompt_token_ids", name)
		}
	}
}

func TestWhatItSays(t *testing.T) {
	s := server(t, Options{})
	for name, want := range map[string]folded{
		"plain":              {content: "This is the demo model. You said: Hello there", finish: "stop"},
		"markup as text":     {content: "<think>no</think><tool_call>{}</tool_call><|im_end|>", finish: "stop"},
		"unicode":            {content: unicodeText, finish: "stop"},
		"unicode with stop":  {content: "héllo 世", finish: "stop", stop: "界 🙂"},
		"stop":               {content: "The capital ", finish: "stop", stop: "of France"},
		"stop kept":          {content: "The capital of France", finish: "stop", stop: "of France"},
		"stop in reasoning":  {reasoning: "\nThe user wants a ", finish: "stop", stop: "short"},
		"length":             {content: "1, 2, 3, 4, 5", finish: "length"},
		"tool":               {content: "Let me check.", names: []string{"get_weather"}, args: []string{`{"city": "Oslo"}`}, finish: "tool_calls"},
		"one tool at a time": {content: "Let me check.", names: []string{"get_weather"}, args: []string{`{"city": "Oslo"}`}, finish: "tool_calls"},
		"tools in parallel": {content: "Let me check.", names: []string{"get_weather", "get_weather"},
			args: []string{`{"city": "Oslo"}`, `{"city": "Rome"}`}, finish: "tool_calls"},
		"tool required": {names: []string{"get_weather"}, args: []string{`{"city": "Paris"}`}, finish: "tool_calls"},
		"tool named":    {names: []string{"read_file"}, args: []string{`{"path": "demo.txt"}`}, finish: "stop"},
		"tool none":     {content: "This is the demo model. You said: What is the weather in Oslo?", finish: "stop"},
		"schema":        {content: `{"answer": "demo", "n": 1}`, finish: "stop"},
	} {
		got := fromUnary(unary(t, s, requests[name]), 0)
		ids := got.callIDs
		got.callIDs = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
		for i, id := range ids {
			if len(id) != len("chatcmpl-tool-")+16 || slices.Contains(ids[:i], id) {
				t.Errorf("%s: call id %q is no id or there twice", name, id)
			}
		}
	}
}

func TestCallCutByLength(t *testing.T) {
	s := server(t, Options{})
	q := ask("What is the weather in Oslo?", tools, capture)
	full := fold(t, stream(t, s, q), 0)
	for n := 1; n < len(full.ids); n++ {
		q := with(q, object{"max_tokens": n})
		got, whole := fold(t, stream(t, s, q), 0), fromUnary(unary(t, s, q), 0)
		if got.finish != "length" || whole.finish != "length" || len(got.ids) != n {
			t.Fatalf("cut behind %d: finish %q and %q, %d ids", n, got.finish, whole.finish, len(got.ids))
		}
		if len(whole.names) == 1 && whole.args[0] != full.args[0] {
			t.Errorf("cut behind %d: a whole answer never has a broken call, got %q", n, whole.args)
		}
		if len(got.args) == 1 && !strings.HasPrefix(full.args[0], got.args[0]) {
			t.Errorf("cut behind %d: got arguments %q", n, got.args)
		}
		if strings.Contains(whole.content, "<tool_call>") != (len(whole.names) == 0 && slices.Contains(got.ids, tokCall)) {
			t.Errorf("cut behind %d: got content %q", n, whole.content)
		}
	}
}

// TestQuietChunksAreLeftOut: markup and parts of characters have a chunk only for
// those who asked for ids or logprobs.
func TestQuietChunksAreLeftOut(t *testing.T) {
	s := server(t, Options{})
	for _, name := range []string{"reasoning", "tool", "unicode"} {
		loud, quiet := stream(t, s, with(requests[name], capture)), stream(t, s, requests[name])
		if len(quiet) >= len(loud) {
			t.Errorf("%s: %d chunks without ids, %d with", name, len(quiet), len(loud))
		}
		for _, c := range quiet[:len(quiet)-2] {
			if d, _ := at(c, "choices", 0, "delta").(object); len(d) == 0 {
				t.Errorf("%s: an empty delta that nobody asked for", name)
			}
		}
	}
}

func TestHiddenReasoning(t *testing.T) {
	s := server(t, Options{})
	q := ask("Why is the sky blue?", capture, object{"include_reasoning": false})
	chunks := stream(t, s, q)
	f := fold(t, chunks, 0)
	if f.reasoning != "" || f.ids != nil || f.logprobs != nil || !strings.Contains(f.content, "The sky is blue") {
		t.Errorf("got %+v", f)
	}
	if at(chunks[0], "prompt_token_ids") == nil {
		t.Error("prompt_token_ids come all the same")
	}
	if v := unary(t, s, q); at(v, "choices", 0, "token_ids") != nil || at(v, "choices", 0, "message", "reasoning") != nil {
		t.Error("the whole answer shows what is hidden")
	}
}

func TestSameRequestSameBytes(t *testing.T) {
	s := server(t, Options{})
	get := func() string {
		w := post(t, s.URL+"/v1/chat/completions", with(requests["tool after thinking"], capture, object{"stream": true, "top_logprobs": 2}), "X-Request-Id", "call-1")
		b, _ := io.ReadAll(w.Body)
		datas := strings.Split(string(b), `"created":`)
		for i := 1; i < len(datas); i++ {
			_, datas[i], _ = strings.Cut(datas[i], ",")
		}
		return strings.Join(datas, "")
	}
	one, two := get(), get()
	if one != two {
		t.Error("two answers differ")
	}
	if !strings.Contains(one, `{"id":"chatcmpl-call-1","object"`) {
		t.Errorf("the id does not come from x-request-id: %.80s", one)
	}
}

func TestAPIKey(t *testing.T) {
	s := server(t, Options{APIKey: "secret"})
	for _, c := range []struct {
		path, key string
		want      int
	}{
		{"/v1/chat/completions", "", 401},
		{"/v1/chat/completions", "Bearer wrong", 401},
		{"/v1/chat/completions", "Bearer secret", 200},
		{"/tokenize", "", 200}, // only /v1 is guarded
	} {
		w := post(t, s.URL+c.path, ask("Hello"), "Authorization", c.key)
		b, _ := io.ReadAll(w.Body)
		if w.StatusCode != c.want || c.want == 401 && string(b) != `{"error":"Unauthorized"}` {
			t.Errorf("%s with %q: got %d %s, want %d", c.path, c.key, w.StatusCode, b, c.want)
		}
	}
}

func TestOtherRoutes(t *testing.T) {
	s := server(t, Options{})
	unary(t, s, ask("Hello"))
	for path, want := range map[string]string{
		"/health":    "",
		"/version":   `{"version":"0.32.0"}`,
		"/v1/models": `"max_model_len":262144`,
		"/metrics":   `vllm:request_success_total{engine="0",finished_reason="stop",model_name="rolltap-demo"} 1.0`,
	} {
		w, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(w.Body)
		w.Body.Close()
		if w.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("%s: got %d %s", path, w.StatusCode, b)
		}
	}
	w := post(t, s.URL+"/detokenize", object{"tokens": []int{tokEnd, 'h', 'i', 99999, -1}})
	if b, _ := io.ReadAll(w.Body); string(b) != `{"prompt":"<|im_end|>hi"}` {
		t.Errorf("detokenize: got %s", b)
	}
}
