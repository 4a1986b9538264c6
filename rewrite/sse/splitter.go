package sse

import (
	"bytes"

	"rolltap/internal/grow"
)

// defaultMax is the Max of a Splitter that sets none, in bytes.
const defaultMax = 16 << 20

const (
	mark      = "\xef\xbb\xbf" // a byte-order mark may stand in front of the stream
	dataField = "data"
	nameField = "event"
	failField = "error" // of older llama.cpp: what is wrong, where others have an event of this name (wire.md 2.3)
)

// Event is one event of a stream. Name and Data are valid until the next call of Next, Push or Finish.
type Event struct {
	Name    []byte // the last event field, empty if there is none
	Data    []byte // the data lines, joined with LF
	HasData bool   // there is a data line, maybe an empty one

	// Start and End are the event's place in the stream in bytes, [Start,End), with its blank line. An LF
	// that follows a CR only in a later push lies after End.
	Start, End int64

	// Oversized says that the event is longer than Max. It has no Data, and its Name only if that came
	// within the first Max bytes.
	Oversized bool
}

// Splitter cuts a stream into events. Push some bytes, then call Next until it returns false, and so on;
// call Finish at the end of the stream.
//
// A CR at the end of a push ends its line at once, and an LF that follows is swallowed: waiting for it would
// delay the last event. An event that lies whole in the pushed bytes is not copied, unless it has several
// data lines. In steady state nothing is allocated.
//
// The zero value is ready. A Splitter is not safe for concurrent use.
type Splitter struct {
	// Max is how long an event may be, in bytes of the stream; it bounds what a Splitter keeps. Zero or
	// less means 16 MiB. Set it before the first push.
	Max int

	p    []byte // what was pushed and not yet consumed is p[i:]
	i    int
	lf   int   // index of the first LF in p that is not before i, len(p) if there is none; stale if before i
	base int64 // offset of p[0] in the stream

	swallow  bool // the last line ended with a CR: an LF that follows belongs to it
	marked   int  // how much of the byte-order mark was met; len(mark) when that is settled
	safe     int64
	comments int64
	exceeded bool // an event was longer than Max

	// The line in progress, as far as earlier pushes have it. Comments and lines of oversized events are
	// not kept in line.
	begun   bool
	comment bool
	first   int64 // its offset
	line    []byte

	// The event in progress. name and data are parts of p or of the buffers.
	open      bool
	start     int64
	oversized bool
	name      []byte
	data      []byte
	hasData   bool
	ownName   bool // name is part of nameBuf
	ownData   bool // data is dataBuf[dataFrom:]
	nameBuf   []byte
	dataBuf   []byte
	dataFrom  int
}

// Push appends p to the stream. It must stay unchanged until Next has returned false.
func (s *Splitter) Push(p []byte) {
	if s.i < len(s.p) {
		// Next was not called often enough. Rather slow than wrong.
		s.own()
		p = append(bytes.Clone(s.p[s.i:]), p...)
		s.base += int64(s.i)
	} else {
		s.base += int64(len(s.p))
	}
	s.p, s.i, s.lf = p, 0, -1
}

// Next goes to the next complete event that has data or a name. Blocks without either are skipped. When it
// returns false, the pushed bytes are used up and free again.
func (s *Splitter) Next(ev *Event) bool {
	for s.i < len(s.p) {
		if s.marked < len(mark) {
			s.skipMark()
			continue
		}
		if s.swallow {
			s.swallow = false
			if s.p[s.i] == '\n' {
				s.i++
				s.settle()
				continue
			}
		}
		from, end := s.i, s.lineEnd()
		if end < 0 {
			s.keep(s.p[from:])
			break
		}
		s.i = end + 1
		stop := s.base + int64(s.i) // for Max an LF after a CR does not count: it may come later
		if s.p[end] == '\r' {
			if s.i == len(s.p) {
				s.swallow = true
			} else if s.p[s.i] == '\n' {
				s.i++
			}
		}
		if s.endLine(s.p[from:end], s.base+int64(from), stop) && s.deliver(ev) {
			s.settle()
			return true
		}
		s.settle()
	}
	s.own()
	s.base += int64(len(s.p))
	s.p, s.i = nil, 0
	return false
}

// Finish ends the stream: it gives the event that lacks its blank line, if it has data or a name.
func (s *Splitter) Finish(ev *Event) bool {
	if s.Next(ev) {
		return true // more is left; the caller missed it
	}
	if s.begun && !s.comment {
		s.endLine(nil, s.base, s.base)
	}
	s.begun, s.comment = false, false
	found := s.open && s.deliver(ev)
	s.safe = s.base
	return found
}

// Size is about how much memory is kept for an event that comes in pieces, in bytes.
func (s *Splitter) Size() int { return cap(s.line) + cap(s.dataBuf) }

// Safe returns an offset once Next has returned false. In front of it there are only complete events,
// complete comment lines outside of events, blank lines and the byte-order mark. What was pushed behind it
// may be the beginning of an event. After Finish that is nothing.
func (s *Splitter) Safe() int64 { return s.safe }

// Comments returns the number of complete comment lines so far.
func (s *Splitter) Comments() int64 { return s.comments }

// Oversized reports whether an event longer than Max was met; the one in progress counts.
func (s *Splitter) Oversized() bool { return s.exceeded }

// skipMark looks for the byte-order mark, which may be split too.
func (s *Splitter) skipMark() {
	if s.p[s.i] == mark[s.marked] {
		s.i++
		if s.marked++; s.marked == len(mark) {
			s.settle()
		}
		return
	}
	if s.marked > 0 { // it was the beginning of a line after all
		s.begun, s.first = true, 0
		s.line = append(s.line[:0], mark[:s.marked]...)
	}
	s.marked = len(mark)
}

// settle moves safe if no event is in progress. It is called between lines only.
func (s *Splitter) settle() {
	if !s.open {
		s.safe = s.base + int64(s.i)
	}
}

// lineEnd returns the index of the next CR or LF, or -1. Neither search looks at a byte twice: the place of
// the next LF is remembered, and the CR is looked for in front of it only.
func (s *Splitter) lineEnd() int {
	if s.lf < s.i {
		if n := bytes.IndexByte(s.p[s.i:], '\n'); n >= 0 {
			s.lf = s.i + n
		} else {
			s.lf = len(s.p)
		}
	}
	if n := bytes.IndexByte(s.p[s.i:s.lf], '\r'); n >= 0 {
		return s.i + n
	}
	if s.lf == len(s.p) {
		return -1
	}
	return s.lf
}

// keep stores rest, the beginning or middle of a line that the push leaves unfinished.
func (s *Splitter) keep(rest []byte) {
	stop := s.base + int64(len(s.p))
	s.i = len(s.p)
	if !s.begun {
		s.begun, s.first = true, stop-int64(len(rest))
		s.comment = rest[0] == ':'
		s.line = s.line[:0]
	}
	if !s.comment && !s.open {
		s.begin(s.first)
	}
	if s.open {
		s.limit(stop)
	}
	if !s.comment && !s.oversized {
		s.line = grow.Append(s.line, rest)
	}
}

// endLine takes a line without its end; the front of it may have come before. The line lies at offset from,
// unless it did, and ends before stop. endLine reports whether it was the blank line of an event.
func (s *Splitter) endLine(line []byte, from, stop int64) bool {
	begun := s.begun
	s.begun = false
	if s.open {
		s.limit(stop)
	}
	if len(line) == 0 && !begun {
		return s.open
	}
	comment := s.comment
	if !begun {
		s.first, comment = from, line[0] == ':'
	}
	if comment {
		s.comments++
		s.comment = false
		return false
	}
	if !s.open {
		s.begin(s.first)
		s.limit(stop)
	}
	if s.oversized {
		return false
	}
	if begun {
		s.line = grow.Append(s.line, line)
		line = s.line
	}
	s.field(line, begun)
	return false
}

func (s *Splitter) begin(first int64) { s.open, s.start = true, first }

// limit gives the event in progress up if it is longer than Max.
func (s *Splitter) limit(stop int64) {
	most := int64(s.Max)
	if most <= 0 {
		most = defaultMax
	}
	if s.oversized || stop-s.start <= most {
		return
	}
	s.oversized, s.exceeded = true, true
	s.data, s.hasData, s.ownData = nil, false, false
	s.line, s.dataBuf = nil, nil
}

// field takes a line of an event. kept says that it is s.line and no part of p.
func (s *Splitter) field(line []byte, kept bool) {
	if value, ok := cutField(line, nameField); ok {
		s.name, s.ownName = value, false
		if kept {
			s.takeName()
		}
		return
	}
	value, ok := cutField(line, dataField)
	if !ok {
		value, ok = s.failure(line)
	}
	switch {
	case !ok: // id, retry and unknown ones mean nothing here
	case s.hasData:
		s.takeData()
		s.dataBuf = append(s.dataBuf, '\n')
		s.dataBuf = grow.Append(s.dataBuf, value)
		s.data = s.dataBuf[s.dataFrom:]
	case kept: // the buffers change places, which saves copying a long line
		s.dataFrom = len(line) - len(value)
		s.dataBuf, s.line = line, s.dataBuf[:0]
		s.data, s.hasData, s.ownData = value, true, true
	default:
		s.data, s.hasData, s.ownData = value, true, false
	}
}

// failure takes a line that is an error field with an object as the data of an event that is named so.
func (s *Splitter) failure(line []byte) ([]byte, bool) {
	value, ok := cutField(line, failField)
	if !ok || len(value) == 0 || value[0] != '{' {
		return nil, false
	}
	s.nameBuf = append(s.nameBuf[:0], failField...)
	s.name, s.ownName = s.nameBuf, true
	return value, true
}

// cutField returns the value of line if it is the field name: after a colon and at most one space. A line
// without a colon is a field without value.
func cutField(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	value := line[len(name):]
	switch {
	case len(value) == 0:
		return value, true
	case value[0] != ':':
		return nil, false
	case len(value) > 1 && value[1] == ' ':
		return value[2:], true
	default:
		return value[1:], true
	}
}

// own copies what the event in progress still has in p.
func (s *Splitter) own() {
	if s.open {
		s.takeName()
		if s.hasData {
			s.takeData()
		}
	}
}

func (s *Splitter) takeName() {
	if !s.ownName {
		s.nameBuf = append(s.nameBuf[:0], s.name...)
		s.name, s.ownName = s.nameBuf, true
	}
}

func (s *Splitter) takeData() {
	if !s.ownData {
		s.dataBuf, s.dataFrom = append(s.dataBuf[:0], s.data...), 0
		s.data, s.ownData = s.dataBuf, true
	}
}

// deliver ends the event in progress and reports whether there is anything to give. The buffers are not
// written to before the next call of a method.
func (s *Splitter) deliver(ev *Event) bool {
	found := s.oversized || s.hasData || len(s.name) > 0
	if found {
		*ev = Event{
			Name: s.name, Data: s.data, HasData: s.hasData,
			Start: s.start, End: s.base + int64(s.i),
			Oversized: s.oversized,
		}
	}
	s.open, s.oversized, s.hasData = false, false, false
	s.name, s.data = nil, nil
	s.ownName, s.ownData = false, false
	return found
}
