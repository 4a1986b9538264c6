package training

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// Mark says durably that the rollout lacks a call, or has one that must not be trained on: for ever, and also of a frozen one. reason is a
// word that people read in the state file. callID may be empty.
func (s *Store) Mark(ctx context.Context, rollout, callID, reason string) error {
	if !ValidID(rollout) || callID != "" && !ValidCall(callID) {
		return fmt.Errorf("mark incomplete: %w: %q of %q", ErrInvalidID, callID, rollout)
	}
	return s.do(ctx, rollout, &op{run: func(t *turn) error {
		if err := t.loadState(); err != nil {
			return err
		}
		if err := t.r.st.over(false); err != nil {
			return err
		}
		if err := t.markState(callID, reason); err != nil {
			return err
		}
		return t.s.appendMarker(rollout, callID)
	}}, "mark incomplete")
}

// markState makes the state durably incomplete.
func (t *turn) markState(callID, reason string) error {
	st := t.r.st
	st.incomplete = true
	st.version++
	st.mark(Marked{CallID: callID, Reason: reason, At: strconv.FormatInt(time.Now().Unix(), 10)})
	if f := t.s.o.Observe.Marked; f != nil {
		f(t.r.id, callID, reason)
	}
	return t.writeState(true)
}

// appendMarker adds to <id>.tokens.incomplete, which is for people: what counts is in the state.
func (s *Store) appendMarker(rollout, callID string) error {
	h, err := openHandle(s.fs, markerPath(s.o.Dir, rollout), true)
	if err != nil {
		return err
	}
	defer h.Close()
	size, err := h.size()
	if err != nil {
		return err
	}
	if _, err := h.WriteAt(append([]byte(callID), '\n'), size); err != nil {
		return err
	}
	if err := h.Sync(); err != nil {
		return err
	}
	return s.dir.wait()
}

// Withdraw takes back the intent of a call of which it is known that it generated nothing: it was refused, or never sent. The
// intent is blanked where it stands, which readers take for an empty line. A kill leaves it blanked; after a power cut it may
// be back, and the rollout is masked. why is counted by word in the state, when that is written next.
//
// An intent that is not there is no error. A call that has an entry is ErrConflict.
func (s *Store) Withdraw(ctx context.Context, rollout, callID, why string) error {
	if !ValidID(rollout) || !ValidCall(callID) {
		return fmt.Errorf("withdraw call: %w: %q of %q", ErrInvalidID, callID, rollout)
	}
	return s.do(ctx, rollout, &op{run: func(t *turn) error {
		if err := t.live(); err != nil {
			return err
		}
		if err := t.index(); err != nil {
			return err
		}
		if _, ok := t.r.st.digests[callID]; ok {
			return fmt.Errorf("%w: %s has an entry", ErrConflict, callID)
		}
		if err := t.blank(callID); err != nil {
			return err
		}
		t.r.st.withdraw(why, 1)
		if f := s.o.Observe.Withdrawn; f != nil {
			f(rollout, callID, why)
		}
		return nil
	}}, "withdraw call")
}

// openIntents returns the file of intents with its end healed, nil when there is none.
func (t *turn) openIntents() (*handle, int64, error) {
	_, err := reuse(t.s.fs, &t.r.intents, intentsPath(t.s.o.Dir, t.r.id), false)
	if err != nil || t.r.intents == nil {
		return nil, 0, err
	}
	size, err := t.tail(t.r.intents)
	return t.r.intents, size, err
}

// blank overwrites the intents of a call with spaces.
func (t *turn) blank(callID string) error {
	h, size, err := t.openIntents()
	if err != nil || h == nil {
		return err
	}
	spaces := make([]byte, len(callID))
	for i := range spaces {
		spaces[i] = ' '
	}
	return eachIntent(h, size, func(call string, at int64) error {
		if call != callID {
			return nil
		}
		_, err := h.WriteAt(spaces, at)
		return err
	})
}

// eachIntent calls do for every intent of the file and where it stands.
func eachIntent(f io.ReaderAt, size int64, do func(call string, at int64) error) error {
	buf := make([]byte, 32<<10)
	held := 0 // of buf, the beginning of a line
	for off := int64(0); off < size; {
		n := int(min(int64(len(buf)-held), size-off))
		if n == 0 {
			return fmt.Errorf("%w: an intent is longer than %d bytes", ErrDamaged, len(buf))
		}
		if _, err := f.ReadAt(buf[held:held+n], off); err != nil {
			return err
		}
		off += int64(n)
		p := buf[:held+n]
		at := off - int64(len(p))
		for i := 0; i < len(p); i++ {
			if p[i] != '\n' && p[i] != '\r' && (off < size || i < len(p)-1) {
				continue
			}
			end := i
			if p[i] != '\n' && p[i] != '\r' {
				end++ // the last line lacks its newline
			}
			from := 0
			for from < end && isSpace(p[from]) {
				from++
			}
			to := end
			for to > from && isSpace(p[to-1]) {
				to--
			}
			if to > from {
				if err := do(string(p[from:to]), at+int64(from)); err != nil {
					return err
				}
			}
			p, at, i = p[i+1:], at+int64(i)+1, -1
		}
		held = copy(buf, p)
	}
	return nil
}

// isSpace is what readers strip off an intent.
func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// dangling reports whether an intent has no entry.
func (t *turn) dangling() (bool, error) {
	h, size, err := t.openIntents()
	if err != nil || h == nil {
		return false, err
	}
	found := false
	err = eachIntent(h, size, func(call string, _ int64) error {
		if _, ok := t.r.st.digests[call]; !ok {
			found = true
		}
		return nil
	})
	return found, err
}

// Snapshot is what a rollout was when it was frozen. Its entries are read from the file, also after a Drop.
type Snapshot struct {
	Rollout    string
	Incomplete bool
	ID         string
	Version    int64
	Marks      []Marked // reasons that are known

	file *os.File // nil when there are no entries
	size int64
}

// Entries returns a new reader of the entries, whose order means nothing.
func (p *Snapshot) Entries() *Reader { return NewReader(p.File(), 0, p.size) }

// File is where the spans of the entries stand.
func (p *Snapshot) File() io.ReaderAt {
	if p.file == nil {
		return noFile{}
	}
	return p.file
}

// Close ends the use of the snapshot's file.
func (p *Snapshot) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

type noFile struct{}

func (noFile) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

// Freeze ends the capture of a rollout, durably, and returns what there is of it. It can be asked for again: that is the same
// snapshot, with a higher version if the rollout was marked meanwhile. The caller closes it.
func (s *Store) Freeze(ctx context.Context, rollout string) (*Snapshot, error) {
	if !ValidID(rollout) {
		return nil, fmt.Errorf("freeze: %w: %q", ErrInvalidID, rollout)
	}
	var snap *Snapshot
	var handed atomic.Bool // who comes second closes what nobody waits for
	err := s.do(ctx, rollout, &op{run: func(t *turn) (err error) {
		if snap, err = t.freeze(); err == nil && handed.Swap(true) {
			snap.Close()
		}
		return err
	}}, "freeze")
	if err == nil {
		return snap, nil
	}
	if handed.Swap(true) {
		snap.Close()
	}
	return nil, err
}

func (t *turn) freeze() (*Snapshot, error) {
	if err := t.loadState(); err != nil {
		return nil, err
	}
	if err := t.r.st.over(false); err != nil {
		return nil, err
	}
	if err := t.index(); err != nil {
		return nil, err
	}
	if err := t.r.st.over(false); err != nil {
		return nil, err
	}
	if err := t.settle(); err != nil {
		return nil, err
	}
	st := t.r.st
	switch {
	case !st.frozen:
		var id [16]byte
		rand.Read(id[:])
		st.frozen, st.snapshot = true, hex.EncodeToString(id[:])
		st.version++
		if err := t.writeState(true); err != nil {
			return nil, err
		}
	case t.r.behind > 0:
		if err := t.writeState(true); err != nil {
			return nil, err
		}
	}
	dangling, err := t.dangling()
	if err != nil {
		return nil, err
	}
	snap := &Snapshot{
		Rollout: t.r.id, Incomplete: st.incomplete || dangling, ID: st.snapshot, Version: st.version,
		Marks: append([]Marked(nil), st.marks...), size: st.indexed,
	}
	if t.r.data != nil {
		if snap.file, err = reopen(dataPath(t.s.o.Dir, t.r.id), t.r.data); err != nil {
			return nil, err
		}
	}
	if f := t.s.o.Observe.Frozen; f != nil {
		f(t.r.id, snap.Incomplete)
	}
	return snap, nil
}

// reopen opens the file of h once more, for reading.
func reopen(path string, h *handle) (*os.File, error) {
	f, err := openRead(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !os.SameFile(st, h.info) {
		err = fmt.Errorf("%s: %w", path, errMoved)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Drop removes a frozen rollout's entries, intents and markers, and leaves a tombstone that keeps late writers out. It does
// nothing and returns false unless the rollout is frozen with exactly this snapshot and version.
func (s *Store) Drop(ctx context.Context, rollout, snapshotID string, version int64) (bool, error) {
	if !ValidID(rollout) {
		return false, fmt.Errorf("drop: %w: %q", ErrInvalidID, rollout)
	}
	dropped := false
	err := s.do(ctx, rollout, &op{run: func(t *turn) error {
		if err := t.loadState(); err != nil {
			return err
		}
		st := t.r.st
		if !st.frozen || st.snapshot != snapshotID || st.version != version {
			return nil
		}
		// The tombstone first: files that are still there after a crash are removed by the next Drop or by the sweep.
		st.retired, st.indexed = true, 0
		clear(st.digests)
		if err := t.writeState(true); err != nil {
			return err
		}
		dropped = true
		if f := s.o.Observe.Dropped; f != nil {
			f(rollout)
		}
		return t.removeFiles(false)
	}}, "drop")
	return err == nil && dropped, err // in this order: after an error the operation may still be running
}

// Delete removes everything of a rollout but its lock, whatever it is, so that it can begin anew. What is not there is no error.
func (s *Store) Delete(ctx context.Context, rollout string) error {
	if !ValidID(rollout) {
		return fmt.Errorf("delete: %w: %q", ErrInvalidID, rollout)
	}
	if !Exists(s.o.Dir, rollout) { // no lock is made for nothing
		return nil
	}
	return s.do(ctx, rollout, &op{run: func(t *turn) error { return t.removeFiles(true) }}, "delete")
}

// removeFiles removes the files of a rollout, durably.
func (t *turn) removeFiles(state bool) error {
	dir, id := t.s.o.Dir, t.r.id
	t.r.forget()
	t.r.known = [2]fileID{}
	t.s.lineage.forget(id)
	paths := []string{dataPath(dir, id), markerPath(dir, id), intentsPath(dir, id)}
	if state {
		paths = append(paths, statePath(dir, id))
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, t.s.fs.remove(path))
	}
	errs = append(errs, t.s.dir.wait())
	return errors.Join(errs...)
}

// SweepRetired removes tombstones whose state was last written longer than age ago, their locks included, and returns how
// many they were. Errors of single rollouts do not stop it.
func (s *Store) SweepRetired(ctx context.Context, age time.Duration) (int, error) {
	ids, err := Rollouts(s.o.Dir)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	cutoff := time.Now().Add(-age)
	removed := 0
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		path := statePath(s.o.Dir, id)
		if st, err := os.Lstat(path); err != nil || st.ModTime().After(cutoff) {
			continue
		}
		// Without a look at the state no lock is made.
		if st, err := readState(s.fs, path); err != nil || !st.retired {
			continue
		}
		gone := false
		err := s.do(ctx, id, &op{run: func(t *turn) error {
			if err := t.loadState(); err != nil {
				return err
			}
			st, err := os.Lstat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && (st.ModTime().After(cutoff) || !t.r.st.retired) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := t.removeFiles(true); err != nil {
				return err
			}
			gone = true
			return t.s.fs.remove(lockPath(s.o.Dir, id))
		}}, "sweep")
		if err != nil {
			errs = append(errs, err)
		} else if gone {
			removed++
		}
	}
	return removed, errors.Join(errs...)
}
