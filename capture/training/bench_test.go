package training

import (
	"fmt"
	"sync/atomic"
	"testing"

	"rolltap/internal/tokendigest"
)

// BenchmarkCall is what a call costs under token capture: an intent, and an entry with the tokens of a prompt of 100,000 ids and an answer of
// 500. As a delta only the last 500 ids of the prompt are written. "checked" is what the caller does besides, to know that it may: the
// digest of the whole sequence, the digest of the parent's part, and the rest.
//
// "memory" makes nothing durable, so that what is left is our own work; "file" syncs. On one file system compare with benchstat:
//
//	go test ./capture/training -run xxx -bench Call -count 10
func BenchmarkCall(b *testing.B) {
	const prompt, generation = 100_000, 500
	for _, delta := range []bool{false, true} {
		for _, durable := range []bool{false, true} {
			for _, checked := range []bool{false, true} {
				name := fmt.Sprintf("delta=%t/%s", delta, map[bool]string{false: "memory", true: "file"}[durable])
				if checked {
					name += "/checked"
				}
				b.Run(name, func(b *testing.B) {
					s := newStore(b, b.TempDir(), func(o *Options) {
						if !durable {
							o.Secure = func([]Appended) error { return nil }
						}
					})
					c := &conversation{rollout: "r", seed: 1}
					parent := c.next(b, prompt-generation-500, generation, false)
					put(b, s, parent)
					e := c.next(b, 500, generation, false)
					whole := e.PromptTokenIDs
					if delta {
						rest, err := tokendigest.Suffix(whole, parent.CumLen)
						if err != nil {
							b.Fatal(err)
						}
						e.PromptTokenIDs, e.PromptIsDelta = rest, true
					}
					l, err := encode(e)
					if err != nil {
						b.Fatal(err)
					}
					n := 0
					b.ReportAllocs()
					for b.Loop() {
						e.CallID = fmt.Sprint("call-", n)
						n++
						begin(b, s, "r", e.CallID)
						if checked {
							check(b, e, parent, whole, delta)
						}
						put(b, s, e)
					}
					b.ReportMetric(float64(l.size+1), "disk-B/op")
				})
			}
		}
	}
}

func check(b *testing.B, e, parent *Entry, whole []byte, delta bool) {
	e.PromptTokenIDs, e.PromptIsDelta = whole, false
	if err := e.Stamp(); err != nil {
		b.Fatal(err)
	}
	digest, err := tokendigest.Prefix(whole, parent.CumLen)
	if err != nil || digest != parent.Digest {
		b.Fatal("not a continuation", err)
	}
	if delta {
		if e.PromptTokenIDs, err = tokendigest.Suffix(whole, parent.CumLen); err != nil {
			b.Fatal(err)
		}
		e.PromptIsDelta = true
	}
}

// BenchmarkWriters is many calls at the same time, each its own rollout, and all the same one: those that wait for one sync share the next.
func BenchmarkWriters(b *testing.B) {
	for _, same := range []bool{false, true} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("same=%t/writers=%d", same, writers), func(b *testing.B) {
				s := newStore(b, b.TempDir())
				var id atomic.Int64
				b.SetParallelism((writers + 1) / 2)
				b.RunParallel(func(pb *testing.PB) {
					rollout := "r"
					if !same {
						rollout = fmt.Sprint("r", id.Add(1))
					}
					for pb.Next() {
						call := fmt.Sprint("c", id.Add(1))
						begin(b, s, rollout, call)
						put(b, s, newEntry(rollout, call, "[1,2,3]", "[4]"))
					}
				})
			})
		}
	}
}

// BenchmarkRead is the reading of entries of 100,000 ids each, and of proving them.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	s := newStore(b, dir)
	c := &conversation{rollout: "r", seed: 1}
	for range 4 {
		put(b, s, c.next(b, 25_000, 500, false))
	}
	f := freeze(b, s, "r")
	b.Run("entries", func(b *testing.B) {
		b.SetBytes(f.size)
		for b.Loop() {
			if _, err := NewChains(f.File(), f.Entries()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.SetBytes(f.size)
		for b.Loop() {
			if v, err := Verify(dir, "r"); err != nil || len(v.Problems) > 0 {
				b.Fatal(v, err)
			}
		}
	})
}
