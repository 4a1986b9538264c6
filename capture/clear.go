package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"rolltap/internal/storefs"
)

// Clear removes what the store holds of a rollout, before another attempt is made under the same id: data, marker, seal
// and damaged lines, under the lock of the data file, and returns when that is durable. What is missing is fine. A writer that
// waits for the lock finds that its file has no name any more and makes a new one. ctx bounds the wait for the lock.
func Clear(ctx context.Context, dir, rollout string) error {
	if !ValidID(rollout) {
		return fmt.Errorf("%w: %q", ErrInvalidID, rollout)
	}
	f, _, err := lockNamed(ctx, osFiles{}, dataPath(dir, rollout), false)
	switch {
	case err == nil:
		defer f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("clear %s: %w", rollout, err)
	}
	if err := remove(dir, rollout, f != nil); err != nil {
		return fmt.Errorf("clear %s: %w", rollout, err)
	}
	return nil
}

// remove removes the files of a rollout; locked: its data file is there and its lock is ours. Without it a data file is
// somebody's new attempt and stays.
func remove(dir, rollout string, locked bool) error {
	// The data file goes last: while it is there the rollout is visibly not cleared, and its lock keeps writers out.
	paths := []string{markerPath(dir, rollout), damagedPath(dir, rollout), sealPath(dir, rollout)}
	if locked {
		paths = append(paths, dataPath(dir, rollout))
	}
	removed := false
	for _, path := range paths {
		switch err := os.Remove(path); {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if !removed {
		return nil
	}
	return storefs.SyncFolder(dir)
}
