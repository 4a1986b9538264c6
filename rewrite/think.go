package rewrite

import (
	"bytes"
	"slices"

	"rolltap/rewrite/canon"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkParser makes reasoning of what stands between <think> and </think> at the beginning of a text, for upstreams without a reasoning
// parser (think_tags: parse). White space in front of the tag goes with it. A tag anywhere else is text, as code may hold it; one that is
// never closed has been reasoning all along. Only what may be part of a tag is held back.
type thinkParser struct {
	made  int // parts that the client has seen opened
	parts []thinkPart
}

// thinkPart is an open part.
type thinkPart struct {
	from, to int // its number upstream, and for the client; to -1: a text that is not open for the client now
	state    thinkState
	held     canon.Text // what may be the beginning of a tag
	itemID   canon.Text
	said     bool // some part was made of it
}

type thinkState uint8

const (
	thinkAsItIs thinkState = iota // no text, or its beginning is over
	thinkBegins                   // a text of which only white space and the beginning of a tag were seen
	thinkInside
)

func (f *thinkParser) next(dst []canon.Event, e *canon.Event) ([]canon.Event, error) {
	switch e.Kind {
	case canon.Open:
		if e.Type == canon.TextPart {
			f.parts = append(f.parts, thinkPart{from: e.Part, to: -1, state: thinkBegins, itemID: slices.Clone(e.ItemID)})
			return dst, nil
		}
		f.parts = append(f.parts, thinkPart{from: e.Part, to: f.made, said: true})
		f.made++
		dst = append(dst, *e)
		dst[len(dst)-1].Part = f.made - 1
		return dst, nil
	case canon.Delta:
		p := f.find(e.Part)
		if p == nil {
			break
		}
		if p.state == thinkAsItIs {
			if p.to < 0 && len(e.Text) > 0 {
				dst = f.openPart(dst, p, canon.TextPart)
			}
			return p.moved(dst, e), nil
		}
		return f.delta(dst, p, e), nil
	case canon.Seal, canon.Cite:
		if p := f.find(e.Part); p != nil {
			dst = f.settle(dst, p)
			if p.to < 0 {
				dst = f.openPart(dst, p, canon.TextPart)
			}
			return p.moved(dst, e), nil
		}
	case canon.Close:
		p := f.find(e.Part)
		if p == nil {
			break
		}
		dst = f.settle(dst, p)
		if p.to < 0 && !p.said {
			dst = f.openPart(dst, p, canon.TextPart)
		}
		dst = p.moved(dst, e)
		f.parts = slices.DeleteFunc(f.parts, func(p thinkPart) bool { return p.from == e.Part })
		return dst, nil
	case canon.Fail:
		for i := range f.parts {
			dst = f.settle(dst, &f.parts[i])
		}
	}
	return append(dst, *e), nil
}

func (f *thinkParser) find(part int) *thinkPart {
	for i := range f.parts {
		if f.parts[i].from == part {
			return &f.parts[i]
		}
	}
	return nil
}

// moved appends e under the part's number for the client, unless the part is not open there.
func (p *thinkPart) moved(dst []canon.Event, e *canon.Event) []canon.Event {
	if p.to < 0 {
		return dst
	}
	dst = append(dst, *e)
	dst[len(dst)-1].Part = p.to
	return dst
}

func (f *thinkParser) openPart(dst []canon.Event, p *thinkPart, t canon.PartType) []canon.Event {
	p.to, p.said = f.made, true
	f.made++
	open := canon.Event{Kind: canon.Open, Part: p.to, Type: t}
	if t == canon.TextPart {
		open.ItemID = p.itemID
	}
	return append(dst, open)
}

func (p *thinkPart) closePart(dst []canon.Event) []canon.Event {
	dst = append(dst, canon.Event{Kind: canon.Close, Part: p.to})
	p.to = -1
	return dst
}

// text appends a delta. Log probabilities are of texts and stay with them.
func (p *thinkPart) text(dst []canon.Event, t canon.Text, logprobs canon.Raw) []canon.Event {
	if len(t) == 0 {
		return dst
	}
	if p.state == thinkInside {
		logprobs = nil
	}
	return append(dst, canon.Event{Kind: canon.Delta, Part: p.to, Text: t, Logprobs: logprobs})
}

// delta takes a piece of a text that begins, or of reasoning.
func (f *thinkParser) delta(dst []canon.Event, p *thinkPart, e *canon.Event) []canon.Event {
	s := e.Text
	if len(p.held) > 0 {
		s = append(p.held, s...) // held is given away
		p.held = nil
	}
	if p.state == thinkBegins {
		tag, end, found, partial := leadingTag(s)
		switch {
		case found:
			dst = f.openPart(dst, p, canon.ReasoningPart)
			p.state = thinkInside
			dst = p.text(dst, s[:tag], nil)
			s = s[end:]
		case partial:
			p.held = slices.Clone(s)
			return dst
		default:
			return f.plain(dst, p, s, e.Logprobs)
		}
	}
	tag, end, found := closingTag(s)
	dst = p.text(dst, s[:tag], nil)
	if !found {
		p.held = slices.Clone(s[tag:])
		return dst
	}
	dst = p.closePart(dst)
	return f.plain(dst, p, s[end:], e.Logprobs)
}

// plain appends text that has no tags any more.
func (f *thinkParser) plain(dst []canon.Event, p *thinkPart, s canon.Text, logprobs canon.Raw) []canon.Event {
	p.state = thinkAsItIs
	if len(s) == 0 {
		return dst
	}
	return p.text(f.openPart(dst, p, canon.TextPart), s, logprobs)
}

// settle gives out what is held back: it is no tag.
func (f *thinkParser) settle(dst []canon.Event, p *thinkPart) []canon.Event {
	held := p.held
	p.held = nil
	if p.state == thinkBegins {
		return f.plain(dst, p, held, nil)
	}
	return p.text(dst, held, nil)
}

// leadingTag looks for <think> behind white space: where it begins and ends. Partial: s ends before it is decided.
func leadingTag(s canon.Text) (tag, end int, found, partial bool) {
	for tag < len(s) {
		c, n := unit(s[tag:])
		if !isBlank(c) {
			end, found, partial = matchTag(s, tag, thinkOpen)
			return tag, end, found, partial
		}
		tag += n
	}
	return tag, tag, false, true
}

// closingTag looks for </think>: where it begins and ends. When it is not found, it may begin at tag.
func closingTag(s canon.Text) (tag, end int, found bool) {
	for i := 0; i < len(s); {
		// A tag begins with <, or with the escape of it.
		next := bytes.IndexAny(s[i:], `<\`)
		if next < 0 {
			break
		}
		i += next
		c, n := unit(s[i:])
		if c == '<' {
			end, found, partial := matchTag(s, i, thinkClose)
			if found || partial {
				return i, end, found
			}
		}
		i += n
	}
	return len(s), len(s), false
}

// matchTag tells whether the tag stands at s[i:] and where it ends, or whether s ends inside of it.
func matchTag(s canon.Text, i int, tag string) (end int, found, partial bool) {
	for k := 0; k < len(tag); k++ {
		if i == len(s) {
			return i, false, true
		}
		c, n := unit(s[i:])
		if c != int(tag[k]) {
			return i, false, false
		}
		i += n
	}
	return i, true, false
}
