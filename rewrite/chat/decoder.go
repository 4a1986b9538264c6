package chat

import (
	"bytes"
	"io"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// decoder reads the chunks of one choice, index 0 (wire.md 1.5, 1.6, 2.1). Within a chunk the order in time is reasoning, content, refusal,
// calls, whatever the order of the keys. A text or reasoning part is open until something else begins; calls may overlap (live.go).
//
// Tokens' ids and the logprobs of what is no text are for who captures, and are passed over.
type decoder struct {
	o       dialect.Options
	started bool
	over    bool // [DONE] or a failure was seen
	err     error

	parts   int            // opened so far
	open    canon.PartType // the open text, refusal or reasoning part, 0 none
	at      int            // its number
	calls   []*liveCall
	current *liveCall // what a delta without an index belongs to
	live    int       // calls that are not closed

	stop      canon.Stop // its texts are in stopText
	stopText  []byte
	usage     []byte // raw, of the last chunk that told one
	promptIDs int64
	ids       int64

	scratch []byte // texts of this frame that had to be written anew
	lost    map[lostMember]struct{}

	known familiar
	// What this frame did that the next one like it may not repeat.
	touched int  // pieces of calls
	named   bool // a call was named
	odd     bool // what a member means depends on others, or on what came before
}

func (chat) NewDecoder(o dialect.Options) dialect.Decoder { return &decoder{o: o} }

func (d *decoder) Frame(dst []canon.Event, name, data []byte) ([]canon.Event, error) {
	if d.over || d.err != nil {
		return dst, d.err
	}
	d.scratch, d.touched, d.named, d.odd = d.scratch[:0], 0, false, false
	if len(name) > 0 && string(bytes.TrimSpace(name)) == "error" {
		return d.fail(dst, dialect.ReadProblem(0, data)), nil
	}
	before := len(dst)
	dst, done := d.again(dst, data)
	if !done {
		dst, done = d.near(dst, data)
	}
	if !done {
		dst = d.whole(dst, data)
	}
	if d.err != nil {
		dst = dst[:before]
	}
	return dst, d.err
}

// whole reads a frame of which nothing is known.
func (d *decoder) whole(dst []canon.Event, data []byte) []canon.Event {
	chunk, invalid := fold.Open(data)
	switch {
	case invalid:
		d.err = canon.Unreadable("the upstream sent an event that is no JSON object")
	case chunk != nil:
		dst, d.err = d.chunk(dst, chunk)
	case fold.IsDone(data):
		return d.done(dst)
	}
	return dst
}

func (d *decoder) Finish() error {
	if d.over {
		return nil
	}
	return io.ErrUnexpectedEOF
}

// event appends an empty event of a kind. Events are large: they are filled in where they are.
func event(dst []canon.Event, kind canon.Kind, part int) ([]canon.Event, *canon.Event) {
	dst = append(dst, canon.Event{})
	e := &dst[len(dst)-1]
	e.Kind, e.Part = kind, part
	return dst, e
}

func (d *decoder) fail(dst []canon.Event, p *canon.Problem) []canon.Event {
	d.over = true
	dst, e := event(dst, canon.Fail, 0)
	e.Problem = p
	return dst
}

// done ends the stream at [DONE], which alone is no end: without a finish reason nobody said that the answer is whole.
func (d *decoder) done(dst []canon.Event) []canon.Event {
	if d.stop.Reason == 0 {
		return d.fail(dst, unfinished())
	}
	if dst = d.closeAll(dst); d.over {
		return dst
	}
	dialect.LoseRest(d.usage, "usage", countPlace, d.o.Losses)
	if usage := countedUsage(readUsage(d.usage), d.promptIDs, d.ids); usageKnown(usage) {
		var e *canon.Event
		dst, e = event(dst, canon.Counted, 0)
		e.Usage = usage
	}
	d.over = true
	dst, e := event(dst, canon.Ended, 0)
	e.Stop = d.stop
	return dst
}

func (d *decoder) chunk(dst []canon.Event, raw []byte) ([]canon.Event, error) {
	var id, model, created, choices, usage, ids, detail []byte
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch string(name) {
		case "choices":
			choices = value
		case "id":
			id = value
		case "model":
			model = value
		case "created":
			created = value
		case "usage":
			usage = value
		case "prompt_token_ids":
			ids = value
		case "error":
			if !jsonx.IsNull(value) {
				return d.fail(dst, dialect.ReadProblem(0, raw)), nil
			}
		case "object":
			if isFlatError(value) {
				return d.fail(dst, dialect.ReadProblem(0, raw)), nil
			}
		case "detail":
			detail = value
		default:
			if !isHarmlessTop(name) {
				d.lose("", name, value)
			}
		}
	}
	if choices == nil && !fold.Blank(detail) {
		return d.fail(dst, dialect.ReadProblem(0, raw)), nil
	}
	if kind := jsonx.KindOf(choices); choices != nil && kind != jsonx.KindArray && kind != jsonx.KindNull {
		return dst, canon.Unreadable("the upstream sent choices that are no array")
	}
	d.keepUsage(usage)
	if ids != nil && d.promptIDs == 0 {
		d.promptIDs = countIDs(ids)
	}
	if !d.started && (!fold.Blank(id) || !fold.Blank(choices) || len(d.usage) > 0) { // else an empty chunk in front, as Azure sends one
		dst = d.start(dst, id, model, created)
	}
	var c choiceMembers
	before, seen, n := len(dst), d.ids, 0
	for it := jsonx.Array(choices); it.Next(); n++ {
		if n == 0 {
			d.learnHead(raw, it.Value())
		}
		if jsonx.KindOf(it.Value()) != jsonx.KindObject {
			return dst, canon.Unreadable("the upstream sent a choice that is no object")
		}
		c = choiceMembers{}
		d.readChoice(it.Value(), &c)
		var err error
		if dst, err = d.choice(dst, &c); err != nil || d.over {
			return dst, err
		}
	}
	// Around its choices the chunk may have said other things than those before it.
	d.known.said.forget()
	d.known.silent.forget()
	switch n {
	case 0:
		d.known.head = d.known.head[:0]
	case 1:
		c.usage = usage
		d.learn(raw, &c, dst[before:], d.ids-seen)
	}
	return dst, nil
}

func (d *decoder) start(dst []canon.Event, id, model, created []byte) []canon.Event {
	d.started = true
	dst, e := event(dst, canon.Start, 0)
	e.ID, e.Model = readText(id), readText(model)
	if _, ok := jsonx.Int(created); ok {
		e.Created = created
	}
	e.Usage = countedUsage(readUsage(d.usage), d.promptIDs, 0)
	return dst
}

// keepUsage keeps the usage of a chunk, of which the last counts, also for what is told of it.
func (d *decoder) keepUsage(usage []byte) {
	if len(usage) > 2 && usage[0] == '{' {
		d.usage = append(d.usage[:0], usage...)
	}
}

// choiceMembers are the members of a choice, raw, and the usage of its chunk.
type choiceMembers struct {
	delta, message, finish, logprobs, stopReason, matched, ids []byte
	usage                                                      []byte
	other                                                      bool // it is not the first
}

func (d *decoder) readChoice(raw []byte, c *choiceMembers) {
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch string(name) {
		case "index":
			c.other = string(value) != "0" && jsonx.Truthy(value)
		case "delta":
			c.delta = value
		case "message":
			c.message = value
		case "finish_reason":
			c.finish = value
		case "logprobs":
			c.logprobs = value
		case "stop_reason":
			c.stopReason = value
		case "matched_stop":
			c.matched = value
		case "token_ids":
			c.ids = value
		default:
			if !isHarmlessInChoice(name) {
				d.lose("choices[0].", name, value)
			}
		}
	}
}

func (d *decoder) choice(dst []canon.Event, c *choiceMembers) ([]canon.Event, error) {
	if c.other {
		d.o.Losses.Add("choices[1]", canon.NoEquivalent)
		return dst, nil
	}
	d.ids += countIDs(c.ids)
	if !d.started {
		dst = d.start(dst, nil, nil, nil)
	}
	var err error
	switch {
	case !jsonx.IsNull(c.delta):
		dst, err = d.delta(dst, c.delta, c.logprobs, false)
	case !jsonx.IsNull(c.message) && d.parts == 0 && len(d.calls) == 0: // where deltas came it only repeats them
		dst, err = d.delta(dst, c.message, c.logprobs, true)
	}
	if err != nil || fold.Blank(c.finish) {
		return dst, err
	}
	return d.finish(dst, c.finish, c.stopReason, c.matched)
}

func (d *decoder) finish(dst []canon.Event, finish, stopReason, matched []byte) ([]canon.Event, error) {
	word, ok := jsonx.Interior(finish)
	if !ok {
		return dst, canon.Unreadable("the upstream sent a finish reason that is no string")
	}
	stop, failed := readStop(word, stopReason, matched, d.o.Losses)
	if failed != nil {
		return d.fail(dst, failed), nil
	}
	d.stopText = append(append(d.stopText[:0], stop.Native...), stop.Sequence...)
	n := len(stop.Native)
	stop.Native = d.stopText[:n:n]
	if stop.Sequence != nil {
		stop.Sequence = d.stopText[n:]
	}
	d.stop = stop
	return d.closeAll(dst), nil
}

// lose notes a member that says something and goes nowhere; each once, and not so many that a hostile upstream fills memory with names.
func (d *decoder) lose(at string, name, value []byte) {
	name = name[:min(len(name), maxName)]
	if _, ok := d.lost[lostMember{at, string(name)}]; ok || fold.Blank(value) {
		return
	}
	if len(d.lost) == maxLost {
		d.o.Losses.Add("more", canon.NotKnown)
		return
	}
	if d.lost == nil {
		d.lost = map[lostMember]struct{}{}
	}
	d.lost[lostMember{at, string(name)}] = struct{}{}
	loseMember(d.o.Losses, at, name, value)
}

type lostMember struct{ at, name string }

const (
	maxLost = 100
	maxName = 100 // bytes by which names differ; paths are shorter
)

// readText is the inside of a string, nil for anything else.
func readText(raw []byte) canon.Text {
	text, _ := jsonx.Interior(raw)
	return text
}
