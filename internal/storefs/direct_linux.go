package storefs

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Direct lets what is written to f go around the system's memory, or through it again. It reports whether the file system takes that.
func Direct(f syscall.Conn, on bool) bool {
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = c.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err != nil {
			return
		}
		if flags &^= unix.O_DIRECT; on {
			flags |= unix.O_DIRECT
		}
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags)
		ok = err == nil
	})
	return err == nil && ok
}
