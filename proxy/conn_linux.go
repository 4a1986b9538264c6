package proxy

import (
	"net"

	"golang.org/x/sys/unix"
)

// acknowledged is how many bytes the peer's system has acknowledged since the connection began, -1 when it cannot be told.
func acknowledged(c *net.TCPConn) int64 {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1
	}
	n := int64(-1)
	if err := raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int64(info.Bytes_acked)
		}
	}); err != nil {
		return -1
	}
	return n
}
