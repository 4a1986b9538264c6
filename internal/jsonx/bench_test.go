package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fastjson"
)

// agentRequest returns a request as coding agents send it: a long system prompt, tool schemas, and turns
// with source code, terminal output and tool arguments, about size bytes.
func agentRequest(size int) []byte {
	code := "func (s *Store) Append(ctx context.Context, r *Record) error {\n\tif r == nil {\n\t\treturn errors.New(\"no record\")\n\t}\n" +
		"\t// The queue is bounded; a full one makes the caller wait.\n\tselect {\n\tcase s.queue <- r:\n\tcase <-ctx.Done():\n\t\treturn ctx.Err()\n\t}\n}\n"
	prose := "You are a coding agent. Read the files before you change them, keep the change small, run the tests, " +
		"and say what you could not verify. Prefer the tools that are listed over guessing; never invent a path. "
	var tools, turns []any
	for i := range 24 {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{
			"name": fmt.Sprintf("tool_%d", i), "description": prose,
			"parameters": map[string]any{"type": "object", "additionalProperties": false, "required": []string{"path"},
				"properties": map[string]any{
					"path":  map[string]any{"type": "string", "description": "absolute path"},
					"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": 2000},
				}}}})
	}
	for n, i := 0, 0; n < size; i++ {
		args, _ := json.Marshal(map[string]any{"path": fmt.Sprintf("/src/file_%d.go", i), "limit": i, "patch": code})
		answer := fmt.Sprintf("\x1b[32m%d passed\x1b[0m in 0.%ds – naïve café 東京\n", i, i) + strings.Repeat(code, 6)
		turns = append(turns,
			map[string]any{"role": "assistant", "content": prose, "tool_calls": []any{map[string]any{
				"id": fmt.Sprintf("call_%d", i), "type": "function",
				"function": map[string]any{"name": "edit", "arguments": string(args)}}}},
			map[string]any{"role": "tool", "tool_call_id": fmt.Sprintf("call_%d", i), "content": answer})
		n += len(answer) + len(args) + len(prose)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any{"model": "m", "stream": true, "temperature": 0.7, "messages": turns, "tools": tools}); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// To compare two states: go test -run '^$' -bench . -count 8 ./internal/jsonx > new; benchstat old new.
// The baselines in the same run are encoding/json and fastjson.
func BenchmarkCompact(b *testing.B) {
	tight := agentRequest(400 << 10)
	var loose bytes.Buffer
	if err := json.Indent(&loose, tight, "", "  "); err != nil {
		b.Fatal(err)
	}
	text := AppendString(nil, strings.Repeat("東京の天気は晴れです。Привет, мир! ", 8<<10))
	small := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1754000000,"model":"m","choices":[{"index":0,"delta":{"content":" the"},"logprobs":null,"finish_reason":null}]}`)
	for _, in := range []struct {
		name string
		body []byte
	}{{"tight", tight}, {"indented", loose.Bytes()}, {"scripts", text}, {"chunk", small}} {
		dst := make([]byte, 0, len(in.body))
		var buf bytes.Buffer
		buf.Grow(len(in.body))
		var c Compactor
		for _, run := range []struct {
			name string
			f    func() error
		}{
			{"Append", func() error { c.Reset(); _, err := c.Append(dst, in.body); return err }},
			{"Append32K", func() (err error) {
				c.Reset()
				out := dst
				for p := range chunks(in.body, 32<<10) {
					if out, err = c.Append(out, p); err != nil {
						return err
					}
				}
				return nil
			}},
			{"Check", func() error { c.Reset(); return c.Check(in.body) }},
			{"encoding_json.Compact", func() error { buf.Reset(); return json.Compact(&buf, in.body) }},
			{"fastjson.ValidateBytes", func() error { return fastjson.ValidateBytes(in.body) }},
		} {
			b.Run(in.name+"/"+run.name, func(b *testing.B) {
				b.SetBytes(int64(len(in.body)))
				b.ReportAllocs()
				for b.Loop() {
					if err := run.f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func chunks(p []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(p) > 0 {
			n := min(size, len(p))
			if !yield(p[:n]) {
				return
			}
			p = p[n:]
		}
	}
}
