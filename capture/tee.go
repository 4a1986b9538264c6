package capture

import (
	"io"
	"os"
	"sync"

	"rolltap/internal/jsonx"
)

const (
	defaultCopyMemory = 1 << 20
	defaultCopyMax    = 64 << 20
	firstGrowth       = 512      // bytes that every copy may hold without asking the budget
	pieceSize         = 64 << 10 // of a copy that is streamed
)

// CopyOptions bound one copy. The zero value works.
type CopyOptions struct {
	// Memory is how many bytes may be held in memory before the copy moves to a file. Zero means 1 MiB.
	Memory int64
	// Max is how many bytes are kept at all; what comes behind makes the copy Truncated. Zero means 64 MiB.
	Max int64
	// Dir is the folder of spool files. Empty means os.TempDir.
	Dir string
	// Reuse lets later copies of the same Budget have this one's memory once it is released or grown out of: nobody may keep
	// what Bytes returned, save between Lend and Return.
	Reuse bool
	// Budget bounds the memory of all copies together; a copy that it refuses moves to a file at once. Nil is no bound.
	Budget *Budget
}

// Copy keeps what passes. It holds the beginning in memory and, beyond that, everything in a temporary file without a name.
// One writer and any number of readers may use it at the same time. Release must be called; nothing else may be called
// after it but Release, and readers fail from then on.
type Copy struct {
	o CopyOptions

	mu        sync.RWMutex // guards everything below
	mem       []byte       // the bytes behind the first spool.size ones
	taken     int64        // bytes of the budget held for mem
	spool     *spool       // nil while everything is in mem
	total     int64        // bytes written, kept or not
	truncated bool
	released  bool
	lent      int // times that Lend has given and Return has not taken back

	judged   int64      // Len at which kind and tight were found, -1 never
	kind     jsonx.Kind // of the whole copy; Invalid: it is no JSON, or cut
	tight    bool       // compacting would change nothing
	judgment sync.Mutex
}

// NewCopy returns an empty copy. It opens no file before one is needed.
func NewCopy(o CopyOptions) *Copy {
	if o.Memory <= 0 {
		o.Memory = defaultCopyMemory
	}
	if o.Max <= 0 {
		o.Max = defaultCopyMax
	}
	return &Copy{o: o, judged: -1}
}

// Write keeps p as far as the bounds and the disk allow and always reports len(p) and no error: the traffic that is copied
// must not fail because a copy does. Once something could not be kept the copy is Truncated and keeps nothing more.
func (c *Copy) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	if c.truncated || c.released {
		return len(p), nil
	}
	keep := p
	if room := c.o.Max - c.len(); int64(len(keep)) > room {
		keep = keep[:room]
		c.truncated = true
	}
	if !c.keep(keep) {
		c.truncated = true
	}
	return len(p), nil
}

// keep appends p, false when some of it could not be kept.
func (c *Copy) keep(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	if c.spool == nil {
		if int64(len(c.mem)+len(p)) <= c.o.Memory && c.grow(len(p)) {
			c.mem = append(c.mem, p...)
			return true
		}
		if !c.unload(nil) {
			return false // what is in memory is kept
		}
	}
	// Behind the first bytes small writes are gathered, so that an event of a stream does not cost a system call.
	if len(c.mem)+len(p) > spoolTail || !c.growTail() {
		if len(c.mem) > 0 {
			before := c.spool.size
			ok := c.spool.write(c.mem)
			c.mem = c.mem[:copy(c.mem, c.mem[c.spool.size-before:])] // what is kept stays kept
			if !ok {
				return false
			}
		}
		if len(p) >= spoolTail || cap(c.mem) == 0 {
			return c.spool.write(p)
		}
	}
	c.mem = append(c.mem, p...)
	return true
}

// unload moves what is in memory to a file, whose descriptor goes back to shelf, if any; false, and it stays, when no file takes it. Slices that
// Bytes handed out still point at the memory, so it is not used again.
func (c *Copy) unload(shelf *Budget) bool {
	s, err := newSpool(c.o.Dir)
	if err != nil {
		return false
	}
	if !s.write(c.mem) {
		s.close()
		return false
	}
	s.shelf = shelf
	c.spool, c.mem = s, nil
	c.give()
	return true
}

// grow makes room for n more bytes in memory, geometrically, as far as the budget gives.
func (c *Copy) grow(n int) bool {
	need := len(c.mem) + n
	if need <= cap(c.mem) {
		return true
	}
	size := max(firstGrowth, 2*cap(c.mem), need)
	size = min(size, max(int(c.o.Memory), need))
	if size > firstGrowth && !c.take(int64(size)) {
		return false
	}
	c.move(size)
	return true
}

// move puts what is in memory into memory for size bytes.
func (c *Copy) move(size int) {
	old := c.mem
	if c.o.Reuse {
		c.mem = append(c.o.Budget.reuse(size), old...)
		c.recycle(old)
		return
	}
	c.mem = append(make([]byte, 0, size), old...)
}

// recycle gives memory to later copies; what is lent is left to whoever has it.
func (c *Copy) recycle(mem []byte) {
	if c.o.Reuse && cap(mem) > 0 && c.lent == 0 {
		c.o.Budget.recycle(mem)
	}
}

// Expect makes room for n bytes that are known to come, as far as they fit into memory and the budget gives.
func (c *Copy) Expect(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size := len(c.mem) + int(min(n, c.o.Memory)); c.spool == nil && !c.released && n > 0 && size > cap(c.mem) && int64(size) <= c.o.Memory && c.take(int64(size)) {
		c.move(size)
	}
}

// growTail makes the small buffer in front of the spool file, when the budget gives it.
func (c *Copy) growTail() bool {
	if cap(c.mem) >= spoolTail {
		return true
	}
	if !c.take(spoolTail) {
		return false
	}
	c.mem = make([]byte, 0, spoolTail)
	return true
}

// take raises what is held of the budget to size.
func (c *Copy) take(size int64) bool {
	if size > c.taken {
		if !c.o.Budget.take(size - c.taken) {
			return false
		}
		c.taken = size
	}
	return true
}

func (c *Copy) give() {
	c.o.Budget.give(c.taken)
	c.taken = 0
}

func (c *Copy) len() int64 {
	n := int64(len(c.mem))
	if c.spool != nil {
		n += c.spool.size
	}
	return n
}

// Total is the number of bytes that were written, kept or not.
func (c *Copy) Total() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.total
}

// Len is the number of bytes that are kept.
func (c *Copy) Len() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.len()
}

// Truncated reports whether something written was not kept: the copy is the beginning only.
func (c *Copy) Truncated() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.truncated
}

// Bytes returns all that is kept when it is in memory. The slice stays as it is while more is written, must not be
// changed, and is the copy's until Release.
func (c *Copy) Bytes() ([]byte, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.spool != nil || c.released {
		return nil, false
	}
	return c.mem[:len(c.mem):len(c.mem)], true
}

// NewReader returns a reader from the first byte. It reports io.EOF at the end of what is kept at that moment; reading on
// later yields what came in between.
func (c *Copy) NewReader() io.ReadCloser { return &copyReader{c: c} }

type copyReader struct {
	c  *Copy
	at int64
}

func (r *copyReader) Read(p []byte) (int, error) {
	n, err := r.c.readAt(p, r.at)
	r.at += int64(n)
	return n, err
}

func (r *copyReader) Close() error { return nil }

func (c *Copy) readAt(p []byte, at int64) (int, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.released {
		return 0, os.ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	if at >= c.len() {
		return 0, io.EOF
	}
	var filed int64
	if c.spool != nil {
		if filed = c.spool.size; at < filed {
			return c.spool.readAt(p, at)
		}
	}
	return copy(p, c.mem[at-filed:]), nil
}

// IsObject reports whether the copy is whole and one valid JSON object. It reads the copy through once and remembers.
func (c *Copy) IsObject() bool {
	kind, _ := c.judge()
	return kind == jsonx.KindObject
}

// IsJSON reports, likewise, whether it is one valid JSON value.
func (c *Copy) IsJSON() bool {
	kind, _ := c.judge()
	return kind != jsonx.KindInvalid
}

// judge holds a lock of its own, so that concurrent callers read the copy once.
func (c *Copy) judge() (kind jsonx.Kind, tight bool) {
	c.judgment.Lock()
	defer c.judgment.Unlock()
	c.mu.RLock()
	n, cut := c.len(), c.truncated || c.released
	c.mu.RUnlock()
	if cut || n == 0 {
		return jsonx.KindInvalid, false
	}
	if c.judged != n {
		c.judged, c.kind, c.tight = n, jsonx.KindInvalid, false
		var v jsonx.Compactor
		if c.each(n, v.Check) == nil {
			if kind, err := v.Finish(); err == nil {
				c.kind, c.tight = kind, v.Tight()
			}
		}
	}
	return c.kind, c.tight
}

// pieces hands the first n bytes of the copy to use, piece by piece; scratch holds one.
func (c *Copy) pieces(scratch []byte, n int64, use func([]byte) error) error {
	for at := int64(0); at < n; {
		got, err := c.readAt(scratch[:min(int64(len(scratch)), n-at)], at)
		at += int64(got)
		if got > 0 {
			if err := use(scratch[:got]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Release gives back memory, budget and spool file. It may be called more than once.
func (c *Copy) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released {
		return
	}
	c.released = true
	c.drop()
	c.give()
	if c.spool != nil {
		c.spool.close()
		c.spool = nil
	}
}
