//go:build !linux

package storefs

import (
	"errors"
	"io/fs"
	"syscall"
)

// IdentityOf tells the file by its number alone, which is never sure.
func IdentityOf(f syscall.Conn) (id FileID, sure bool, err error) {
	s, ok := f.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return FileID{}, false, errors.ErrUnsupported
	}
	st, err := s.Stat()
	if err != nil {
		return FileID{}, false, err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		id = FileID{Dev: uint64(sys.Dev), Ino: uint64(sys.Ino)}
	}
	return id, false, nil
}

// Datasync syncs the file as a whole.
func Datasync(f syscall.Conn) error {
	s, ok := f.(interface{ Sync() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return s.Sync()
}
