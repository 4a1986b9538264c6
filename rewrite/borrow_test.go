package rewrite_test

import (
	"bytes"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// borrowing is a request that makes every filter work on its answer: a name that has to be restored, a bridged tool, seals, tags.
func borrowing(client canon.Dialect) []byte {
	switch client {
	case canon.Messages:
		return []byte(`{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"get_weather","input_schema":{}},{"name":"a.b","input_schema":{}}]}`)
	case canon.Responses:
		return []byte(`{"model":"m","stream":true,"include":["reasoning.encrypted_content"],"input":"Hi","tools":[{"type":"custom","name":"get_weather"}]}`)
	}
	if client == canon.Gemini {
		return []byte(`{"contents":[{"parts":[{"text":"Hi"}]}],"tools":[{"functionDeclarations":[{"name":"get_weather"},{"name":"a.b"}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`)
	}
	return []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"custom","custom":{"name":"get_weather"}},{"type":"function","function":{"name":"a.b"}}]}`)
}

// targetOf is what the path of a stream of a dialect says.
func targetOf(client canon.Dialect) (t dialect.Target) {
	if client == canon.Gemini {
		t = dialect.Target{Model: "m", Stream: true}
	}
	return t
}

func scribble(b []byte) {
	for i := range b {
		b[i] = 'X'
	}
}

// TestStreamsKeepNothingThatWasLent: the request and what is pushed are lent for the call, whatever decoders, filters, the sequencer and encoders keep of it.
func TestStreamsKeepNothingThatWasLent(t *testing.T) {
	policy := rewrite.DefaultPolicy()
	policy.ThinkTags = "parse"
	translated := 0
	for _, client := range dialects(t) {
		for _, x := range streams(t) {
			if x.dialect == client.Name() {
				continue
			}
			t.Run(x.name+" to "+string(client.Name()), func(t *testing.T) {
				translate := func(size int, lent bool) []byte {
					tr := rewrite.NewTranslation(client, translator(t, x.dialect), &policy, rewrite.Call{ID: "1", Target: targetOf(client.Name())})
					request := borrowing(client.Name())
					if _, err := tr.Request(request); err != nil {
						t.Fatal(err)
					}
					if lent {
						scribble(request)
					}
					s := tr.NewStream(1 << 20)
					var out []byte
					buf := make([]byte, size)
					for rest := x.response; len(rest) > 0; {
						n := copy(buf, rest)
						rest = rest[n:]
						out = append(out, s.Push(buf[:n])...)
						if lent {
							scribble(buf)
						}
					}
					out = append(out, s.Finish()...)
					return append(out, s.AppendUpstream(nil)...)
				}
				want := translate(len(x.response), false)
				if len(want) > 0 { // else it begins with an error, which becomes an answer of its own
					translated++
				}
				for _, size := range []int{7, 100, 1000} {
					if got := translate(size, true); !bytes.Equal(got, want) {
						t.Errorf("in pieces of %d: got\n%s\nwant\n%s", size, got, want)
					}
				}
			})
		}
	}
	if translated < 100 {
		t.Errorf("only %d streams were translated", translated)
	}
}

// TestRequestsAreNotWrittenTo: the body is the client's and is recorded, so nobody may append into it.
func TestRequestsAreNotWrittenTo(t *testing.T) {
	policy := rewrite.DefaultPolicy()
	translated := 0
	for _, r := range sentRequests(t) {
		for _, client := range dialects(t) {
			for _, upstream := range dialects(t) {
				body := append(make([]byte, 0, len(r.Body)+64), r.Body...)
				tr := rewrite.NewTranslation(client, upstream, &policy, rewrite.Call{ID: "1", Served: func(string) string { return "other" }})
				if _, err := tr.Request(body); err == nil {
					translated++
					tr.NewStream(0).KeepAlive() // Responses repeats members of the request
				}
				behind := body[len(body):cap(body)]
				if !bytes.Equal(body, r.Body) || !bytes.Equal(behind, make([]byte, len(behind))) {
					t.Errorf("%s, %s to %s: the request was written to", r.name, client.Name(), upstream.Name())
				}
			}
		}
	}
	if translated < 100 {
		t.Errorf("only %d requests were translated", translated)
	}
}
