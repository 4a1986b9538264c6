package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Keep says how much of a store is kept. What is more is removed by whole rollouts, the one that was written to longest ago
// first, and only those that are over: sealed, and without a call in flight in any process on the store.
type Keep struct {
	// Age is how long a rollout is kept behind the last write to one of its files. Zero means for ever.
	Age time.Duration
	// Bytes is how long the files of all rollouts may be together. Zero means any length.
	Bytes int64
	// Quiet is how long nothing must have been written to a rollout. Zero means ten minutes.
	Quiet time.Duration
	// Wanted says of a rollout that somebody needs it still, for a reason that its files here do not tell. It is asked under
	// the rollout's lock and must not wait. It may be nil.
	Wanted func(rollout string) bool
	// Removed is told of each rollout that was removed. It may be nil.
	Removed func(Removed)
}

// Removed is a rollout that is not in the store any more.
type Removed struct {
	Rollout string
	Bytes   int64     // of its files
	Last    time.Time // that one of them was written to
}

const keepQuiet = 10 * time.Minute

// stored is what a store holds of one rollout.
type stored struct {
	id    string
	bytes int64
	last  time.Time
}

// Apply removes what is not to be kept from the store in dir, each rollout as Clear does. One that is not over is never
// touched, however old it is and however much the store holds, nor is one whose lock somebody has, that was written to within
// Quiet, or that is wanted; stayed is how many there were that should have gone otherwise. A folder that does not exist holds
// nothing. A rollout that cannot be removed does not keep the others; the error is about all of them. It ends early with ctx,
// between two rollouts.
func (k Keep) Apply(ctx context.Context, dir string) (stayed int, err error) {
	if k.Age <= 0 && k.Bytes <= 0 {
		return 0, nil
	}
	all, err := inventory(dir)
	if err != nil {
		return 0, fmt.Errorf("keep: %w", err)
	}
	var total int64
	for _, r := range all {
		total += r.bytes
	}
	slices.SortFunc(all, func(a, b stored) int { return cmp.Or(a.last.Compare(b.last), strings.Compare(a.id, b.id)) })
	now := time.Now()
	quiet := now.Add(-cmp.Or(k.Quiet, keepQuiet))
	var errs []error
	for _, r := range all {
		tooOld := k.Age > 0 && r.last.Before(now.Add(-k.Age))
		tooMuch := k.Bytes > 0 && total > k.Bytes
		if !tooOld && !tooMuch || !r.last.Before(quiet) || ctx.Err() != nil {
			break // whatever follows is younger
		}
		switch removed, err := k.remove(dir, r, quiet); {
		case err != nil:
			errs = append(errs, fmt.Errorf("keep: remove %s: %w", r.id, err))
		case !removed:
			stayed++
		default:
			total -= r.bytes
			if k.Removed != nil {
				k.Removed(Removed{Rollout: r.id, Bytes: r.bytes, Last: r.last})
			}
		}
	}
	return stayed, errors.Join(errs...)
}

// remove removes a rollout if it is over and nobody needs it. It waits for no lock: who has it is writing.
func (k Keep) remove(dir string, r stored, quiet time.Time) (bool, error) {
	l, err := tryLock(osFiles{}, dataPath(dir, r.id), false, nil)
	switch {
	case err == nil:
		defer l.Close()
		if !l.info.ModTime().Before(quiet) {
			return false, nil // since we looked
		}
	case errors.Is(err, errLocked), errors.Is(err, errMoved):
		return false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if sealed, err := Sealed(dir, r.id); err != nil || !sealed {
		return false, err
	}
	if busy, err := Busy(dir, r.id); err != nil || busy { // behind the look at the seal: a call that is not seen here sees it
		return false, err
	}
	if k.Wanted != nil && k.Wanted(r.id) {
		return false, nil
	}
	err = remove(dir, r.id, l != nil)
	return err == nil, err
}

// inventory is what the store in dir holds of each rollout. Files whose name is none of a store's do not count.
func inventory(dir string) ([]stored, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	byID := map[string]*stored{}
	for {
		entries, err := d.ReadDir(512)
		for _, e := range entries {
			id, ok := rolloutOf(e.Name())
			if !ok {
				continue
			}
			st, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // cleared meanwhile
			}
			if err != nil {
				return nil, err
			}
			r := byID[id]
			if r == nil {
				r = &stored{id: id}
				byID[id] = r
			}
			r.bytes += st.Size()
			if st.ModTime().After(r.last) {
				r.last = st.ModTime()
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	all := make([]stored, 0, len(byID))
	for _, r := range byID {
		all = append(all, *r)
	}
	return all, nil
}

// rolloutOf is the rollout that a file of a store belongs to.
func rolloutOf(name string) (id string, ok bool) {
	for _, suffix := range [...]string{dataSuffix, markerSuffix, damagedSuffix, sealSuffix} {
		if id, ok = strings.CutSuffix(name, suffix); ok {
			return id, ValidID(id)
		}
	}
	return "", false
}
