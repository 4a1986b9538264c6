package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	removed := false
	// The data file goes last: while it is there the rollout is visibly not cleared, and its lock keeps writers out.
	for _, path := range []string{markerPath(dir, rollout), damagedPath(dir, rollout), sealPath(dir, rollout), dataPath(dir, rollout)} {
		if f == nil && path == dataPath(dir, rollout) {
			break // one that appeared meanwhile is somebody's new attempt
		}
		switch err := os.Remove(path); {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("clear %s: %w", rollout, err)
		}
	}
	if !removed {
		return nil
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("clear %s: %w", rollout, err)
	}
	return nil
}
