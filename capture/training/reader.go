package training

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"rolltap/internal/jsonx"
	"rolltap/internal/tokendigest"
)

// MaxLine is the longest line that is read or written, in bytes. A longer one is damage.
const MaxLine = 256 << 20

const readSize = 128 << 10

// Damage is a line that is no entry.
type Damage struct {
	Line   int   // in the file, from 1
	Offset int64 // of its first byte
	Last   bool  // nothing but white space follows
	Torn   bool  // it is the last one and is no JSON: it was being written when somebody died, and nobody was told of it
	Err    error // wraps ErrEntry when the line is JSON
}

func (d *Damage) Error() string { return fmt.Sprintf("line %d: %v", d.Line, d.Err) }
func (d *Damage) Unwrap() error { return d.Err }

var (
	errNoJSON  = errors.New("no JSON")
	errTooLong = errors.New("longer than a line may be")
)

// Reader reads the entries of a file one after the other, in bounded memory. It is not safe for concurrent use.
type Reader struct {
	f         io.ReaderAt
	off, size int64 // of what was not read from f yet, and of what there is
	buf, rest []byte
	line      int
	sum       hash.Hash
	c         jsonx.Compactor
	loc       locator
	space     []byte // trailing white space of the line so far
	newline   bool   // the last line had one
}

// NewReader reads what f has from the offset, which must be the beginning of a line, up to size.
func NewReader(f io.ReaderAt, offset, size int64) *Reader {
	return &Reader{f: f, off: offset, size: size, buf: make([]byte, readSize), sum: sha256.New(), newline: true}
}

// Next returns the next entry, io.EOF behind the last one. After a *Damage it can be called again for what follows; after any
// other error it cannot. Blank lines count but are none.
func (r *Reader) Next() (*View, error) {
	for {
		v, blank, err := r.next()
		if err != nil || !blank {
			return v, err
		}
	}
}

// Offset is where the next line begins.
func (r *Reader) Offset() int64 { return r.off - int64(len(r.rest)) }

func (r *Reader) fill() error {
	n := int(min(int64(len(r.buf)), r.size-r.off))
	if n == 0 {
		return io.EOF
	}
	if _, err := r.f.ReadAt(r.buf[:n], r.off); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // the file became shorter
		}
		return err
	}
	r.off += int64(n)
	r.rest = r.buf[:n]
	return nil
}

func (r *Reader) next() (v *View, blank bool, err error) {
	r.c.Reset()
	r.sum.Reset()
	r.space = r.space[:0]
	view := newView()
	view.Line = r.line + 1
	view.Offset = r.Offset()
	r.loc.reset(view.set)
	var bad error
	blank = true
	read := int64(0)
	for end := false; !end; {
		if len(r.rest) == 0 {
			switch err := r.fill(); {
			case err == io.EOF && read == 0:
				return nil, false, io.EOF
			case err == io.EOF:
				r.newline, end = false, true
				continue
			case err != nil:
				return nil, false, err
			}
		}
		p := r.rest
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			p, end, r.newline = p[:i], true, true
			r.rest = r.rest[i+1:]
		} else {
			r.rest = nil
		}
		at := view.Offset + read
		read += int64(len(p))
		if end {
			read++
		}
		switch {
		case bad != nil:
		case read > MaxLine:
			bad = errTooLong
		default:
			bad = r.piece(p, at, &view, &blank)
		}
	}
	r.line++
	if blank && bad == nil {
		return nil, true, nil
	}
	if bad == nil {
		if kind, err := r.c.Finish(); err != nil {
			bad = errNoJSON
		} else if kind != jsonx.KindObject {
			bad = fmt.Errorf("%w: no object", ErrEntry)
		}
	}
	if bad == nil {
		r.sum.Sum(view.Sum[:0])
		if bad = view.check(); bad == nil {
			return &view, false, nil
		}
	}
	d := &Damage{Line: view.Line, Offset: view.Offset, Err: bad}
	if d.Last, err = r.atEnd(); err != nil {
		return nil, false, err
	}
	d.Torn = d.Last && bad == errNoJSON
	return nil, false, d
}

// piece takes a part of a line. White space at the line's ends is no part of the entry.
func (r *Reader) piece(p []byte, at int64, v *View, blank *bool) error {
	if *blank {
		trimmed := bytes.TrimLeft(p, " \t\r")
		at += int64(len(p) - len(trimmed))
		if p = trimmed; len(p) == 0 {
			return nil
		}
		*blank = false
		if p[0] == 0xef { // a byte-order mark, which readers of JSON lines do not expect
			return errNoJSON
		}
		v.Offset = at
	}
	body := bytes.TrimRight(p, " \t\r")
	if len(body) > 0 {
		if len(r.space) > 0 {
			r.sum.Write(r.space)
			r.space = r.space[:0]
		}
		r.sum.Write(body)
		v.Size = at + int64(len(body)) - v.Offset
	}
	if len(r.space)+len(p)-len(body) > smallMax {
		return errNoJSON
	}
	r.space = append(r.space, p[len(body):]...)
	if err := r.c.Check(p); err != nil {
		return errNoJSON
	}
	r.loc.feed(p, at)
	return nil
}

// atEnd reports whether nothing but white space follows.
func (r *Reader) atEnd() (bool, error) {
	rest, off := r.rest, r.off
	for {
		if len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
			return false, nil
		}
		n := int(min(4096, r.size-off))
		if n == 0 {
			return true, nil
		}
		rest = make([]byte, n)
		if _, err := r.f.ReadAt(rest, off); err != nil {
			return false, err
		}
		off += int64(n)
	}
}

// Numbers walks the numbers of an array in a file, each as it is spelled.
type Numbers struct {
	r    io.Reader
	buf  []byte
	rest []byte
	text []byte
	err  error
	open bool // behind the bracket
	done bool
}

// Numbers walks the array in f at this place.
func (s Span) Numbers(f io.ReaderAt) *Numbers {
	n := &Numbers{r: s.Open(f), buf: make([]byte, 16<<10)}
	if n.done = s.Count == 0; s.Kind != jsonx.KindArray {
		n.done, n.err = true, fmt.Errorf("%w: no array", ErrEntry)
	}
	return n
}

// Open returns the value's text.
func (s Span) Open(f io.ReaderAt) io.Reader { return io.NewSectionReader(f, s.Offset, s.Size) }

// Next goes to the next number.
func (n *Numbers) Next() bool {
	if n.done {
		return false
	}
	n.text = n.text[:0]
	for {
		if len(n.rest) == 0 {
			m, err := n.r.Read(n.buf)
			if m == 0 {
				if err != io.EOF {
					n.err = err
				}
				n.done = true
				return false
			}
			n.rest = n.buf[:m]
		}
		for i, b := range n.rest {
			switch {
			case b-'0' <= 9, b == '-', b == '+', b == '.', b == 'e', b == 'E':
				n.text = append(n.text, b)
			case b == ',' || b == ']':
				n.rest = n.rest[i+1:]
				n.done = b == ']'
				if len(n.text) == 0 {
					n.fail()
				}
				return n.err == nil
			case b == ' ' || b == '\t' || b == '\r':
			case b == '[' && !n.open:
				n.open = true
			default:
				n.fail()
				return false
			}
			if len(n.text) > 400 {
				n.fail()
				return false
			}
		}
		n.rest = nil
	}
}

func (n *Numbers) fail() {
	n.done, n.err = true, fmt.Errorf("%w: an element is no number", ErrEntry)
}

// Text is the number. It is valid until Next.
func (n *Numbers) Text() []byte { return n.text }

// Err tells what ended the walk before its time.
func (n *Numbers) Err() error { return n.err }

// checkArrays holds the rules about what the arrays of v contain.
func (v *View) checkArrays(f io.ReaderAt) error {
	for _, s := range [...]Span{v.Prompt, v.Generation} {
		n := s.Numbers(f)
		for n.Next() {
			if _, ok := tokendigest.ID(n.Text()); !ok {
				return fmt.Errorf("%w: a token id is no integer from 0 to 2^64-1", ErrEntry)
			}
		}
		if n.Err() != nil {
			return n.Err()
		}
	}
	n := v.LogProbs.Numbers(f)
	for n.Next() {
	}
	return n.Err()
}
