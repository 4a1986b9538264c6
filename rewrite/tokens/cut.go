package tokens

// next is m.next; an edit that takes away a member in front of all that stay ends here.
func (c *chunk) next(m *members) bool {
	more := m.next()
	if more && m.pending > 0 {
		c.edits[m.pending-1].to = m.from
		m.pending = 0
	}
	return more
}

// cut takes the member that was just read away, with its comma.
func (c *chunk) cut(m *members) {
	if !c.hides || m.i < 0 {
		return
	}
	from := m.prev
	if !m.kept {
		from = m.from
		m.pending = len(c.edits) + 1
	}
	m.cut = true
	c.edits = append(c.edits, edit{from: from, to: m.i})
}

// cutIDs is cut unless the client asked for ids.
func (c *chunk) cutIDs(m *members) {
	if !c.wish.IDs {
		c.cut(m)
	}
}

// cutNullable is cut for a member that a server which spells its nulls sends as null when it is not asked. Its value begins at value.
func (c *chunk) cutNullable(m *members, value int) {
	if !c.hides || m.i < 0 {
		return
	}
	c.cut(m)
	e := &c.edits[len(c.edits)-1]
	e.value, e.end, e.nullable = value, m.i, true
}

// excess tells whether the whole event is there only because token capture asked: it says nothing but ids and log probabilities, or it is
// the usage that nobody else asked for. forced: the server tells usage unasked.
func (c *chunk) excess(forced bool) bool {
	switch {
	case c.failed || !c.listed:
		return false
	case c.choices > 0:
		return !c.wish.IDs && !c.wish.Logprobs && c.silent == c.choices && !c.beside
	}
	return c.usage != nil && !c.wish.Usage && !forced
}
