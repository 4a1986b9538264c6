package capture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"rolltap/internal/storefs"
)

// Repair moves what is no record out of the data files: damaged lines and torn tails go, as they are, to
// <id>.capture.damaged, NUL bytes in front of records are dropped. Whole lines keep their bytes and their order; a last line
// that is whole gets its newline. Nothing is lost at any moment: a crash leaves the old file, and at worst damaged lines that
// stand in both places. A file is replaced under its lock, so writers may be at work. found is told what was repaired; the
// report counts only that. ctx bounds the wait for locks. A file that cannot be repaired does not keep the others from it.
//
// A repaired file is another one to a journal, whose entries for it would count as cleared. So Repair replays what dead
// writers left before it touches anything, and leaves a file alone for which a journal still holds lines.
func Repair(ctx context.Context, dir string, found func(Finding)) (Report, error) {
	ids, err := Rollouts(dir)
	if err != nil {
		return Report{}, err
	}
	var errs []error
	if err := Replay(ctx, dir, nil); err != nil {
		errs = append(errs, err)
	}
	v := verifier{dir: dir, found: found, report: Report{Rollouts: len(ids), Found: map[FindingKind]int{}}}
	for _, id := range ids {
		if err := v.repair(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("repair %s: %w", id, err))
		}
	}
	return v.report, errors.Join(errs...)
}

func (v *verifier) repair(ctx context.Context, id string) error {
	if sound, err := sound(v.dir, id); err != nil || sound {
		return err
	}
	path := dataPath(v.dir, id)
	lock, st, err := lockNamed(ctx, osFiles{}, path, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil // cleared meanwhile
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := owed(v.dir, id); err != nil {
		return err
	}
	lines, err := OpenLines(v.dir, id)
	if err != nil {
		return err
	}
	defer lines.Close()
	temp := filepath.Join(v.dir, "."+id+".repair")
	good, err := newTarget(temp, os.O_TRUNC, st)
	if err != nil {
		return err
	}
	defer os.Remove(temp) // fails when it has become the data file
	defer good.Close()
	bad, err := newTarget(damagedPath(v.dir, id), os.O_APPEND, st)
	if err != nil {
		return err
	}
	defer bad.Close()
	found, err := v.sort(id, lines, lock, good, bad)
	if err != nil {
		return err
	}
	// The damaged lines are durable before the file that lacks them takes its place.
	for _, t := range []*target{bad, good} {
		if err := t.finish(); err != nil {
			return err
		}
	}
	if bad.wrote == 0 && bad.fresh {
		os.Remove(damagedPath(v.dir, id))
	}
	if !found {
		return nil // what looked torn was a write that went on
	}
	if err := storefs.SyncFolder(v.dir); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return storefs.SyncFolder(v.dir)
}

// sound reports whether there is nothing to repair.
func sound(dir, id string) (bool, error) {
	lines, err := OpenLines(dir, id)
	if err != nil {
		return false, err
	}
	defer lines.Close()
	for {
		l, err := lines.Next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil || l.Damage != nil || l.Torn || l.hole {
			return false, err
		}
	}
}

// errOwed keeps Repair from a file.
var errOwed = errors.New("a journal holds lines that the file lacks; try again when they are replayed")

// owed returns errOwed when a journal, of whoever, holds lines that the file of a rollout should have and has not: another
// process is about to bring them back. The caller holds the lock of that file, so nobody does so meanwhile.
func owed(dir, id string) error {
	entries, err := entriesFor(dir, id)
	if err != nil || len(entries) == 0 {
		return err
	}
	r := fileReplay{dir: dir, name: nameOf(id, partRecords)}
	if r.f, err = openFile(dataPath(dir, id), os.O_RDONLY); err != nil {
		return err
	}
	defer r.f.Close()
	st, err := r.f.Stat()
	if err != nil {
		return err
	}
	r.size = st.Size()
	if r.is, err = identityOf(r.f); err != nil {
		if errors.Is(err, errNoBirthTime) {
			return nil // no entry is about this file
		}
		return err
	}
	for _, e := range entries {
		if !sameFile(e.file, r.is, e.segment.wasDev, e.segment.isDev) {
			continue
		}
		if err := r.owes(e); err != nil {
			return err
		}
	}
	return nil
}

// entriesFor returns what all journals hold for the records of a rollout.
func entriesFor(dir, id string) (entries []replayEntry, err error) {
	root := filepath.Join(dir, journalDir)
	journals, err := os.ReadDir(root)
	for _, j := range journals {
		if !j.IsDir() {
			continue
		}
		segments, err := os.ReadDir(filepath.Join(root, j.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, s := range segments {
			if !strings.HasSuffix(s.Name(), segmentSuffix) {
				continue
			}
			_, err := readSegment(filepath.Join(root, j.Name(), s.Name()), func(e replayEntry) {
				if e.name == nameOf(id, partRecords) {
					entries = append(entries, e)
				}
			})
			// What is torn was promised to nobody, and what has gone was not needed any more.
			if err != nil && !errors.Is(err, errDamagedEntry) && !errors.Is(err, errNoSegment) && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return entries, err
}

// owes returns errOwed when the file lacks a line of the entry, wherever it would stand.
func (r *fileReplay) owes(e replayEntry) error {
	var err error
	if r.seg, err = openFile(e.segment.path, os.O_RDONLY); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer r.seg.Close()
	f, err := r.compare(e)
	if err != nil || f.Whole {
		return err
	}
	if r.calls == nil {
		if err := r.scan(); err != nil {
			return err
		}
	}
	return r.each(r.seg, e.at, e.size, func(_ Line, key [16]byte) error {
		if _, ok := r.calls[key]; !ok {
			return errOwed
		}
		return nil
	})
}

// sort copies whole lines to good and the rest to bad, and reports whether anything has to be repaired.
func (v *verifier) sort(id string, lines *Lines, from io.ReaderAt, good, bad *target) (found bool, err error) {
	file := id + dataSuffix
	for {
		l, err := lines.Next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		v.report.Records++
		to := good
		found = found || l.Torn || l.hole || l.Damage != nil
		switch {
		case l.Torn:
			v.tell(FoundTorn, id, file, l.Number, "no newline at the end, %d bytes", l.size)
		case l.Damage != nil:
			v.tell(FoundDamaged, id, file, l.Number, "%v, %d bytes", l.Damage, l.size)
		case l.hole:
			v.tell(FoundHole, id, file, l.Number, "NUL bytes in front of it")
		}
		if l.Damage != nil {
			v.report.Records--
			to = bad
		}
		if l.hole && l.Damage == nil {
			err = to.write(l.Raw)
		} else {
			err = to.copy(from, l.start, l.size)
		}
		if err == nil && (l.Torn || l.hole && l.Damage == nil) {
			err = to.write([]byte{'\n'})
		}
		if err != nil {
			return found, err
		}
	}
}

// target is a file that Repair writes lines to.
type target struct {
	f     *os.File
	w     *bufio.Writer
	fresh bool // there was none before
	wrote int64
}

// newTarget opens path for writing with the mode, and where that is allowed the owner, of the data file that st describes:
// a repair by root must not lock the owner out.
func newTarget(path string, flag int, st fs.FileInfo) (*target, error) {
	_, err := os.Lstat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	f, err := openOrCreate(path, os.O_WRONLY|flag, 0)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := f.Chmod(st.Mode().Perm()); err != nil {
			f.Close()
			return nil, err
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			f.Chown(int(sys.Uid), int(sys.Gid))
		}
	}
	return &target{f: f, w: bufio.NewWriterSize(f, pieceSize), fresh: fresh}, nil
}

func (t *target) write(p []byte) error {
	n, err := t.w.Write(p)
	t.wrote += int64(n)
	return err
}

func (t *target) copy(from io.ReaderAt, start, size int64) error {
	n, err := io.Copy(t.w, io.NewSectionReader(from, start, size))
	t.wrote += n
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF // somebody cut the file without regard for the lock
	}
	return err
}

// finish makes durable what was written.
func (t *target) finish() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	return t.f.Sync()
}

func (t *target) Close() error { return t.f.Close() }
