package capture

import (
	"io"
	"slices"
	"strconv"
)

// holeSpace is more than writer and seq take.
const holeSpace = 64

// line is an encoded record that lacks its writer and seq: they are known only when the line is queued, so that the order
// in the file is the order of seq, while encoding runs in parallel.
//
//	buf:   {"model_call_id":…,"request":│,"response":│,…,"writer":"│","method":…}\n
//	                                   cut          cut           hole                 and one more in upstream
type line struct {
	buf    []byte
	hole   int   // index in buf where writer and seq belong
	filled bool  // they are there
	cuts   []cut // where the content of copies belongs, ascending; none when the line is built in memory
	writer string
	seq    int64
	size   int64 // estimated length, exact without cuts
	record *Record
	lines  *Budget // what buf took of it; nil when nothing
	taken  int64

	truncated []string // bodies that it does not hold whole, as it says itself
}

// cut is a place in line.buf where a copy is inserted.
type cut struct {
	at   int
	body *Copy
	text int64 // so many bytes of it as escaped text between quotes; 0 is all as the compacted JSON value
}

// appendTo appends the whole line; only for lines without cuts.
func (l *line) appendTo(dst []byte) []byte {
	if l.filled {
		return append(dst, l.buf...)
	}
	dst = append(dst, l.buf[:l.hole]...)
	dst = l.appendHole(dst)
	return append(dst, l.buf[l.hole:]...)
}

// whole fills the hole in place and returns the whole line, which is the line's until release; only for lines without cuts.
// What stands behind the hole is short.
func (l *line) whole() []byte {
	if l.filled {
		return l.buf
	}
	l.filled = true
	var scratch [holeSpace]byte
	fill := l.appendHole(scratch[:0])
	l.buf = slices.Insert(l.buf, l.hole, fill...)
	return l.buf
}

func (l *line) appendHole(dst []byte) []byte {
	dst = append(dst, l.writer...)
	dst = append(dst, `","seq":`...)
	return strconv.AppendInt(dst, l.seq, 10)
}

// writeTo writes the whole line. scratch is used for the pieces of copies.
func (l *line) writeTo(w io.Writer, scratch []byte) error {
	at, hole := 0, true
	write := func(end int) error {
		if hole && l.hole <= end {
			if _, err := w.Write(l.buf[at:l.hole]); err != nil {
				return err
			}
			if _, err := w.Write(l.appendHole(scratch[:0])); err != nil {
				return err
			}
			at, hole = l.hole, false
		}
		_, err := w.Write(l.buf[at:end])
		at = end
		return err
	}
	for _, c := range l.cuts {
		if err := write(c.at); err != nil {
			return err
		}
		var err error
		if c.text > 0 {
			err = c.body.writeText(w, scratch, c.text)
		} else {
			err = c.body.writeCompact(w, scratch)
		}
		if err != nil {
			return err
		}
	}
	return write(len(l.buf))
}

// release gives back the copies that a streamed line holds on to, and what it took of a budget.
func (l *line) release() {
	l.lines.give(l.taken)
	l.lines, l.taken = nil, 0
	if l.record != nil {
		l.record.release()
		l.record = nil
	}
}
