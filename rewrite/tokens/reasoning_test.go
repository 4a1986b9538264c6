package tokens

import (
	"bytes"
	"regexp"
	"testing"
)

// Reasoning that the client did not want to see stays away, with what tells of it, and the tokens are whole all the same.
func TestHiddenReasoningIsTakenOut(t *testing.T) {
	all := recordings(t)
	for _, name := range []string{"chat-stream-capture", "chat-unary-capture", "rust-chat-stream-capture", "rust-chat-unary-capture"} {
		r := all[name]
		got, c := hide(Wish{Streamed: r.stream, HiddenReasoning: true}, r.stream, r.body)
		if res := c.Result(); res.Reason != "" || res.GeneratedLen != r.IDs {
			t.Errorf("%s: %d of %d ids, reason %q", name, res.GeneratedLen, r.IDs, res.Reason)
		}
		if !regexp.MustCompile(`"reasoning(_content)?":"`).Match(r.body) {
			t.Fatalf("%s reasons nothing", name)
		}
		if m := regexp.MustCompile(`"reasoning(_content)?":"[^"]|token_id|"logprob"|"delta":\{\},"finish_reason":null|"delta":\{\}\}`).Find(got); m != nil {
			t.Errorf("%s: the client sees %s", name, m)
		}
		// All else is what it is without the wish.
		bare, _ := hide(Wish{Streamed: r.stream}, r.stream, r.body)
		text := regexp.MustCompile(`"content":"((?:[^"\\]|\\.)*)"`)
		if want, have := said(text, bare), said(text, got); !bytes.Equal(want, have) {
			t.Errorf("%s: got the text %q, want %q", name, have, want)
		}
	}
	for _, c := range []struct{ name, in, out string }{
		{"a delta of reasoning alone", `{"choices":[{"index":0,"delta":{"reasoning":"r"},"logprobs":null,"finish_reason":null,"token_ids":[1]}]}`, ``},
		{"a delta of reasoning and text", `{"choices":[{"index":0,"delta":{"reasoning":"r","content":"a"},"finish_reason":null}]}`, `{"choices":[{"index":0,"delta":{"reasoning":null,"content":"a"},"finish_reason":null}]}`},
		{"of a server that leaves nulls out", `{"choices":[{"delta":{"reasoning_content":"r","content":"a"}}]}`, `{"choices":[{"delta":{"content":"a"}}]}`},
		{"under both names", `{"choices":[{"delta":{"content":"a","reasoning":"r","reasoning_content":"r"}}]}`, `{"choices":[{"delta":{"content":"a"}}]}`},
		{"behind a role", `{"choices":[{"delta":{"role":"assistant","reasoning":"r"}}]}`, `{"choices":[{"delta":{"role":"assistant"}}]}`},
		{"with the end", `{"choices":[{"delta":{"reasoning":"r"},"finish_reason":"length"}]}`, `{"choices":[{"delta":{"reasoning":null},"finish_reason":"length"}]}`},
		{"null", `{"choices":[{"delta":{"content":"a","reasoning":null}}]}`, `{"choices":[{"delta":{"content":"a","reasoning":null}}]}`},
	} {
		want := ""
		if c.out != "" {
			want = "data: " + c.out + "\n\n"
		}
		if got, _ := hide(Wish{Streamed: true, HiddenReasoning: true}, true, []byte("data: "+c.in+"\n\n")); string(got) != want {
			t.Errorf("%s: %s; want %s", c.name, got, want)
		}
	}
	const whole = `{"choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning":"r"},"finish_reason":"stop"}]}`
	if got, _ := hide(Wish{HiddenReasoning: true}, false, []byte(whole)); string(got) != `{"choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning":null},"finish_reason":"stop"}]}` {
		t.Errorf("a whole answer: %s", got)
	}
	const cut = `data: {"choices":[{"delta":{"reasoning":"secr`
	if got, _ := hide(Wish{Streamed: true, HiddenReasoning: true}, true, []byte(cut)); len(got) > 0 {
		t.Errorf("cut inside of reasoning: %s", got)
	}
}

// said joins what a pattern finds.
func said(pattern *regexp.Regexp, body []byte) []byte {
	var all []byte
	for _, m := range pattern.FindAllSubmatch(body, -1) {
		all = append(all, m[1]...)
	}
	return all
}
