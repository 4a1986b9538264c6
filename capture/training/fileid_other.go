//go:build !linux

package training

import (
	"errors"
	"io/fs"
	"syscall"
)

// identityOf tells the file by its number alone.
func identityOf(f syscall.Conn) (id fileID, sure bool, err error) {
	s, ok := f.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return fileID{}, false, errors.ErrUnsupported
	}
	st, err := s.Stat()
	if err != nil {
		return fileID{}, false, err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		id = fileID{dev: uint64(sys.Dev), ino: uint64(sys.Ino)}
	}
	return id, false, nil
}

func datasync(f syscall.Conn) error {
	s, ok := f.(interface{ Sync() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return s.Sync()
}
