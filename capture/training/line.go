package training

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"rolltap/internal/jsonx"
)

// line is an encoded entry: buf with the large values cut in, in this order and without a newline.
type line struct {
	rollout, call string
	buf           []byte
	cuts          []cut
	size          int64
	sum           [sha256.Size]byte // of all of it
	cand          Candidate
	indexed       bool // cand may be looked up
}

type cut struct {
	at   int
	raw  []byte
	from func(io.Writer) error // in place of raw
}

// inlineMax is the size up to which a value is copied into the line. Larger ones are written from where they are.
const inlineMax = 32 << 10

func (l *line) value(raw []byte) {
	if len(raw) <= inlineMax {
		l.buf = append(l.buf, raw...)
		return
	}
	l.cuts = append(l.cuts, cut{at: len(l.buf), raw: raw})
}

// measure sets size and sum. It reads the line once, streamed values included.
func (l *line) measure() error {
	h := sha256.New()
	c := &counter{w: h}
	if err := l.write(c, true); err != nil {
		return err
	}
	l.size = c.n
	if l.size >= MaxLine {
		return fmt.Errorf("%w: a line of %d bytes", ErrEntry, l.size)
	}
	h.Sum(l.sum[:0])
	return nil
}

// write writes the line without a newline. Streamed values are judged when check is set.
func (l *line) write(w io.Writer, check bool) error {
	at := 0
	for _, c := range l.cuts {
		if _, err := w.Write(l.buf[at:c.at]); err != nil {
			return err
		}
		at = c.at
		if c.from == nil {
			if _, err := w.Write(c.raw); err != nil {
				return err
			}
			continue
		}
		f := &flatWriter{w: w, check: check}
		if err := c.from(f); err != nil {
			return err
		}
		if err := f.finish(); err != nil {
			return err
		}
	}
	_, err := w.Write(l.buf[at:])
	return err
}

// appendTo appends the whole line and its newline; only for lines without streamed values.
func (l *line) appendTo(dst []byte) []byte {
	at := 0
	for _, c := range l.cuts {
		dst = append(dst, l.buf[at:c.at]...)
		dst = append(dst, c.raw...)
		at = c.at
	}
	return append(append(dst, l.buf[at:]...), '\n')
}

// streamed reports whether a part of the line is not in memory.
func (l *line) streamed() bool {
	return slices.ContainsFunc(l.cuts, func(c cut) bool { return c.from != nil })
}

// stream writes the line and its newline in large pieces, and fails when it is not what was measured.
func (l *line) stream(w io.Writer) error {
	h := sha256.New()
	b := bufio.NewWriterSize(w, 256<<10)
	if err := l.write(io.MultiWriter(b, h), false); err != nil {
		return err
	}
	if [sha256.Size]byte(h.Sum(nil)) != l.sum {
		return fmt.Errorf("%w: routed experts changed while they were written", ErrEntry)
	}
	b.WriteByte('\n')
	return b.Flush()
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// flatWriter passes on a JSON value without its white space and refuses what could be spelled in two ways.
type flatWriter struct {
	w      io.Writer
	check  bool
	inText bool // of a string, whose end is the next quote since there are no escapes
	c      jsonx.Compactor
	buf    []byte
}

func (f *flatWriter) Write(p []byte) (int, error) {
	if f.check && !f.plain(p) {
		return 0, fmt.Errorf("%w: streamed routed experts are more than arrays of integers and plain strings", ErrEntry)
	}
	var err error
	if f.buf, err = f.c.Append(f.buf[:0], p); err != nil {
		return 0, fmt.Errorf("%w: routed experts are no JSON", ErrEntry)
	}
	if _, err := f.w.Write(f.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *flatWriter) plain(p []byte) bool {
	for _, b := range p {
		switch {
		case b == '"':
			f.inText = !f.inText
		case f.inText:
			if b == '\\' {
				return false
			}
		case b-'0' <= 9, b == ',', b == '[', b == ']', b == '-', b == ' ', b == '\n', b == '\t', b == '\r', b == 'n', b == 'u', b == 'l':
		default:
			return false
		}
	}
	return true
}

func (f *flatWriter) finish() error {
	if _, err := f.c.Finish(); err != nil {
		return fmt.Errorf("%w: routed experts are no JSON", ErrEntry)
	}
	return nil
}
