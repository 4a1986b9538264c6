package trajectory

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// FuzzRespelled: JSON that was spelled anew becomes the same, however it is cut into pieces, and is still the same JSON.
func FuzzRespelled(f *testing.F) {
	f.Add([]byte(`{ "a" : ["\u00f6\/", "ö/", "\ud83d\ude00", "\ud83d"], "b\n": -1.0e5, "c": {} }`), uint8(3))
	f.Add([]byte(`"\ud83d\u"`), uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, size uint8) {
		if !jsonx.Valid(raw) {
			return
		}
		spell := func(raw []byte, size int) string {
			var b strings.Builder
			r := respelled{to: &b}
			for p := range slices.Chunk(raw, size) {
				r.Write(p)
			}
			return b.String()
		}
		whole := spell(raw, max(1, len(raw)))
		if !jsonx.Valid([]byte(whole)) {
			t.Fatalf("%q became %q", raw, whole)
		}
		// Pieces of whole characters are promised.
		if bytes.IndexFunc(raw, func(r rune) bool { return r >= 0x80 }) < 0 {
			if pieces := spell(raw, 1+int(size)); pieces != whole {
				t.Fatalf("%q became %q, in pieces %q", raw, whole, pieces)
			}
		}
		if again := spell([]byte(whole), len(whole)); again != whole {
			t.Fatalf("%q became %q, and that %q", raw, whole, again)
		}
		var v, w any
		if json.Unmarshal(raw, &v) == nil {
			if err := json.Unmarshal([]byte(whole), &w); err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(v)
			b, _ := json.Marshal(w)
			if !bytes.Equal(a, b) {
				t.Fatalf("%q became %q", raw, whole)
			}
		}
	})
}

// TestTrimmed: white space at the ends of a text is no difference, in pieces or not.
func TestTrimmed(t *testing.T) {
	seed := maphash.MakeSeed()
	sum := func(write func(*trimmed)) uint64 {
		var h maphash.Hash
		h.SetSeed(seed)
		w := trimmed{h: &h, sum: h.Sum64()}
		write(&w)
		return w.sum
	}
	for _, c := range []struct{ a, b string }{{"", " \n"}, {"a b", "\u00a0a b\t"}, {"ä  ä", "  ä  ä"}} {
		want := sum(func(w *trimmed) { w.Write([]byte(c.a)) })
		for _, got := range []uint64{
			sum(func(w *trimmed) { (*capture.Rests)(nil).WriteText(w, c.b) }),
			sum(func(w *trimmed) { w.Write([]byte(c.b)) }),
			sum(func(w *trimmed) {
				for _, r := range c.b {
					w.Write([]byte(string(r)))
				}
			}),
		} {
			if got != want {
				t.Errorf("%q and %q differ", c.a, c.b)
			}
		}
	}
	if sum(func(w *trimmed) { w.Write([]byte("a b")) }) == sum(func(w *trimmed) { w.Write([]byte("ab")) }) {
		t.Error("white space inside is no difference")
	}
}
