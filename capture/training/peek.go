package training

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Peek is what there is of a rollout's tokens now. It takes no lock, freezes nothing and may run beside writers: entries that are being written
// may be missing, and a call in flight makes the rollout incomplete, since its intent has no entry yet. ID is empty unless the rollout is frozen.
// fs.ErrNotExist says that there is nothing. The caller closes it.
func Peek(dir, rollout string) (*Snapshot, error) {
	if !ValidID(rollout) {
		return nil, fmt.Errorf("read tokens: %w: %q", ErrInvalidID, rollout)
	}
	if !Exists(dir, rollout) {
		return nil, fmt.Errorf("read tokens of %s: %w", rollout, fs.ErrNotExist)
	}
	p, err := peek(dir, rollout)
	if err != nil {
		return nil, fmt.Errorf("read tokens of %s: %w", rollout, err)
	}
	return p, nil
}

func peek(dir, rollout string) (*Snapshot, error) {
	st, err := readState(readFiles{}, statePath(dir, rollout))
	if err != nil {
		return nil, err
	}
	p := &Snapshot{Rollout: rollout, Incomplete: st.incomplete, ID: st.snapshot, Version: st.version, Marks: slices.Clone(st.marks)}
	// The intents first: an entry that is written meanwhile then has its intent.
	var began []string
	f, err := openRead(intentsPath(dir, rollout))
	if err == nil {
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if err := eachIntent(f, info.Size(), func(call string, _ int64) error { began = append(began, call); return nil }); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if p.file, err = openRead(dataPath(dir, rollout)); errors.Is(err, fs.ErrNotExist) {
		p.file = nil
	} else if err != nil {
		return nil, err
	} else if info, err := p.file.Stat(); err != nil {
		p.Close()
		return nil, err
	} else {
		p.size = info.Size()
	}
	if p.Incomplete || len(began) == 0 {
		return p, nil
	}
	chains, err := p.Chains()
	if err != nil {
		p.Close()
		return nil, err
	}
	p.Incomplete = slices.ContainsFunc(began, func(call string) bool { return chains.Entry(call) == nil })
	return p, nil
}

// Chains knows the entries of the snapshot, to expand deltas with. Of a damaged file it has what can be read, of a call with two payloads the first.
func (p *Snapshot) Chains() (*Chains, error) {
	c := &Chains{f: p.File(), byCall: map[string]*View{}}
	for entries := p.Entries(); ; {
		v, err := entries.Next()
		if err == io.EOF {
			return c, nil
		}
		if d := (*Damage)(nil); errors.As(err, &d) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if c.byCall[v.CallID] == nil {
			c.byCall[v.CallID] = v
		}
	}
}

// PromptLen is how many ids the whole prompt of v has. An error wraps ErrChain.
func (c *Chains) PromptLen(v *View) (int64, error) {
	spans, err := c.prompt(v)
	n := int64(0)
	for _, s := range spans {
		n += s.Count
	}
	return n, err
}
