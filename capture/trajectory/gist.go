package trajectory

import (
	"hash/maphash"
	"strings"
	"unicode"

	"rolltap/capture"
	"rolltap/internal/jsonx"
)

// gist is what an element of a request, or an answer, is recognised by.
type gist struct {
	spoken  bool     // the model said it
	inChat  bool     // a message of Chat has a place for some of it
	hashes  []uint64 // of what it says, reasoning left out, in its order
	ids     []uint64 // of the tool calls in it
	calls   []uint64 // the same calls by name and arguments
	texts   []uint64 // of the texts in it
	joined  uint64   // of all of them, white space aside; 0 when there are none
	results []result
}

// result is a tool's result in a request.
type result struct {
	id  uint64
	bad bool
}

// gister makes gists. They compare only within one gister.
type gister struct {
	seed  maphash.Seed
	known map[uint64]*gist // of elements, by their bytes
	items []Item
	rests *capture.Rests // of the line in progress
}

func newGister() *gister { return &gister{seed: maphash.MakeSeed(), known: map[uint64]*gist{}} }

// element is the gist of an element, which is looked at only once however often it comes again.
func (p *gister) element(e element) *gist {
	var h maphash.Hash
	h.SetSeed(p.seed)
	h.WriteString(e.dialect)
	h.WriteString(e.role)
	p.rests.Write(&h, e.raw)
	key := h.Sum64()
	if f := p.known[key]; f != nil {
		return f
	}
	p.items = e.items(p.items[:0])
	f := p.gist(p.items)
	p.known[key] = &f
	return &f
}

func (p *gister) gist(items []Item) gist {
	var f gist
	var all maphash.Hash
	all.SetSeed(p.seed)
	spoken, others := 0, 0
	for _, it := range items {
		f.inChat = f.inChat || it.inChat()
		if said(it) {
			spoken++
		} else {
			others++
		}
		if it.Kind == Thought || it.Role == "system" && strings.HasPrefix(it.Text, "x-anthropic-billing-header") {
			continue // the latter changes with every request
		}
		h := p.item(it)
		f.hashes = append(f.hashes, h)
		switch it.Kind {
		case Called:
			f.calls = append(f.calls, h)
			if id := p.id(it.ID); id != 0 {
				f.ids = append(f.ids, id)
			}
		case Returned:
			if id := p.id(it.ID); id != 0 {
				f.results = append(f.results, result{id, it.Bad})
			}
		case Said:
			d := dense{h: &all}
			if p.rests.WriteText(&d, it.Text); d.some {
				f.texts = append(f.texts, h)
			}
		}
	}
	if f.texts != nil {
		f.joined = all.Sum64()
	}
	f.spoken = spoken > 0 && others == 0
	return f
}

// said reports whether an item is the model's own. Of the items without a word here only those that are calls are.
func said(it Item) bool {
	if it.Kind == Strange {
		return strings.HasSuffix(it.Text, "_call") || it.Text == "item_reference"
	}
	return it.Role == "assistant"
}

// item is what an item is compared by: role and text without white space at its ends, arguments without any between their tokens
// and with texts spelled in one way.
func (p *gister) item(it Item) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	if it.Kind == Attached {
		p.rests.Write(&h, it.Raw)
		return mix(h.Sum64(), uint64(Attached))
	}
	h.WriteByte(byte(it.Kind))
	h.WriteString(it.Role)
	h.WriteByte(0)
	if it.Kind != Returned { // Chat names the tool in some harnesses and some turns only
		p.rests.WriteText(&h, it.Name)
	}
	h.WriteByte(0)
	if it.Kind == Called {
		var check jsonx.Checker
		if p.rests.WriteText(&check, it.Text) == nil && check.Valid() {
			p.rests.WriteText(&respelled{to: &h}, it.Text)
			return h.Sum64()
		}
	}
	return p.trimmed(h, it.Text)
}

// trimmed goes on with a text without the white space at its ends.
func (p *gister) trimmed(h maphash.Hash, text string) uint64 {
	t := trimmed{h: &h, sum: h.Sum64()}
	p.rests.WriteText(&t, text)
	return t.sum
}

// id is what a call id is compared by: OpenClaw leaves out what is no letter and no digit.
func (p *gister) id(s string) uint64 {
	if whole, short := p.rests.Whole(s, capture.OutlineFrom); short {
		s = whole
	}
	if s = strings.Map(plain, s); s == "" {
		return 0
	}
	return maphash.String(p.seed, s)
}

// mix goes on with a hash over a sequence.
func mix(h, next uint64) uint64 {
	h = (h ^ next) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// empty: nothing that could be found again.
func (f *gist) empty() bool { return len(f.calls) == 0 && len(f.texts) == 0 }

// match says how an answer is found in a turn of a history.
type match uint8

const (
	matchNone match = iota
	matchID         // a call of it is there, and what it says is not as it was said
	matchSame       // it says the same
)

// in looks for the answer f in the turn t, which may hold more.
func (f *gist) in(t *gist) match {
	same := within(f.calls, t.calls) && (within(f.texts, t.texts) || f.joined == t.joined)
	switch {
	case f.empty():
		return matchNone
	case len(f.ids) > 0 && len(t.ids) > 0:
		if !meet(f.ids, t.ids) {
			return matchNone
		}
		if same && within(f.ids, t.ids) {
			return matchSame
		}
		return matchID
	case same:
		return matchSame
	}
	return matchNone
}

func within(some, all []uint64) bool {
	for _, h := range some {
		if !contains(all, h) {
			return false
		}
	}
	return true
}

func meet(a, b []uint64) bool {
	for _, h := range a {
		if contains(b, h) {
			return true
		}
	}
	return false
}

func contains(list []uint64, h uint64) bool {
	for _, o := range list {
		if o == h {
			return true
		}
	}
	return false
}

// text is what a whole text is compared by.
func (p *gister) text(s string) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	return p.trimmed(h, s)
}

// joinedWith is a copy of f with what stands behind it in the same turn.
func (f gist) joinedWith(o *gist) gist {
	f.hashes = append(f.hashes[:len(f.hashes):len(f.hashes)], o.hashes...)
	f.ids = append(f.ids[:len(f.ids):len(f.ids)], o.ids...)
	f.calls = append(f.calls[:len(f.calls):len(f.calls)], o.calls...)
	f.texts = append(f.texts[:len(f.texts):len(f.texts)], o.texts...)
	if f.joined == 0 {
		f.joined = o.joined
	} else if o.joined != 0 {
		f.joined = mix(f.joined, o.joined)
	}
	return f
}

// sameID compares call ids as id does.
func sameID(a, b string) bool { return strings.Map(plain, a) == strings.Map(plain, b) }

// plain leaves out what is no letter and no digit.
func plain(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return r
	}
	return -1
}
