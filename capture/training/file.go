package training

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"rolltap/internal/storefs"
)

// file is a descriptor of a file of the store. *os.File is one.
type file interface {
	syscall.Conn
	io.ReaderAt
	io.WriterAt
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync returns nil only when all that was written is durable. After an error it must not be asked again.
	Sync() error
	Close() error
}

// files is the file system as the store sees it, so that tests can let the next call fail.
type files interface {
	// open opens a regular file for reading and writing; a symbolic link or anything else is refused.
	open(path string, create bool) (file, error)
	// replace gives the path a new content by renaming a file onto it. durable: content and name are when it returns, else only
	// the content is.
	replace(path string, content []byte, durable bool) error
	// remove removes the file, which may be missing.
	remove(path string) error
	syncDir(dir string) error
}

// ErrNoFile is returned for a path that names something else than a regular file.
var ErrNoFile = errors.New("no regular file")

// osFiles is the file system itself. Files that it makes get the mode; zero means 0640.
type osFiles struct{ mode fs.FileMode }

// make makes a file that is not there yet, with the mode whatever the umask.
func (fsys osFiles) make(path string) (*os.File, error) {
	mode := storefs.FileMode(fsys.mode)
	f, err := os.OpenFile(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (fsys osFiles) open(path string, create bool) (file, error) {
	f, err := openRegular(path, unix.O_RDWR)
	if create && errors.Is(err, fs.ErrNotExist) {
		if f, err = fsys.make(path); errors.Is(err, fs.ErrExist) {
			f, err = openRegular(path, unix.O_RDWR) // somebody else was quicker
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openRead opens a regular file of the store for reading.
func openRead(path string) (*os.File, error) { return openRegular(path, unix.O_RDONLY) }

// openRegular opens what is a regular file under this very name.
func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // the last is for what is no file
	if storefs.Irregular(err) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (fsys osFiles) replace(path string, content []byte, durable bool) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".tokens-state-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(storefs.FileMode(fsys.mode))
	}
	if err == nil {
		err = f.Sync() // also when nobody waits: a name without content after a power cut would cost the whole rollout
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	if durable {
		return fsys.syncDir(dir)
	}
	return nil
}

func (osFiles) remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (osFiles) syncDir(dir string) error { return storefs.SyncFolder(dir) }

// handle is an open file of a rollout. It belongs to who runs the rollout's operations.
type handle struct {
	file
	info fs.FileInfo
	id   storefs.FileID
	sure bool // id tells it from every later file
}

// openHandle opens a file and finds out which it is. nil and no error means that there is none.
func openHandle(fsys files, path string, create bool) (*handle, error) {
	f, err := fsys.open(path, create)
	if errors.Is(err, fs.ErrNotExist) && !create {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h := &handle{file: f}
	if h.info, err = f.Stat(); err == nil {
		h.id, h.sure, err = storefs.IdentityOf(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return h, nil
}

// reuse makes *h the file that the path names: nil when there is none and create is not set. kept says that it was open before.
func reuse(fsys files, h **handle, path string, create bool) (kept bool, err error) {
	if *h != nil {
		ok, err := (*h).named(path)
		if ok || err != nil {
			return ok, err
		}
		(*h).Close()
		*h = nil
	}
	*h, err = openHandle(fsys, path, create)
	return false, err
}

// size is how long the file is now.
func (h *handle) size() (int64, error) {
	st, err := h.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// named reports whether the path names the handle's file.
func (h *handle) named(path string) (bool, error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(st, h.info), err
}

// stamp tells whether a file that is only ever replaced is still the same. The zero stamp is that of no file.
type stamp struct {
	ino         uint64
	size, mtime int64
	there       bool
}

func stampOf(path string) (stamp, error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, err
	}
	if !st.Mode().IsRegular() {
		return stamp{}, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	s := stamp{size: st.Size(), mtime: st.ModTime().UnixNano(), there: true}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		s.ino = uint64(sys.Ino)
	}
	return s, nil
}
