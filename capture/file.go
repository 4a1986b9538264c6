package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// files is the file system as the store sees it. It exists so that tests can let the next call fail; osFiles is the real
// one. All methods are safe for concurrent use.
type files interface {
	// open takes the exclusive lock of the file that the path names, opens it for appending, and creates it when create is
	// set. It never waits: errLocked means that somebody else holds the lock, errMoved that the path named another file once
	// the lock was ours.
	open(path string, create bool) (file, error)
	// mark appends a line to an incomplete marker, which it creates. It takes no lock and returns before that is durable.
	mark(path string, line []byte) error
	// syncMark makes the content of a marker durable.
	syncMark(path string) error
	// stat says which file the path names now.
	stat(path string) (fs.FileInfo, error)
	// mkdir makes the directory and its parents and returns when their entries are durable.
	mkdir(dir string) error
	// syncDir makes the entries of the directory durable.
	syncDir(dir string) error
}

// file is a data file whose lock we hold.
type file interface {
	// Write appends. After an error any part of p may have been written.
	Write(p []byte) (int, error)
	ReadAt(p []byte, off int64) (int, error)
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync returns nil only when all that was written is durable. After an error it must not be asked again: the system may
	// have dropped the pages and would say yes the second time.
	Sync() error
	// Close gives back lock and descriptor.
	Close() error
}

var (
	errLocked = errors.New("locked by somebody else")
	errMoved  = errors.New("removed or replaced before the lock was ours")
)

type osFiles struct{}

func (osFiles) open(path string, create bool) (file, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	l := flock.New(path, flock.SetFlag(flag), flock.SetPermissions(fileMode))
	ok, err := l.TryLock()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errLocked
	}
	// The lock keeps its descriptor to itself, so the file is opened a second time. That is also the proof that the path
	// still names the file that was locked.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		l.Unlock()
		if create && errors.Is(err, fs.ErrNotExist) {
			err = errMoved
		}
		return nil, err
	}
	w := lockedFile{f, l}
	locked, err := l.Stat()
	if err != nil {
		w.Close()
		return nil, err
	}
	have, err := f.Stat()
	if err == nil && !os.SameFile(locked, have) {
		err = errMoved
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (osFiles) mark(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

func (osFiles) syncMark(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func (osFiles) stat(path string) (fs.FileInfo, error) { return os.Stat(path) }
func (osFiles) mkdir(dir string) error                { return mkdirDurable(dir) }
func (osFiles) syncDir(dir string) error              { return syncDir(dir) }

type lockedFile struct {
	*os.File
	lock *flock.Flock
}

func (f lockedFile) Close() error {
	return errors.Join(f.File.Close(), f.lock.Unlock())
}

// named reports whether the path names the file whose Stat is st: somebody without regard for the lock may have removed,
// replaced or moved it.
func named(fsys files, path string, st fs.FileInfo) (bool, error) {
	now, err := fsys.stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(st, now), err
}

// torn reports whether a file of this size ends without a newline: somebody died, or ran out of space, inside a write.
func torn(f file, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return false, fmt.Errorf("look at the last byte: %w", err)
	}
	return last[0] != '\n', nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func mkdirDurable(dir string) error {
	if st, err := os.Stat(dir); err == nil {
		if !st.IsDir() {
			return fmt.Errorf("%s is no directory", dir)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := mkdirDurable(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, dirMode); err != nil {
		if st, e := os.Stat(dir); e != nil || !st.IsDir() { // else somebody else was quicker
			return err
		}
	}
	return syncDir(parent)
}
