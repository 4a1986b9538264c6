package gemini

import (
	"flag"
	"testing"

	"rolltap/rewrite/dialecttest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRecordedStreamsFoldToTheirGoldens(t *testing.T) { dialecttest.Golden(t, New(), *update) }

func FuzzFold(f *testing.F) {
	var written []string
	for _, c := range streams {
		written = append(written, c.stream)
	}
	dialecttest.Fuzz(f, New(), written)
}

// The kit, with the dialect on both sides.
func TestStreams(t *testing.T) {
	d := New()
	recorded := dialecttest.Streams(t)
	for name, stream := range recorded {
		t.Run(name, func(t *testing.T) {
			dialecttest.Square(t, d, d, stream)
			dialecttest.UnaryEqualsStream(t, d, d, stream)
			dialecttest.SplitInvariance(t, d, stream)
			dialecttest.Truncation(t, d, stream)
		})
	}
	dialecttest.Concurrent(t, d, d, recorded)
	dialecttest.TotalErrors(t, d)
}

func FuzzStream(f *testing.F) {
	for _, stream := range dialecttest.Streams(f) {
		f.Add(stream, uint16(100))
	}
	for _, c := range streams {
		f.Add([]byte(c.stream), uint16(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		dialecttest.CheckStream(t, New(), New(), stream, int(cut))
	})
}
