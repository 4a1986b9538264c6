package proxy

import (
	"net"

	"golang.org/x/sys/unix"
)

// tcpInfo is what the system knows of a connection, nil when it does not tell.
func tcpInfo(c *net.TCPConn) (info *unix.TCPInfo) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	if ctrl := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); ctrl != nil || err != nil {
		return nil
	}
	return info
}

// acknowledged is how many bytes the peer's system has acknowledged since the connection began, -1 when it cannot be told.
func acknowledged(c *net.TCPConn) int64 {
	info := tcpInfo(c)
	if info == nil {
		return -1
	}
	return int64(info.Bytes_acked)
}
