package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"rolltap/internal/jsonx"
)

// MaxLine is the longest line that is read, in bytes. A longer one is damage.
const MaxLine = 256 << 20

const readBuf = 64 << 10

// What Line.Damage can be.
var (
	ErrNoObject = errors.New("no JSON object")
	ErrNoJSON   = errors.New("invalid JSON")
	ErrTooLong  = fmt.Errorf("longer than %d bytes", MaxLine)
	ErrHole     = errors.New("NUL bytes and nothing else")
)

// Lines reads one rollout's data file line by line, however long it is, in memory for its longest line. It takes no lock and
// may run while the file is written to. It is used by one goroutine.
type Lines struct {
	f       io.ReadCloser // nil when the file does not exist
	r       *bufio.Reader
	max     int
	long    []byte // collects a line that does not fit into r
	number  int    // of the line in progress
	index   int
	partial bool  // long holds the beginning of a line whose end was not there yet
	told    int64 // length of that beginning when it was returned as torn
	skip    bool  // the line in progress is longer than max
	beyond  int   // lines longer than this are outlined; 0: none
	refer   bool  // outlines have rests
	picks   Picks // what outlines have lists and objects of; nil: everything
	outline *outline
	start   int64  // where the line in progress begins in the file
	size    int64  // bytes of it that were read
	at      Cursor // where it was opened, when by ResumeLines
	err     error  // sticky
}

// Line is one line that is not blank.
type Line struct {
	Number int    // physical line, from 1
	Index  int    // call_index, from 0: damaged lines count, blank ones do not
	Raw    []byte // without white space around it and without NUL bytes in front; valid until the next call of Next; nil when too long
	Damage error  // why Raw is no record; nil when it is one
	Torn   bool   // the last line, without its newline: a write that was cut, or one that is going on
	Cut    bool   // Raw is an outline: long values in it are cut or left out
	Lossy  bool   // of an outline with rests (Lines.Refer): lists, objects or numbers in it are not whole

	hole    bool  // NUL bytes were in front
	start   int64 // where it begins in the file
	size    int64 // bytes of the file that it takes, newline included
	outline *outline
}

// Size is how many bytes of the file the line takes, its newline included.
func (l Line) Size() int64 { return l.size }

// OpenLines opens the data file of a rollout. A file that does not exist has no lines. The caller must Close it.
func OpenLines(dir, id string) (*Lines, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("%w: %q", ErrInvalidID, id)
	}
	f, err := openFile(dataPath(dir, id), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lines{}, nil
	}
	if err != nil {
		return nil, err
	}
	return newLines(f), nil
}

func newLines(f io.ReadCloser) *Lines {
	return &Lines{f: f, r: bufio.NewReaderSize(f, readBuf), max: MaxLine}
}

// Outline makes Next hand out lines longer than so many bytes as outlines, in memory for these bytes and some MiB, however long a
// line is. An outline is an object with the members of the line in their order and without white space; of what is too large
// for it, texts keep their beginning, lists and objects their first members and the last one. Numbers and short values are as
// they were written. It is called before the first Next.
func (l *Lines) Outline(beyond int) { l.beyond = beyond }

// Refer is Outline for readers that need all of a line: texts in its bodies, which are shortened, too, end in a rest (Rests) where they
// are not whole, and lists and objects have all of their members, unless they are many megabytes without their texts.
func (l *Lines) Refer(beyond int) { l.beyond, l.refer = beyond, true }

// Close closes the file.
func (l *Lines) Close() error {
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}

// Next returns the next line that is not blank, io.EOF at the end. At the end it may be called again to read what has been
// appended; a line that was returned as torn is then returned once more, with what came behind it, under the same number.
// Any other error is the file system's and final.
func (l *Lines) Next() (Line, error) {
	if l.f == nil {
		return Line{}, io.EOF
	}
	for l.err == nil {
		raw, whole, err := l.read()
		if err != nil && err != io.EOF {
			l.err = err
			break
		}
		if !whole && l.size == l.told {
			return Line{}, io.EOF // nothing new
		}
		line, blank := l.line(raw, !whole)
		if whole {
			l.number++
			if !blank {
				l.index++
			}
			l.start += l.size
			l.partial, l.told, l.skip, l.size = false, 0, false, 0
			if l.outline != nil {
				l.outline.done = true
			}
		} else {
			l.partial, l.told = true, l.size
		}
		if !blank {
			return line, nil
		}
		if !whole {
			return Line{}, io.EOF
		}
	}
	return Line{}, l.err
}

// read collects bytes up to a newline or the end of the file.
func (l *Lines) read() (raw []byte, whole bool, err error) {
	if !l.partial {
		if cap(l.long) > 4<<20 {
			l.long = nil
		}
		l.long = l.long[:0]
		if l.outline != nil && l.outline.done {
			l.outline = nil
		}
	}
	for {
		p, err := l.r.ReadSlice('\n')
		l.size += int64(len(p))
		if err == nil && len(l.long) == 0 && l.outline == nil && !l.skip && (l.beyond == 0 || len(p) <= l.beyond) {
			return p, true, nil // the usual case: no copy
		}
		switch {
		case l.skip:
		case l.size > int64(l.max):
			l.skip, l.long, l.outline = true, nil, nil
		case l.outline != nil:
			l.outline.add(p)
		case l.beyond > 0 && len(l.long)+len(p) > l.beyond:
			l.outline = newOutline()
			l.outline.refer, l.outline.picks, l.outline.at = l.refer, l.picks, l.start
			l.outline.add(l.long)
			l.outline.add(p)
			l.long = nil
		default:
			l.grow(len(p))
			l.long = append(l.long, p...)
		}
		switch err {
		case nil:
			return l.long, true, nil
		case bufio.ErrBufferFull:
		default:
			return l.long, false, err
		}
	}
}

// grow makes room for n bytes more of a long line: twice what there is, and never more than the file has left. Append would copy a line
// of 256 MiB twenty times.
func (l *Lines) grow(n int) {
	if len(l.long)+n <= cap(l.long) || len(l.long) < 1<<20 {
		return
	}
	room := 2*cap(l.long) + n
	if f, ok := l.f.(*os.File); ok {
		if st, err := f.Stat(); err == nil {
			room = min(room, max(len(l.long)+n, int(st.Size()-l.start)))
		}
	}
	long := make([]byte, len(l.long), room) // pages that are not written to take no memory
	copy(long, l.long)
	l.long = long
}

// line judges the bytes of a line.
func (l *Lines) line(raw []byte, torn bool) (line Line, blank bool) {
	line = Line{Number: l.number + 1, Index: l.index, Torn: torn, start: l.start, size: l.size}
	if l.skip {
		line.Damage = ErrTooLong
		return line, false
	}
	if l.outline != nil {
		line.Cut = true
		line.Raw, line.hole, line.Damage = l.outline.result()
		line.Lossy, line.outline = l.outline.lossy, l.outline
		return line, len(line.Raw) == 0 && line.Damage == nil
	}
	line.Raw = bytes.TrimSpace(raw)
	if len(line.Raw) > 0 && line.Raw[0] == 0 {
		line.Raw = bytes.TrimLeft(line.Raw, "\x00 \t\r\n")
		line.hole = true
	}
	switch {
	case len(line.Raw) == 0 && !line.hole:
		return line, true
	case len(line.Raw) == 0:
		line.Damage = ErrHole
	case !validJSON(line.Raw):
		line.Damage = ErrNoJSON
	case line.Raw[0] != '{':
		line.Damage = ErrNoObject
	}
	return line, false
}

// validJSON also accepts what is nested more deeply than bodies may be: a body stands inside a record, and other writers
// have other limits.
func validJSON(b []byte) bool {
	return jsonx.Valid(b) || utf8.Valid(b) && json.Valid(b)
}
