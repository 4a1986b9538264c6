package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fileMode is the mode of files where Options.Mode says nothing else.
const fileMode fs.FileMode = 0o640

// ErrNoRegularFile is returned for a symbolic link, a pipe or a device under the name of a store's file. Nothing is written
// through it: who may make one may not be who may write where it leads.
var ErrNoRegularFile = errors.New("no regular file")

// dirMode is the mode of folders beside files of the mode: who may read a file may enter its folder.
func dirMode(mode fs.FileMode) fs.FileMode {
	mode = modeOf(mode)
	return mode | 0o100 | mode&0o444>>2
}

func modeOf(mode fs.FileMode) fs.FileMode {
	if mode == 0 {
		return fileMode
	}
	return mode
}

// ValidMode reports whether the files of a store may have the mode: readable and writable for their owner, writable for
// nobody who is in neither group, and executable for nobody.
func ValidMode(mode fs.FileMode) bool { return mode&^0o664 == 0 && mode&0o600 == 0o600 }

// openFile opens a file of a store: a regular file, under this very name. It never waits, not even for the other end of a pipe.
func openFile(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, asLink(err)
	}
	if err := regular(f.Stat()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// createFile makes a file that is not there yet, with the mode, whatever the umask.
func createFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_EXCL, modeOf(mode))
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(modeOf(mode)); err != nil {
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

// asLink names what the system calls too many levels of links.
func asLink(err error) error {
	if errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%w, a symbolic link: %w", ErrNoRegularFile, err)
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

// mkdirDurable tries again while parents disappear under it: another process removes the folder of journals when it is empty.
func mkdirDurable(dir string, mode fs.FileMode) error {
	var err error
	for range 100 {
		if err = mkdirOnce(dir, mode); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func mkdirOnce(dir string, mode fs.FileMode) error {
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
		if err := mkdirOnce(parent, mode); err != nil {
			return err
		}
	}
	switch err := os.Mkdir(dir, dirMode(mode)); {
	case err == nil:
		if err := os.Chmod(dir, dirMode(mode)); err != nil { // whatever the umask has taken
			return err
		}
	default:
		if st, e := os.Stat(dir); e != nil || !st.IsDir() { // else somebody else was quicker
			return err
		}
	}
	return syncDir(parent)
}
