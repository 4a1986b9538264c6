package training

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"rolltap/internal/storefs"
)

const (
	lockPause   = 200 * time.Microsecond
	lockPauseTo = 5 * time.Millisecond

	// Whoever polls for a lock looks for it now and then. Behind a batch that held the lock for longer than courteous, the next
	// one lets it go for a part of that time, at most for longer than anybody pauses.
	courteous  = 2 * time.Millisecond
	courtesy   = 16
	courtesyTo = 2 * lockPauseTo
)

var errMoved = errors.New("removed or replaced while it was in use")

// lock takes the exclusive flock of <id>.tokens.lock, which the reference takes, too. It polls with growing pauses, so that a lock that
// somebody holds costs no thread.
func (s *Store) lock(rollout string) (*flock.Flock, error) {
	path := lockPath(s.o.Dir, rollout)
	began := time.Now()
	for pause := lockPause; ; {
		if s.quit.Err() != nil {
			return nil, context.Cause(s.quit)
		}
		l, err := tryLock(path, s.o.Mode)
		switch {
		case err == nil:
			if f := s.o.Observe.LockWait; f != nil {
				f(time.Since(began))
			}
			return l, nil
		case errors.Is(err, ErrLocked), errors.Is(err, errMoved):
		case errors.Is(err, fs.ErrNotExist): // the folder is gone
			if err := storefs.MakeFolder(s.o.Dir, s.o.Mode); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
		left := s.o.GiveUp - time.Since(began)
		if left <= 0 {
			return nil, ErrLocked
		}
		t := time.NewTimer(min(left, pause/2+rand.N(pause))) // not in step with the other waiters
		select {
		case <-t.C:
		case <-s.quit.Done():
			t.Stop()
		}
		pause = min(pause*3/2, lockPauseTo)
	}
}

// tryLock is one attempt. A lock counts only on the file that the path names: a sweep removes it while others wait.
func tryLock(path string, mode fs.FileMode) (*flock.Flock, error) {
	l := flock.New(path, flock.SetFlag(unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK))
	ok, err := l.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		var f *os.File
		if f, err = (osFiles{mode}).make(path); err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		ok, err = l.TryLock()
		if errors.Is(err, fs.ErrNotExist) {
			err = errMoved // a sweep has removed it already
		}
	}
	if err != nil {
		if storefs.Irregular(err) {
			err = ErrNoFile
		}
		return nil, err
	}
	if !ok {
		return nil, ErrLocked
	}
	st, err := l.Stat()
	if err == nil {
		var now fs.FileInfo
		switch now, err = os.Lstat(path); {
		case err == nil && !st.Mode().IsRegular():
			err = ErrNoFile
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(st, now):
			err = errMoved
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
