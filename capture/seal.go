package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"rolltap/internal/storefs"
)

// Seal says that no further call belongs to the rollout: it makes <id>.capture.sealed, durably and with the mode, see Options.Mode. A second one
// changes nothing. The store takes records of a sealed rollout as ever, those of refusals among them: to refuse calls is for who serves them, see
// Sealed. Clear takes the seal away.
func Seal(dir, rollout string, mode fs.FileMode) error {
	if !ValidID(rollout) {
		return fmt.Errorf("%w: %q", ErrInvalidID, rollout)
	}
	path := sealPath(dir, rollout)
	f, err := createFile(path, os.O_WRONLY, mode)
	switch {
	case errors.Is(err, fs.ErrExist): // perhaps a moment ago, and not durable yet
		if err = syncFile(path); err == nil {
			err = storefs.SyncFolder(dir)
		}
	case err == nil:
		_, err = f.Write(append(appendUnix([]byte(`{"sealed_at":`), time.Now()), "}\n"...))
		err = errors.Join(err, f.Sync(), f.Close())
		if err == nil {
			err = storefs.SyncFolder(dir)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if err != nil {
		return fmt.Errorf("seal %s: %w", rollout, err)
	}
	return nil
}

// Sealed reports whether the rollout is sealed. That it cannot be told, for another reason than that there is no seal, is an error.
func Sealed(dir, rollout string) (bool, error) {
	if !ValidID(rollout) {
		return false, nil
	}
	_, err := os.Lstat(sealPath(dir, rollout))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("look for the seal of %s: %w", rollout, err)
}
