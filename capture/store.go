package capture

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rolltap/capture/protocol"
	"rolltap/internal/storefs"
)

// Errors that Append returns beside those of the file system and the cause of its context.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("capture store is closed")
	// ErrFull is returned when as much is waiting for the disk as Options.Pending allows.
	ErrFull = errors.New("too much is waiting for the capture store")
	// ErrInvalidID is returned for a rollout id that ValidID refuses.
	ErrInvalidID = errors.New("invalid rollout id")
	// ErrLocked is returned when somebody else held a rollout's lock for longer than Options.GiveUp.
	ErrLocked = errors.New("rollout file is locked by somebody else")
)

// Result is what became of a record. Every record that was given to Append gets exactly one.
type Result string

const (
	ResultOK   Result = "ok"   // durable, and Append returned nil
	ResultLate Result = "late" // durable, but Append's context had ended
	ResultLost Result = "lost" // not acknowledged; it may be in the file all the same after a failed sync
)

// Observe is told what happens. Any member may be nil. They are called from the goroutines that write and must not block.
type Observe struct {
	Batch      func(records, bytes int, took time.Duration) // one durable batch, from having the lock to the last sync
	Fsync      func(time.Duration)                          // one sync of a data file, whether it succeeded or not
	LockWait   func(time.Duration)                          // from wanting a rollout's lock to having it
	Record     func(Result)
	Truncated  func(body string)    // once for each body that a record names in rolltap.truncated, when its line is made
	Incomplete func(rollout string) // once for every Mark, the store's own included
	Healed     func(rollout string) // a torn tail was ended
	Trouble    func(rollout string, err error)
	Low        func(free int64)  // the free space was found to have fallen below MinFree
	Replay     func(ReplayEvent) // at the start, what dead writers left
}

// Options of a store. The zero value of everything but Dir works.
type Options struct {
	// Dir is the folder of the store. It is made, with its parents, when it does not exist.
	Dir string
	// Syncs is how many rollouts may be written and synced at the same time. Zero means 64.
	Syncs int
	// Pending is how many bytes of lines, over all rollouts, may wait for the disk. Zero means 256 MiB.
	Pending int64
	// Lines bounds the memory of lines, over all rollouts. A line that it refuses is streamed from the copies of its bodies, as
	// lines beyond 1 MiB always are. Nil is no bound.
	Lines *Budget
	// GiveUp is how long a batch waits for a rollout's lock that somebody else holds. Zero means 30 s.
	GiveUp time.Duration
	// Files is how many descriptors of data files may be kept between batches, for 300 ms after the last one. Zero means 256.
	Files int
	// Durability is what a record rests on. The zero value is DurabilityFile.
	Durability Durability
	// Idle is how many rollouts that are not being written are remembered. Zero means 16,384.
	Idle int
	// Mode is the mode of files that are made; ValidMode accepts it. Folders let in whoever may read. Zero means 0640.
	Mode fs.FileMode
	// MinFree is how many bytes are to stay free in the file system of the store; Low tells when they are not. Zero: nobody looks.
	MinFree int64

	Observe Observe
}

func (o Options) withDefaults() Options {
	if o.Syncs <= 0 {
		o.Syncs = 64
	}
	if o.Pending <= 0 {
		o.Pending = 256 << 20
	}
	if o.GiveUp <= 0 {
		o.GiveUp = 30 * time.Second
	}
	if o.Files <= 0 {
		o.Files = 256
	}
	if o.Idle <= 0 {
		o.Idle = 16384
	}
	return o
}

// Store appends records to the rollouts of one folder. It is safe for concurrent use, and any number of stores, in any
// number of processes, may work on one folder.
type Store struct {
	o      Options
	fs     files
	mode   protocol.Mode
	commit commitFunc
	syncs  chan struct{} // a token for each batch that may be written at the same time
	dir    storefs.DirSync
	convoy convoy
	kept   *keeper
	marks  marker

	presence  presence
	watermark watermark

	journal *journal // nil unless under DurabilityJournal
	lazy    *lazy    // nil unless under DurabilityAsync

	lines   memoryPool
	batches bufPool

	quit    context.Context // ends when nothing must wait for a lock or a token any more
	abandon context.CancelCauseFunc
	wg      sync.WaitGroup // every goroutine of the store

	mu       sync.Mutex // guards the rest; never held across a system call
	closed   bool
	rollouts rolloutSet
	pending  int64 // bytes that are queued or being written
	records  int   // records that are queued or being written
	securing int   // token files that are being made durable
	trouble  error
	probing  *probe // the one that runs, nil when none does
}

// Open makes the folder when it is missing, proves that it can be written, and returns a store. The caller owns the store
// and must Close it.
func Open(o Options) (*Store, error) { return open(o, osFiles{o.Mode}) }

func open(o Options, fsys files) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("capture store: no folder")
	}
	if o.Mode != 0 && !ValidMode(o.Mode) {
		return nil, fmt.Errorf("capture store: files cannot have the mode %04o", o.Mode)
	}
	dir, err := filepath.Abs(o.Dir) // the working directory may change
	if err != nil {
		return nil, fmt.Errorf("capture store: %w", err)
	}
	o.Dir = dir
	if err := fsys.mkdir(dir); err != nil {
		return nil, fmt.Errorf("capture store %s: %w", dir, err)
	}
	if err := writeProbe(dir); err != nil {
		return nil, fmt.Errorf("capture store %s: %w", dir, err)
	}
	s := &Store{o: o.withDefaults(), fs: fsys}
	s.commit = s.commitFile
	s.syncs = make(chan struct{}, s.o.Syncs)
	s.kept = newKeeper(s.o.Files, &s.wg)
	s.quit, s.abandon = context.WithCancelCause(context.Background())
	s.dir.Sync = func() error { return fsys.syncDir(dir) }
	s.rollouts = newRolloutSet(newWriter(), s.o.Idle)
	s.marks.init(s)
	s.presence.dir, s.presence.mode = dir, o.Mode
	s.openJournal()
	return s, nil
}

// newWriter is six random characters that are safe everywhere: who may be confused with another writer is only who wrote to
// the same rollout.
func newWriter() string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	var b [6]byte
	rand.Read(b[:])
	for i := range b {
		b[i] = alphabet[b[i]%32]
	}
	return string(b[:])
}

// Append writes r and returns nil only when its line would survive a power cut. It takes ownership of r and of its copies,
// whatever it returns.
//
// When ctx ends first, Append returns its cause. The line stays queued: it may still become durable, which is counted as
// late, or not, which is counted as lost. In both cases, and after any other error, the rollout has been marked incomplete;
// the caller need not do it. Append returns such an error when the mark is durable, or a quarter of a second later when the
// disk takes no mark either. After an error nothing is carried over: the next record opens the file afresh.
func (s *Store) Append(ctx context.Context, r *Record) error {
	if !ValidID(r.Rollout) {
		r.release()
		s.result(ResultLost)
		return fmt.Errorf("%w: %q", ErrInvalidID, r.Rollout)
	}
	rollout, callID := r.Rollout, r.CallID
	l, err := encode(r, &s.lines, s.o.Lines)
	if err != nil {
		r.release()
		s.lost(rollout, callID, "encode", err)
		return fmt.Errorf("append to %s: %w", rollout, err)
	}
	if f := s.o.Observe.Truncated; f != nil {
		for _, body := range l.truncated {
			f(body)
		}
	}
	e := &entry{line: l, rollout: rollout, callID: callID, done: make(chan struct{})}
	if err := s.enqueue(e); err != nil {
		l.release()
		s.lines.put(l.buf, pooledBuf)
		s.lost(rollout, callID, "queue", err)
		return fmt.Errorf("append to %s: %w", rollout, err)
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		if e.leave, err = s.Enter(rollout); err != nil && s.o.Observe.Trouble != nil { // the line may come yet
			s.o.Observe.Trouble(rollout, err)
		}
		if protocol.Overdue(e.take(protocol.Expired)) {
			err = context.Cause(ctx)
			s.failed(rollout, fmt.Errorf("append to %s: not durable in time: %w", rollout, err))
			s.Mark(rollout, callID, "deadline", err)
			s.marks.wait(rollout)
			return err
		}
		e.leave()
		<-e.done // settled at this very moment
	}
	if e.err != nil {
		s.marks.wait(rollout)
	}
	return e.err
}

// lost is the end of a record that was never queued.
func (s *Store) lost(rollout, callID, stage string, err error) {
	s.failed(rollout, err)
	s.Mark(rollout, callID, stage, err)
	s.result(ResultLost)
	s.marks.wait(rollout)
}

func (s *Store) result(r Result) {
	if f := s.o.Observe.Record; f != nil {
		f(r)
	}
}

// failed sets the trouble.
func (s *Store) failed(rollout string, err error) {
	s.mu.Lock()
	s.trouble = err
	s.mu.Unlock()
	if f := s.o.Observe.Trouble; f != nil {
		f(rollout, err)
	}
}

// recovered takes the trouble back. A store that takes records again takes marks as well.
func (s *Store) recovered() {
	s.mu.Lock()
	had := s.trouble != nil
	s.trouble = nil
	s.mu.Unlock()
	if had {
		s.marks.hurry()
	}
}

// Trouble returns the last failure: a record that was lost, a deadline that was missed, a probe that failed. It is nil again
// after the next record that became durable in time, or the next Probe that succeeded.
func (s *Store) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// Drained reports whether no record is waiting for the disk.
func (s *Store) Drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records == 0
}

// FreeBytes returns the bytes that an unprivileged process can still write to the file system of the store.
func (s *Store) FreeBytes() (int64, error) {
	return s.fs.free(s.o.Dir)
}

// Close takes no more records, waits until what is queued is durable or ctx has ended, tries once more to write marks, for at
// most a second, and ends every goroutine. Its error says how many records and marks were given up. Only a call inside the
// kernel can outlive it, and then the error says so.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	s.marks.close()
	s.kept.close()

	s.presence.close()
	defer s.abandon(ErrClosed)
	joined := make(chan struct{})
	go func() { s.wg.Wait(); close(joined) }()
	var errs []error
	select {
	case <-joined:
	case <-ctx.Done():
		s.mu.Lock()
		n := s.records
		s.mu.Unlock()
		if n > 0 {
			errs = append(errs, fmt.Errorf("%d records were not durable when the store was closed: %w", n, context.Cause(ctx)))
		}
		s.abandon(fmt.Errorf("%w: %w", ErrClosed, context.Cause(ctx)))
	}
	if s.journal != nil {
		if err := s.journal.close(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if s.lazy != nil {
		if err := s.lazy.close(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	// What is left is not ctx's to hurry: the marks tell what was just given up.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	marked := make(chan int, 1)
	go func() {
		<-joined
		marked <- s.marks.last(grace)
	}()
	select {
	case left := <-marked:
		if left > 0 {
			errs = append(errs, fmt.Errorf("%d rollouts could not be marked incomplete", left))
		}
	case <-grace.Done():
		errs = append(errs, errors.New("the file system does not answer"))
	}
	return errors.Join(errs...)
}

// closeGrace is how long Close may take beyond its context.
const closeGrace = time.Second

// probe is a Probe that is running; all who ask meanwhile share it.
type probe struct {
	done chan struct{}
	err  error // valid when done is closed
}

// Probe writes, syncs and removes a dot file in the store. Success clears Trouble, failure sets it. When ctx ends first its
// cause is returned and is a failure, too.
func (s *Store) Probe(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	p := s.probing
	if p == nil {
		p = &probe{done: make(chan struct{})}
		s.probing = p
		s.wg.Go(func() {
			if p.err = s.fs.mkdir(s.o.Dir); p.err == nil {
				p.err = writeProbe(s.o.Dir)
			}
			s.mu.Lock()
			s.probing = nil
			s.mu.Unlock()
			close(p.done)
		})
	}
	s.mu.Unlock()
	var err error
	select {
	case <-p.done:
		err = p.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("probe of the store: %w", err)
		s.failed("", err)
		return err
	}
	s.recovered()
	return nil
}

// writeProbe proves that dir takes a file. All processes use one name, so that a kill leaves at most one file behind.
func writeProbe(dir string) error {
	name := filepath.Join(dir, ".probe")
	f, err := openOrCreate(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096)) // a file system may have an inode to give but no block
	if err == nil {
		err = f.Sync()
	}
	f.Close()
	if e := os.Remove(name); err == nil && !errors.Is(e, fs.ErrNotExist) {
		err = e
	}
	return err
}
