package capture

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rolltap/internal/storefs"
)

const (
	dataSuffix    = ".capture.jsonl"
	markerSuffix  = ".capture.incomplete"
	damagedSuffix = ".capture.damaged"
	sealSuffix    = ".capture.sealed"
)

// ValidID reports whether id may name a rollout: [A-Za-z0-9][A-Za-z0-9._-]{0,199}.
// Every such id is a safe file name, and no other id ever reaches the file system.
func ValidID(id string) bool { return storefs.ValidID(id) }

func dataPath(dir, id string) string    { return filepath.Join(dir, id+dataSuffix) }
func markerPath(dir, id string) string  { return filepath.Join(dir, id+markerSuffix) }
func damagedPath(dir, id string) string { return filepath.Join(dir, id+damagedSuffix) }
func sealPath(dir, id string) string    { return filepath.Join(dir, id+sealSuffix) }

// Rollouts returns the sorted ids that have a data file or a marker in dir. Files that are not of a store are ignored. What has the name of a
// data file and cannot be read as one has an id, too: it is for whoever opens it to say so, and to go on with the others.
func Rollouts(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	ids := names[:0]
	for _, name := range names {
		id, ok := strings.CutSuffix(name, dataSuffix)
		if !ok {
			id, ok = strings.CutSuffix(name, markerSuffix)
		}
		if ok && ValidID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Stat tells what the data file of a rollout is, without a look into it. An error wraps fs.ErrNotExist where there is none, and
// ErrNoRegularFile where something else has its name: no reader opens that.
func Stat(dir, id string) (fs.FileInfo, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("%w: %q", ErrInvalidID, id)
	}
	st, err := os.Lstat(dataPath(dir, id))
	if err := regular(st, err); err != nil {
		return nil, err
	}
	return st, nil
}

// Marked reports whether the rollout has an incomplete marker: at least one of its records was late or lost.
func Marked(dir, id string) bool {
	if !ValidID(id) {
		return false
	}
	_, err := os.Lstat(markerPath(dir, id))
	return err == nil
}

// Exists tells whether dir has a data file or a marker of the rollout.
func Exists(dir, id string) bool {
	if !ValidID(id) {
		return false
	}
	_, err := os.Lstat(dataPath(dir, id))
	return err == nil || Marked(dir, id)
}
