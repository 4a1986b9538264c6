package lineage

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// session is a Messages request of the size of a long coding session: texts with line ends, tool calls and their results.
func session(items, size int) []byte {
	var b bytes.Buffer
	tool := `{"name":"tool%d","description":"What it does","input_schema":{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"A file"},"limit":{"type":"integer","minimum":1}}}}`
	b.WriteString(`{"model":"m","max_tokens":4096,"tools":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, tool, i)
	}
	b.WriteString(`],"messages":[{"role":"user","content":"Do it."}`)
	line := `func main() {\n\tfmt.Println(\"hello\")\n}\n`
	result := strings.Repeat(line, 1+2*(size/items-400)/len(line))
	for i := 1; i < items; i += 2 {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"text","text":"I look at file %d."},{"type":"tool_use","id":"toolu_%d","name":"tool1","input":{"path":"/a/b/%d.go","limit":%d}}]}`, i, i, i, i)
		fmt.Fprintf(&b, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"}]}`, i, result)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	many := func(n int, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, ",")
	}
	const size = 400 << 10
	depth := jsonx.MaxDepth - 8
	rest := many(size/4, func(int) string { return "1.5" })
	for _, tt := range []struct {
		name string
		body []byte
	}{
		{"conversation=400KiB/turns=200", session(200, size)},
		{"hostile=empty turns", []byte(`{"messages":[` + many(size/3, func(int) string { return "{}" }) + `]}`)},
		{"hostile=names", []byte(`{"tools":{` + many(size/12, func(i int) string { return fmt.Sprintf(`"%07d":1`, (i*7919)%99991) }) + `}}`)},
		{"hostile=escaped names", []byte(`{"tools":{` + many(size/12, func(i int) string { return fmt.Sprintf(`"\n%05d":1`, (i*7919)%99991) }) + `}}`)},
		{"hostile=one name", []byte(`{"tools":{` + many(size/6, func(int) string { return `"a":1` }) + `}}`)},
		{"hostile=deep objects", []byte(`{"tools":` + strings.Repeat(`{"b":1,"a":`, depth) + `[` + rest + `]` + strings.Repeat(`}`, depth) + `}`)},
		{"hostile=deep arguments", []byte(`{"input":[` + many(size/2100, func(int) string {
			return `{"type":"function_call","arguments":"` + strings.Repeat("[", 2000) + `"}`
		}) + `]}`)},
		{"hostile=numbers", []byte(`{"tools":[` + many(size/25, func(i int) string { return fmt.Sprintf("-1.797693134862%04de%d", i%9999, i%600-300) }) + `]}`)},
		{"hostile=escapes", []byte(`{"instructions":"` + strings.Repeat(`\ud83d\ude00`, size/12) + `"}`)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			if !jsonx.Valid(tt.body) {
				b.Fatal("no JSON")
			}
			b.SetBytes(int64(len(tt.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(tt.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for name, body := range clients(b) {
		if name != "claude-code-12" && name != "codex-2" {
			continue
		}
		b.Run("client="+name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStamp(b *testing.B) {
	turns, err := Read(session(200, 400<<10))
	if err != nil {
		b.Fatal(err)
	}
	answer := []byte(conversations["messages"][0].answer)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := turns.Stamp(answer); err != nil {
			b.Fatal(err)
		}
	}
}
