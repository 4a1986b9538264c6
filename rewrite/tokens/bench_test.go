package tokens

import (
	"bytes"
	"strconv"
	"testing"

	"rolltap/internal/jsonx"
)

func benchEvents(b *testing.B, name string) [][]byte {
	b.Helper()
	var events [][]byte
	for _, e := range recordings(b)[name].objects(b) {
		if bytes.Contains(e, []byte(`"token_ids":[`)) && !bytes.Contains(e, []byte(`"prompt_token_ids"`)) {
			events = append(events, e)
		}
	}
	if len(events) < 20 {
		b.Fatal("too few events")
	}
	return events
}

// BenchmarkCollectorEvent is one event with one id and its log probability.
func BenchmarkCollectorEvent(b *testing.B) {
	for _, name := range []string{"chat-stream-capture", "rust-chat-stream-capture"} {
		events := benchEvents(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := NewCollector(1<<40, Wish{})
			i, n := 0, 0
			for b.Loop() {
				n += len(events[i])
				c.Event(events[i])
				if i++; i == len(events) {
					i = 0
					if c.size > 1<<20 {
						c.generated = sequence{text: c.generated.text[:0]}
						c.logprobs = sequence{text: c.logprobs.text[:0]}
					}
				}
			}
			b.SetBytes(int64(n / b.N))
		})
		b.Run(name+"/baseline", func(b *testing.B) { // jsonx.Valid, which only judges
			i := 0
			for b.Loop() {
				if !jsonx.Valid(events[i]) {
					b.Fatal("no JSON")
				}
				if i++; i == len(events) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkHiderEvent is the same event on its way to a client.
func BenchmarkHiderEvent(b *testing.B) {
	for _, w := range []struct {
		name string
		Wish
	}{{"hidden", Wish{Streamed: true}}, {"asked", Wish{Streamed: true, IDs: true, Logprobs: true, Usage: true}}} {
		b.Run(w.name, func(b *testing.B) {
			var events [][]byte
			for _, e := range benchEvents(b, "chat-stream-capture") {
				events = append(events, []byte("data: "+string(e)+"\n\n"))
			}
			c := NewCollector(1<<40, w.Wish)
			h := NewHider(w.Wish, c)
			var out []byte
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				out = h.AppendStream(out[:0], events[i])
				if i++; i == len(events) {
					i = 0
					if c.size > 1<<20 {
						c.generated = sequence{text: c.generated.text[:0]}
						c.logprobs = sequence{text: c.logprobs.text[:0]}
					}
				}
			}
		})
	}
}

// BenchmarkWhole is an answer to a prompt of 100,000 tokens.
func BenchmarkWhole(b *testing.B) {
	ids := []byte("[")
	for i := range 100_000 {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = strconv.AppendInt(ids, int64(i)*7919%151_643, 10)
	}
	ids = append(ids, ']')
	r := recordings(b)["chat-unary-capture"]
	body := bytes.Replace(r.body, []byte(`"prompt_token_ids":[`), append(append([]byte(`"x":1,"prompt_token_ids":`), ids[:len(ids)-1]...), ','), 1)
	b.Run("Collector", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			c := NewCollector(1<<30, Wish{})
			c.Whole(body)
			if r := c.Result(); r.Reason != "" || r.PromptLen < 100_000 {
				b.Fatalf("%s %d", r.Reason, r.PromptLen)
			}
		}
	})
	b.Run("Hider", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		var out []byte
		for b.Loop() {
			out = NewHider(Wish{}, NewCollector(1<<30, Wish{})).AppendWhole(out[:0], body)
		}
	})
}
