package tokens

import "rolltap/internal/jsonx"

// chunk is what one event of a stream, or one whole answer, says to a capture, and what of it is to be hidden. It is filled by read and
// used again for the next one. Raw values are parts of the text that was read, nil when missing or null.
type chunk struct {
	hides bool // edits are wanted
	wish  Wish
	edits []edit

	id, model       []byte
	usage           []byte
	failed          bool // there is an error in it
	versions        []byte
	prompt          list // of the top level, or of the choice
	listed          bool // choices is a list
	choices         int
	beside          bool // there is something in it that a capture does not explain
	silent          int  // choices that say nothing but what is hidden
	other           bool // a choice has another index than 0
	finish          []byte
	generated       list
	logprobs, named list // named is the ids of entries written token_id:N
	experts         []byte
	reasoned        bool // the message that was read last holds reasoning that is hidden

	carrier bool                                       // bundle is filled
	bundle  struct{ prompt, generated, logprobs list } // of the message

	head head
}

func (c *chunk) reset() {
	c.edits = c.edits[:0]
	c.id, c.model, c.usage, c.versions, c.finish, c.experts = nil, nil, nil, nil, nil, nil
	c.failed, c.listed, c.beside, c.other = false, false, false, false
	c.choices, c.silent = 0, 0
	c.prompt.reset()
	c.generated.reset()
	c.logprobs.reset()
	c.named.reset()
	if c.carrier {
		c.carrier = false
		c.bundle.prompt.reset()
		c.bundle.generated.reset()
		c.bundle.logprobs.reset()
	}
}

// read reads p, which is judged by the way; false: it is no strict JSON object.
func (c *chunk) read(p []byte) bool {
	c.reset()
	var m members
	for alike := c.recall(&m, p); alike || c.next(&m); alike = false {
		switch string(m.key) {
		case "choices":
			c.remember(&m)
			m.i = c.readChoices(p, m.i, m.depth)
		case "prompt_token_ids":
			m.i = c.prompt.ids(p, m.i, m.depth)
			c.cutIDs(&m)
		case "id":
			c.id = m.told()
		case "model":
			c.model = m.told()
		case "usage":
			if c.usage = m.told(); c.wish.ContinuousUsage && !c.wish.Usage {
				c.cut(&m)
			}
		case "error":
			c.failed = m.told() != nil || c.failed
		case "prompt_logprobs":
			c.beside = m.told() != nil || c.beside
		case "weight_versions":
			c.versions = m.told()
		case "meta_info":
			c.readMeta(m.told())
		case "object", "created", "system_fingerprint", "service_tier":
			m.skip()
		default:
			c.beside = m.told() != nil || c.beside
		}
	}
	return m.i >= 0 && space(p, m.i) == len(p)
}

// readMeta takes the weights' versions from where SGLang has them (wire.md 1.8).
func (c *chunk) readMeta(raw []byte) {
	if v := jsonx.Get(raw, "weight_versions"); !jsonx.IsNull(v) {
		c.versions = v
	}
}

func (c *chunk) readChoices(p []byte, i, depth int) int {
	c.choices, c.silent, c.listed = 0, 0, false
	if i >= len(p) || p[i] != '[' {
		return valueEnd(p, i, depth)
	}
	if depth++; depth > jsonx.MaxDepth {
		return -1
	}
	c.listed = true
	if i = space(p, i+1); i < len(p) && p[i] == ']' {
		return i + 1
	}
	for {
		c.choices++
		if i < len(p) && p[i] == '{' {
			i = c.readChoice(p, i, depth)
		} else {
			i = valueEnd(p, i, depth)
		}
		var more bool
		if i, more = another(p, i); !more {
			return i
		}
	}
}

// another looks behind an element of a list that ends at i, or is broken when that is negative: more is false at the list's end, which is returned,
// and in a broken list, which is -1.
func another(p []byte, i int) (next int, more bool) {
	if i < 0 {
		return -1, false
	}
	if i < len(p) && p[i] <= ' ' {
		i = space(p, i)
	}
	if i == len(p) {
		return -1, false
	}
	switch p[i] {
	case ']':
		return i + 1, false
	case ',':
		return space(p, i+1), true
	}
	return -1, false
}

func (c *chunk) readChoice(p []byte, i, depth int) int {
	var m members
	m.enter(p, i, depth)
	first := len(c.edits)
	ended, hidden, says, mute := false, false, false, false
	for c.next(&m) {
		switch string(m.key) {
		case "index":
			if n, ok := jsonx.Int(m.skip()); !ok || n != 0 {
				c.other = true
			}
		case "delta", "message":
			var empty bool
			m.i, empty = c.readMessage(p, m.i, m.depth)
			mute = empty && string(m.key) == "delta"
			says = says || !mute
			hidden = hidden || c.reasoned
		case "logprobs":
			from := m.i
			m.i = c.readLogprobs(p, m.i, m.depth)
			if m.i > 0 && p[from] != 'n' && !c.wish.Logprobs {
				hidden = true
				c.cutNullable(&m, from)
			}
		case "finish_reason":
			ended = true
			if finish := m.told(); finish != nil {
				c.finish, says = finish, true
			}
		case "token_ids":
			m.i = c.generated.ids(p, m.i, m.depth)
			hidden = hidden || c.generated.seen
			c.cutIDs(&m)
		case "prompt_token_ids": // the place of Completions, no more than a list at the top
			m.i = c.prompt.ids(p, m.i, m.depth)
			c.cutIDs(&m)
		case "routed_experts":
			if raw := m.told(); raw != nil {
				c.experts, says = raw, true
			}
		case "weight_versions":
			if raw := m.told(); raw != nil {
				c.versions, says = raw, true
			}
		case "meta_info":
			if raw := m.told(); raw != nil {
				c.readMeta(raw)
				says = true
			}
		default:
			says = m.told() != nil || says
		}
	}
	if mute && hidden && !says {
		c.silent++
	}
	if ended { // the server spells its nulls
		for k := first; k < len(c.edits); k++ {
			if e := &c.edits[k]; e.nullable {
				e.from, e.to, e.with = e.value, e.end, "null"
			}
		}
	}
	return m.i
}

// readMessage reads a message, or a delta, for the bundle that a framework may have put on it (capture.md 5.3). empty: it says nothing but
// what is hidden.
func (c *chunk) readMessage(p []byte, i, depth int) (end int, empty bool) {
	c.reasoned = false
	if i >= len(p) || p[i] != '{' {
		return valueEnd(p, i, depth), false
	}
	var m members
	m.enter(p, i, depth)
	empty = true
	for c.next(&m) {
		if c.wish.hides() && (string(m.key) == "reasoning" || string(m.key) == "reasoning_content") {
			if from := m.i; m.told() != nil {
				c.reasoned = true
				c.cutNullable(&m, from)
			}
			continue
		}
		empty = false
		switch string(m.key) {
		case "prompt_token_ids":
			c.carrier = true
			m.i = c.bundle.prompt.ids(p, m.i, m.depth)
			c.cutIDs(&m)
		case "generation_token_ids":
			c.carrier = true
			m.i = c.bundle.generated.ids(p, m.i, m.depth)
			c.cutIDs(&m)
		case "generation_log_probs":
			c.carrier = true
			m.i = c.bundle.logprobs.numbers(p, m.i, m.depth)
			if !c.wish.Logprobs {
				c.cutIDs(&m)
			}
		case "routed_experts":
			if raw := m.told(); raw != nil {
				c.experts = raw
			}
			c.cutIDs(&m)
		default:
			m.skip()
		}
	}
	return m.i, empty
}

// readLogprobs reads the logprobs of a choice: {"content": [{"token", "logprob", …}]}.
func (c *chunk) readLogprobs(p []byte, i, depth int) int {
	c.logprobs.reset()
	c.named.reset()
	if i >= len(p) || p[i] != '{' {
		end := valueEnd(p, i, depth)
		c.logprobs.bad = end > 0 && p[i] != 'n'
		return end
	}
	var m members
	m.enter(p, i, depth)
	for m.next() {
		if string(m.key) == "content" {
			m.i = c.readEntries(p, m.i, m.depth)
			continue
		}
		m.skip()
	}
	return m.i
}

func (c *chunk) readEntries(p []byte, i, depth int) int {
	c.logprobs.reset()
	c.named.reset()
	if i >= len(p) || p[i] != '[' {
		end := valueEnd(p, i, depth)
		c.logprobs.bad = end > 0 && p[i] != 'n'
		return end
	}
	if depth++; depth > jsonx.MaxDepth {
		return -1
	}
	c.logprobs.seen, c.named.seen = true, true
	if i = space(p, i+1); i < len(p) && p[i] == ']' {
		return i + 1
	}
	for {
		var token, logprob []byte
		if i < len(p) && p[i] == '{' {
			var m members
			m.enter(p, i, depth)
			for m.next() {
				switch raw := m.skip(); string(m.key) {
				case "token":
					token = raw
				case "logprob":
					logprob = raw
				}
			}
			i = m.i
		} else {
			i = valueEnd(p, i, depth)
		}
		if i < 0 {
			return -1
		}
		c.logprobs.add(finite(logprob))
		c.named.add(namedID(token))
		var more bool
		if i, more = another(p, i); !more {
			return i
		}
	}
}
