//go:build !linux

package storefs

import "syscall"

// Direct does nothing here.
func Direct(syscall.Conn, bool) bool { return false }
