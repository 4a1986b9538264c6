package capture

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"rolltap/internal/storefs"
)

// files is the file system as the store sees it. It exists so that tests can let the next call fail; osFiles is the real
// one. All methods are safe for concurrent use.
type files interface {
	// lock takes the exclusive lock of the file that the path names, which it creates when create is set. It never waits:
	// errLocked means that somebody else holds the lock.
	lock(path string, create bool) (lock, error)
	// data opens a file for reading and appending.
	data(path string) (file, error)
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
	// free is how many bytes an unprivileged process can still write to the file system of the directory.
	free(dir string) (int64, error)
}

// lock is the lock of a data file, and a descriptor of its own.
type lock interface {
	// Stat tells which file is locked.
	Stat() (fs.FileInfo, error)
	// Close gives back the lock.
	Close() error
}

// file is a descriptor of a data file. It is used by who holds the lock.
type file interface {
	syscall.Conn
	// Write appends. After an error any part of p may have been written.
	Write(p []byte) (int, error)
	ReadAt(p []byte, off int64) (int, error)
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync returns nil only when all that was written is durable. After an error it must not be asked again: the system may
	// have dropped the pages and would say yes the second time.
	Sync() error
	Close() error
}

var (
	errLocked = errors.New("locked by somebody else")
	errMoved  = errors.New("removed or replaced before the lock was ours")
)

// osFiles is the file system itself. Files that it makes get the mode; zero means 0640.
type osFiles struct{ mode fs.FileMode }

func (fsys osFiles) lock(path string, create bool) (lock, error) {
	for {
		// Never by a link, and never waiting for the other end of a pipe; without that flag os.OpenFile would also make the descriptor
		// nonblocking and, since the poller refuses files, blocking again. A new file is made apart from it, for its mode.
		l := flock.New(path, flock.SetFlag(os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK))
		ok, err := l.TryLock()
		switch {
		case err == nil && !ok, errors.Is(err, syscall.EAGAIN): // or a lease is being taken from somebody
			return nil, errLocked
		case err == nil:
			return l, nil
		case !create || !errors.Is(err, fs.ErrNotExist):
			return nil, asIrregular(err)
		}
		f, err := createFile(path, os.O_RDWR, fsys.mode)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
}

// open is one attempt to lock and open a file.
func (fsys osFiles) open(path string, create bool) (file, error) {
	l, err := tryLock(fsys, path, create, nil)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// data does without os.OpenFile, which looks what kind of file it is and tries the poller: most rollouts are quiet for
// seconds between two calls, so that a data file is opened about as often as it is written to.
func (osFiles) data(path string) (file, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		switch err {
		case nil:
			return &dataFile{File: os.NewFile(uintptr(fd), path)}, nil
		case unix.EINTR:
		default:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// dataFile asks the system once which file it is: that never changes, and a descriptor that is kept is used for many batches.
type dataFile struct {
	*os.File
	id    fileID
	err   error
	asked bool // id and err are there; who holds the file's lock may look
}

// identityOf tells which file f has open, errNoBirthTime where that cannot be told for certain.
func identityOf(f syscall.Conn) (fileID, error) {
	d, ok := f.(*dataFile)
	if !ok {
		return askIdentity(f)
	}
	if !d.asked {
		d.id, d.err = askIdentity(d.File)
		d.asked = d.err == nil || errors.Is(d.err, errNoBirthTime)
	}
	return d.id, d.err
}

// askIdentity is identityOf by two system calls.
func askIdentity(f syscall.Conn) (fileID, error) {
	id, sure, err := storefs.IdentityOf(f)
	switch {
	case errors.Is(err, syscall.ENOSYS), err == nil && !sure:
		return fileID{}, errNoBirthTime
	case err != nil:
		return fileID{}, err
	}
	return fileID{dev: id.Dev, ino: id.Ino, birth: id.Birth, gen: id.Gen}, nil
}

func (fsys osFiles) mark(path string, line []byte) error {
	f, err := openOrCreate(path, os.O_WRONLY|os.O_APPEND, fsys.mode)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

func (osFiles) syncMark(path string) error { return syncFile(path) }

// stat follows links to folders only: the folder of a store may be one, a file in it never is.
func (osFiles) stat(path string) (fs.FileInfo, error) {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&fs.ModeSymlink == 0 {
		return st, err
	}
	if to, err := os.Stat(path); err != nil || to.IsDir() {
		return to, err
	}
	return st, nil
}

func (fsys osFiles) mkdir(dir string) error { return storefs.MakeFolder(dir, fsys.mode) }
func (osFiles) syncDir(dir string) error    { return storefs.SyncFolder(dir) }

func (osFiles) free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// syncFile makes a file durable that is not open.
func syncFile(path string) error {
	f, err := openFile(path, os.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
