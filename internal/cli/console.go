package cli

import (
	"errors"
	"io"
	"time"
)

// Console is where a command talks. Out gets results only; Note is for people.
type Console struct {
	Out     io.Writer
	Note    func(text string) // one remark for the person at the keyboard, no newline at the end; nil: dropped
	Watched io.Writer         // a terminal for a line that tells how far long work has come; nil: nobody watches
	Colour  bool              // Out is a terminal that may be coloured
	Width   int               // columns of the terminal that Out is, 0 when it is none
	Zone    *time.Location    // times are printed in it; nil is local time
}

func (c *Console) note(text string) {
	if c.Note != nil {
		c.Note(text)
	}
}

func (c *Console) zone() *time.Location {
	if c.Zone == nil {
		return time.Local
	}
	return c.Zone
}

// UsageError is a mistake of whoever wrote the command line, or a store that cannot be opened: exit code 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// ErrFound means that a command did its work, has printed what it found, and that this is nothing good: exit code 1
// without another word.
var ErrFound = errors.New("problems were found")
