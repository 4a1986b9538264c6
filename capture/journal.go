package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"rolltap/capture/protocol"
	"rolltap/internal/storefs"
)

// Names inside a store: <store>/.journal/<writer>/ holds lock and segments.
const (
	journalDir    = ".journal"
	journalLock   = "lock"
	segmentSuffix = ".seg"
	damagedPrefix = "damaged-"
)

// journalIdle is how long a segment lies open unused. Behind it the files are synced and nothing of the journal is left: a
// store at rest can be copied, moved and remounted.
const journalIdle = 500 * time.Millisecond

// journalGiveUp is how long the folder's lock is waited for.
const journalGiveUp = 10 * time.Second

// errJournalMoved is returned when what was written is not where the next start would look for it.
var errJournalMoved = errors.New("journal segment was removed or moved while it was written")

type journalOptions struct {
	dir    string // of the store
	writer string // names the folder; unique among living writers

	segmentBytes int64         // a larger segment is not written on; zero means 64 MiB
	segmentAge   time.Duration // neither is an older one; zero means 30 s
	segmentFiles int           // nor one with entries of so many files; zero means 65,536
	pause        time.Duration // before a file that could not be synced is tried again, doubled each time up to 64 times that; zero means 1 s

	// synced is told how long each sync of a segment took. It may be nil.
	synced func(time.Duration)
	// trouble is told what the journal could not do behind everybody's back, with the rollout when it is about one. It may be
	// nil and must not block.
	trouble func(rollout string, err error)

	mode fs.FileMode  // of files; zero means 0640
	fs   journalFiles // nil means the real ones
}

func (o journalOptions) withDefaults() journalOptions {
	if o.segmentBytes <= 0 {
		o.segmentBytes = 64 << 20
	}
	if o.segmentAge <= 0 {
		o.segmentAge = 30 * time.Second
	}
	if o.segmentFiles <= 0 {
		o.segmentFiles = 1 << 16
	}
	if o.pause <= 0 {
		o.pause = time.Second
	}
	if o.trouble == nil {
		o.trouble = func(string, error) {}
	}
	if o.fs == nil {
		o.fs = osJournalFiles{osFiles{o.mode}}
	}
	return o
}

// journalFiles is the file system as the journal sees it; it exists so that tests can let the next call fail.
type journalFiles interface {
	// create makes a segment; its name must be new.
	create(path string) (segmentFile, error)
	// syncData makes a file that lines were appended to durable.
	syncData(path string) error
	stat(path string) (fs.FileInfo, error)
	syncDir(dir string) error
}

type segmentFile interface {
	WriteAt(p []byte, off int64) (int, error)
	// Sync returns nil only when what was written is durable. After an error the file is not used any more.
	Sync() error
	Stat() (fs.FileInfo, error)
	Close() error
}

type osJournalFiles struct{ osFiles }

func (fsys osJournalFiles) create(path string) (segmentFile, error) {
	f, err := createFile(path, os.O_RDWR, fsys.mode)
	if err != nil {
		return nil, err
	}
	return &osSegment{File: f, direct: storefs.Direct(f, true)}, nil
}

func (osJournalFiles) syncData(path string) error { return syncFile(path) }

// osSegment is written around the system's memory where the file system takes that: what is read only behind a crash is not worth the pages
// that it would take from everybody, nor the time to copy it there.
type osSegment struct {
	*os.File
	direct bool
}

func (s *osSegment) WriteAt(p []byte, off int64) (int, error) {
	n, err := s.File.WriteAt(p, off)
	if n == 0 && s.direct && errors.Is(err, syscall.EINVAL) { // some file systems say so only now, or have larger blocks
		s.direct = false
		storefs.Direct(s.File, false)
		n, err = s.File.WriteAt(p, off)
	}
	return n, err
}

func (s *osSegment) Sync() error { return storefs.Datasync(s.File) }

// journalEntry is what is about to be appended to a file. The one who commits it holds the lock of that file, from
// before it looked at the offset until the lines stand there, and the file's name is durable.
type journalEntry struct {
	name   fileName
	file   fileID
	offset int64 // where the data begins
	lines  int
	// data are the bytes that are appended: whole lines, with a newline in front when the file ended inside a line. They are
	// not changed until commit returns.
	data []byte
}

// journal makes what is appended to all rollouts of one writer durable, by one sync for all who wait at the same time.
//
// Its promise: when commit returned nil, the next replayJournals, after whatever crash, finds the entry, until the
// file itself is durable. What it owns: the folder named after the writer, whose lock it holds as long as there are
// segments, and two goroutines at most: one that writes, which runs only while somebody waits, and one that retires old
// segments.
//
// A segment is written by the writing goroutine, one batch after the other. It is sealed, by the same goroutine or while
// that does not run, when it is large, old, holds many files, or after any failure, and never written or synced again.
// A sealed segment belongs to the retiring goroutine: when the lines of all its entries stand in their files it syncs these
// files and removes it.
type journal struct {
	o      journalOptions
	folder string
	wake   chan struct{} // of the retiring goroutine, holds one
	quit   context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup // both goroutines

	// Of the writing goroutine, and of close behind it.
	lock    file   // of the folder; nil when there is none
	number  int    // of the last segment
	scratch []byte // of the batch that is being written

	mu       sync.Mutex // guards the rest, and what segment says; never held across a system call
	closed   bool
	writing  bool
	retiring bool // its goroutine was started
	queue    []*journalBatch
	cur      *segment // nil when the next batch makes one
	sealed   []*segment
	suspect  map[fileName]int // syncs that failed since a file was durable: what the journal holds of it must be written again first
}

// segment is one file of a journal.
type segment struct {
	path    string
	created time.Time
	info    fs.FileInfo
	size    int64 // written so far; of the writing goroutine
	f       segmentFile

	// Guarded by journal.mu.
	entries int                   // that were acknowledged
	open    int                   // of these, whose lines do not stand in their files yet
	files   map[fileName]struct{} // that hold lines which may not be durable
	used    time.Time             // the last entry
	pause   time.Duration         // the last, after a failure
	retry   time.Time             // not before
}

// segmentRef stands for one committed entry. Exactly one of its methods is called, once.
type segmentRef struct {
	j *journal
	s *segment
}

// applied says that the entry's lines stand in their file, durable or not. The entry is kept until they are.
func (r *segmentRef) applied(name fileName) { r.done(name) }

// forsaken says that nobody will be told that the entry's lines are durable. It may come back with a replay, or not.
func (r *segmentRef) forsaken() { r.done("") }

func (r *segmentRef) done(name fileName) {
	r.j.mu.Lock()
	if name != "" {
		r.s.files[name] = struct{}{}
	}
	r.s.open--
	free := r.s.open == 0 && r.s != r.j.cur
	r.j.mu.Unlock()
	if free {
		r.j.wakeUp()
	}
}

// journalBatch is entries that become durable together.
type journalBatch struct {
	entries []*journalEntry
	bytes   int64
	ref     segmentRef // valid, as err is, when done is closed
	err     error
	done    chan struct{}
}

// doubt says that a sync of the file failed for somebody else: everything that the journal still knows of it is
// written anew before a sync of that file is believed.
func (j *journal) doubt(name fileName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	segments := j.sealed
	if j.cur != nil {
		segments = append(slices.Clone(segments), j.cur)
	}
	for _, s := range segments {
		if _, ok := s.files[name]; ok {
			j.suspect[name]++
			return
		}
	}
}

// newJournal touches nothing: the folder is made for the first entry. The caller must close it.
func newJournal(o journalOptions) *journal {
	j := &journal{
		o: o.withDefaults(), folder: filepath.Join(o.dir, journalDir, o.writer),
		wake: make(chan struct{}, 1), suspect: map[fileName]int{},
	}
	j.quit, j.stop = context.WithCancel(context.Background())
	return j
}

// commit returns when the entry is durable. After an error it may be in the journal all the same, so its lines may come
// back with a replay, but nothing may be said to rest on it. Nothing is carried over: the next entry goes to a new segment.
func (j *journal) commit(e *journalEntry) (*segmentRef, error) {
	if !e.name.valid() {
		return nil, fmt.Errorf("%w: %q", ErrInvalidID, e.name)
	}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	b := j.join(e)
	if !j.writing {
		j.writing = true
		j.wg.Go(j.write)
	}
	j.mu.Unlock()
	<-b.done
	if b.err != nil {
		return nil, fmt.Errorf("journal: %w", b.err)
	}
	return &b.ref, nil
}

// join adds the entry to the last batch that waits, or to a new one. It is called with mu held.
func (j *journal) join(e *journalEntry) *journalBatch {
	size := int64(len(e.data)) + entryHead
	if n := len(j.queue); n > 0 {
		if b := j.queue[n-1]; b.bytes+size <= journalBatchMax {
			b.entries = append(b.entries, e)
			b.bytes += size
			return b
		}
	}
	b := &journalBatch{entries: make([]*journalEntry, 1, 16), bytes: size, done: make(chan struct{})}
	b.entries[0] = e
	j.queue = append(j.queue, b)
	return b
}

// write is the writing goroutine.
func (j *journal) write() {
	for {
		// Those who were just told come back with their next entries: let them, or they wait for a batch that holds nobody else.
		runtime.Gosched()
		b := j.take()
		if b == nil {
			return
		}
		s, p, err := j.writeBatch(b)
		j.mu.Lock()
		if p.Do == protocol.Commit {
			b.ref = segmentRef{j, s}
			s.used = time.Now()
			s.entries += len(b.entries)
			s.open += len(b.entries)
		} else {
			b.err = cmp.Or(err, errUnfinished)
		}
		if p.Seal {
			j.seal()
		}
		j.mu.Unlock()
		close(b.done)
	}
}

// take returns the next batch. When there is none, nil, and the writing goroutine ends.
func (j *journal) take() *journalBatch {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.full() {
		j.seal()
	}
	if len(j.queue) == 0 {
		j.writing = false
		j.queue = nil
		return nil
	}
	b := j.queue[0]
	j.queue = j.queue[1:]
	return b
}

// full reports whether the current segment gets no more batches. It is called with mu held, by the writing goroutine or
// while that does not run.
func (j *journal) full() bool {
	s := j.cur
	return s != nil && (s.size >= j.o.segmentBytes || time.Since(s.created) >= j.o.segmentAge || len(s.files)+s.open >= j.o.segmentFiles)
}

// seal gives the current segment, if any, to the retiring goroutine. It is called as full is.
func (j *journal) seal() {
	if j.cur != nil {
		j.sealed = append(j.sealed, j.cur)
		j.cur = nil
		j.wakeUp()
	}
}

// use makes s the segment of the next batches, now that its name is durable.
func (j *journal) use(s *segment) {
	j.mu.Lock()
	j.cur = s
	if !j.retiring && !j.closed {
		j.retiring = true
		j.wg.Go(j.retire)
	}
	j.mu.Unlock()
	j.wakeUp() // it knows when this one is old
}

// newSegment makes the next segment, in a new folder when there is none or it has gone. Its name is not durable yet.
func (j *journal) newSegment() (*segment, error) {
	if err := j.holdFolder(); err != nil {
		return nil, err
	}
	var path string
	var f segmentFile
	for {
		j.number++ // never used twice: an old segment may come back when its folder does
		path = filepath.Join(j.folder, fmt.Sprintf("%08d%s", j.number, segmentSuffix))
		var err error
		if f, err = j.o.fs.create(path); err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	s := &segment{path: path, f: f, created: time.Now(), files: map[fileName]struct{}{}}
	s.used = s.created
	if err := s.begin(); err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// drop takes back a segment that nothing was written to.
func (s *segment) drop() {
	s.f.Close()
	os.Remove(s.path) // if that fails, too, the next replay finds a segment without entries
}

func (s *segment) begin() error {
	st, err := s.f.Stat()
	if err != nil {
		return err
	}
	s.info = st
	dev := deviceOf(st)
	return s.write(appendPadding(appendSegmentHeader(alignedBuf(nil, segmentHeader+directBlock), s.created, dev)))
}

// holdFolder makes the folder and takes its lock, unless that is ours already.
func (j *journal) holdFolder() error {
	path := filepath.Join(j.folder, journalLock)
	if j.lock != nil {
		st, err := j.lock.Stat()
		if err == nil {
			var ok bool
			if ok, err = named(osFiles{}, path, st); ok {
				return nil
			}
		}
		// Wherever the folder went, what is in it may be replayed there.
		j.lock.Close()
		j.lock = nil
		if err != nil {
			return err
		}
	}
	// Somebody who replays may have it for a moment before there is a segment.
	ctx, cancel := context.WithTimeoutCause(context.Background(), journalGiveUp, ErrLocked)
	defer cancel()
	if err := noLink(filepath.Dir(j.folder)); err != nil {
		return err
	}
	l, _, err := lockNamed(ctx, osFiles{j.o.mode}, path, true)
	if err == nil {
		j.lock = l
	}
	return err
}
