//go:build !unix

package cli

import "io"

// Terminal reports whether w is a terminal. Here nothing is taken for one.
func Terminal(io.Writer) (columns int, ok bool) { return 0, false }
