package proxy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

var errNoToken = errors.New("the file holds no token")

// filePoll is how often files that are read again are looked at, when somebody asks for what is in them. A mounted secret
// changes by a symlink, which only looking finds.
const filePoll = 2 * time.Second

// reloaded is what stands in files, read again when one of them changes. Files that cannot be read any more, or do not fit
// each other, leave what there was: a half-done rotation must not lock everybody out.
type reloaded[T any] struct {
	paths []string
	read  func() (T, error)
	log   *zap.Logger
	value atomic.Pointer[T]

	mu     sync.Mutex // guards what follows; held while the files are looked at
	looked time.Time
	seen   []os.FileInfo // of what value was read from
}

// openReloaded reads the files for the first time.
func openReloaded[T any](log *zap.Logger, read func() (T, error), paths ...string) (*reloaded[T], error) {
	f := &reloaded[T]{paths: paths, read: read, log: log}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// get returns what the files say now; it must not be changed.
func (f *reloaded[T]) get() T {
	if f.mu.TryLock() {
		if time.Since(f.looked) >= filePoll {
			if err := f.load(); err != nil {
				f.log.Warn("a file cannot be read again; what it said before stays valid", zap.Strings("files", f.paths), zap.Error(err))
			}
		}
		f.mu.Unlock()
	}
	return *f.value.Load()
}

// load is called with mu held, or before the files are shared.
func (f *reloaded[T]) load() error {
	f.looked = time.Now()
	now := make([]os.FileInfo, len(f.paths))
	for i, path := range f.paths {
		var err error
		if now[i], err = os.Stat(path); err != nil {
			return err
		}
	}
	if slices.EqualFunc(now, f.seen, sameContent) {
		return nil
	}
	value, err := f.read()
	if err != nil {
		return err
	}
	f.value.Store(&value)
	f.seen = now
	return nil
}

// sameContent tells one content of a file from another.
func sameContent(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// openTokenFile is a list of bearer tokens in a file.
func openTokenFile(path string, log *zap.Logger) (*reloaded[[]string], error) {
	return openReloaded(log, func() ([]string, error) {
		tokens, err := readTokens(path)
		if err == nil && len(tokens) == 0 {
			err = fmt.Errorf("%s: %w", path, errNoToken)
		}
		return tokens, err
	}, path)
}
