package tokens

import (
	"bytes"
	"io"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// Collector takes ids and log probabilities out of the answer of a Chat upstream, given event by event or whole. It belongs to one goroutine.
type Collector struct {
	wish  Wish
	limit int64
	size  int64 // bytes kept
	chunk chunk

	prompt, generated, logprobs, named sequence
	bundle                             struct{ prompt, generated, logprobs sequence }
	unnamed                            bool // an entry of logprobs is not written token_id:N

	usage             canon.Usage
	id, model, finish []byte
	versions, experts []byte
	spool             Spool   // nil: everything stays in memory
	long              Spooled // routed_experts in place of experts

	done                                bool // the dialect's end was there, or the answer came whole
	tooLarge, unreadable, failed        bool
	several, badIDs, badLogprobs, split bool
}

// NewCollector returns a Collector for the answer to a request that Ask told w of. It keeps at most limit bytes; beyond that it forgets all
// and gives TooLarge as the reason.
func NewCollector(limit int64, w Wish) *Collector {
	return &Collector{wish: w, limit: limit, usage: canon.NoUsage()}
}

// Spool takes a long value that is only passed on out of memory: a JSON string without escapes. An error means that it cannot.
type Spool func(raw []byte) (Spooled, error)

// Spooled is a value that a Spool took. Release is called at most once.
type Spooled interface {
	Copy(w io.Writer) error // writes it; any number of times
	Release()
}

// longFrom is how long a value is that is spooled.
const longFrom = 1 << 20

// SpoolLong makes the Collector hand long values of routed_experts to s. It is called before the first event.
func (c *Collector) SpoolLong(s Spool) { c.spool = s }

// Size is about how much memory is kept, in bytes.
func (c *Collector) Size() int { return int(c.size) }

// Event takes the data of one event of a stream, which is free afterwards.
func (c *Collector) Event(data []byte) {
	if c.mark(data) {
		return
	}
	if !c.chunk.read(data) {
		c.unreadable = true
		return
	}
	c.take(&c.chunk, true)
}

// mark takes data that are no JSON by design: none at all, and the end of the dialect.
func (c *Collector) mark(data []byte) bool {
	if len(data) > 0 && data[0] == '{' {
		return false
	}
	switch string(bytes.TrimSpace(data)) {
	case "[DONE]":
		c.done = true
		return true
	case "":
		return true
	}
	return false
}

// Whole takes an answer that is no stream. What the Result has of it beside numbers are parts of body.
func (c *Collector) Whole(body []byte) {
	c.done = true
	if !c.chunk.read(body) {
		c.unreadable = true
		return
	}
	c.take(&c.chunk, false)
}

// take adds what an event or an answer says; copied: the text that it was read from does not stay.
func (c *Collector) take(k *chunk, copied bool) {
	if c.tooLarge {
		return
	}
	c.failed = c.failed || k.failed
	c.several = c.several || k.other || k.choices > 1
	c.badIDs = c.badIDs || k.prompt.bad || k.generated.bad || k.bundle.prompt.bad || k.bundle.generated.bad
	c.badLogprobs = c.badLogprobs || k.logprobs.bad || k.bundle.logprobs.bad
	if k.usage != nil {
		var in [2][]byte
		jsonx.GetAll(k.usage, []string{"prompt_tokens", "completion_tokens"}, in[:])
		c.usage.Prompt, c.usage.Completion = count(in[0], c.usage.Prompt), count(in[1], c.usage.Completion)
	}
	if c.several { // nothing can be kept apart, and nothing is needed
		c.forget()
		return
	}
	c.add(&c.generated, &k.generated)
	c.add(&c.logprobs, &k.logprobs)
	switch {
	case c.unnamed:
	case k.named.bad:
		c.unnamed = true
		c.size -= int64(cap(c.named.text))
		c.named = sequence{}
	default:
		c.add(&c.named, &k.named)
	}
	if c.id == nil {
		c.keep(&c.id, k.id, copied)
	}
	if c.model == nil {
		c.keep(&c.model, k.model, copied)
	}
	c.keep(&c.finish, k.finish, copied)
	if k.prompt.seen {
		c.once(&c.prompt, &k.prompt)
	}
	if !k.carrier && k.experts == nil && k.versions == nil {
		return
	}
	c.once(&c.bundle.prompt, &k.bundle.prompt)
	c.once(&c.bundle.generated, &k.bundle.generated)
	c.once(&c.bundle.logprobs, &k.bundle.logprobs)
	c.keep(&c.versions, k.versions, copied)
	c.keepExperts(k.experts, copied)
}

func count(raw []byte, before int64) int64 {
	if n, ok := jsonx.Int(raw); ok && n >= 0 {
		return n
	}
	return before
}

// sequence is the text of a JSON array that lacks its end.
type sequence struct {
	text []byte
	n    int
	seen bool
}

// add appends a list.
func (c *Collector) add(s *sequence, l *list) {
	if !l.seen || l.bad || c.tooLarge {
		return
	}
	s.seen = true
	before := cap(s.text)
	if len(s.text) == 0 {
		s.text = append(s.text, '[')
	}
	if s.n > 0 && l.n > 0 {
		s.text = append(s.text, ',')
	}
	s.text = append(s.text, l.text...)
	s.n += l.n
	c.account(cap(s.text) - before)
}

// once adds a list that is there once for an answer; when it comes again it is the same.
func (c *Collector) once(s *sequence, l *list) {
	switch {
	case !s.seen:
		c.add(s, l)
	case l.seen && !l.bad && !bytes.Equal(s.text[1:], l.text):
		c.split = true
	}
}

// keep keeps the last value that was told.
func (c *Collector) keep(to *[]byte, raw []byte, copied bool) {
	switch {
	case raw == nil || c.tooLarge:
	case !copied:
		*to = raw[:len(raw):len(raw)]
	default:
		before := cap(*to)
		*to = append((*to)[:0], raw...)
		c.account(cap(*to) - before)
	}
}

// keepExperts keeps the last routed_experts that was told, out of memory when that is long.
func (c *Collector) keepExperts(raw []byte, copied bool) {
	if c.spool == nil || len(raw) < longFrom || c.tooLarge || raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 {
		c.keep(&c.experts, raw, copied)
		return
	}
	c.release()
	long, err := c.spool(raw)
	if err != nil {
		c.tooLarge = true // for what there is
		c.forget()
		return
	}
	c.long, c.experts = long, nil
}

func (c *Collector) release() {
	if c.long != nil {
		c.long.Release()
		c.long = nil
	}
}

// account counts what is kept, and forgets all when it is too much.
func (c *Collector) account(grown int) {
	if c.size += int64(grown); c.size > c.limit {
		c.Overflow()
	}
}

// Overflow says that the answer is too long to be looked into: TooLarge is the reason then.
func (c *Collector) Overflow() {
	c.tooLarge = true
	c.forget()
}

// forget lets go of all that was kept.
func (c *Collector) forget() {
	var none sequence
	c.size = 0
	c.prompt, c.generated, c.logprobs, c.named = none, none, none, none
	c.bundle.prompt, c.bundle.generated, c.bundle.logprobs = none, none, none
	c.versions, c.experts = nil, nil
	c.release()
}
