package capture

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	presenceName  = ".open"
	presenceCheck = time.Second // how often a store makes sure that its presence file is the one that others see
)

// presence tells all processes on a store which rollouts have calls in flight. Each holds a shared lock on a byte of one empty file, whose
// offset is a hash of the rollout's id, as long as it has one: nothing is written, nothing is left behind by a process that dies, and two
// rollouts of one hash only wait for each other.
type presence struct {
	dir  string
	mode fs.FileMode // of the file

	mu      sync.Mutex // guards the rest; held across the lock calls, which wait for nothing
	f       *os.File   // nil until the first call
	info    fs.FileInfo
	checked time.Time
	calls   map[string]int // in flight here, by rollout
	closed  bool
}

// Enter says that a call of the rollout is in flight, until leave is called, once. It comes before anything that is true of a rollout at
// rest is looked at: who seals a rollout and then waits for Idle has seen all calls that did not see the seal. An error means that
// other processes may not see the call.
func (s *Store) Enter(rollout string) (leave func(), err error) {
	if !ValidID(rollout) {
		return func() {}, fmt.Errorf("%w: %q", ErrInvalidID, rollout)
	}
	err = s.presence.enter(rollout)
	return func() { s.presence.leave(rollout) }, err
}

func (p *presence) enter(rollout string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[string]int{}
	}
	p.calls[rollout]++
	if p.calls[rollout] > 1 && time.Since(p.checked) < presenceCheck {
		return nil
	}
	if err := p.open(); err != nil {
		return fmt.Errorf("presence of %s: %w", rollout, err)
	}
	if err := lockShared(p.f, presenceOffset(rollout)); err != nil {
		return fmt.Errorf("presence of %s: %w", rollout, err)
	}
	return nil
}

func (p *presence) leave(rollout string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[rollout]--; p.calls[rollout] > 0 {
		return
	}
	delete(p.calls, rollout)
	if p.f == nil {
		return
	}
	unlockShared(p.f, presenceOffset(rollout)) // it fails only on a file that is none any more
	if p.closed && len(p.calls) == 0 {
		p.f.Close()
		p.f = nil
	}
}

// open opens the file, and anew when the store's folder has become another one; then everything in flight is said again. It is called with
// mu held.
func (p *presence) open() error {
	if p.f != nil && time.Since(p.checked) < presenceCheck {
		return nil
	}
	path := filepath.Join(p.dir, presenceName)
	if p.f != nil {
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, p.info) {
			p.checked = time.Now()
			return nil
		}
	}
	f, err := openOrCreate(path, os.O_RDWR, p.mode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	for rollout := range p.calls {
		if err := lockShared(f, presenceOffset(rollout)); err != nil {
			f.Close()
			return err
		}
	}
	if p.f != nil {
		p.f.Close()
	}
	p.f, p.info, p.checked = f, info, time.Now()
	return nil
}

// close closes the file once nothing is in flight.
func (p *presence) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.f != nil && len(p.calls) == 0 {
		p.f.Close()
		p.f = nil
	}
}

// presenceOffset is the byte that stands for a rollout.
func presenceOffset(rollout string) int64 {
	h := fnv.New64a()
	h.Write([]byte(rollout))
	return int64(h.Sum64() >> 2)
}

// Busy reports whether any process on the store has a call of the rollout in flight: from Enter until its record is durable or lost.
func Busy(dir, rollout string) (bool, error) {
	if !ValidID(rollout) {
		return false, fmt.Errorf("%w: %q", ErrInvalidID, rollout)
	}
	f, err := openFile(filepath.Join(dir, presenceName), os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // nobody ever had
	}
	if err != nil {
		return false, fmt.Errorf("presence of %s: %w", rollout, err)
	}
	defer f.Close()
	return lockedByAny(f, presenceOffset(rollout))
}

// Idle returns when no process on the store has a call of the rollout in flight, or with the cause of ctx. Nothing keeps the next call from
// coming at that moment, unless the rollout is sealed.
func Idle(ctx context.Context, dir, rollout string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		busy, err := Busy(dir, rollout)
		if err != nil || !busy {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}
