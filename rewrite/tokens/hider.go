package tokens

import (
	"bytes"

	"rolltap/rewrite/sse"
)

// maxEvent is the longest event of a stream that is looked into; it is that of the splitter.
const maxEvent = 16 << 20

// Hider takes out of an answer of the client's own dialect, Chat on both sides, what token capture asked for and the client did not. Every
// other byte stays where it is, and a Collector sees all of it. It belongs to one goroutine.
//
//   - Reasoning that the client does not want to see goes like log probabilities.
//   - Lists of ids go with their key; logprobs become null where the server spells its nulls, else they go too (vllm.md 2, wire.md 1.6).
//   - Events that say nothing else go whole, with their blank line, and so does the usage behind the last choice. Comments in them stay.
//   - Errors, the end of the stream and what is no JSON object pass as they are.
//
// One thing is not as without token capture: the system_fingerprint that vLLM puts on the last choice when no usage follows goes with the
// usage.
type Hider struct {
	c     *Collector
	chunk chunk
	split sse.Splitter

	held   []byte // what has come and not yet gone on
	from   int64  // offset of held in the stream
	came   int64  // bytes that have come
	forced bool   // the server tells usage on events that nobody asked it for
	dropLF bool   // an event that was dropped ended with a CR: an LF that follows goes too

	joined   []byte
	segments []segment
}

// NewHider returns a Hider for the answer to a request that Ask told w of.
func NewHider(w Wish, c *Collector) *Hider {
	return &Hider{c: c, chunk: chunk{hides: true, wish: w}, split: sse.Splitter{Max: maxEvent}}
}

// AppendStream appends what may go on of an event stream now that p has come: its whole events.
func (h *Hider) AppendStream(dst, p []byte) []byte {
	at, text := h.came, p // text begins at offset at
	if len(h.held) > 0 {
		h.held = append(h.held, p...)
		at, text = h.from, h.held
	}
	h.came += int64(len(p))
	gone := at
	h.split.Push(p)
	var ev sse.Event
	for h.split.Next(&ev) {
		begin := max(ev.Start, at) // an event too long to be held has gone in part
		dst = h.appendGap(dst, text[gone-at:begin-at])
		dst = h.appendEvent(dst, text[begin-at:ev.End-at], ev.Oversized)
		gone = ev.End
	}
	if safe := max(h.split.Safe(), gone); safe > gone {
		dst = h.appendGap(dst, text[gone-at:safe-at])
		gone = safe
	}
	if h.came-gone > maxEvent {
		dst = h.appendGap(dst, text[gone-at:])
		gone = h.came
	}
	h.held, h.from = append(h.held[:0], text[gone-at:]...), gone
	return dst
}

// appendGap appends what is no event.
func (h *Hider) appendGap(dst, gap []byte) []byte {
	if len(gap) > 0 {
		if h.dropLF && gap[0] == '\n' {
			gap = gap[1:]
		}
		h.dropLF = false
	}
	return append(dst, gap...)
}

// AppendRest appends what is left of a stream that has ended. An event without its blank line is looked at as any other. Where the stream
// was cut inside of one that tells what is hidden, that beginning stays away: it is nothing to anybody.
func (h *Hider) AppendRest(dst []byte) []byte {
	rest := h.held
	h.held = nil
	var ev sse.Event
	if !h.split.Finish(&ev) {
		return h.appendGap(dst, rest)
	}
	begin := max(ev.Start-h.from, 0)
	dst = h.appendGap(dst, rest[:begin])
	rest = rest[begin:]
	if data := h.data(rest); !ev.Oversized && !h.c.mark(data) && !h.chunk.read(data) {
		if h.mentions(rest) {
			return dst
		}
		return append(dst, rest...)
	}
	return h.appendEvent(dst, rest, ev.Oversized)
}

// mentions tells whether the beginning of an event may hold something that is hidden.
func (h *Hider) mentions(raw []byte) bool {
	return !h.chunk.wish.IDs && bytes.Contains(raw, []byte("token_id")) ||
		h.chunk.wish.hides() && bytes.Contains(raw, []byte("reasoning")) ||
		!h.chunk.wish.Logprobs && (bytes.Contains(raw, []byte("logprobs")) || bytes.Contains(raw, []byte("log_probs")))
}

// AppendWhole appends an answer that is no stream; what is no JSON object stays as it is.
func (h *Hider) AppendWhole(dst, body []byte) []byte {
	h.c.done = true
	if !h.chunk.read(body) {
		h.c.unreadable = true
		return append(dst, body...)
	}
	h.c.take(&h.chunk, false)
	return appendEdited(dst, body, h.chunk.edits)
}

// appendEvent appends the lines of one event, or what is left of them.
func (h *Hider) appendEvent(dst, raw []byte, oversized bool) []byte {
	h.dropLF = false
	if oversized {
		h.c.Overflow()
		return append(dst, raw...)
	}
	data := h.data(raw)
	if h.c.mark(data) {
		return append(dst, raw...)
	}
	k := &h.chunk
	if !k.read(data) {
		h.c.unreadable = true
		return append(dst, raw...)
	}
	h.c.take(k, true)
	if k.choices > 0 && k.usage != nil && k.finish == nil && !k.wish.ContinuousUsage {
		h.forced = true
	}
	switch {
	case k.excess(h.forced):
		h.dropLF = raw[len(raw)-1] == '\r'
		return appendComments(dst, raw)
	case len(k.edits) == 0:
		return append(dst, raw...)
	case len(h.segments) == 1:
		at := h.segments[0].raw
		dst = append(dst, raw[:at]...)
		dst = appendEdited(dst, data, k.edits)
		return append(dst, raw[at+len(data):]...)
	}
	return appendSegmented(dst, raw, h.segments, k.edits)
}

// data returns the data of an event, its lines joined by LF, and notes where they lie.
func (h *Hider) data(raw []byte) []byte {
	h.segments, h.joined = h.segments[:0], h.joined[:0]
	at := 0
	for i := 0; i < len(raw); {
		end := lineEnd(raw, i)
		if value, ok := dataOf(raw[i:end]); ok {
			if len(h.segments) > 0 {
				at++ // the LF between them
			}
			h.segments = append(h.segments, segment{at: at, raw: end - len(value), n: len(value)})
			at += len(value)
		}
		i = end + 1
	}
	if len(h.segments) == 0 {
		return nil
	}
	if s := h.segments[0]; len(h.segments) == 1 {
		return raw[s.raw : s.raw+s.n]
	}
	for i, s := range h.segments {
		if i > 0 {
			h.joined = append(h.joined, '\n')
		}
		h.joined = append(h.joined, raw[s.raw:s.raw+s.n]...)
	}
	return h.joined
}

// dataOf returns the value of a data line.
func dataOf(line []byte) ([]byte, bool) {
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(value) == 0 {
		return value, ok
	}
	if value, ok = bytes.CutPrefix(value, []byte(":")); ok {
		value = bytes.TrimPrefix(value, []byte(" "))
	}
	return value, ok
}

// lineEnd returns the index of the first CR or LF at or behind i.
func lineEnd(raw []byte, i int) int {
	end := len(raw)
	if n := bytes.IndexByte(raw[i:], '\n'); n >= 0 {
		end = i + n
	}
	if n := bytes.IndexByte(raw[i:end], '\r'); n >= 0 {
		end = i + n
	}
	return end
}

// appendComments appends the comment lines of an event.
func appendComments(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		end := lineEnd(raw, i)
		next := min(end+1, len(raw))
		if end+1 < len(raw) && raw[end] == '\r' && raw[end+1] == '\n' {
			next++
		}
		if raw[i] == ':' {
			dst = append(dst, raw[i:next]...)
		}
		i = next
	}
	return dst
}
