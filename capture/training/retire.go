package training

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"rolltap/internal/storefs"
)

// Drop removes a frozen rollout's entries, intents and markers, and leaves a tombstone that keeps late writers out. It does
// nothing and returns false unless the rollout is frozen with exactly this snapshot and version.
func (s *Store) Drop(ctx context.Context, rollout, snapshotID string, version int64) (bool, error) {
	if !ValidID(rollout) {
		return false, fmt.Errorf("drop: %w: %q", ErrInvalidID, rollout)
	}
	dropped := false
	err := s.do(ctx, rollout, &op{run: func(t *turn) error {
		if err := t.loadState(); err != nil {
			return err
		}
		st := t.r.st
		if !st.frozen || st.snapshot != snapshotID || st.version != version {
			return nil
		}
		// The tombstone first: files that are still there after a crash are removed by the next Drop or by the sweep.
		st.retired, st.indexed = true, 0
		clear(st.digests)
		if err := t.writeState(true); err != nil {
			return err
		}
		dropped = true
		if f := s.o.Observe.Dropped; f != nil {
			f(rollout)
		}
		return t.removeFiles(false)
	}}, "drop")
	return err == nil && dropped, err // in this order: after an error the operation may still be running
}

// Delete removes everything of a rollout but its lock, whatever it is, so that it can begin anew. What is not there is no error.
func (s *Store) Delete(ctx context.Context, rollout string) error {
	if !ValidID(rollout) {
		return fmt.Errorf("delete: %w: %q", ErrInvalidID, rollout)
	}
	if !Exists(s.o.Dir, rollout) { // no lock is made for nothing
		return nil
	}
	return s.do(ctx, rollout, &op{run: func(t *turn) error { return t.removeFiles(true) }}, "delete")
}

// removeFiles removes the files of a rollout, durably.
func (t *turn) removeFiles(state bool) error {
	dir, id := t.s.o.Dir, t.r.id
	t.r.forget()
	t.r.known = [2]storefs.FileID{}
	t.s.lineage.forget(id)
	paths := []string{dataPath(dir, id), markerPath(dir, id), intentsPath(dir, id)}
	if state {
		paths = append(paths, statePath(dir, id))
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, t.s.fs.remove(path))
	}
	errs = append(errs, t.s.dir.Wait())
	return errors.Join(errs...)
}

// SweepRetired removes tombstones whose state was last written longer than age ago, their locks included, and returns how
// many they were. Errors of single rollouts do not stop it.
func (s *Store) SweepRetired(ctx context.Context, age time.Duration) (int, error) {
	ids, err := Rollouts(s.o.Dir)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	cutoff := time.Now().Add(-age)
	removed := 0
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		path := statePath(s.o.Dir, id)
		if st, err := os.Lstat(path); err != nil || st.ModTime().After(cutoff) {
			continue
		}
		// Without a look at the state no lock is made.
		if st, err := readState(s.fs, path); err != nil || !st.retired {
			continue
		}
		gone := false
		err := s.do(ctx, id, &op{run: func(t *turn) error {
			if err := t.loadState(); err != nil {
				return err
			}
			st, err := os.Lstat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && (st.ModTime().After(cutoff) || !t.r.st.retired) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := t.removeFiles(true); err != nil {
				return err
			}
			gone = true
			return t.s.fs.remove(lockPath(s.o.Dir, id))
		}}, "sweep")
		if err != nil {
			errs = append(errs, err)
		} else if gone {
			removed++
		}
	}
	return removed, errors.Join(errs...)
}
