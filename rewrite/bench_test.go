package rewrite

import (
	"os"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/sse"
)

// Compare with benchstat: go test -run - -bench . -count 10 ./rewrite >new; benchstat old new.

var recorded = []struct {
	name    string
	dialect canon.Dialect
	file    string
}{
	{"chat", canon.Chat, "chat/testdata/chat-stream-reasoning/stream.sse"},
	{"chat-logprobs", canon.Chat, "chat/testdata/chat-stream-tool-parallel/stream.sse"},
	{"messages", canon.Messages, "messages/testdata/messages-stream-thinking/stream.sse"},
	{"responses", canon.Responses, "responses/testdata/responses-stream-reasoning/stream.sse"},
}

type recordedEvent struct{ name, data []byte }

func recordedEvents(tb testing.TB, file string) (events []recordedEvent, raw []byte) {
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var split sse.Splitter
	var ev sse.Event
	for split.Push(raw); split.Next(&ev); {
		events = append(events, recordedEvent{append([]byte(nil), ev.Name...), append([]byte(nil), ev.Data...)})
	}
	return events, raw
}

// BenchmarkFoldEvent is the cost of one event, the fold of its stream begun and ended with it.
func BenchmarkFoldEvent(b *testing.B) {
	for _, r := range recorded {
		b.Run(r.name, func(b *testing.B) {
			events, raw := recordedEvents(b, r.file)
			d := DialectOf(r.dialect)
			b.SetBytes(int64(len(raw) / len(events)))
			b.ReportAllocs()
			n := 0
			for f := d.NewFolder(); b.Loop(); n++ {
				if n == len(events) {
					n, f = 0, d.NewFolder()
				}
				f.Event(events[n].name, events[n].data)
			}
		})
	}
}

// BenchmarkFoldDelta is the cost of one delta in the middle of a long stream.
func BenchmarkFoldDelta(b *testing.B) {
	for _, r := range recorded {
		b.Run(r.name, func(b *testing.B) {
			events, _ := recordedEvents(b, r.file)
			deltas := events[len(events)/4 : len(events)/2]
			d := DialectOf(r.dialect)
			f := d.NewFolder()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				f.Event(deltas[n].name, deltas[n].data)
				if n++; n == len(deltas) {
					n = 0
				}
			}
		})
	}
}

// BenchmarkObserve is a whole stream, pushed as one read for each event, and its fold written.
func BenchmarkObserve(b *testing.B) {
	for _, r := range recorded {
		b.Run(r.name, func(b *testing.B) {
			_, raw := recordedEvents(b, r.file)
			d := DialectOf(r.dialect)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				o := NewObserver(d, 1<<20)
				for at := 0; at < len(raw); at += 220 {
					o.Push(raw[at:min(at+220, len(raw))])
				}
				o.Finish()
				dst = o.AppendResponse(dst[:0])
			}
		})
	}
}
