package demomodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// converse runs a conversation of many turns with tools and reasoning, gives every
// answer back as a client does, and returns in how many turns the prompt did not
// start with the prompt and the generated ids of the turn before.
func converse(t *testing.T, o Options, streaming, compact bool) (broken []int) {
	t.Helper()
	s := server(t, o)
	turns := []string{
		"Hello there", "Why is the sky blue?", "Think: the weather in Oslo?", "Use the tools twice: weather in Oslo and Rome, and think",
		"What is the weather in Lima?", "Say something in unicode", "echo: \n\n <think>not markup</think><|im_end|>\n",
		"Think about 30 words", "Count to 20", "Why, think again?",
	}
	messages := []any{object{"role": "system", "content": "You are a demo."}}
	var before []int
	turn := 0
	ask := func() folded {
		q := with(tools, capture, object{"messages": messages})
		var f folded
		var prompt []int
		if streaming {
			chunks := stream(t, s, q)
			f, prompt = fold(t, chunks, 0), ints(at(chunks[0], "prompt_token_ids"))
		} else {
			v := unary(t, s, q)
			f, prompt = fromUnary(v, 0), ints(at(v, "prompt_token_ids"))
		}
		if len(prompt) < len(before) || !slices.Equal(prompt[:len(before)], before) {
			broken = append(broken, turn)
		}
		before = append(prompt, f.ids...)
		turn++

		m := object{"role": "assistant", "content": nil}
		if f.content != "" {
			m["content"] = f.content
		}
		if f.reasoning != "" {
			m["reasoning"] = f.reasoning
		}
		var calls []any
		for i, name := range f.names {
			args := f.args[i]
			if compact { // another JSON library on the way
				var b bytes.Buffer
				if err := json.Compact(&b, []byte(args)); err != nil {
					t.Fatal(err)
				}
				args = b.String()
			}
			calls = append(calls, object{"id": fmt.Sprint("call_", i), "type": "function", "function": object{"name": name, "arguments": args}})
		}
		if calls != nil {
			m["tool_calls"] = calls
		}
		messages = append(messages, m)
		return f
	}
	for _, text := range turns {
		messages = append(messages, object{"role": "user", "content": text})
		f := ask()
		for i := range f.names {
			messages = append(messages, object{"role": "tool", "tool_call_id": fmt.Sprint("call_", i), "content": "sunny, 21 °C"})
		}
		if len(f.names) > 0 {
			ask()
		}
	}
	if turn < len(turns)+3 {
		t.Fatalf("only %d turns: the conversation has no tool calls", turn)
	}
	return broken
}

func TestPromptStartsWithTheTurnBefore(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		for _, compact := range []bool{true, false} {
			if broken := converse(t, Options{}, streaming, compact); len(broken) > 0 {
				t.Errorf("streaming %v, compact arguments %v: broken in turns %v", streaming, compact, broken)
			}
		}
	}
}

// The template of some model families drops old reasoning: the property must
// fail, or what depends on it could not be tested.
func TestStripReasoningBreaksThePrefix(t *testing.T) {
	broken := converse(t, Options{StripReasoning: true}, true, false)
	if len(broken) == 0 {
		t.Fatal("no turn is broken")
	}
	if slices.Contains(broken, 1) {
		t.Error("turn 1 follows a turn without reasoning and must not be broken")
	}
}

func TestSpaced(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"b":[1,2,{}],"c":"x, y: \"z\" \\"}`: `{"a": 1, "b": [1, 2, {}], "c": "x, y: \"z\" \\"}`,
		"{\n \"a\" : 1\n}":                          `{"a": 1}`,
		`{"a": `:                                    `{"a": `, // a call that was cut stays as it is
	} {
		if got := spaced([]byte(in)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestContinuedMessageStaysOpen(t *testing.T) {
	s := server(t, Options{})
	q := object{"messages": []any{object{"role": "user", "content": "Hi"}, object{"role": "assistant", "content": "One, two"}},
		"continue_final_message": true, "add_generation_prompt": false, "return_token_ids": true}
	v := unary(t, s, q)
	prompt := ints(at(v, "prompt_token_ids"))
	if prompt[len(prompt)-1] == tokEnd || text(at(v, "choices", 0, "message", "content")) != " and so on." {
		t.Errorf("got %v", at(v, "choices", 0, "message"))
	}
}

func TestArgumentsFitTheSchema(t *testing.T) {
	for schema, want := range map[string]string{
		``:     `{}`,
		`true`: `{}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}}}`:                                                               `{"a": "demo", "b": true}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["null","number"],"minimum":0.5}},"required":["b"]}`:                        `{"b": 0.5}`,
		`{"properties":{"e":{"enum":["x","y"]},"c":{"const":{"k":[1,2]}},"d":{"default":null}}}`:                                                      `{"e": "x", "c": {"k": [1, 2]}, "d": null}`,
		`{"properties":{"l":{"type":"array","items":{"type":"string"}},"m":{"type":"array"}}}`:                                                        `{"l": ["demo"], "m": []}`,
		`{"properties":{"r":{"$ref":"#/$defs/p"},"o":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"$defs":{"p":{"type":"null"}}}`:                  `{"r": null, "o": 1}`,
		`{"properties":{"self":{"$ref":"#"}},"required":["self"]}`:                                                                                    "{}",
		`{"properties":{"file_path":{"type":"string"},"cmd":{"type":"string"},"city":{"type":"string"},"quo\"te":{"type":"string"}},"type":"object"}`: `{"file_path": "demo.txt", "cmd": "echo demo", "city": "Oslo", "quo\"te": "demo"}`,
	} {
		got := maker{names: []string{"Oslo"}}.arguments([]byte(schema))
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: got no JSON: %s", schema, got)
		}
		if want != "{}" && got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", schema, got, want)
		}
	}
}
