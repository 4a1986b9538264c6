package tokens

import (
	"bytes"
	"encoding/json"
	"testing"

	"rolltap/internal/jsonx"
)

// FuzzHider: no bytes make it panic or hang; every split of a stream gives the same; what holds no member that is hidden passes as it is;
// and what goes on is still JSON, or is the end, where it was.
func FuzzHider(f *testing.F) {
	for _, r := range recordings(f) {
		f.Add(r.body, 100, uint8(0))
		f.Add(bytes.ReplaceAll(r.body, []byte("\n"), []byte("\r\n")), 7, uint8(3))
	}
	f.Add(recordings(f)["chat-stream-capture"].body, 900, uint8(16))
	f.Add([]byte("data: {\"prompt_token_ids\":[1,\r\rdata:\ndata: 2],\r\ndata:\"choices\":[]}\n\n"), 3, uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, at int, wishes uint8) {
		w := Wish{Streamed: true, IDs: wishes&1 > 0, Logprobs: wishes&2 > 0, Usage: wishes&4 > 0, ContinuousUsage: wishes&8 > 0, HiddenReasoning: wishes&16 > 0}
		whole, c := hide(w, false, body)
		if untouched(body) && !bytes.Equal(whole, body) {
			t.Error("an answer without anything to hide was changed")
		}
		if jsonx.Valid(body) && !jsonx.Valid(whole) {
			t.Errorf("JSON became %q", whole)
		}
		if again, _ := hide(w, false, whole); !bytes.Equal(again, whole) {
			t.Errorf("hidden twice: %q, then %q", whole, again)
		}
		judge(t, c.Result())

		at = min(max(at, 0), len(body))
		once, c := hide(w, true, body)
		if untouched(body) && !bytes.Equal(once, body) {
			t.Error("a stream without anything to hide was changed")
		}
		judge(t, c.Result())
		parts, d := hide(w, true, body[:at], body[at:])
		if !bytes.Equal(once, parts) {
			t.Errorf("whole %q, in two %q", once, parts)
		}
		if a, b := c.Result(), d.Result(); a.Reason != b.Reason || !bytes.Equal(a.Generated, b.Generated) {
			t.Errorf("whole %+v, in two %+v", a, b)
		}
	})
}

// untouched tells whether nothing in the text can be the name of something that is hidden.
func untouched(text []byte) bool {
	for _, name := range []string{"token_id", "logprobs", "log_probs", "routed_experts", "usage", "reasoning", `\u`} {
		if bytes.Contains(text, []byte(name)) {
			return false
		}
	}
	return true
}

// judge: what is told to be whole is, as another reader sees it.
func judge(t *testing.T, r Result) {
	t.Helper()
	for _, x := range []struct {
		raw []byte
		n   int
	}{{r.Prompt, r.PromptLen}, {r.Generated, r.GeneratedLen}, {r.Logprobs, r.LogprobsLen}} {
		var all []json.Number
		if x.raw == nil {
			continue
		}
		if err := json.Unmarshal(x.raw, &all); err != nil || len(all) != x.n {
			t.Fatalf("%d numbers %s: %v", x.n, x.raw, err)
		}
	}
	if r.Reason != "" {
		return
	}
	if r.GeneratedLen != r.LogprobsLen || r.Generated == nil || (r.PromptLen == 0) == !r.NeedsPrompt || r.Source == NoSource {
		t.Fatalf("told to be whole: %+v", r)
	}
	if r.Completion >= 0 && r.Completion != int64(r.GeneratedLen) {
		t.Fatalf("%d ids for %d tokens", r.GeneratedLen, r.Completion)
	}
}

// FuzzRead: a text is judged as jsonx judges it.
func FuzzRead(f *testing.F) {
	for _, r := range recordings(f) {
		if !r.stream {
			f.Add(r.body)
		}
	}
	f.Add([]byte(`{"choices":[{"logprobs":{"content":[{"logprob":1,"token":"a"},1]},"token_ids":[01]}]}`))
	f.Add([]byte(` { "a" : 1 , "choices" : [ { } , 1 ] , "meta_info":{"weight_versions":1}} `))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c chunk
		want := jsonx.Valid(text) && jsonx.KindOf(text) == jsonx.KindObject
		if got := c.read(text); got != want {
			t.Errorf("read %v, want %v", got, want)
		}
	})
}

// FuzzAsk: what is sent is JSON that asks, and asking again changes nothing.
func FuzzAsk(f *testing.F) {
	for _, r := range recordings(f) {
		f.Add([]byte(r.Request))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !jsonx.Valid(body) || jsonx.KindOf(body) != jsonx.KindObject {
			return
		}
		sent, w, err := Ask(body)
		if err != nil {
			return
		}
		if !jsonx.Valid(sent) || jsonx.IsNull(jsonx.Get(sent, "return_token_ids")) || jsonx.IsNull(jsonx.Get(sent, "logprobs")) {
			t.Errorf("sent %q", sent)
		}
		again, x, err := Ask(sent)
		if err != nil || !bytes.Equal(again, sent) || !x.IDs || !x.Logprobs || x.Streamed != w.Streamed {
			t.Errorf("sent %q, then %q: %+v %v", sent, again, x, err)
		}
		if out := TokenizeRequest(sent); out != nil && !jsonx.Valid(out) {
			t.Errorf("tokenize: %q", out)
		}
		if out := AppendSampling(nil, sent); !jsonx.Valid(out) {
			t.Errorf("sampling: %q", out)
		}
	})
}
