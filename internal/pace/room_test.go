package pace

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestRoomForTheCode(t *testing.T) {
	const mib = 1 << 20
	for limit, want := range map[int64]int64{math.MaxInt64: math.MaxInt64, 1024 * mib: 944 * mib, 256 * mib: 224 * mib, 64 * mib: 44 * mib, 24 * mib: 16 * mib} {
		before := debug.SetMemoryLimit(limit)
		restore := LeaveRoom()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("of %d bytes: %d, want %d", limit, got, want)
		}
		restore()
		if got := debug.SetMemoryLimit(before); got != limit {
			t.Errorf("behind it the limit is %d, want %d", got, limit)
		}
	}
}
