package rewrite_test

import (
	"testing"

	"pgregory.net/rapid"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/dialecttest"
	"rolltap/rewrite/dialecttest/generate"
)

// asking is a translation whose client asked for all that can be seen.
func asking(tb testing.TB, client, upstream canon.Dialect, stream bool) *rewrite.Translation {
	policy := rewrite.DefaultPolicy()
	call := rewrite.Call{ID: "1", Record: "1", Target: dialect.Target{Model: "m", Stream: stream}}
	tr := rewrite.NewTranslation(translator(tb, client), translator(tb, upstream), &policy, call)
	body := map[canon.Dialect]string{
		canon.Chat:      `{"model":"m","messages":[{"role":"user","content":"x"}]}`,
		canon.Messages:  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`,
		canon.Responses: `{"model":"m","input":"x","include":["reasoning.encrypted_content"]}`,
		canon.Gemini:    `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`,
	}[client]
	asked := []byte(body)
	if stream && client != canon.Gemini {
		asked = rewrite.SetMember(asked, "stream", []byte("true"))
	}
	if stream && client == canon.Chat {
		asked = rewrite.SetMember(asked, "stream_options", []byte(`{"include_usage":true}`))
	}
	if _, err := tr.Request(asked); err != nil {
		tb.Fatalf("%s to %s: %v", client, upstream, err)
	}
	return tr
}

// What a client gets as a stream is, put together, what it gets as one body, however the stream is cut on its way.
func TestAnyAnswerIsTheSameAsAStream(t *testing.T) {
	for _, up := range upstreams() {
		for _, client := range dialects(t) {
			t.Run(string(up)+" to "+string(client.Name()), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					tb := property{t, rt}
					said := generate.Said(rt, up)
					whole, err := asking(tb, client.Name(), up, false).Answer(said.Unary)
					if err != nil {
						rt.Fatalf("%v\n%s", err, said.Unary)
					}
					tr := asking(tb, client.Name(), up, true)
					stream := tr.NewStream(0)
					var heard []byte
					for rest := said.Stream; len(rest) > 0; {
						n := min(len(rest), 1<<rapid.IntRange(0, 12).Draw(rt, "cut"))
						heard = append(heard, stream.Push(rest[:n])...)
						rest = rest[n:]
					}
					heard = append(heard, stream.Finish()...)
					if stream.Failed() != nil || !stream.Ended() {
						rt.Fatalf("ended %v, failed %v\n%s", stream.Ended(), stream.Failed(), said.Stream)
					}
					asIs := func(v any) any { return v }
					dialecttest.SameJSON(tb, whole, []byte(dialecttest.Fold(client, heard).Response), asIs)
				})
			})
		}
	}
}
