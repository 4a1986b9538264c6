package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// errLongRow says that a row is longer than capture.MaxLine, and that it was copied and not read.
var errLongRow = errors.New("too long")

// rowReader reads the rows of a run: a JSON object a line, as trainers and collectors write them.
type rowReader struct {
	r    *bufio.Reader
	max  int
	line []byte
}

func newRowReader(r io.Reader) *rowReader {
	return &rowReader{r: bufio.NewReaderSize(r, 256<<10), max: capture.MaxLine}
}

// next is the next line with its line end, where it has one; valid until the next call. A line that is too long goes to over
// instead, byte for byte, with errLongRow. io.EOF comes alone.
func (r *rowReader) next(over io.Writer) ([]byte, error) {
	r.line = r.line[:0]
	for {
		p, err := r.r.ReadSlice('\n')
		if len(r.line)+len(p) > r.max {
			return nil, r.copy(over, p, err)
		}
		if err == nil && len(r.line) == 0 {
			return p, nil
		}
		r.line = append(r.line, p...)
		switch {
		case err == nil, err == io.EOF && len(r.line) > 0:
			return r.line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (r *rowReader) copy(over io.Writer, p []byte, err error) error {
	if _, werr := over.Write(r.line); werr != nil {
		return werr
	}
	r.line = nil
	for {
		if _, werr := over.Write(p); werr != nil {
			return werr
		}
		switch {
		case err == nil, err == io.EOF:
			return errLongRow
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
		p, err = r.r.ReadSlice('\n')
	}
}

// rowKind is what became of a row.
type rowKind uint8

const (
	rowBlank   rowKind = iota
	rowDamaged         // no JSON object
	rowBadID           // names its rollout in a way that no rollout has
	rowNoID            // names none
	rowKnown
)

// rowRollout is the rollout that a row is of.
func rowRollout(row []byte) (id string, kind rowKind) {
	row = bytes.TrimSpace(row)
	switch {
	case len(row) == 0:
		return "", rowBlank
	case !jsonx.ValidObject(row):
		return "", rowDamaged
	}
	id, err := derive.RolloutID(row)
	switch {
	case err != nil:
		return "", rowBadID
	case id == "":
		return "", rowNoID
	case !capture.ValidID(id):
		return "", rowBadID
	}
	return id, rowKnown
}

// newFile is a file that has its name only when all of it is written. It never replaces another one.
type newFile struct {
	*bufio.Writer
	f    *os.File // nil: out goes to standard output
	path string
}

// createNew begins a file; "" and - are out.
func createNew(path string, out io.Writer) (*newFile, error) {
	if path == "" || path == "-" {
		return &newFile{Writer: bufio.NewWriterSize(out, 256<<10)}, nil
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, &UsageError{fmt.Errorf("%s exists: nothing is written over", path)}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, &UsageError{fmt.Errorf("cannot write: %w", err)}
	}
	return &newFile{Writer: bufio.NewWriterSize(f, 256<<10), f: f, path: path}, nil
}

// commit makes the file durable and gives it its name.
func (n *newFile) commit() error {
	err := n.Flush()
	if n.f == nil {
		return err
	}
	if err == nil {
		err = n.f.Chmod(0o640)
	}
	if err == nil {
		err = n.f.Sync()
	}
	if cerr := n.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Link(n.f.Name(), n.path) // unlike a rename it fails where a file has come meanwhile
	}
	os.Remove(n.f.Name())
	n.f = nil
	return err
}

// drop gives up what was not committed.
func (n *newFile) drop() {
	if n.f != nil {
		n.f.Close()
		os.Remove(n.f.Name())
	}
}
