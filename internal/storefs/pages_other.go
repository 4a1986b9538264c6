//go:build !linux

package storefs

import "syscall"

// DropPages does nothing here.
func DropPages(syscall.Conn, int64, int64) {}
