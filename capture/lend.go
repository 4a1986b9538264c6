package capture

import "rolltap/internal/jsonx"

// The memory of a copy in the hands of others: who writes fills it in place, who reads may be slower than the record.

// Room is memory that Wrote keeps without copying it, empty when there is none. It belongs to the one who writes, until the next
// call of Write, Wrote or Release.
func (c *Copy) Room() []byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.spool != nil || c.truncated || c.released {
		return nil
	}
	room := min(int64(cap(c.mem)-len(c.mem)), c.o.Max-int64(len(c.mem)))
	return c.mem[len(c.mem):][:max(room, 0)]
}

// Wrote is Write of the first n bytes of what Room returned.
func (c *Copy) Wrote(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(n)
	if !c.released {
		c.mem = c.mem[:len(c.mem)+n]
	}
}

// Lend is Bytes for somebody who may read on when the copy is released. Each time that it gave needs one Return; until then the
// memory is not used again.
func (c *Copy) Lend() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spool != nil || c.released {
		return nil, false
	}
	c.lent++
	return c.mem[:len(c.mem):len(c.mem)], true
}

// Return takes back what Lend gave, also behind Release. A copy that was lent has been used, and waits for its record; when memory is scarce it
// does that in a file.
func (c *Copy) Return() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.lent--; {
	case c.released:
		c.drop()
	case c.lent == 0 && c.o.Budget.scarce():
		c.shelve()
	}
}

// shelve moves to a file what is in memory; what is small, or finds no file, stays: descriptors are scarce, too.
func (c *Copy) shelve() {
	if c.spool != nil || len(c.mem) < spoolTail {
		return
	}
	b := c.o.Budget
	if b.shelves.Add(-1) < 0 {
		b.shelves.Add(1)
		return
	}
	if !c.unload(b) {
		b.shelves.Add(1)
	}
}

// Adopt returns a copy that is b, whose memory becomes the copy's: it asks no budget, and is not bounded by o.
func Adopt(o CopyOptions, b []byte) *Copy {
	c := NewCopy(o)
	c.o.Reuse = false
	c.mem, c.total = b, int64(len(b))
	return c
}

// Fold returns a copy that is b, a compact JSON object, which is not looked through again to find that out. It stays in memory as far as
// o.Budget gives, and moves to a file otherwise; a short one stays, since descriptors are scarce, too.
func Fold(o CopyOptions, b []byte) *Copy {
	c := Adopt(o, b)
	c.judged, c.kind, c.tight = c.total, jsonx.KindObject, true
	if c.total > spoolTail && !c.take(c.total) {
		c.unload(nil)
	}
	return c
}

// Cut keeps no more than the first n bytes; the copy is then Truncated unless that is all.
func (c *Copy) Cut(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released || c.len() <= n {
		return
	}
	c.truncated = true
	if c.spool == nil {
		c.mem = c.mem[:n]
		return
	}
	c.mem = c.mem[:max(0, n-c.spool.size)]
	c.spool.size = min(c.spool.size, n)
}

// drop lets go of the memory of a copy that is released.
func (c *Copy) drop() {
	if c.lent == 0 {
		c.recycle(c.mem)
		c.mem = nil
	}
}
