package chat

import (
	"fmt"
	"testing"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// agentRequest is a long conversation of an agent with the tools of a recorded one, of about size bytes.
func agentRequest(tb testing.TB, size int) []byte {
	tb.Helper()
	recorded := recordedRequests(tb)["kilo-1"]
	body := append([]byte(nil), `{"model":"m","tools":`...)
	body = append(body, jsonx.Get(recorded, "tools")...)
	body = append(body, `,"stream":true,"messages":[{"role":"system","content":"You are an agent."},{"role":"user","content":"Go."}`...)
	for i := 0; len(body) < size; i++ {
		body = fmt.Appendf(body, `,{"role":"assistant","content":null,"reasoning_content":%q,"tool_calls":[{"id":"call_%d","type":"function",`+
			`"function":{"name":"bash","arguments":%q}}]},{"role":"tool","tool_call_id":"call_%d","content":"`,
			"I should look at the next file, since the last one did not say where it is set.", i, fmt.Sprintf(`{"command":"sed -n 1,80p file%d.go"}`, i), i)
		for line := range 20 {
			body = fmt.Appendf(body, `%d\tif err := run(\"%d\", nil); err != nil {\n`, line, i)
		}
		body = append(body, `"}`...)
	}
	return append(body, `]}`...)
}

// BenchmarkCall is a request of 400 KiB read and written, as for a client of Chat and as for others.
func BenchmarkCall(b *testing.B) {
	body := agentRequest(b, 400<<10)
	o := callOptions()
	r := readRequest(b, string(body), o)
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (chat{}).ReadCall(body, o); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, from := range []canon.Dialect{canon.Chat, canon.Messages} {
		b.Run("write/"+string(from), func(b *testing.B) {
			r.From = from
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (chat{}).AppendCall(nil, r, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
