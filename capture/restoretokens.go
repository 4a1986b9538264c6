package capture

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"rolltap/internal/jsonx"
)

// The token files of a rollout are brought back as its records are (fileReplay), but for this:
//
//   - Their lock is a file of its own, <id>.tokens.lock, which outlives what it guards.
//   - A last line that was never finished is cut off and not ended: their readers take it for damage when another line follows.
//   - An intent that was overwritten with spaces was withdrawn. It stays so, and one that was half overwritten becomes so.
//   - What is frozen gets no lines: what was acknowledged in front of the freeze has its place among the bytes that the state has
//     indexed, and what has lost its place was acknowledged to nobody. What is retired gets nothing at all.

// stateMax is how long a state file may be.
const stateMax = 64 << 20

// tokenState is what a replay has to know of <id>.tokens.state.json. The zero value is that of a rollout without one, and of records.
type tokenState struct {
	frozen, retired bool
	indexed         int64 // bytes of entries that are vouched for
}

func (s tokenState) closed() bool { return s.frozen || s.retired }

// lock takes the lock of the file, which must be there, and says which file the path names behind that.
func (r *fileReplay) lock(ctx context.Context, path string) (io.Closer, fs.FileInfo, error) {
	if r.name.part() == partRecords {
		return lockNamed(ctx, osFiles{}, path, false)
	}
	st, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err // no lock is made for nothing
	}
	l, _, err := lockNamed(ctx, osFiles{st.Mode().Perm()}, tokenLockPath(r.dir, r.name.rollout()), true)
	if err != nil {
		return nil, nil, err
	}
	if st, err = os.Lstat(path); err != nil {
		l.Close()
		return nil, nil, err
	}
	return l, st, nil
}

// readState reads the state beside token files. One that is damaged says nothing: its rollout is damaged anyway, and what was promised
// of it is brought back.
func (r *fileReplay) readState() (s tokenState, err error) {
	if r.name.part() == partRecords {
		return s, nil
	}
	f, err := openFile(tokenStatePath(r.dir, r.name.rollout()), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, stateMax+1))
	if err != nil || len(b) > stateMax || !jsonx.Valid(b) {
		return s, err
	}
	var m [3][]byte
	jsonx.GetAll(b, []string{"frozen", "retired", "indexed_size"}, m[:])
	s.frozen, s.retired = string(m[0]) == "true", string(m[1]) == "true"
	if n, ok := jsonx.Int(m[2]); ok {
		s.indexed = n
	} else {
		s.indexed = math.MaxInt64 // of a writer that made no index
	}
	return s, nil
}

// same reports whether an entry is about this file, and about what that is still allowed to get.
func (r *fileReplay) same(e replayEntry) bool {
	switch {
	case !sameFile(e.file, r.is, e.segment.wasDev, e.segment.isDev), r.state.retired:
		return false
	case r.state.frozen && r.name.part() == PartTokens:
		return e.offset+e.size <= r.state.indexed
	}
	return true
}

// split makes an entry of each intent, since each may have been withdrawn by itself.
func (r *fileReplay) split(entries []replayEntry) ([]replayEntry, error) {
	if r.name.part() != PartIntents {
		return entries, nil
	}
	var lines []replayEntry
	for _, e := range entries {
		if err := r.source(e.segment); err != nil {
			return nil, err
		}
		err := r.each(r.seg, e.at, e.size, func(l Line, _ [16]byte) error {
			one := e
			one.at, one.offset, one.size, one.lines = e.at+l.start, e.offset+l.start, l.size, 1
			lines = append(lines, one)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// blank overwrites the rest of an intent that was being withdrawn.
func (r *fileReplay) blank(e replayEntry) error {
	b := make([]byte, e.size) // an intent's, some hundred bytes
	for i := range b {
		b[i] = ' '
	}
	b[len(b)-1] = '\n'
	return r.write(b, e.offset)
}

// cut takes away the unfinished last line.
func (r *fileReplay) cut() error {
	if err := r.ask(); err != nil {
		return err
	}
	if err := r.f.Truncate(r.tail); err != nil {
		return err
	}
	r.size = r.tail
	return nil
}
