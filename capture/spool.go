package capture

import (
	"io"
	"math"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rolltap/internal/jsonx"
)

// spoolTail is the size of the buffer in front of a spool file.
const spoolTail = 32 << 10

// Budget is memory, in bytes, that the copies of a process may hold together. Its methods accept a nil Budget, which has
// no bound. It also keeps the memory of released copies for the next ones.
type Budget struct {
	total   int64
	left    atomic.Int64
	shelves atomic.Int64 // how many more copies may move to files without having to
	used    memoryPool
}

// reuse returns memory for at least size bytes, from a released copy where there is some.
func (b *Budget) reuse(size int) []byte {
	if b == nil {
		return make([]byte, 0, size)
	}
	return b.used.get(size)
}

// recycle takes memory that nobody looks at any more.
func (b *Budget) recycle(mem []byte) {
	if b != nil {
		b.used.put(mem, defaultCopyMemory)
	}
}

// NewBudget returns a budget of total bytes. With 0 it never gives: every copy beyond a few hundred bytes is a file.
func NewBudget(total int64) *Budget {
	b := &Budget{total: max(total, 0)}
	b.left.Store(b.total)
	b.shelves.Store(maxFiles() / 4)
	return b
}

// maxFiles is how many files the process may have open.
func maxFiles() int64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 256 // what every system gives
	}
	return int64(min(uint64(r.Cur), 1<<20))
}

// Size is how many bytes there are in all.
func (b *Budget) Size() int64 {
	if b == nil {
		return math.MaxInt64
	}
	return b.total
}

// scarce tells that less than half is left.
func (b *Budget) scarce() bool { return b != nil && b.left.Load() < b.total/2 }

func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	for {
		left := b.left.Load()
		if left < n {
			return false
		}
		if b.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

func (b *Budget) give(n int64) {
	if b != nil && n != 0 {
		b.left.Add(n)
	}
}

// spool is a temporary file. It has no name from the beginning where the system allows that, so that a killed process
// leaves nothing behind. It is guarded by the lock of its Copy.
type spool struct {
	f     *os.File
	size  int64
	named bool    // could not be unlinked while open
	shelf *Budget // to whom its descriptor goes back; nil: it had to be
}

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, ".rolltap-spool-*")
	if err != nil {
		return nil, err
	}
	return &spool{f: f, named: os.Remove(f.Name()) != nil}, nil
}

// write appends p, false when some of it could not be written; size counts what could.
func (s *spool) write(p []byte) bool {
	n, err := s.f.WriteAt(p, s.size)
	s.size += int64(n)
	return err == nil
}

func (s *spool) readAt(p []byte, at int64) (int, error) {
	if rest := s.size - at; int64(len(p)) > rest {
		p = p[:rest]
	}
	n, err := s.f.ReadAt(p, at)
	if err == io.EOF && n < len(p) { // shorter than what was written: not ours any more
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *spool) close() {
	s.f.Close()
	if s.named {
		os.Remove(s.f.Name())
	}
	if s.shelf != nil {
		s.shelf.shelves.Add(1)
	}
}

// appendCompact appends the copy as the compacted JSON value that it was found to be. An error means that the spool
// file could not be read again.
func (c *Copy) appendCompact(dst []byte) ([]byte, error) {
	if _, tight := c.judge(); tight {
		err := c.each(c.Len(), func(p []byte) error {
			dst = append(dst, p...)
			return nil
		})
		return dst, err
	}
	var v jsonx.Compactor
	err := c.each(c.Len(), func(p []byte) (err error) {
		dst, err = v.Append(dst, p)
		return err
	})
	return dst, err
}

// appendText appends the first n bytes of the copy as the inside of a JSON string.
func (c *Copy) appendText(dst []byte, n int64) ([]byte, error) {
	var t jsonx.TextEscaper
	err := c.each(n, func(p []byte) error {
		dst = t.Append(dst, p)
		return nil
	})
	return t.Finish(dst), err
}

// each hands the first n bytes of the copy to use, in one piece when they are in memory.
func (c *Copy) each(n int64, use func([]byte) error) error {
	if b, ok := c.Bytes(); ok {
		return use(b[:min(n, int64(len(b)))])
	}
	return c.pieces(make([]byte, min(pieceSize, n+1)), n, use)
}

// writeCompact is appendCompact into w, piece by piece.
func (c *Copy) writeCompact(w io.Writer, scratch []byte) error {
	if _, tight := c.judge(); tight {
		return c.pieces(scratch, c.Len(), func(p []byte) error { _, err := w.Write(p); return err })
	}
	var v jsonx.Compactor
	var out []byte
	return c.pieces(scratch, c.Len(), func(p []byte) (err error) {
		if out, err = v.Append(out[:0], p); err == nil {
			_, err = w.Write(out)
		}
		return err
	})
}

// writeText is appendText into w, piece by piece.
func (c *Copy) writeText(w io.Writer, scratch []byte, n int64) error {
	var t jsonx.TextEscaper
	var out []byte
	err := c.pieces(scratch, n, func(p []byte) error {
		out = t.Append(out[:0], p)
		_, err := w.Write(out)
		return err
	})
	if err == nil {
		_, err = w.Write(t.Finish(out[:0]))
	}
	return err
}
