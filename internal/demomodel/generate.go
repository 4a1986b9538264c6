package demomodel

import (
	"strings"
	"unicode/utf8"
)

// kind of a stretch of the answer's text.
type kind uint8

const (
	silent    kind = iota // syntax of a call, between its visible parts
	reasoning             //
	content               //
	callName              // a place, not a stretch: the name is known from here on
	arguments             //
)

type span struct {
	kind     kind
	call     int
	from, to int
}

// answer is what the model generated for one choice: ids, and the text that they
// stand for with its parts marked. Special tokens have no text. Every form of the
// answer, whole or in chunks, is cut out of this, so they cannot disagree.
type answer struct {
	tok   *tokenizer
	ids   []int
	ends  []int  // of the text behind each id
	said  string // all that was generated
	text  string // what of it is shown: a stop text cuts it
	spans []span
	calls []plannedCall

	thinkFrom, thinkTo int // ids of the reasoning, without its markers

	finish     string
	stopReason string // the stop text; empty: null
}

// generate makes the whole answer and then applies what ends it early.
func (m *model) generate(r *request, p plan, prompt int) *answer {
	a := &answer{tok: m.tok, calls: p.calls}
	if p.reasoning != "" {
		a.special(tokThink)
		a.thinkFrom = len(a.ids)
		a.say(reasoning, 0, p.reasoning)
		a.thinkTo = len(a.ids)
		a.special(tokThinkEnd)
		a.say(content, 0, afterThinking)
	}
	a.say(content, 0, p.content)
	for i, c := range p.calls {
		if i > 0 {
			a.say(silent, i, "\n")
		}
		a.special(tokCall)
		a.call(i, c)
		a.special(tokCallEnd)
	}
	a.special(tokEnd)

	a.finish = "stop"
	if choice, _ := r.toolChoice(); len(p.calls) > 0 && choice != choiceNamed {
		a.finish = "tool_calls"
	}
	if limit := r.maxNew(prompt); len(a.ids) > limit {
		a.keep(limit)
		a.finish = "length"
	}
	a.said = a.text
	a.stopAt(r.Stop, r.IncludeStop)
	return a
}

func (a *answer) special(id int) {
	a.ids = append(a.ids, id)
	a.ends = append(a.ends, len(a.text))
}

// say encodes one piece between special tokens.
func (a *answer) say(k kind, call int, text string) {
	a.mark(k, call, len(text))
	a.encode(text)
}

func (a *answer) encode(text string) {
	from, end := len(a.ids), len(a.text)
	a.ids = a.tok.append(a.ids, text)
	for _, id := range a.ids[from:] {
		end += len(a.tok.piece(id))
		a.ends = append(a.ends, end)
	}
	a.text += text
}

// mark notes a stretch of n bytes that is about to be said.
func (a *answer) mark(k kind, call, n int) {
	if n > 0 || k == callName {
		a.spans = append(a.spans, span{k, call, len(a.text), len(a.text) + n})
	}
}

// call says one call. Its text is encoded in one piece, as the template does it.
func (a *answer) call(i int, c plannedCall) {
	// The name counts as known once its closing quote has come.
	known := len(a.text) + len(callOpen) + len(escaped(c.name)) + 1
	from := len(a.text) + len(callOpen) + len(escaped(c.name)) + len(callMiddle)
	a.spans = append(a.spans,
		span{callName, i, known, known},
		span{arguments, i, from, from + len(c.arguments)})
	a.encode(callText(c.name, c.arguments))
}

// keep cuts the answer behind n ids. A character of which only a part was
// generated is no text yet.
func (a *answer) keep(n int) {
	a.ids, a.ends = a.ids[:n], a.ends[:n]
	end := 0
	if n > 0 {
		end = whole(a.text, a.ends[n-1])
	}
	a.text = a.text[:end]
	a.thinkTo = min(a.thinkTo, n)
	a.thinkFrom = min(a.thinkFrom, n)
}

// stopAt ends the answer with the first id that completes a stop text. The ids
// stay, the text ends before the stop text.
func (a *answer) stopAt(stops []string, include bool) {
	at, text := -1, ""
	for _, s := range stops {
		// Compare by where the stop text ends: that is when it is noticed.
		if i := strings.Index(a.text, s); i >= 0 && (at < 0 || i+len(s) < at+len(text)) {
			at, text = i, s
		}
	}
	if at < 0 {
		return
	}
	for i, end := range a.ends {
		if end >= at+len(text) {
			a.keep(i + 1)
			break
		}
	}
	a.text = a.text[:at]
	if include {
		a.text += text
	}
	a.finish, a.stopReason = "stop", text
}

// released is up to where the text may be shown once the id at i is there. With
// stop texts the last characters are held back: they may become part of one.
func (a *answer) released(i, hold int) int {
	if i == len(a.ids)-1 {
		return len(a.text)
	}
	end := whole(a.said, a.ends[i])
	for ; hold > 0 && end > 0; hold-- {
		_, n := utf8.DecodeLastRuneInString(a.said[:end])
		end -= n
	}
	return min(end, len(a.text))
}

// holdBack is how many characters have to be held back for a list of stop texts.
func holdBack(r *request) (hold int) {
	if r.IncludeStop {
		return 0
	}
	for _, s := range r.Stop {
		hold = max(hold, utf8.RuneCountInString(s)-1)
	}
	return hold
}

// thought counts the reasoning ids among the first n.
func (a *answer) thought(n int) int { return max(0, min(n, a.thinkTo)-a.thinkFrom) }

// whole moves an end back to a border between characters.
func whole(text string, end int) int {
	end = min(end, len(text))
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// piece is one visible part of a stretch of the answer.
type piece struct {
	kind kind
	call int
	text string
}

// between lists what becomes visible when the shown text grows from one offset to
// another, in the order in which it was generated.
func (a *answer) between(from, to int) (pieces []piece) {
	for _, s := range a.spans {
		switch lo, hi := max(s.from, from), min(s.to, to); {
		case s.kind == callName:
			if from < s.from && s.from <= to {
				pieces = append(pieces, piece{callName, s.call, a.calls[s.call].name})
			}
		case s.kind != silent && lo < hi:
			pieces = append(pieces, piece{s.kind, s.call, a.text[lo:hi]})
		}
	}
	return pieces
}

// openCall is the call that the end of the answer cut, -1 when there is none.
func (a *answer) openCall() int {
	opened, closed := 0, 0
	for _, id := range a.ids {
		switch id {
		case tokCall:
			opened++
		case tokCallEnd:
			closed++
		}
	}
	if opened == closed {
		return -1
	}
	return closed
}
