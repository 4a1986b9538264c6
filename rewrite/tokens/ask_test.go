package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"

	"rolltap/rewrite/canon"
)

func TestAsk(t *testing.T) {
	for _, x := range []struct {
		name, in, out string
		w             Wish
	}{
		{"bare", `{"model":"m"}`, `{"model":"m","return_token_ids":true,"logprobs":true}`, Wish{}},
		{"empty", `{ }`, `{ "return_token_ids":true,"logprobs":true}`, Wish{}},
		{"spelling", "{\"model\":\"m\" , \"seed\":9007199254740993,\"x\":{\"a\":0.10}}\n", "{\"model\":\"m\" , \"seed\":9007199254740993,\"x\":{\"a\":0.10},\"return_token_ids\":true,\"logprobs\":true}\n", Wish{}},
		{"stream", `{"stream":true}`, `{"stream":true,"return_token_ids":true,"logprobs":true,"stream_options":{"include_usage":true}}`, Wish{Streamed: true}},
		{"no stream", `{"stream":false,"stream_options":null}`, `{"stream":false,"stream_options":null,"return_token_ids":true,"logprobs":true}`, Wish{}},
		{"stream options null", `{"stream_options":null,"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true,"return_token_ids":true,"logprobs":true}`, Wish{Streamed: true}},
		{"stream options", `{"stream_options":{"a": 1 },"stream":true}`, `{"stream_options":{"a": 1 ,"include_usage":true},"stream":true,"return_token_ids":true,"logprobs":true}`, Wish{Streamed: true}},
		{"stream options empty", `{"stream_options":{},"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true,"return_token_ids":true,"logprobs":true}`, Wish{Streamed: true}},
		{"usage refused", `{"stream_options":{"include_usage" : false},"stream":true}`, `{"stream_options":{"include_usage" : true},"stream":true,"return_token_ids":true,"logprobs":true}`, Wish{Streamed: true}},
		{"usage", `{"stream_options":{"include_usage":true,"continuous_usage_stats":true},"stream":true}`, `{"stream_options":{"include_usage":true,"continuous_usage_stats":true},"stream":true,"return_token_ids":true,"logprobs":true}`, Wish{Streamed: true, Usage: true, ContinuousUsage: true}},
		{"all", `{"return_token_ids":true,"logprobs":true,"top_logprobs":5}`, `{"return_token_ids":true,"logprobs":true,"top_logprobs":5}`, Wish{IDs: true, Logprobs: true}},
		{"refused", `{"return_token_ids":false,"logprobs":false,"n":1}`, `{"return_token_ids":true,"logprobs":true,"n":1}`, Wish{}},
		{"nulls", `{"return_token_ids":null,"logprobs":null,"n":null}`, `{"return_token_ids":true,"logprobs":true,"n":null}`, Wish{}},
		{"top_logprobs null switches them off", `{"logprobs":true,"top_logprobs":null}`, `{"logprobs":true,"top_logprobs":0,"return_token_ids":true}`, Wish{Logprobs: true}},
		{"top_logprobs would be refused", `{"top_logprobs":3}`, `{"top_logprobs":0,"return_token_ids":true,"logprobs":true}`, Wish{}},
		{"top_logprobs would be all", `{"top_logprobs":-1,"logprobs":false}`, `{"top_logprobs":0,"logprobs":true,"return_token_ids":true}`, Wish{}},
		{"top_logprobs 0", `{"top_logprobs":0}`, `{"top_logprobs":0,"return_token_ids":true,"logprobs":true}`, Wish{}},
		{"hidden reasoning", `{"include_reasoning":false}`, `{"include_reasoning":true,"return_token_ids":true,"logprobs":true}`, Wish{HiddenReasoning: true}},
		{"hidden reasoning, and log probabilities", `{"include_reasoning":false,"logprobs":true,"top_logprobs":2}`, `{"include_reasoning":true,"logprobs":true,"top_logprobs":2,"return_token_ids":true}`,
			Wish{HiddenReasoning: true}},
		{"hidden reasoning, and all else", `{"include_reasoning":false,"return_token_ids":true,"logprobs":true}`, `{"include_reasoning":false,"return_token_ids":true,"logprobs":true}`,
			Wish{IDs: true, Logprobs: true, HiddenReasoning: true}},
		{"reasoning", `{"include_reasoning":true}`, `{"include_reasoning":true,"return_token_ids":true,"logprobs":true}`, Wish{}},
		{"wrong types are the upstream's", `{"logprobs":5,"return_token_ids":"x","stream":true,"stream_options":[1]}`, `{"logprobs":5,"return_token_ids":"x","stream":true,"stream_options":[1]}`, Wish{Streamed: true, Logprobs: true, IDs: true}},
		{"inner members", `{"x":{"logprobs":false}}`, `{"x":{"logprobs":false},"return_token_ids":true,"logprobs":true}`, Wish{}},
		{"n of 0 is the upstream's", `{"n":0}`, `{"n":0,"return_token_ids":true,"logprobs":true}`, Wish{}},
		{"an escaped name", `{"logpr\u006fbs":false}`, `{"logpr\u006fbs":true,"return_token_ids":true}`, Wish{}},
	} {
		in := []byte(x.in)
		got, w, err := Ask(in)
		if err != nil || string(got) != x.out || w != x.w {
			t.Errorf("%s: got %s %+v %v, want %s %+v", x.name, got, w, err, x.out, x.w)
		}
		if string(in) != x.in {
			t.Errorf("%s: the body was written to", x.name)
		}
		if again, _, err := Ask(got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: asked twice: %s", x.name, again)
		}
	}
}

func TestAskSeveral(t *testing.T) {
	for _, n := range []string{"2", "1.5", "1e3", "99999999999999999999", "1e999", `"2"`} {
		sent, _, err := Ask([]byte(`{"n":` + n + `}`))
		var p *canon.Problem
		if !errors.As(err, &p) || p.Param != "n" || p.Code != canon.CodeUnsupported || p.Status != 400 || sent != nil {
			t.Errorf("n %s: %s %v", n, sent, err)
		}
	}
	for _, n := range []string{"1", "1.0", "0", "-1", "null", "true", "[]"} {
		if _, _, err := Ask([]byte(`{"n":` + n + `}`)); err != nil {
			t.Errorf("n %s: %v", n, err)
		}
	}
}

// TestTokenizeRequest: of a request that was asked for ids the recorded body of /tokenize comes out.
func TestTokenizeRequest(t *testing.T) {
	recorded, err := os.ReadFile("testdata/tokenize.request")
	if err != nil {
		t.Fatal(err)
	}
	sent, _, err := Ask(recordings(t)["chat-stream-tool-auto"].Request)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(TokenizeRequest(sent), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(recorded, &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, x := range []struct{ in, out string }{
		{`{"tools":[ 1 ],"messages":[],"seed":1,"stream":true,"model":"m","n":1}`, `{"model":"m","messages":[],"tools":[ 1 ]}`},
		{
			`{"messages":[],"chat_template_kwargs":{"a":1.0},"mm_processor_kwargs":{},"required_prefix_token_ids":[1]}`,
			`{"messages":[],"chat_template_kwargs":{"a":1.0},"mm_processor_kwargs":{},"required_prefix_token_ids":[1]}`,
		},
		{
			`{"messages":[],"continue_final_message":true,"add_generation_prompt":false,"reasoning_effort":null}`,
			`{"messages":[],"add_generation_prompt":false,"continue_final_message":true}`,
		},
		{`{"messages":[],"reasoning_effort":"low"}`, ``},
		{`{"messages":[],"documents":[]}`, ``},
		{`{}`, `{}`},
	} {
		if got := TokenizeRequest([]byte(x.in)); string(got) != x.out {
			t.Errorf("%s: got %s, want %s", x.in, got, x.out)
		}
	}
}

// TestTokenizeAnswer: the recorded answer has the ids that the Chat answer to the same messages and tools has.
func TestTokenizeAnswer(t *testing.T) {
	recorded, err := os.ReadFile("testdata/tokenize.json")
	if err != nil {
		t.Fatal(err)
	}
	want := recordings(t)["chat-stream-tool-auto"].collect(t)
	ids, n, ok := TokenizeAnswer(recorded)
	if !ok || n != want.PromptLen || !bytes.Equal(ids, want.Prompt) {
		t.Errorf("%d ids %s %v, want %d %s", n, ids, ok, want.PromptLen, want.Prompt)
	}
	for _, body := range []string{
		``, `{}`, `null`, `{"tokens":null}`, `{"tokens":[]}`, `{"tokens":[1,-1]}`, `{"tokens":[1],"count":2}`, `{"tokens":[1]`, `{"tokens":[1]}x`,
		`{"error":{"message":"Not Found"}}`,
	} {
		if ids, n, ok := TokenizeAnswer([]byte(body)); ok || ids != nil || n != 0 {
			t.Errorf("%s: %s %d %v", body, ids, n, ok)
		}
	}
	if ids, n, ok := TokenizeAnswer([]byte(`{"tokens":[3,1],"count":2}`)); !ok || n != 2 || string(ids) != "[3,1]" {
		t.Errorf("%s %d %v", ids, n, ok)
	}
}

func TestAppendSampling(t *testing.T) {
	for _, x := range []struct{ in, out string }{
		{`{}`, `{"temperature":null,"top_p":null,"top_k":null,"min_p":null,"presence_penalty":null,"frequency_penalty":null,"repetition_penalty":null,"seed":null,"logit_bias":null,"max_tokens":null}`},
		{
			`{"temperature":1.0,"top_p":1e-1,"top_k":-1,"min_p":0.10,"presence_penalty":1,"frequency_penalty":2,"repetition_penalty":3,"seed":9007199254740993,"logit_bias":{ "5": -100 },"max_tokens":7}`,
			`{"temperature":1.0,"top_p":1e-1,"top_k":-1,"min_p":0.10,"presence_penalty":1,"frequency_penalty":2,"repetition_penalty":3,"seed":9007199254740993,"logit_bias":{"5":-100},"max_tokens":7}`,
		},
		{`{"max_tokens":7,"max_completion_tokens":8,"temperature":null}`, `{"temperature":null,"top_p":null,"top_k":null,"min_p":null,"presence_penalty":null,"frequency_penalty":null,"repetition_penalty":null,"seed":null,"logit_bias":null,"max_tokens":8}`},
	} {
		if got := AppendSampling(nil, []byte(x.in)); string(got) != x.out {
			t.Errorf("%s: got %s, want %s", x.in, got, x.out)
		}
	}
}
