package chat

import "rolltap/internal/jsonx"

// template is a valid chunk with holes. Whatever is the same but for what stands in the holes is valid when that is.
type template struct {
	chunk []byte // empty: there is none
	holes [4]hole
	n     int
	ids   int64 // that the choice has besides those in holes
}

// hole is a value in a chunk that may be another each time.
type hole struct {
	kind     holeKind
	from, to int
}

type holeKind uint8

const (
	holeText    holeKind = iota // a string
	holeIDs                     // the ids of the choice
	holeEntries                 // the content of the logprobs
	holeUsage                   // behind the choice
)

// What values lie in: usage in the chunk, a choice in the choices too, its members in the choice, entries in the logprobs.
const (
	usageDepth   = 1
	choiceDepth  = 2
	memberDepth  = 3
	entriesDepth = 4
)

func (t *template) forget() { t.chunk = t.chunk[:0] }

// learn makes a template of a chunk, whose only choice is c; text is part of the chunk, what is inside of the string of its only delta, or
// nil. The choice has this many ids.
func (t *template) learn(data []byte, c *choiceMembers, text []byte, ids int64) {
	t.chunk, t.n, t.ids = append(t.chunk[:0], data...), 0, ids
	if text != nil {
		at := offset(data, text)
		t.add(holeText, at-1, at+len(text)+1)
	}
	if at := offset(data, c.usage); at > 0 && c.usage[0] == '{' {
		t.add(holeUsage, at, at+len(c.usage))
	}
	if at := offset(data, c.ids); at > 0 && c.ids[0] == '[' {
		t.ids -= countIDs(c.ids)
		t.add(holeIDs, at, at+len(c.ids))
	}
	entries := logprobEntries(c.logprobs)
	if at := offset(data, entries); at > 0 && entries[0] == '[' {
		t.add(holeEntries, at, at+len(entries))
	}
}

// add keeps the holes in their order.
func (t *template) add(kind holeKind, from, to int) {
	i := t.n
	for ; i > 0 && t.holes[i-1].from > from; i-- {
		t.holes[i] = t.holes[i-1]
	}
	t.holes[i] = hole{kind, from, to}
	t.n++
}

// found is what stands in the holes.
type found struct {
	text, entries, usage []byte
	ids                  int64
}

// match tells whether a chunk is one of this template, and finds what stands in its holes.
func (t *template) match(data []byte, in *found) bool {
	if len(t.chunk) == 0 {
		return false
	}
	at, behind := 0, 0
	*in = found{ids: t.ids}
	for i := range t.holes[:t.n] {
		h := &t.holes[i]
		same := t.chunk[behind:h.from]
		if len(data)-at <= len(same) || string(data[at:at+len(same)]) != string(same) {
			return false
		}
		at += len(same)
		if data[at] != t.chunk[h.from] { // a string, a list or an object, as there
			return false
		}
		depth := memberDepth
		switch h.kind {
		case holeEntries:
			depth = entriesDepth
		case holeUsage:
			depth = usageDepth
		}
		end := jsonx.ValueEnd(data, at, depth)
		if end < 0 {
			return false
		}
		switch value := data[at:end]; h.kind {
		case holeText:
			in.text = value[1 : len(value)-1]
		case holeIDs:
			in.ids += countIDs(value)
		case holeEntries:
			in.entries = value
		case holeUsage:
			in.usage = value
		}
		at, behind = end, h.to
	}
	return string(data[at:]) == string(t.chunk[behind:])
}

// offset is where part lies in whole, -1 when it does not. It follows from the capacities, which run to the same end unless somebody cut
// them.
func offset(whole, part []byte) int {
	at := cap(whole) - cap(part)
	if len(part) == 0 || at < 0 || at+len(part) > len(whole) || &whole[at] != &part[0] {
		return -1
	}
	return at
}
