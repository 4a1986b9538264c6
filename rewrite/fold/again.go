package fold

import (
	"bytes"

	"rolltap/internal/jsonx"
)

// Again recognises an event that differs from the one before it in nothing but one text that grows, and maybe a number that counts the events,
// which is what most events of a stream do. Such an event need not be read: comparing it is an order of magnitude cheaper. The zero Again
// recognises nothing.
type Again struct {
	known          bool
	name           []byte // of the event
	prefix, suffix []byte // of its data, around the interior of the text, without the number
	at             int    // where in prefix the number was, or behind that in suffix; -1: there is none
	into           *Object
	member         []byte

	growths int // since Forget
	object  *Object
	text    []byte // raw, part of the data
	key     []byte
	number  []byte // as text is
}

// Forget begins an event that is read in full.
func (a *Again) Forget() { a.known, a.growths, a.object, a.number = false, 0, nil, nil }

// Counts notes a number, a part of the event's data or nil, that the fold does not keep and that is another in each event.
func (a *Again) Counts(number []byte) { a.number = number }

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
	at, ok := within(data, a.text)
	if !ok {
		return
	}
	a.known, a.into = true, a.object
	a.name = append(a.name[:0], name...)
	a.member = append(a.member[:0], a.key...)
	a.prefix = append(a.prefix[:0], data[:at+1]...)
	a.suffix = append(a.suffix[:0], data[at+len(a.text)-1:]...)
	a.at = -1
	if n, ok := within(data, a.number); ok && isCount(a.number) {
		if n < at {
			a.at = n
			a.prefix = append(a.prefix[:n], data[n+len(a.number):at+1]...)
		} else {
			n -= at + len(a.text) - 1
			a.at = len(a.prefix) + n
			a.suffix = append(a.suffix[:n], a.suffix[n+len(a.number):]...)
		}
	}
	a.object, a.key, a.text, a.number = nil, nil, nil, nil
}

// within tells where in data part is, a part of it. That follows from the capacities, which run to the same end, unless somebody cut them.
func within(data, part []byte) (at int, ok bool) {
	at = cap(data) - cap(part)
	if len(part) == 0 || at < 0 || at+len(part) > len(data) || &data[at] != &part[0] {
		return 0, false
	}
	return at, true
}

// isCount: digits of a number that needs no look whether it is one.
func isCount(s []byte) bool {
	if len(s) == 0 || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Fold folds the event if it is the same again, and tells whether it was.
func (a *Again) Fold(name, data []byte) bool {
	if !a.known || !bytes.Equal(name, a.name) {
		return false
	}
	from, to, ok := a.match(data)
	if !ok {
		return false
	}
	raw := data[from-1 : to+1]
	if !plain(data[from:to]) && !jsonx.Valid(raw) {
		return false
	}
	a.into.Grow(a.member, raw)
	return true
}

// match tells where the interior of the text is, which is not empty.
func (a *Again) match(data []byte) (from, to int, ok bool) {
	prefix, suffix := a.prefix, a.suffix
	switch {
	case a.at >= 0 && a.at < len(prefix):
		if !bytes.HasPrefix(data, prefix[:a.at]) {
			return 0, 0, false
		}
		from = a.at + digits(data[a.at:])
		if !isCount(data[a.at:from]) {
			return 0, 0, false
		}
		prefix = prefix[a.at:]
	case a.at >= 0:
		behind := suffix[a.at-len(prefix):]
		if !bytes.HasSuffix(data, behind) {
			return 0, 0, false
		}
		data = data[:len(data)-len(behind)]
		n := len(data)
		for n > 0 && '0' <= data[n-1] && data[n-1] <= '9' {
			n--
		}
		if !isCount(data[n:]) {
			return 0, 0, false
		}
		data, suffix = data[:n], suffix[:a.at-len(prefix)]
	}
	if len(data)-from <= len(prefix)+len(suffix) || !bytes.HasPrefix(data[from:], prefix) || !bytes.HasSuffix(data, suffix) {
		return 0, 0, false
	}
	return from + len(prefix), len(data) - len(suffix), true
}

// digits is how many digits s begins with.
func digits(s []byte) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
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
