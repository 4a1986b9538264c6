package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// lazyAfter is how long a file that was written to waits for its sync under DurabilityAsync; with the sync itself it is durable
	// within a second unless the disk is slower than that.
	lazyAfter = 500 * time.Millisecond
	// lazySyncs is how many files are synced at the same time.
	lazySyncs = 8
)

// lazy syncs the files of rollouts a little after they were written to, many batches with one sync. Its goroutine runs while there is
// something to sync, and close waits for it.
type lazy struct {
	sync   func(rollout string) error
	failed func(rollout string, err error) // may not block
	quit   chan struct{}                   // closed: what is left is synced at once
	wg     sync.WaitGroup

	mu      sync.Mutex // guards the rest; never held across a sync
	dirty   map[string]struct{}
	running bool
	closed  bool
}

func newLazy(sync func(rollout string) error, failed func(rollout string, err error)) *lazy {
	return &lazy{sync: sync, failed: failed, quit: make(chan struct{}), dirty: map[string]struct{}{}}
}

// soon lets the rollout's file be synced.
func (l *lazy) soon(rollout string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty[rollout] = struct{}{}
	if !l.running {
		l.running = true
		l.wg.Go(l.run)
	}
}

// run is the goroutine.
func (l *lazy) run() {
	for {
		t := time.NewTimer(lazyAfter)
		select {
		case <-t.C:
		case <-l.quit:
		}
		t.Stop()
		l.mu.Lock()
		due := l.dirty
		l.dirty = map[string]struct{}{}
		l.mu.Unlock()
		var g errgroup.Group
		g.SetLimit(lazySyncs)
		for rollout := range due {
			g.Go(func() error {
				if err := l.sync(rollout); err != nil && !errors.Is(err, fs.ErrNotExist) { // one that was cleared needs no sync
					l.failed(rollout, fmt.Errorf("sync %s: %w", rollout, err))
				}
				return nil
			})
		}
		_ = g.Wait() // each has told what went wrong
		l.mu.Lock()
		if len(l.dirty) == 0 {
			l.running = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// close syncs what is left, and waits until ctx ends for it. Nothing is written any more.
func (l *lazy) close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.quit)
	}
	l.mu.Unlock()
	done := make(chan struct{})
	go func() { l.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("files were not synced when the store was closed: %w", context.Cause(ctx))
	}
}
