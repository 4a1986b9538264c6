package fold

import (
	"bytes"

	"rolltap/internal/jsonx"
)

// Again recognises an event that differs from the one before it in nothing but one text that grows, which is what most events of a stream do.
// Such an event need not be read: comparing it is an order of magnitude cheaper. The zero Again recognises nothing.
type Again struct {
	known          bool
	name           []byte // of the event
	prefix, suffix []byte // of its data, around the interior of the text
	into           *Object
	member         []byte

	growths int // since Forget
	object  *Object
	text    []byte // raw, part of the data
	key     []byte
}

// Forget begins an event that is read in full.
func (a *Again) Forget() { a.known, a.growths, a.object = false, 0, nil }

// Grew notes that the event made something longer; text is what grew member of into, borrowed until Learn, or nil for any other growth. Only
// an event with one single growth, by text, can come again: all else in it was set, and setting it twice changes nothing.
func (a *Again) Grew(into *Object, member, text []byte) {
	if a.growths++; a.growths == 1 && len(text) > 0 && text[0] == '"' {
		a.object, a.key, a.text = into, member, text
	} else {
		a.object = nil
	}
}

// Learn ends the event. One whose text is empty is not learned, nor recognised: it may mean something else to who watches.
func (a *Again) Learn(name, data []byte) {
	if a.object == nil || len(a.text) == len(`""`) {
		return
	}
	// The text is a part of data. Where exactly follows from the capacities, which run to the same end, unless somebody cut them.
	at := cap(data) - cap(a.text)
	if at < 0 || at+len(a.text) > len(data) || &data[at] != &a.text[0] {
		return
	}
	a.known, a.into = true, a.object
	a.name = append(a.name[:0], name...)
	a.member = append(a.member[:0], a.key...)
	a.prefix = append(a.prefix[:0], data[:at+1]...)
	a.suffix = append(a.suffix[:0], data[at+len(a.text)-1:]...)
	a.object, a.key, a.text = nil, nil, nil
}

// Fold folds the event if it is the same again, and tells whether it was.
func (a *Again) Fold(name, data []byte) bool {
	if !a.known || len(data) <= len(a.prefix)+len(a.suffix) || !bytes.Equal(name, a.name) || !bytes.HasPrefix(data, a.prefix) || !bytes.HasSuffix(data, a.suffix) {
		return false
	}
	from, to := len(a.prefix), len(data)-len(a.suffix)
	raw := data[from-1 : to+1]
	if !plain(data[from:to]) && !jsonx.Valid(raw) {
		return false
	}
	a.into.Grow(a.member, raw)
	return true
}

// plain: printable ASCII that needs no escape.
func plain(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
