package pace

import (
	"math"
	"runtime/debug"
)

// LeaveRoom lowers the memory limit that GOMEMLIMIT gave, which manifests take from the container's: Go counts neither the program's
// own pages nor sockets nor pages of files, and the container does. Without room for its code a program that comes from the disk, as it does
// on a node that has just pulled the image, is read in again and again and does next to nothing else. The returned func takes it back.
func LeaveRoom() (restore func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(roomFor(before))
	return func() { debug.SetMemoryLimit(before) }
}

// roomFor is what Go may use of limit bytes; math.MaxInt64 is no limit. The rest is 16 MiB for the code and a
// sixteenth for what grows with the traffic, but at most a third.
func roomFor(limit int64) int64 {
	if limit == math.MaxInt64 {
		return limit
	}
	return limit - min(limit/3, 16<<20+limit/16)
}
