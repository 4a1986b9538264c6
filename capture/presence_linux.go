package capture

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The locks belong to the open file, not to the process: a second open of the same process sees them, and closing it takes none away.

func lockShared(f *os.File, offset int64) error { return setLock(f, offset, unix.F_RDLCK) }

func unlockShared(f *os.File, offset int64) error { return setLock(f, offset, unix.F_UNLCK) }

func setLock(f *os.File, offset int64, kind int16) error {
	l := unix.Flock_t{Type: kind, Whence: 0, Start: offset, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// lockedByAny reports whether an exclusive lock of the byte would have to wait for somebody.
func lockedByAny(f *os.File, offset int64) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: offset, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return false, fmt.Errorf("look at the locks of %s: %w", f.Name(), err)
	}
	return l.Type != unix.F_UNLCK, nil
}
