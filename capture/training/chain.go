package training

import (
	"errors"
	"fmt"
	"io"

	"rolltap/internal/tokendigest"
)

// ErrChain says that the prompt of a delta record cannot be put together again.
var ErrChain = errors.New("delta cannot be reconstructed")

// chainDepth is how many parents a delta may lie above the whole prompt that it builds on (capture.md 5.7).
const chainDepth = 10000

// Chains knows the entries of one file and expands deltas through their parents.
type Chains struct {
	f      io.ReaderAt
	byCall map[string]*View
}

// NewChains indexes the entries that r still has. The first damage ends it. Entries of a call that is there already are
// ignored when they are the same and an error when they are not.
func NewChains(f io.ReaderAt, r *Reader) (*Chains, error) {
	c := &Chains{f: f, byCall: map[string]*View{}}
	for {
		v, err := r.Next()
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		if err := c.add(v); err != nil {
			return nil, err
		}
	}
}

func (c *Chains) add(v *View) error {
	if old := c.byCall[v.CallID]; old != nil {
		if old.Sum != v.Sum {
			return fmt.Errorf("line %d: %w: call %s was already there with another payload", v.Line, ErrConflict, v.CallID)
		}
		return nil
	}
	c.byCall[v.CallID] = v
	return nil
}

// Entry returns the entry of a call, nil when there is none.
func (c *Chains) Entry(call string) *View { return c.byCall[call] }

// prompt returns the arrays that v's whole prompt consists of, from the first to the last.
func (c *Chains) prompt(v *View) ([]Span, error) {
	spans := []Span{v.Prompt}
	seen := map[string]bool{v.CallID: true}
	for v.PromptIsDelta {
		parent := c.byCall[v.ParentCallID]
		if parent == nil {
			return nil, fmt.Errorf("%w: call %s needs %s, which is not there", ErrChain, v.CallID, v.ParentCallID)
		}
		if seen[parent.CallID] || len(seen) > chainDepth {
			return nil, fmt.Errorf("%w: its parents go round, or are more than %d", ErrChain, chainDepth)
		}
		seen[parent.CallID] = true
		spans = append(spans, parent.Generation, parent.Prompt)
		v = parent
	}
	for i, j := 0, len(spans)-1; i < j; i, j = i+1, j-1 {
		spans[i], spans[j] = spans[j], spans[i]
	}
	return spans, nil
}

// Check proves that cum_len and digest of v, where it has them, are those of its whole prompt and its generation. An error
// that wraps ErrChain or ErrEntry is about the entry.
func (c *Chains) Check(v *View) error {
	spans, err := c.prompt(v)
	if err != nil {
		return err
	}
	spans = append(spans, v.Generation)
	n := int64(0)
	for _, s := range spans {
		n += s.Count
	}
	if v.CumLen >= 0 && v.CumLen != n {
		return fmt.Errorf("%w: cum_len is %d, the sequence has %d", kindOf(v), v.CumLen, n)
	}
	if v.Digest == "" {
		return nil
	}
	t := tokendigest.New(int(n))
	for _, s := range spans {
		it := s.Numbers(c.f)
		for it.Next() {
			id, ok := tokendigest.ID(it.Text())
			if !ok {
				return fmt.Errorf("%w: a token id is no integer from 0 to 2^64-1", ErrEntry)
			}
			t.Add(id)
		}
		if it.Err() != nil {
			return it.Err()
		}
	}
	if digest, ok := t.Hex(); !ok || digest != v.Digest {
		return fmt.Errorf("%w: the digest is not that of the sequence", kindOf(v))
	}
	return nil
}

// kindOf is what a wrong digest means.
func kindOf(v *View) error {
	if v.PromptIsDelta {
		return ErrChain
	}
	return ErrEntry
}

// WritePrompt writes the whole prompt of v as a JSON array, numbers as they are spelled, and proves that it is the right one
// first when v is a delta.
func (c *Chains) WritePrompt(w io.Writer, v *View) error {
	if v.PromptIsDelta {
		if err := c.Check(v); err != nil {
			return err
		}
	}
	spans, err := c.prompt(v)
	if err != nil {
		return err
	}
	sep := []byte{'['}
	for _, s := range spans {
		if s.Count == 0 {
			continue
		}
		if _, err := w.Write(sep); err != nil {
			return err
		}
		sep = []byte{','}
		if _, err := io.Copy(w, io.NewSectionReader(c.f, s.Offset+1, s.Size-2)); err != nil {
			return err
		}
	}
	if sep[0] == '[' {
		_, err = io.WriteString(w, "[]")
	} else {
		_, err = io.WriteString(w, "]")
	}
	return err
}
