package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"rolltap/capture/protocol"
)

// errDoubted puts off a segment whose files have to be written anew first.
var errDoubted = errors.New("another sync of the file failed")

// retireSyncs is how many files are synced at the same time when a segment is retired.
const retireSyncs = 8

// wakeUp lets the retiring goroutine look again.
func (j *journal) wakeUp() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// retire is the retiring goroutine. It never holds anything that a commit waits for.
func (j *journal) retire() {
	for j.quit.Err() == nil {
		s, wait := j.nextRetired(time.Now())
		if s != nil {
			j.retireSegment(j.quit, s)
			continue
		}
		j.giveFolder()
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-j.wake:
		case <-j.quit.Done():
		}
		t.Stop()
	}
}

// nextRetired returns the oldest segment that can be retired now, else how long nothing changes unless somebody wakes us.
func (j *journal) nextRetired(now time.Time) (*segment, time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	wait := time.Hour
	if j.cur != nil {
		switch idle := now.Sub(j.cur.used); {
		case j.writing: // it seals the segment itself when it is full, and wakes us
			wait = journalIdle
		case j.full(), idle >= journalIdle:
			j.seal()
		default:
			wait = min(journalIdle-idle, max(0, j.o.segmentAge-now.Sub(j.cur.created)))
		}
	}
	for _, s := range j.sealed {
		switch left := s.retry.Sub(now); {
		case protocol.Retire(true, s.open, len(s.files)) == protocol.Keep: // applied or forsaken wakes us
		case left > 0:
			wait = min(wait, left)
		default:
			return s, 0
		}
	}
	return nil, wait
}

// giveFolder gives folder and lock back when there is no segment. Meanwhile nobody writes: the lock is of whoever does.
func (j *journal) giveFolder() {
	j.mu.Lock()
	if j.writing || j.cur != nil || len(j.sealed) > 0 || j.lock == nil || j.closed {
		j.mu.Unlock()
		return
	}
	j.writing = true
	j.mu.Unlock()
	removeJournal(j.folder)
	j.lock.Close()
	j.lock = nil
	j.scratch = nil
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.writing = len(j.queue) > 0; j.writing {
		j.wg.Go(j.write)
	}
}

// retireSegment syncs the files of a sealed segment whose entries are all applied and removes it. A file that has gone, or
// that another one has taken the place of, needs no sync: it was cleared, and clear promises nothing about what was in it.
func (j *journal) retireSegment(ctx context.Context, s *segment) error {
	if s.f != nil {
		s.f.Close()
		s.f = nil
	}
	j.mu.Lock()
	names := make([]fileName, 0, len(s.files))
	if protocol.Retire(true, s.open, len(s.files)) == protocol.SyncRollouts {
		for name := range s.files {
			names = append(names, name)
		}
	}
	j.mu.Unlock()
	slices.Sort(names)
	again, err := j.suspects(names)
	if err != nil {
		err = fmt.Errorf("read the journal: %w", err)
		j.o.trouble("", err)
		names = nil
	}
	var g errgroup.Group // its context would end the others at the first error
	g.SetLimit(retireSyncs)
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			anew := again[name]
			err := j.syncFile(ctx, name, anew.entries)
			j.mu.Lock()
			switch {
			case protocol.Trust(err == nil, anew.failed, j.suspect[name]):
				delete(s.files, name)
				delete(j.suspect, name)
			case err == nil:
				err = errDoubted // meanwhile somebody else's sync of it failed
			case ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)):
				j.suspect[name]++
			}
			j.mu.Unlock()
			if err != nil {
				err = fmt.Errorf("sync %s for the journal: %w", name.base(), err)
				j.o.trouble(name.rollout(), err)
			}
			return err
		})
	}
	if e := g.Wait(); err == nil {
		err = cmp.Or(e, context.Cause(ctx))
	}
	j.mu.Lock()
	next := protocol.Retire(true, s.open, len(s.files))
	j.mu.Unlock()
	if next == protocol.RemoveSegment {
		if err = os.Remove(s.path); errors.Is(err, fs.ErrNotExist) {
			err = nil // it went where its folder went
		}
		if err != nil {
			j.o.trouble("", fmt.Errorf("remove a journal segment: %w", err))
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.sealed = slices.DeleteFunc(j.sealed, func(x *segment) bool { return x == s })
		return nil
	}
	s.pause = min(max(2*s.pause, j.o.pause), 64*j.o.pause)
	s.retry = time.Now().Add(s.pause)
	return err
}

// syncFile makes a file durable. again are the entries that must be written anew before, see suspects.
func (j *journal) syncFile(ctx context.Context, name fileName, again []replayEntry) error {
	if len(again) > 0 {
		r := fileReplay{dir: j.o.dir, name: name}
		if err := r.run(ctx, again); err != nil {
			return err
		}
	}
	err := j.o.fs.syncData(name.path(j.o.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// anew is everything that the journal holds for a file which could not be synced, and how often.
type anew struct {
	entries []replayEntry
	failed  int
}

// suspects returns everything that the journal still knows of those files which could not be synced
// before. The system may have dropped what it could not write, and say yes the next time, for whichever segment asks: so all
// of it is written anew before that.
func (j *journal) suspects(names []fileName) (map[fileName]anew, error) {
	found := map[fileName]anew{}
	j.mu.Lock()
	for _, name := range names {
		if n := j.suspect[name]; n > 0 {
			found[name] = anew{failed: n}
		}
	}
	var paths []string
	for _, s := range j.sealed {
		paths = append(paths, s.path)
	}
	if j.cur != nil {
		paths = append(paths, j.cur.path)
	}
	j.mu.Unlock()
	if len(found) == 0 {
		return nil, nil
	}
	for _, path := range paths {
		// The end of a segment that is being written is torn for us. What we miss of it is newer than the failure.
		_, err := readSegment(path, func(e replayEntry) {
			if a, ok := found[e.name]; ok {
				a.entries = append(a.entries, e)
				found[e.name] = a
			}
		})
		if err != nil && !errors.Is(err, errDamagedEntry) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return found, nil
}

// close takes no more entries, waits for those that are being written, syncs every file and removes the folder. Segments
// that cannot be retired before ctx ends, because a file could not be synced or an entry was never applied, stay for the
// next replay, and the error says so. Only a call inside the kernel can outlive it.
func (j *journal) close(ctx context.Context) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return ErrClosed
	}
	j.closed = true
	j.mu.Unlock()
	j.stop()
	left := make(chan error, 1)
	go func() {
		j.wg.Wait()
		left <- j.finish(ctx)
	}()
	select {
	case err := <-left:
		return err
	case <-ctx.Done():
	}
	// What is under way is over soon, unless the disk hangs.
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	select {
	case err := <-left:
		return err
	case <-t.C:
		return fmt.Errorf("close the journal: the file system does not answer: %w", context.Cause(ctx))
	}
}

// finish runs when both goroutines have ended.
func (j *journal) finish(ctx context.Context) error {
	var errs []error
	j.mu.Lock()
	j.seal()
	sealed := slices.Clone(j.sealed)
	j.mu.Unlock()
	for _, s := range sealed {
		j.mu.Lock()
		open, left := s.open, len(s.files)
		j.mu.Unlock()
		var err error
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case protocol.Retire(true, open, left) == protocol.Keep:
			err = fmt.Errorf("%d entries were not written to their files", open)
		default:
			err = j.retireSegment(ctx, s)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("journal segment %s is left for the next start: %w", filepath.Base(s.path), err))
		}
		if s.f != nil {
			s.f.Close()
		}
	}
	if j.lock == nil {
		return errors.Join(errs...)
	}
	if len(errs) == 0 {
		removeJournal(j.folder)
	}
	j.lock.Close()
	j.lock = nil
	return errors.Join(errs...)
}

// removeJournal removes the folder of a journal without segments, and the folder around it when it was the last. Whoever
// does so holds its lock. What cannot be removed is an empty journal to the next replay.
func removeJournal(folder string) {
	os.Remove(filepath.Join(folder, journalLock))
	if os.Remove(folder) == nil {
		os.Remove(filepath.Dir(folder)) // fails while there are others
	}
}
