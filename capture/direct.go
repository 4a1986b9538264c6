package capture

import (
	"errors"
	"slices"
	"syscall"
	"unsafe"

	"rolltap/internal/storefs"
)

const (
	// directBlock is what goes around the system's memory in multiples: what devices and file systems ask for, of places in files and in memory.
	directBlock = 4096
	// directFrom is how many bytes of one line it takes for that to cost less than a copy to the system's memory. What is not written twice, but synced
	// at once in its own file, fills that for nobody: who reads it reads it later.
	directFrom = journalTo
	// directPiece is how many bytes are moved to such a place at a time.
	directPiece = 256 << 10
)

// alignedBuf returns an empty buffer for n bytes whose first stands at a multiple of directBlock in memory: a part of buf, where that is large enough.
func alignedBuf(buf []byte, n int) []byte {
	at := misaligned(buf)
	if cap(buf) < at+n {
		buf = make([]byte, 0, n+directBlock)
		at = misaligned(buf)
	}
	return buf[at:at:cap(buf)]
}

// misaligned is how many bytes are in front of the first such place in buf.
func misaligned(buf []byte) int {
	return -int(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))) & (directBlock - 1)
}

// appendPadding appends NUL bytes up to a multiple of directBlock.
func appendPadding(b []byte) []byte {
	n := -len(b) & (directBlock - 1)
	b = slices.Grow(b, n)
	clear(b[len(b) : len(b)+n])
	return b[:len(b)+n]
}

// writeAround appends p to a file of that size, its whole blocks around the system's memory. What is in front of the first and behind the last goes
// through it, as everything does where the file system has no other way. It returns the buffer that it was lent, which may have grown.
func writeAround(f file, p []byte, size int64, lent []byte) (n int, buf []byte, err error) {
	front := int(-size & (directBlock - 1))
	whole := front + (len(p)-front)&^(directBlock-1)
	n, err = f.Write(p[:front])
	if err == nil && storefs.Direct(f, true) {
		lent = slices.Grow(lent[:0], directPiece+directBlock)
		for n < whole && err == nil {
			var w int
			w, err = f.Write(append(alignedBuf(lent, directPiece), p[n:min(n+directPiece, whole)]...))
			n += w
		}
		storefs.Direct(f, false)
		if errors.Is(err, syscall.EINVAL) { // some file systems say so only now, or have larger blocks
			err = nil
		}
	}
	if err != nil {
		return n, lent, err
	}
	w, err := f.Write(p[n:])
	return n + w, lent, err
}
