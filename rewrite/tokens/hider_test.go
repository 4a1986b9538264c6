package tokens

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func hide(w Wish, stream bool, parts ...[]byte) ([]byte, *Collector) {
	c := NewCollector(1<<20, w)
	h := NewHider(w, c)
	if !stream {
		return h.AppendWhole(nil, bytes.Join(parts, nil)), c
	}
	var out []byte
	for _, p := range parts {
		out = h.AppendStream(out, p)
	}
	return h.AppendRest(out), c
}

var varying = regexp.MustCompile(`"id":"(chatcmpl-|chatcmpl-tool-|call_)[0-9a-f]+"|"created":\d+`)

// TestHiddenIsBare: what a client gets of an answer that was asked for ids is what it would have got without, byte for byte; but for the
// empty places of ids, of which it gets none.
func TestHiddenIsBare(t *testing.T) {
	all := recordings(t)
	for _, x := range []struct{ asked, bare string }{
		{"chat-stream-capture", "chat-stream-reasoning"},
		{"chat-stream-tool-auto", "chat-stream-tool-auto-bare"},
		{"chat-stream-token-ids", "chat-stream-usage"},
		{"chat-stream-token-ids", "chat-stream-plain"},
		{"chat-unary-capture", "chat-unary-reasoning"},
		{"chat-unary-token-ids", "chat-unary-plain"},
		{"rust-chat-stream-capture", "rust-chat-stream-reasoning"},
		{"rust-chat-stream-tool-auto", "rust-chat-stream-tool-auto-bare"},
		{"rust-chat-stream-token-ids", "rust-chat-stream-usage"},
		{"rust-chat-stream-token-ids", "rust-chat-stream-plain"},
		{"rust-chat-unary-capture", "rust-chat-unary-reasoning"},
		{"rust-chat-unary-token-ids", "rust-chat-unary-plain"},
	} {
		t.Run(x.asked+"/"+x.bare, func(t *testing.T) {
			asked, bare := all[x.asked], all[x.bare]
			w := bare.wish(t)
			got, c := hide(w, asked.stream, asked.body)
			if r := c.Result(); r.GeneratedLen != asked.IDs || r.Reason != asked.reasonOf() {
				t.Errorf("collected %d of %d ids, reason %q", r.GeneratedLen, asked.IDs, r.Reason)
			}
			if bytes.Contains(got, []byte("token_id")) || bytes.Contains(got, []byte(`"logprob"`)) {
				t.Error("the client sees ids or log probabilities")
			}
			want, _ := hide(w, bare.stream, bare.body)
			if removed := idLists.ReplaceAll(bare.body, nil); !bytes.Equal(want, emptyPlaces.ReplaceAll(removed, nil)) {
				t.Error("of an answer without ids more goes than their empty places")
			}
			if !w.Usage && !strings.HasPrefix(x.asked, "rust") && bare.stream { // see Hider
				want = bytes.Replace(want, []byte(`,"system_fingerprint":"vllm-0.32.0-0f279a68"`), nil, 1)
			}
			if x.bare == "rust-chat-stream-tool-auto-bare" { // with ids it puts the name of a call and its first arguments into one event
				want = callAndArguments.ReplaceAll(want, []byte("$1,"))
			}
			got, want = varying.ReplaceAll(got, nil), varying.ReplaceAll(want, nil)
			sameLines(t, got, want)
		})
	}
}

var callAndArguments = regexp.MustCompile(`("function":\{"name":"[^"]*"\}\})\]\}\}\]\}\n\ndata: [^\n]*"delta":\{"tool_calls":\[`)

func sameLines(t *testing.T, got, want []byte) {
	t.Helper()
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			t.Errorf("line %d: got\n%s\nwant\n%s", i, g[i], w[i])
			return
		}
	}
	if len(g) != len(w) {
		t.Errorf("%d lines, want %d", len(g), len(w))
	}
}

var emptyPlaces = regexp.MustCompile(`,"(prompt_)?token_ids":null`)

// TestHiderKeepsWhatWasAsked: a client that asked for all gets all.
func TestHiderKeepsWhatWasAsked(t *testing.T) {
	for name, r := range recordings(t) {
		w := r.wish(t)
		w.IDs, w.Logprobs, w.Usage = true, true, true
		got, c := hide(w, r.stream, r.body)
		if !bytes.Equal(got, r.body) {
			t.Errorf("%s: bytes were changed", name)
		}
		if want := r.collect(t); c.Result().Reason != want.Reason || !bytes.Equal(c.Result().Generated, want.Generated) {
			t.Errorf("%s: the Hider's Collector saw something else", name)
		}
	}
}

// TestHiderLogprobsAlone: a client that asked for log probabilities keeps them on every event, those without text too.
func TestHiderLogprobsAlone(t *testing.T) {
	for _, name := range []string{"chat-stream-tool-auto", "rust-chat-stream-tool-auto", "chat-unary-tool-auto"} {
		r := recordings(t)[name]
		got, _ := hide(Wish{Streamed: r.stream, Logprobs: true, Usage: true}, r.stream, r.body)
		want := emptyPlaces.ReplaceAll(regexp.MustCompile(`,("(?:prompt_)?token_ids":\[)([0-9,]+)\]`).ReplaceAll(r.body, nil), nil)
		sameLines(t, got, want)
	}
}

// TestHiderSplit: however the bytes arrive, the same goes on, and the same is collected.
func TestHiderSplit(t *testing.T) {
	all := recordings(t)
	for _, name := range []string{"chat-stream-stop", "rust-chat-stream-stop", "chat-stream-engine-death", "extra-chat-stream-capture", "chat-stream-n2"} {
		body := all[name].body
		for _, form := range []struct{ name, end string }{{"LF", "\n"}, {"CRLF", "\r\n"}, {"CR", "\r"}} {
			text := []byte("\xef\xbb\xbf: hello\n\n" + string(body) + ": bye\n")
			text = bytes.ReplaceAll(text, []byte("\n"), []byte(form.end))
			whole, c := hide(Wish{Streamed: true}, true, text)
			want := c.Result()
			if bytes.Contains(whole, []byte("token_id")) {
				t.Fatalf("%s: ids are seen", name)
			}
			check := func(how string, parts ...[]byte) {
				got, c := hide(Wish{Streamed: true}, true, parts...)
				r := c.Result()
				if !bytes.Equal(got, whole) {
					t.Fatalf("%s %s %s: got\n%q\nwant\n%q", name, form.name, how, got, whole)
				}
				if r.Reason != want.Reason || !bytes.Equal(r.Generated, want.Generated) || !bytes.Equal(r.Logprobs, want.Logprobs) {
					t.Fatalf("%s %s %s: collected something else", name, form.name, how)
				}
			}
			for i := range text {
				if len(text) > 2500 && i%7 != 0 {
					continue
				}
				check("in two", text[:i], text[i:])
			}
			single := make([][]byte, len(text))
			for i := range text {
				single[i] = text[i : i+1]
			}
			check("in bytes", single...)
		}
	}
}

// TestHiderLive: an event goes on with the push that ends it.
func TestHiderLive(t *testing.T) {
	r := recordings(t)["chat-stream-stop"]
	w := Wish{Streamed: true, Usage: true, IDs: true}
	h := NewHider(w, NewCollector(1<<20, w))
	for _, event := range bytes.SplitAfter(r.body, []byte("\n\n")) {
		if got := h.AppendStream(nil, event); len(event) > 0 && !bytes.HasSuffix(got, []byte("\n\n")) {
			t.Errorf("%q gave %q", event, got)
		}
	}
}

func TestHiderEvents(t *testing.T) {
	for _, x := range []struct {
		name, in, out string
		w             Wish
	}{
		{"first of members", `{"prompt_token_ids":[1],"id":"x"}`, `{"id":"x"}`, Wish{}},
		{"first two", `{"prompt_token_ids":[1], "prompt_token_ids":[1] , "id":"x"}`, `{"id":"x"}`, Wish{}},
		{"last", `{"id":"x" , "prompt_token_ids": [1] }`, `{"id":"x" }`, Wish{}},
		{"middle", `{"id":"x", "prompt_token_ids":[1], "a":1}`, `{"id":"x", "a":1}`, Wish{}},
		{"only", `{ "prompt_token_ids":[1] }`, `{  }`, Wish{}},
		{"null goes too", `{"id":"x","prompt_token_ids":null}`, `{"id":"x"}`, Wish{}},
		{"escaped key", `{"id":"x","prompt_\u0074oken_ids":[1]}`, `{"id":"x"}`, Wish{}},
		{"in text they stay", `{"choices":[{"delta":{"content":"\"token_ids\":[1]"}}]}`, `{"choices":[{"delta":{"content":"\"token_ids\":[1]"}}]}`, Wish{}},
		{"in arguments they stay", `{"choices":[{"delta":{"x":{"token_ids":[1]}}}]}`, `{"choices":[{"delta":{"x":{"token_ids":[1]}}}]}`, Wish{}},
		{
			"nulls are spelled", `{"choices":[{"logprobs":{"content":[]},"token_ids":[],"finish_reason":null,"delta":{"content":"a"}}]}`,
			`{"choices":[{"logprobs":null,"finish_reason":null,"delta":{"content":"a"}}]}`, Wish{},
		},
		{
			"nulls are left out", `{"choices":[{"logprobs":{"content":[]},"token_ids":[],"delta":{"content":"a"}}]}`,
			`{"choices":[{"delta":{"content":"a"}}]}`, Wish{},
		},
		{
			"bundle", `{"choices":[{"message":{"prompt_token_ids":[1],"content":"a","generation_token_ids":[2],"generation_log_probs":[-1],` +
				`"routed_experts":"x"},"finish_reason":"stop"}]}`, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`, Wish{},
		},
		{"an event of ids", `{"id":"x","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":null,"token_ids":[1]}]}`, "", Wish{}},
		{"an event of ids in two choices", `{"choices":[{"delta":{},"token_ids":[1]},{"delta":{},"token_ids":[1]}]}`, "", Wish{}},
		{"one of two choices", `{"choices":[{"delta":{},"token_ids":[1]},{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{}},{"delta":{"content":"a"}}]}`, Wish{}},
		{"empty of itself", `{"choices":[{"delta":{}}]}`, `{"choices":[{"delta":{}}]}`, Wish{}},
		{"an event with something beside", `{"x":1,"choices":[{"delta":{},"token_ids":[1]}]}`, `{"x":1,"choices":[{"delta":{}}]}`, Wish{}},
		{"a choice with something beside", `{"choices":[{"delta":{},"x":1,"token_ids":[1]}]}`, `{"choices":[{"delta":{},"x":1}]}`, Wish{}},
		{"an event of ids, asked for", `{"choices":[{"delta":{},"token_ids":[1]}]}`, `{"choices":[{"delta":{},"token_ids":[1]}]}`, Wish{IDs: true}},
		{"an event of logprobs, asked for", `{"choices":[{"delta":{},"logprobs":{},"token_ids":[1]}]}`, `{"choices":[{"delta":{},"logprobs":{}}]}`, Wish{Logprobs: true}},
		{"the finish", `{"choices":[{"delta":{},"token_ids":[1],"finish_reason":"stop"}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, Wish{}},
		{"usage", `{"choices":[],"usage":{"completion_tokens":1},"metrics":{"a":1}}`, "", Wish{}},
		{"usage, asked for", `{"choices":[],"usage":{"completion_tokens":1},"metrics":{"a":1}}`, `{"choices":[],"usage":{"completion_tokens":1},"metrics":{"a":1}}`, Wish{Usage: true}},
		{"usage null", `{"choices":[],"usage":null,"a":1}`, `{"choices":[],"usage":null,"a":1}`, Wish{}},
		{"continuous usage without usage", `{"choices":[{"delta":{"content":"a"}}],"usage":{}}`, `{"choices":[{"delta":{"content":"a"}}]}`, Wish{ContinuousUsage: true}},
		{"an error", `{"error": {"message": "x"}, "choices": [], "usage": {}}`, `{"error": {"message": "x"}, "choices": [], "usage": {}}`, Wish{}},
		{"no JSON", `{"prompt_token_ids":[1],"x":NaN}`, `{"prompt_token_ids":[1],"x":NaN}`, Wish{}},
		{"no object", `["prompt_token_ids"]`, `["prompt_token_ids"]`, Wish{}},
		{"the end", `[DONE]`, `[DONE]`, Wish{}},
		{"nothing", ``, ``, Wish{}},
	} {
		frame := func(data string) string {
			if x.out == "" && x.in != "" && data == "" {
				return ""
			}
			return "event: e\ndata:" + data + "\nid: 1\n\n"
		}
		if got, _ := hide(x.w, true, []byte(frame(x.in))); string(got) != frame(x.out) {
			t.Errorf("%s: got %q, want %q", x.name, got, frame(x.out))
		}
	}
}

func TestHiderFraming(t *testing.T) {
	const ids = `{"choices":[{"delta":{},"token_ids":[1]}]}`
	for _, x := range []struct{ name, in, out string }{
		{"comments stay", ": a\n\ndata: " + ids + "\n: b\n\n: c\n\ndata: [DONE]\n\n", ": a\n\n: b\n: c\n\ndata: [DONE]\n\n"},
		{"blank lines stay", "\n\n\ndata: " + ids + "\n\n\n\n", "\n\n\n\n\n"},
		{"data of two lines", "data: {\"id\":1,\ndata:\"prompt_token_ids\":[1,\ndata:2]}\n\n", "data: {\"id\":1\ndata:\ndata:}\n\n"},
		{"null over two lines", "data: {\"choices\":[{\"finish_reason\":\"stop\",\"logprobs\":{\r\ndata: }}]}\r\n\r\n", "data: {\"choices\":[{\"finish_reason\":\"stop\",\"logprobs\":null\r\ndata: }]}\r\n\r\n"},
		{"a last event without its blank line", "data: {\"prompt_token_ids\":[1],\"a\":1}", "data: {\"a\":1}"},
		{"cut inside of an event", "data: {\"a\":1", "data: {\"a\":1"},
		{"cut inside of ids", ": c\n\ndata: {\"token_ids\":[1", ": c\n\n"},
		{"a field of another name", "database: {\"token_ids\":[1]}\n\n", "database: {\"token_ids\":[1]}\n\n"},
		{"a line end that comes late", "data: " + ids + "\r\rdata: [DONE]\r\r", "data: [DONE]\r\r"},
	} {
		if got, _ := hide(Wish{}, true, []byte(x.in)); string(got) != x.out {
			t.Errorf("%s: got %q, want %q", x.name, got, x.out)
		}
		var parts [][]byte
		for i := range x.in {
			parts = append(parts, []byte(x.in[i:i+1]))
		}
		if got, _ := hide(Wish{}, true, parts...); string(got) != x.out {
			t.Errorf("%s, in bytes: got %q, want %q", x.name, got, x.out)
		}
	}
}

// TestHiderForcedUsage: a server that tells usage on every event tells it unasked, so the client sees the last one too.
func TestHiderForcedUsage(t *testing.T) {
	const in = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"completion_tokens\":1}}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n"
	if got, _ := hide(Wish{Streamed: true}, true, []byte(in)); string(got) != in {
		t.Errorf("got %q", got)
	}
}

// TestHiderLongEvent: an event that is too long passes as it is, while it comes, and is a reason.
func TestHiderLongEvent(t *testing.T) {
	long := []byte("data: {\"token_ids\":\"" + strings.Repeat("x", maxEvent) + "\"}\n\n")
	in := append(append([]byte("data: {\"a\":1}\n\n"), long...), "data: {\"prompt_token_ids\":[1],\"a\":2}\n\n"...)
	want := append(append([]byte("data: {\"a\":1}\n\n"), long...), "data: {\"a\":2}\n\n"...)
	for _, step := range []int{1 << 20, 3 << 20, len(in)} {
		w := Wish{}
		c := NewCollector(1<<10, w)
		h := NewHider(w, c)
		var out []byte
		for p := in; len(p) > 0; p = p[min(step, len(p)):] {
			out = h.AppendStream(out, p[:min(step, len(p))])
			if len(h.held) > maxEvent+step {
				t.Fatalf("%d bytes are held", len(h.held))
			}
		}
		if out = h.AppendRest(out); !bytes.Equal(out, want) {
			t.Errorf("step %d: %d bytes, want %d", step, len(out), len(want))
		}
		if r := c.Result(); r.Reason != TooLarge {
			t.Errorf("step %d: reason %q", step, r.Reason)
		}
	}
}
