package rewrite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialecttest"
	"rolltap/rewrite/dialecttest/generate"
)

// A request that is read and written in its own dialect is the same value, but for what is made here.
func TestAnyCallRoundTrip(t *testing.T) {
	for _, d := range dialects(t) {
		t.Run(string(d.Name()), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				dialecttest.SameCall(property{t, rt}, d, generate.Call(rt, d.Name()), func(v any) any { return tidyCall(v, d.Name()) })
			})
		})
	}
}

// refusals are what each upstream has no word for and nobody can leave out, as clients call it (dialects.md 1.6, 1.9.1).
func refusals(upstream canon.Dialect) []string {
	switch upstream {
	case canon.Responses:
		return []string{"stop", "stop_sequences", "generationConfig.stopSequences"}
	case canon.Messages:
		return []string{"response_format", "text.format", "generationConfig.responseMimeType"} // any JSON, without a schema
	}
	return nil
}

// What the API of the client's dialect accepts is sent to every upstream, but for what is refused by name; and nothing of it is dropped without a word.
func TestAnyCallReachesEveryUpstream(t *testing.T) {
	for _, client := range dialects(t) {
		t.Run(string(client.Name()), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				body := generate.Call(rt, client.Name())
				looked := rapid.SampledFrom(upstreams()).Draw(rt, "upstream")
				for _, up := range upstreams() {
					tr := between(t, client.Name(), up)
					out, err := tr.Request(body)
					var p *canon.Problem
					if errors.As(err, &p) && p.Code == canon.CodeUnsupported && slices.Contains(refusals(up), p.Param) {
						continue
					}
					if err != nil {
						rt.Fatalf("%s to %s: %v\n%s", client.Name(), up, err, body)
					}
					dialecttest.CheckCall(property{t, rt}, client, translator(t, up), body)
					if up == looked {
						silentlyLost(rt, client.Name(), up, body, out, tr.Losses())
					}
				}
			})
		})
	}
}

// silentlyLost leaves each member of a request out in turn. Where neither what goes out nor the losses are other ones then, it was dropped without
// a word.
func silentlyLost(t *rapid.T, client, up canon.Dialect, body, out []byte, losses []canon.Loss) {
	t.Helper()
	dialecttest.EachWithout(body, func(path string, value, without []byte) {
		tr := between(property{nil, t}, client, up)
		got, err := tr.Request(without)
		if err == nil && bytes.Equal(got, out) && slices.Equal(tr.Losses(), losses) && !dialecttest.Told(losses, body, path) && !idle(client, path, value, body) {
			t.Fatalf("%s to %s: %s is dropped without a word\n in %s\nout %s", client, up, path, body, out)
		}
	})
}

// tidyCall gives the spellings of one request one form.
func tidyCall(v any, d canon.Dialect) any {
	madeID := regexp.MustCompile(`^call_\d+_\d+$`)
	r := v.(map[string]any)
	each := func(list string, change func(map[string]any)) {
		items, _ := r[list].([]any)
		for _, item := range items {
			change(item.(map[string]any))
		}
	}
	switch d {
	case canon.Chat:
		if s, ok := r["stop"].(string); ok {
			r["stop"] = []any{s}
		}
		if r["max_tokens"] == nil && r["max_completion_tokens"] != nil { // a setting says which
			r["max_tokens"] = r["max_completion_tokens"]
		}
		delete(r, "max_completion_tokens")
		if r["stream"] == true && r["stream_options"] == nil { // usage is always asked for
			r["stream_options"] = map[string]any{"include_usage": true}
		}
		each("messages", func(m map[string]any) { // synonyms, of which both are sent
			if m["reasoning"] == nil && m["reasoning_content"] != nil {
				m["reasoning"] = m["reasoning_content"]
			}
			delete(m, "reasoning_content")
		})
	case canon.Messages:
		each("tools", func(tool map[string]any) {
			if tool["type"] == "custom" {
				delete(tool, "type")
			}
		})
	case canon.Responses:
		each("input", func(item map[string]any) {
			if item["type"] == nil && item["role"] != nil {
				item["type"] = "message"
			}
			if item["status"] == "completed" {
				delete(item, "status")
			}
		})
	case canon.Gemini:
		delete(r, "safetySettings") // a loss whatever the upstream
		each("contents", func(content map[string]any) {
			var parts []any
			for _, part := range content["parts"].([]any) {
				p := part.(map[string]any)
				if call, ok := p["functionCall"].(map[string]any); ok && madeID.MatchString(fmt.Sprint(call["id"])) {
					delete(call, "id")
				}
				if n := len(parts); n > 0 && content["role"] == "model" && p["text"] != nil { // texts behind each other are one
					if last := parts[n-1].(map[string]any); last["text"] != nil && last["thought"] == p["thought"] {
						last["text"] = fmt.Sprint(last["text"], p["text"])
						continue
					}
				}
				parts = append(parts, p)
			}
			content["parts"] = parts
		})
	}
	return v
}

// idle tells what says nothing in a request that is understood: values that ask for what happens anyway, and members that are known by others.
func idle(client canon.Dialect, path string, value, body []byte) bool {
	var plain bytes.Buffer
	if err := json.Compact(&plain, value); err != nil {
		panic(err)
	}
	switch plain.String() {
	case `null`, `""`, `"{}"`, `"auto"`, `false`, `{"type":"object","properties":{}}`, `{"type":"text"}`, `{"type":"adaptive"}`:
		return true
	}
	patterns := []string{
		`\.type$`, `^parallel_tool_calls$`,
		`^store$`,                                                          // a translation keeps nothing
		`^text\.format\.strict$`, `^response_format\.json_schema\.strict$`, // where the name is none, schemas are always held to
	}
	switch client {
	case canon.Chat:
		patterns = append(patterns, `^stream_options`, `^logprobs$`) // of the answer; top_logprobs says so
	case canon.Messages:
		patterns = append(patterns, `\.source\.media_type$`) // of a text
	case canon.Responses:
		// Only the provider knows the first two; a name is enough; the last is of the answer.
		patterns = append(patterns, `^input\[\d+\]\.(id|status)$`, `^tool_choice.*\.namespace$`, `^include$`)
	case canon.Gemini:
		patterns = append(patterns, `^contents\[\d+\]\.role$`, `\.functionResponse\.(id|name)$`, `\.includeThoughts$`) // each of the two tells which call
	}
	if bytes.Contains(body, []byte(`"allowed_tools"`)) || bytes.Contains(body, []byte(`"allowedFunctionNames"`)) {
		patterns = append(patterns, `^tools\b`, `^tool_choice$`) // others are not offered, and the choice is left
	}
	if m := regexp.MustCompile(`^input\[(\d+)\]\.(summary|content)\b`).FindStringSubmatch(path); m != nil && thoughtTwice(body, m[1]) {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(p).MatchString(path) })
}

// thoughtTwice tells that an item of reasoning has the same text as its summary and as its content: each alone says all of it.
func thoughtTwice(body []byte, index string) bool {
	var r struct{ Input []json.RawMessage }
	var item struct {
		Type             string
		Summary, Content []struct{ Text string }
	}
	i, err := strconv.Atoi(index)
	if err != nil || json.Unmarshal(body, &r) != nil || i >= len(r.Input) || json.Unmarshal(r.Input[i], &item) != nil || item.Type != "reasoning" {
		return false
	}
	for _, between := range []string{"", "\n\n"} {
		var texts [2]string
		for k, parts := range [...][]struct{ Text string }{item.Summary, item.Content} {
			for j, p := range parts {
				if j > 0 {
					texts[k] += between
				}
				texts[k] += p.Text
			}
		}
		if texts[0] == texts[1] {
			return true
		}
	}
	return false
}
