package capture

import (
	"errors"
	"math/bits"
	"slices"

	"rolltap/internal/jsonx"
)

// A line must never be longer than MaxLine, or readers would call it damage. JSON does not grow when it is compacted, but
// escaping can make six bytes of one, so each text is bounded by what it takes in the line, and all members together by what
// a line has. Whatever a bound cuts off is named in rolltap.truncated.
const (
	textMin  = 16 << 20 // escaped bytes that every text may take: a small body stays whole whatever is in it
	restMax  = 16 << 20 // of a line, for what stands beside the bodies: names and header values, a few KiB as a rule
	widest   = 6        // bytes of the longest escape, \u0000
	fitPiece = 64 << 10
)

// textMax is how many escaped bytes the text of a body may take that itself may have size bytes. Text with an escape for
// every fourth byte stays whole.
func textMax(size int64) int64 {
	size = min(size, MaxLine)
	return max(textMin, size+size/4)
}

// allot gives each body its place in the line. What is parsed goes first: the text beside it says the same once more.
func (e *encoder) allot() {
	r := e.r
	e.request.object = isObject(r.Request) && e.take(r.Request.Len(), "request")
	e.response.object = !r.Streamed && isObject(r.Response) && e.take(r.Response.Len(), "response")
	e.fold = r.Streamed && isObject(r.Folded) && e.take(r.Folded.Len(), "response")

	texts := e.wantsText(r.Request, e.request.object) + e.wantsText(r.Response, e.response.object)
	if texts == 0 {
		return
	}
	room := e.room / int64(texts)
	e.request.text = e.allotText(r.Request, e.request.object, room, "request")
	e.response.text = e.allotText(r.Response, e.response.object, room, "response")
}

// share is what the line has room for of a body.
type share struct {
	object bool  // it is a JSON object, and there is room for it
	text   int64 // bytes of it that are kept as text
}

// take reports whether there is room for n bytes; else the member is named as cut.
func (e *encoder) take(n int64, name string) bool {
	if n > e.room {
		e.lost = append(e.lost, name)
		return false
	}
	e.room -= n
	return true
}

// wantsText is 1 when the policy wants the text of this body.
func (e *encoder) wantsText(c *Copy, object bool) int {
	if c == nil || c.Len() == 0 || e.r.Raw == RawNever || object && e.r.Raw != RawAlways {
		return 0
	}
	return 1
}

// allotText returns how many bytes of the copy are kept as text.
func (e *encoder) allotText(c *Copy, object bool, room int64, name string) int64 {
	if e.wantsText(c, object) == 0 || e.err != nil {
		return 0
	}
	return e.fitText(c, min(room, textMax(c.o.Max)), name)
}

// fitText takes room for the text of a copy, and returns how many bytes of it fit into limit; else the member is named as cut.
func (e *encoder) fitText(c *Copy, limit int64, name string) int64 {
	e.room -= min(limit, widest*c.Len())
	keep, err := c.fitText(limit)
	if e.err = err; keep < c.Len() {
		e.lost = append(e.lost, name)
	}
	return keep
}

// truncated lists what the record does not hold whole, each once.
func (e *encoder) truncated() []string {
	var names []string
	for _, m := range [...]struct {
		name string
		c    *Copy
	}{{"request", e.r.Request}, {"response", e.r.Response}} {
		if m.c != nil && m.c.Truncated() || slices.Contains(e.lost, m.name) {
			names = append(names, m.name)
		}
	}
	for _, name := range slices.Concat(e.r.Truncated, e.lost) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// fitText returns how many bytes of the copy, up to the end of a character, take at most limit bytes as the inside of a JSON
// string. It reads the copy only when its length does not say that already.
func (c *Copy) fitText(limit int64) (int64, error) {
	n := c.Len()
	if widest*n <= limit {
		return n, nil
	}
	f := fitter{left: limit}
	if err := c.pieces(make([]byte, fitPiece), n, f.add); err != nil && err != errFull {
		return 0, err
	}
	return f.end(n), nil
}

var errFull = errors.New("no more room")

// fitter counts what fits. It escapes into one small buffer, so that what is counted is what will be written.
type fitter struct {
	text jsonx.TextEscaper
	out  []byte
	left int64 // escaped bytes that there is room for
	seen int64 // bytes that were escaped, or are held back as the beginning of a character
	keep int64 // bytes that were escaped
	full bool
}

// add counts p, errFull when not all of it fits.
func (f *fitter) add(p []byte) error {
	if f.try(p) {
		return nil
	}
	f.full = true
	for step := 1 << bits.Len(uint(len(p))) / 2; step > 0; step /= 2 { // halves make up the longest beginning that fits
		if step <= len(p) && f.try(p[:step]) {
			p = p[step:]
		}
	}
	return errFull
}

// end returns how much fits of the n bytes that there are.
func (f *fitter) end(n int64) int64 {
	if !f.full && int64(len(f.text.Finish(f.out[:0]))) <= f.left {
		return n
	}
	return f.keep
}

// try escapes p, or does nothing when there is no room for it.
func (f *fitter) try(p []byte) bool {
	text := f.text
	f.out = text.Append(f.out[:0], p)
	if int64(len(f.out)) > f.left {
		return false
	}
	f.text = text
	f.left -= int64(len(f.out))
	f.seen += int64(len(p))
	f.keep = f.seen - int64(text.Held())
	return true
}
