package proxy

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestMemoryFor(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, c := range []struct{ limit, most, want int64 }{
		{math.MaxInt64, copyBudget, copyBudget}, // no limit
		{64 << 20, copyBudget, 8 << 20},
		{64 << 30, lineBudget, lineBudget},
	} {
		debug.SetMemoryLimit(c.limit)
		if got := memoryFor(c.most); got != c.want {
			t.Errorf("of %d bytes, at most %d: got %d, want %d", c.limit, c.most, got, c.want)
		}
	}
}
