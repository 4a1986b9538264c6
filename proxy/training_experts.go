package proxy

import (
	"errors"
	"io"

	"rolltap/capture"
	"rolltap/rewrite/tokens"
)

// longValue is a value of an answer in a file without a name. It is not released where a store may still read it: the file goes with it.
type longValue struct{ c *capture.Copy }

func (l longValue) Copy(w io.Writer) error {
	r := l.c.NewReader()
	defer r.Close()
	_, err := io.Copy(w, r)
	return err
}

func (l longValue) Release() { l.c.Release() }

// spoolLong is the tokens.Spool. It holds nothing of the budget for copies, which is why it need not be released.
func spoolLong(raw []byte) (tokens.Spooled, error) {
	c := capture.NewCopy(capture.CopyOptions{Memory: 1, Max: maxTokenBytes, Budget: capture.NewBudget(0)})
	c.Write(raw)
	if c.Truncated() {
		c.Release()
		return nil, errors.New("a long value could not be spooled")
	}
	return longValue{c}, nil
}

// copyFrom is nil when there is nothing.
func copyFrom(s tokens.Spooled) func(io.Writer) error {
	if s == nil {
		return nil
	}
	return s.Copy
}
