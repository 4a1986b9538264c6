package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	lockPause   = 200 * time.Microsecond
	lockPauseTo = 5 * time.Millisecond
)

// locked is a data file whose lock we hold. Close gives back both.
type locked struct {
	file
	lock lock
	info fs.FileInfo // of the moment when the lock was ours
}

func (l *locked) Stat() (fs.FileInfo, error) { return l.info, nil }
func (l *locked) Close() error               { return errors.Join(l.file.Close(), l.lock.Close()) }

// lockNamed returns the locked file that the path names, created with its directory when create is set, and what it was at
// that moment. It asks again and again while somebody else holds the lock, until ctx ends.
func lockNamed(ctx context.Context, fsys files, path string, create bool) (file, fs.FileInfo, error) {
	l, err := waitLock(ctx, time.Time{}, fsys, path, create, nil)
	if err != nil {
		return nil, nil, err
	}
	return l, l.info, nil
}

// waitLock tries with growing pauses, until ctx ends or, unless it is zero, giveUp has come.
func waitLock(ctx context.Context, giveUp time.Time, fsys files, path string, create bool, have *keeper) (*locked, error) {
	for pause := lockPause; ; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		l, err := tryLock(fsys, path, create, have)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, errLocked), errors.Is(err, errMoved):
		case create && errors.Is(err, fs.ErrNotExist): // the folder is gone
			if err := fsys.mkdir(filepath.Dir(path)); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
		next := pause/2 + rand.N(pause) // not in step with the other waiters
		if !giveUp.IsZero() {
			left := time.Until(giveUp)
			if left <= 0 {
				return nil, ErrLocked
			}
			next = min(next, left)
		}
		t := time.NewTimer(next)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		pause = min(pause*3/2, lockPauseTo)
	}
}

// tryLock is one attempt. The lock keeps its descriptor to itself, so there is a second one, of the same file.
func tryLock(fsys files, path string, create bool, have *keeper) (*locked, error) {
	l, err := fsys.lock(path, create)
	if err != nil {
		return nil, err
	}
	st, err := l.Stat()
	if err = regular(st, err); err == nil {
		var f file
		if f, err = openLocked(fsys, path, st, have); err == nil {
			return &locked{file: f, lock: l, info: st}, nil
		}
	}
	l.Close()
	return nil, err
}

// openLocked opens the file whose lock is ours. That the path opens it is also the proof that the path still names it. A
// kept descriptor proves less: the file is the one that was written to before, and has a name. The path is looked at again
// when the batch is durable, in any case.
func openLocked(fsys files, path string, st fs.FileInfo, have *keeper) (file, error) {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Nlink == 0 {
		return nil, errMoved
	}
	if f := have.take(path, st); f != nil {
		return f, nil
	}
	f, err := fsys.data(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(st, now) {
		err = errMoved
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// named reports whether the path names the file whose Stat is st: somebody without regard for the lock may have removed,
// replaced or moved it.
func named(fsys files, path string, st fs.FileInfo) (bool, error) {
	now, err := fsys.stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(st, now), err
}

// torn reports whether a file of this size ends without a newline: somebody died, or ran out of space, inside a write.
func torn(f file, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return false, fmt.Errorf("look at the last byte: %w", err)
	}
	return last[0] != '\n', nil
}
