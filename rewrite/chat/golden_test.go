package chat

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
