package storefs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Irregular reports whether the system says by err, of an open that follows no links, that what the path names is no regular file: a
// symbolic link, a folder that was to be written, a socket, or a pipe or a device with nobody behind it.
func Irregular(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO)
}
