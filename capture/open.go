package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"rolltap/internal/storefs"
)

// ErrNoRegularFile is returned for a symbolic link, a folder, a pipe, a socket or a device under the name of a store's file. Nothing is written
// through it: who may make one may not be who may write where it leads.
var ErrNoRegularFile = errors.New("no regular file")

// ValidMode reports whether the files of a store may have the mode: readable and writable for their owner, writable for
// nobody who is in neither group, and executable for nobody.
func ValidMode(mode fs.FileMode) bool { return mode&^0o664 == 0 && mode&0o600 == 0o600 }

// openFile opens a file of a store: a regular file, under this very name. It never waits, not even for the other end of a pipe.
func openFile(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, asIrregular(err)
	}
	if err := regular(f.Stat()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// createFile makes a file that is not there yet, with the mode, whatever the umask.
func createFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_EXCL, storefs.FileMode(mode))
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(storefs.FileMode(mode)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openOrCreate opens a file that may be there.
func openOrCreate(path string, flag int, mode fs.FileMode) (*os.File, error) {
	for {
		f, err := openFile(path, flag)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		if f, err = createFile(path, flag, mode); !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

func regular(st fs.FileInfo, err error) error {
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w, its type is %s", st.Name(), ErrNoRegularFile, st.Mode().Type())
	}
	return err
}

// asIrregular says of an error of an open that it is about what no regular file is, which the system names in its own words: too many levels
// of links for a link, no such device for a socket.
func asIrregular(err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w, a symbolic link: %w", ErrNoRegularFile, err)
	case storefs.Irregular(err):
		return fmt.Errorf("%w: %w", ErrNoRegularFile, err)
	}
	return err
}

// noLink returns an error when the path is a link. What does not exist is none.
func noLink(path string) error {
	if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link", path)
	}
	return nil
}
