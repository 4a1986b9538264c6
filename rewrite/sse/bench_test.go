package sse

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// To compare two states: go test -run '^$' -bench . -count 8 ./rewrite/sse > new; benchstat old new.
// The baseline in the same run is bytes.IndexByte, which only finds the line ends.
func BenchmarkSplitter(b *testing.B) {
	chat := bytes.Repeat(fixtures(b)["chat-stream-plain.sse"], 100)
	for _, in := range []struct {
		name string
		body []byte
		step int
	}{
		{"chat/32K", chat, 32 << 10},
		{"chat/1400", chat, 1400},
		{"chat/event", chat, 0},
		{"crlf/32K", bytes.ReplaceAll(chat, []byte("\n"), []byte("\r\n")), 32 << 10},
		{"4MiB_line/32K", []byte("data: " + strings.Repeat("x", 4<<20) + "\n\n"), 32 << 10},
		{"4MiB_line/whole", []byte("data: " + strings.Repeat("x", 4<<20) + "\n\n"), 8 << 20},
	} {
		var parts [][]byte
		if in.step > 0 {
			parts = slices.Collect(slices.Chunk(in.body, in.step))
		} else {
			parts = bytes.SplitAfter(in.body, []byte("\n\n"))
		}
		b.Run(in.name, func(b *testing.B) {
			var s Splitter
			var ev Event
			events := 0
			b.SetBytes(int64(len(in.body)))
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range parts {
					s.Push(p)
					for s.Next(&ev) {
						events++
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
	b.Run("baseline/IndexByte", func(b *testing.B) {
		b.SetBytes(int64(len(chat)))
		for b.Loop() {
			for p := chat; len(p) > 0; {
				p = p[bytes.IndexByte(p, '\n')+1:]
			}
		}
	})
}
