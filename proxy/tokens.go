package proxy

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

var errNoToken = errors.New("the file holds no token")

// tokenPoll is how often a token file is looked at, when somebody asks for it. A mounted secret changes by a symlink,
// which only looking finds.
const tokenPoll = 2 * time.Second

// tokenFile is a list of bearer tokens in a file, read again when the file changes. A file that cannot be read any more
// keeps the tokens that it had: a half-done rotation must not lock everybody out.
type tokenFile struct {
	path   string
	log    *zap.Logger
	tokens atomic.Pointer[[]string]

	mu     sync.Mutex // guards what follows; held while the file is looked at
	looked time.Time
	stamp  fileStamp
}

// fileStamp tells one content of a file from another.
type fileStamp struct {
	modified time.Time
	size     int64
}

func openTokenFile(path string, log *zap.Logger) (*tokenFile, error) {
	f := &tokenFile{path: path, log: log}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// get returns the tokens of now; the slice must not be changed.
func (f *tokenFile) get() []string {
	if f.mu.TryLock() {
		if time.Since(f.looked) >= tokenPoll {
			if err := f.load(); err != nil {
				f.log.Warn("the token file cannot be read again; its earlier tokens stay valid", zap.String("file", f.path), zap.Error(err))
			}
		}
		f.mu.Unlock()
	}
	return *f.tokens.Load()
}

// load is called with mu held, or before the file is shared.
func (f *tokenFile) load() error {
	f.looked = time.Now()
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("look at the token file: %w", err)
	}
	if stamp := (fileStamp{info.ModTime(), info.Size()}); stamp != f.stamp || f.tokens.Load() == nil {
		tokens, err := readTokens(f.path)
		if err != nil {
			return fmt.Errorf("read the token file: %w", err)
		}
		if len(tokens) == 0 {
			return errNoToken
		}
		f.tokens.Store(&tokens)
		f.stamp = stamp
	}
	return nil
}
