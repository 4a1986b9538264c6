package training

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// Snapshot is what a rollout was when it was frozen. Its entries are read from the file, also after a Drop.
type Snapshot struct {
	Rollout    string
	Incomplete bool
	ID         string
	Version    int64
	Marks      []Marked // reasons that are known

	file *os.File // nil when there are no entries
	size int64
}

// Entries returns a new reader of the entries, whose order means nothing.
func (p *Snapshot) Entries() *Reader { return NewReader(p.File(), 0, p.size) }

// File is where the spans of the entries stand.
func (p *Snapshot) File() io.ReaderAt {
	if p.file == nil {
		return noFile{}
	}
	return p.file
}

// Close ends the use of the snapshot's file.
func (p *Snapshot) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

type noFile struct{}

func (noFile) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

// Freeze ends the capture of a rollout, durably, and returns what there is of it. It can be asked for again: that is the same
// snapshot, with a higher version if the rollout was marked meanwhile. The caller closes it.
func (s *Store) Freeze(ctx context.Context, rollout string) (*Snapshot, error) {
	if !ValidID(rollout) {
		return nil, fmt.Errorf("freeze: %w: %q", ErrInvalidID, rollout)
	}
	var snap *Snapshot
	var handed atomic.Bool // who comes second closes what nobody waits for
	err := s.do(ctx, rollout, &op{run: func(t *turn) (err error) {
		if snap, err = t.freeze(); err == nil && handed.Swap(true) {
			snap.Close()
		}
		return err
	}}, "freeze")
	if err == nil {
		return snap, nil
	}
	if handed.Swap(true) {
		snap.Close()
	}
	return nil, err
}

func (t *turn) freeze() (*Snapshot, error) {
	if err := t.loadState(); err != nil {
		return nil, err
	}
	if err := t.r.st.over(false); err != nil {
		return nil, err
	}
	if err := t.index(); err != nil {
		return nil, err
	}
	if err := t.r.st.over(false); err != nil {
		return nil, err
	}
	intents, _, err := t.openIntents()
	if err != nil {
		return nil, err
	}
	if err := t.vouch(intents); err != nil {
		return nil, err
	}
	st := t.r.st
	switch {
	case !st.frozen:
		var id [16]byte
		rand.Read(id[:])
		st.frozen, st.snapshot = true, hex.EncodeToString(id[:])
		st.version++
		if err := t.writeState(true); err != nil {
			return nil, err
		}
	case t.r.behind > 0:
		if err := t.writeState(true); err != nil {
			return nil, err
		}
	}
	dangling, err := t.dangling()
	if err != nil {
		return nil, err
	}
	snap := &Snapshot{
		Rollout: t.r.id, Incomplete: st.incomplete || dangling, ID: st.snapshot, Version: st.version,
		Marks: append([]Marked(nil), st.marks...), size: st.indexed,
	}
	if t.r.data != nil {
		if snap.file, err = reopen(dataPath(t.s.o.Dir, t.r.id), t.r.data); err != nil {
			return nil, err
		}
	}
	if f := t.s.o.Observe.Frozen; f != nil {
		f(t.r.id, snap.Incomplete)
	}
	return snap, nil
}

// reopen opens the file of h once more, for reading.
func reopen(path string, h *handle) (*os.File, error) {
	f, err := openRead(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !os.SameFile(st, h.info) {
		err = fmt.Errorf("%s: %w", path, errMoved)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
