package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ErrCursor says that a cursor is none, or is not about the file that is there: the rollout was cleared meanwhile, or repaired.
var ErrCursor = errors.New("the cursor is not of this file")

// Cursor is a place between two lines of a rollout's data file, for a reader that goes on there later, in another process too. The zero value
// is the beginning of whatever file there is.
type Cursor struct {
	inode, birth  uint64 // of the file; birth 0 where the system does not tell
	offset        int64
	number, index int // lines and records in front
}

// String is the cursor's form for others: five numbers, to be handed back as they are.
func (c Cursor) String() string {
	return fmt.Sprintf("%x-%x-%d-%d-%d", c.inode, c.birth, c.offset, c.number, c.index)
}

// ParseCursor reads what String wrote. An error wraps ErrCursor.
func ParseCursor(s string) (Cursor, error) {
	parts := strings.Split(s, "-")
	if len(parts) != 5 {
		return Cursor{}, fmt.Errorf("%w: %q", ErrCursor, s)
	}
	var c Cursor
	var errs [5]error
	c.inode, errs[0] = strconv.ParseUint(parts[0], 16, 64)
	c.birth, errs[1] = strconv.ParseUint(parts[1], 16, 64)
	c.offset, errs[2] = strconv.ParseInt(parts[2], 10, 64)
	c.number, errs[3] = strconv.Atoi(parts[3])
	c.index, errs[4] = strconv.Atoi(parts[4])
	if errors.Join(errs[:]...) != nil || c.offset < 0 || c.number < 0 || c.index < 0 || c.index > c.number {
		return Cursor{}, fmt.Errorf("%w: %q", ErrCursor, s)
	}
	return c, nil
}

// ResumeLines opens the data file of a rollout behind the cursor. A file that does not exist has no lines, unless the cursor has been in one.
// The error wraps ErrCursor when the file is another one, or has no end of a line there. The caller must Close it.
func ResumeLines(dir, id string, c Cursor) (*Lines, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("%w: %q", ErrInvalidID, id)
	}
	f, err := openFile(dataPath(dir, id), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if c != (Cursor{}) {
			return nil, ErrCursor
		}
		return &Lines{}, nil
	}
	if err != nil {
		return nil, err
	}
	l, err := resume(f, c)
	if err != nil {
		f.Close()
	}
	return l, err
}

func resume(f *os.File, c Cursor) (*Lines, error) {
	is, err := cursorOf(f)
	if err != nil {
		return nil, err
	}
	if c.inode == 0 {
		c.inode, c.birth = is.inode, is.birth
	}
	if c.inode != is.inode || c.birth != is.birth {
		return nil, ErrCursor
	}
	if c.offset > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], c.offset-1); err != nil && err != io.EOF {
			return nil, err
		} else if err == io.EOF || last[0] != '\n' {
			return nil, ErrCursor
		}
		if _, err := f.Seek(c.offset, io.SeekStart); err != nil {
			return nil, err
		}
	}
	l := newLines(f)
	l.at, l.start, l.number, l.index = c, c.offset, c.number, c.index
	return l, nil
}

// cursorOf is the beginning of a file.
func cursorOf(f *os.File) (Cursor, error) {
	id, err := identityOf(f)
	if err == nil {
		return Cursor{inode: id.ino, birth: uint64(id.birth)}, nil
	}
	if !errors.Is(err, errNoBirthTime) {
		return Cursor{}, err
	}
	st, err := f.Stat()
	if err != nil {
		return Cursor{}, err
	}
	return Cursor{inode: inodeOf(st)}, nil
}

// Cursor is the place behind the last line that Next returned whole. It is zero as long as there is no file; OpenLines has none.
func (l *Lines) Cursor() Cursor {
	c := l.at
	c.offset, c.number, c.index = l.start, l.number, l.index
	if l.f == nil {
		return Cursor{}
	}
	return c
}

// Copy writes the record that Next has just returned as it stands in the file, however long it is: without what stands around it, its newline
// included, and on one line whatever its writer took for white space.
func (l *Lines) Copy(w io.Writer, line Line) error {
	if !line.Cut {
		if bytes.IndexByte(line.Raw, '\r') >= 0 {
			line.Raw = bytes.ReplaceAll(line.Raw, []byte{'\r'}, []byte{' '})
		}
		_, err := w.Write(line.Raw)
		return err
	}
	f, ok := l.f.(io.ReaderAt)
	if !ok {
		return errors.New("the line comes from no file")
	}
	text := io.NewSectionReader(f, line.start, line.size)
	buf, front, space := make([]byte, readBuf), true, 0 // space: white space that may be the end's
	for {
		n, err := text.Read(buf)
		p := buf[:n]
		if front {
			p = bytes.TrimLeft(p, "\x00 \t\r\n")
			front = len(p) == 0
		}
		for i, c := range p {
			if c == '\r' || c == '\n' {
				p[i] = ' '
			}
		}
		rest := bytes.TrimRight(p, " \t")
		if len(rest) > 0 {
			if _, err := w.Write(bytes.Repeat([]byte{' '}, space)); err != nil {
				return err
			}
			if _, err := w.Write(rest); err != nil {
				return err
			}
			space = 0
		}
		space += len(p) - len(rest)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
