package responses

import (
	"fmt"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// agentCall is a request as a coding agent sends it after many turns, about size bytes: the recorded one's tools, and source code in calls
// and results.
func agentCall(tb testing.TB, size int) []byte {
	tb.Helper()
	body := recorded(tb)["codex-1"]
	code := "func (s *Store) Append(ctx context.Context, r *Record) error {\n\tif r == nil {\n\t\treturn errors.New(\"no record\")\n\t}\n\treturn nil\n}\n"
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":"m","stream":true,"tools":%s,"input":[{"role":"user","content":"go"}`, jsonx.Get(body, "tools"))
	for i := 0; b.Len() < size; i++ {
		arguments := string(jsonx.AppendString(nil, fmt.Sprintf(`{"path":"/src/f%d.go","patch":%s}`, i, jsonx.AppendString(nil, code))))
		fmt.Fprintf(&b, `,{"type":"reasoning","id":"rs_%d","summary":[{"type":"summary_text","text":"The file is read first."}],"encrypted_content":"%s"}`, i, strings.Repeat("gAAAA", 40))
		fmt.Fprintf(&b, `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Now the change."}]},{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"exec_command","arguments":%s}`, i, i, arguments)
		fmt.Fprintf(&b, `,{"type":"function_call_output","call_id":"call_%d","output":%s}`, i, jsonx.AppendString(nil, strings.Repeat(code, 6)))
	}
	b.WriteString("]}")
	return []byte(b.String())
}

// To compare two states: go test -run '^$' -bench Call -count 8 ./rewrite/responses > new; benchstat old new.
func BenchmarkReadCall(b *testing.B) {
	body := agentCall(b, 400<<10)
	o := callOptions(nil)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (responses{}).ReadCall(body, o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendCall(b *testing.B) {
	body := agentCall(b, 400<<10)
	o := callOptions(nil)
	r, err := responses{}.ReadCall(body, o)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (responses{}).AppendCall(nil, r, o); err != nil {
			b.Fatal(err)
		}
	}
}
