package tokens

import "bytes"

// head is how an event began, up to the value of its choices: the next one of the stream nearly always begins with the same bytes, and
// need not be read so far then. It is kept of events that say nothing in front of their choices but what they are.
type head struct {
	text      []byte
	m         members // where text ends
	id, model place
}

// place is where a raw value lies in a text; to is 0 when it is missing.
type place struct{ from, to int }

func (w place) of(p []byte) []byte {
	if w.to == 0 {
		return nil
	}
	return p[w.from:w.to]
}

// placeOf is where raw, a part of p, lies.
func placeOf(p, raw []byte) place {
	if raw == nil {
		return place{}
	}
	from := cap(p) - cap(raw) // both end where the array ends
	return place{from, from + len(raw)}
}

// recall begins to walk an object. When that tells true, its first members are those of the event before, and m is at its choices.
func (c *chunk) recall(m *members, p []byte) bool {
	h := &c.head
	if len(h.text) == 0 || !bytes.HasPrefix(p, h.text) {
		m.enter(p, space(p, 0), 0)
		return false
	}
	c.id, c.model = h.id.of(p), h.model.of(p)
	*m = h.m
	m.p = p
	return true
}

// remember keeps how this event began.
func (c *chunk) remember(m *members) {
	h := &c.head
	if m.i == len(h.text) && len(h.text) > 0 && bytes.HasPrefix(m.p, h.text) {
		return
	}
	h.text = h.text[:0]
	if m.i > 1<<10 || string(m.p[m.from+1:m.from+8]) != "choices" || len(c.edits) > 0 || c.usage != nil || c.failed || c.versions != nil || c.beside || c.prompt.seen || c.listed {
		return
	}
	h.text = append(h.text, m.p[:m.i]...)
	h.id, h.model = placeOf(m.p, c.id), placeOf(m.p, c.model)
	h.m = *m
	h.m.p, h.m.key = nil, h.text[m.from+1:m.from+8]
}
