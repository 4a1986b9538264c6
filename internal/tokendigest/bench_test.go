package tokendigest

import (
	"strconv"
	"testing"
)

func BenchmarkTokens(b *testing.B) {
	const n = 100_000
	list := []byte("[")
	for i := range n {
		if i > 0 {
			list = append(list, ", "...)
		}
		list = strconv.AppendInt(list, int64(i*7919%151_936), 10)
	}
	list = append(list, ']')
	rate := func(b *testing.B) {
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mids/s")
	}
	b.Run("digest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := Sum(list); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
	b.Run("prefix", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Prefix(list, n-1); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
	b.Run("suffix", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Suffix(list, n/2); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
}
