package storefs

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// DropPages takes durable content from the system's memory, n bytes from off on. It is a hint: what is not durable, in use, or kept in one piece with
// something outside stays, and where there is no such hint nothing happens.
func DropPages(f syscall.Conn, off, n int64) {
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) { _ = unix.Fadvise(int(fd), off, n, unix.FADV_DONTNEED) })
}
