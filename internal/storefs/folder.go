package storefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FileMode is the mode of files that are made where mode, zero, says nothing else.
func FileMode(mode fs.FileMode) fs.FileMode {
	if mode == 0 {
		return 0o640
	}
	return mode
}

// FolderMode is the mode of folders beside files of the mode: who may read a file may enter its folder.
func FolderMode(mode fs.FileMode) fs.FileMode {
	mode = FileMode(mode)
	return mode | 0o100 | mode&0o444>>2
}

// MakeFolder makes a folder, and those above it, where they are missing: durable, and whatever the umask with the mode that goes with files of
// the mode. It tries again while parents disappear under it: another process removes the folder of journals when it is empty.
func MakeFolder(dir string, mode fs.FileMode) error {
	var err error
	for range 100 {
		if err = makeFolder(dir, FolderMode(mode)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func makeFolder(dir string, mode fs.FileMode) error {
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
		if err := makeFolder(parent, mode); err != nil {
			return err
		}
	}
	switch err := os.Mkdir(dir, mode); {
	case err == nil:
		if err := os.Chmod(dir, mode); err != nil { // whatever the umask has taken
			return err
		}
	default:
		if st, e := os.Stat(dir); e != nil || !st.IsDir() { // else somebody else was quicker
			return err
		}
	}
	return SyncFolder(parent)
}

// SyncFolder makes the entries of a folder durable.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
