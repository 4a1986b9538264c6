package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"rolltap/capture/protocol"
)

// replayFiles is how many files are replayed at the same time.
const replayFiles = 8

// ReplayKind says what a replay met.
type ReplayKind string

const (
	ReplayRestored ReplayKind = "restored" // lines that a file had lost are there again
	ReplayCleared  ReplayKind = "cleared"  // entries of a file that is not there any more: nothing to do
	ReplayTorn     ReplayKind = "torn"     // bytes at the end of a segment that nobody was promised
	ReplayDamaged  ReplayKind = "damaged"  // a segment that cannot be read, or not to its end: it was kept aside
	ReplayFailed   ReplayKind = "failed"   // something that keeps the journal for the next time
)

// ReplayEvent is told by a replay. What does not apply is empty.
type ReplayEvent struct {
	Kind    ReplayKind
	Segment string // path inside the folder of journals
	Rollout string
	File    string // name in the store
	Lines   int
	Bytes   int64
	Err     error
}

// replayJournals brings back into the files of rollouts what the journals of dead writers hold and a power cut took from the
// files, makes the files durable and removes the journals. A journal whose owner lives is left alone. It may be killed at
// any moment and run again; nothing is then there twice. report may be nil; its calls do not overlap. What is damaged is
// reported and no error. The error is about what could not be done, and that journal stays for the next time, as all do
// when ctx ends.
//
// It runs before the store takes records; others may write to the same rollouts meanwhile.
func replayJournals(ctx context.Context, dir string, report func(ReplayEvent)) error {
	r := replayer{dir: dir, report: report}
	return r.run(ctx)
}

type replayer struct {
	dir    string
	report func(ReplayEvent)
	step   func() error // asked before anything is changed; an error ends the replay there. Of tests, nil otherwise

	mu sync.Mutex // guards calls of report, and owed
}

// deadJournal is a journal whose lock we hold.
type deadJournal struct {
	folder   string
	lock     io.Closer
	segments []string // paths
	aside    []string // segments that are damaged in the middle
	owed     int      // see protocol.RemoveJournal
}

// replayEntry is an entry with the place where its data is.
type replayEntry struct {
	segmentEntry
	segment *replaySegment
}

type replaySegment struct {
	path          string
	wasDev, isDev uint64 // its device when it was made, and now
	journal       *deadJournal
}

func (r *replayer) tell(e ReplayEvent) {
	if r.report != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report(e)
	}
}

func (r *replayer) run(ctx context.Context) error {
	root := filepath.Join(r.dir, journalDir)
	if err := noLink(root); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	found, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	var errs []error
	failed := func(e ReplayEvent) {
		e.Kind = ReplayFailed
		r.tell(e)
		r.mu.Lock()
		defer r.mu.Unlock()
		errs = append(errs, fmt.Errorf("replay: %w", e.Err))
	}
	var journals []*deadJournal
	defer func() {
		for _, j := range journals {
			j.lock.Close()
		}
	}()
	files := map[fileName][]replayEntry{}
	for _, d := range found {
		if !d.IsDir() || strings.HasPrefix(d.Name(), damagedPrefix) {
			continue
		}
		j := &deadJournal{folder: filepath.Join(root, d.Name())}
		l, err := osFiles{}.open(filepath.Join(j.folder, journalLock), true)
		switch {
		case errors.Is(err, errLocked), errors.Is(err, errMoved), errors.Is(err, fs.ErrNotExist):
			continue // its owner lives, or has just removed it
		case err != nil:
			failed(ReplayEvent{Segment: d.Name(), Err: err})
			continue
		}
		j.lock = l
		journals = append(journals, j)
		if err := r.read(j, files); err != nil {
			j.owed++
			failed(ReplayEvent{Segment: d.Name(), Err: err})
		}
	}

	var g errgroup.Group
	g.SetLimit(replayFiles)
	for name, entries := range files {
		g.Go(func() error {
			if err := r.file(ctx, name, entries); err != nil {
				r.mu.Lock()
				for _, e := range entries {
					e.segment.journal.owed++
				}
				r.mu.Unlock()
				failed(ReplayEvent{Rollout: name.rollout(), File: name.base(), Err: fmt.Errorf("%s: %w", name.base(), err)})
			}
			return nil
		})
	}
	g.Wait()
	for _, j := range journals {
		if !protocol.RemoveJournal(j.owed) {
			continue
		}
		if err := r.remove(j); err != nil {
			failed(ReplayEvent{Segment: filepath.Base(j.folder), Err: err})
		}
	}
	return errors.Join(errs...)
}

// read collects the entries of a journal.
func (r *replayer) read(j *deadJournal, files map[fileName][]replayEntry) error {
	found, err := os.ReadDir(j.folder) // sorted, and the names have their numbers in front
	if err != nil {
		return err
	}
	for _, d := range found {
		if !strings.HasSuffix(d.Name(), segmentSuffix) {
			continue
		}
		path := filepath.Join(j.folder, d.Name())
		name := filepath.Join(filepath.Base(j.folder), d.Name())
		end, err := readSegment(path, func(e replayEntry) {
			e.segment.journal = j
			files[e.name] = append(files[e.name], e)
		})
		switch {
		case errors.Is(err, errNoSegment) && end.blank:
			r.tell(ReplayEvent{Kind: ReplayTorn, Segment: name, Bytes: end.skipped, Err: err})
		case errors.Is(err, errNoSegment):
			r.tell(ReplayEvent{Kind: ReplayDamaged, Segment: name, Bytes: end.skipped, Err: err})
			if err := r.putAside(path); err != nil {
				return err
			}
			continue
		case errors.Is(err, errDamagedEntry) && end.goesOn:
			r.tell(ReplayEvent{Kind: ReplayDamaged, Segment: name, Bytes: end.skipped, Err: err})
			j.aside = append(j.aside, path)
		case errors.Is(err, errDamagedEntry):
			r.tell(ReplayEvent{Kind: ReplayTorn, Segment: name, Bytes: end.skipped, Err: err})
		case err != nil:
			return err
		}
		j.segments = append(j.segments, path)
	}
	return nil
}

// segmentEnd says how the reading of a segment ended.
type segmentEnd struct {
	skipped int64 // bytes behind the last entry
	goesOn  bool  // there are whole entries among them
	blank   bool  // there is no header: a power cut came before the first sync, so nobody was told of any entry
}

// readSegment gives every entry of a segment to each, up to the first damage.
func readSegment(path string, each func(replayEntry)) (segmentEnd, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return segmentEnd{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return segmentEnd{}, err
	}
	s, err := newSegmentReader(f, st.Size())
	if err == io.EOF {
		return segmentEnd{}, nil
	}
	if err != nil {
		return segmentEnd{skipped: st.Size(), blank: blank(f)}, err
	}
	from := &replaySegment{path: path, wasDev: s.dev, isDev: deviceOf(st)}
	for {
		e, err := s.next()
		if err == io.EOF {
			return segmentEnd{}, nil
		}
		if err != nil {
			return segmentEnd{skipped: s.skipped(), goesOn: s.goesOn()}, err
		}
		each(replayEntry{e, from})
	}
}

// blank reports whether a segment has no header, but the NUL bytes that a file system leaves for what was not synced, if that.
func blank(f io.ReaderAt) bool {
	var h [segmentHeader]byte
	n, err := f.ReadAt(h[:], 0)
	return n < len(h) && err == io.EOF || err == nil && h == [segmentHeader]byte{}
}

// file replays all entries of all dead journals for one file.
func (r *replayer) file(ctx context.Context, name fileName, entries []replayEntry) error {
	// Writers took turns, so the order in the file is the order of the offsets. Two entries have the same only when the first
	// was taken back, and then they are in one journal's order.
	slices.SortStableFunc(entries, func(a, b replayEntry) int { return cmp.Compare(a.offset, b.offset) })
	p := fileReplay{dir: r.dir, name: name, step: r.step}
	err := p.run(ctx, entries)
	if p.cleared > 0 {
		r.tell(ReplayEvent{Kind: ReplayCleared, Rollout: name.rollout(), File: name.base(), Lines: p.cleared})
	}
	if p.bytes > 0 {
		r.tell(ReplayEvent{Kind: ReplayRestored, Rollout: name.rollout(), File: name.base(), Lines: p.lines, Bytes: p.bytes})
	}
	return err
}

// remove takes away a journal whose entries are all in durable files.
func (r *replayer) remove(j *deadJournal) error {
	for _, path := range j.aside {
		if err := r.putAside(path); err != nil {
			return err
		}
	}
	for _, path := range j.segments {
		if err := r.ask(); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	removeJournal(j.folder)
	return nil
}

// putAside moves a segment where no replay looks for it.
func (r *replayer) putAside(path string) error {
	if err := r.ask(); err != nil {
		return err
	}
	folder, name := filepath.Split(path)
	folder = filepath.Clean(folder)
	return os.Rename(path, filepath.Join(filepath.Dir(folder), damagedPrefix+filepath.Base(folder)+"-"+name))
}

func (r *replayer) ask() error {
	if r.step == nil {
		return nil
	}
	return r.step()
}
