package proxy

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// Routed experts are stored as they came, however long they are; what is long is not kept in memory.
func TestTokens_routedExperts(t *testing.T) {
	for name, value := range map[string]string{
		"short": `"AAEC"`, "long": `"` + strings.Repeat("AAEC", 1<<20) + `"`, "lists": `[[1,2],[3,4]]`,
	} {
		for _, k := range talkers() {
			t.Run(name+"/"+k.dialect, func(t *testing.T) {
				chunk := func(choice, rest string) string {
					return data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` + choice + `}]` + rest + `}`)
				}
				up := newUpstream(t, func(c *call) {
					if c.Target != "/v1/chat/completions" {
						c.reply(404, "application/json", `{}`)
						return
					}
					c.open(200, "text/event-stream")
					c.chunk(chunk(`"delta":{"role":"assistant","content":""},"finish_reason":null`, `,"prompt_token_ids":[1,2]`))
					c.chunk(chunk(`"delta":{"content":"hi"},"logprobs":{"content":[{"token":"hi","logprob":-0.5,"bytes":null,"top_logprobs":[]}]},"finish_reason":null,"token_ids":[3]`, ""))
					c.chunk(chunk(`"delta":{},"finish_reason":"stop","routed_experts":`+value, ""))
					c.chunk(data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1}}`) + data("[DONE]"))
					c.end()
				})
				r := start(t, up.url(), taughtBy)
				res, got := r.post(trainingPrefix+k.path, k.body(t, []any{k.user("hi")}, object{"stream": true}))
				// A Chat client gets what the engine tells everybody; other dialects have no place for it.
				if res.StatusCode != http.StatusOK || k.dialect != "chat" && len(got) > 100<<10 || k.dialect == "chat" && !strings.Contains(got, value) {
					t.Errorf("answered %s with %d bytes", res.Status, len(got))
				}
				r.record("r").expect(t, "rolltap.tokens.result", "ok")
				e := r.keptTokens("r")[0]
				f, err := os.Open(r.tokenFile("r", ".jsonl"))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				stored, err := io.ReadAll(e.RoutedExperts.Open(f))
				if err != nil || string(stored) != value {
					t.Errorf("stored are %d bytes, %v, want %d", len(stored), err, len(value))
				}
			})
		}
	}
}
