package capture

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

// Return takes back what Lend gave, also behind Release.
func (c *Copy) Return() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lent--; c.released {
		c.drop()
	}
}

// drop lets go of the memory of a copy that is released.
func (c *Copy) drop() {
	if c.lent == 0 {
		c.recycle(c.mem)
		c.mem = nil
	}
}
