package training

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"rolltap/internal/storefs"
)

// Errors that the operations return beside those of the file system and the cause of a context.
var (
	ErrClosed    = errors.New("token store is closed")
	ErrInvalidID = errors.New("invalid id")
	ErrFrozen    = errors.New("token capture of the rollout is frozen")
	ErrRetired   = errors.New("token capture of the rollout is retired")
	// ErrConflict is returned for a call id that has another payload already. The rollout has been marked.
	ErrConflict = errors.New("call id has another payload")
	// ErrDamaged is returned when the files contradict each other or hold what nobody wrote whole. Nothing is changed then.
	ErrDamaged = errors.New("token files are damaged")
	// ErrLocked is returned when somebody else held a rollout's lock for longer than Options.GiveUp.
	ErrLocked = errors.New("token files are locked by somebody else")
)

// Observe is told what happens. Any member may be nil. They are called from the goroutines that write and must not block.
type Observe struct {
	Batch     func(intents, entries, bytes int, took time.Duration) // one durable batch, from having the lock to the last sync
	Sync      func(time.Duration)                                   // one call of Options.Secure, whether it succeeded or not
	LockWait  func(time.Duration)                                   // from wanting a rollout's lock to having it
	Marked    func(rollout, callID, reason string)
	Withdrawn func(rollout, callID, why string)
	Frozen    func(rollout string, incomplete bool)
	Dropped   func(rollout string)
	Healed    func(rollout string) // a torn tail was cut off
	Trouble   func(rollout string, err error)
}

// Options of a store. The zero value of everything but Dir works.
type Options struct {
	// Dir is the folder of the store, made with its parents when it does not exist. It may be that of a capture store.
	Dir string
	// Secure makes what was appended durable; see its type. Zero syncs each file, and the folder for a new one.
	Secure Secure
	// Syncs is how many calls of Secure run at the same time. Zero means 64.
	Syncs int
	// GiveUp is how long an operation waits for a rollout's lock that somebody else holds. Zero means 30 s.
	GiveUp time.Duration
	// Files is how many descriptors may be kept between batches, for 300 ms after the last one. Zero means 256.
	Files int
	// Idle is how many rollouts that are not being written are remembered, and Calls how many calls of them, at least those of
	// one rollout, once for the writer and once for the resolver. Zero means 16,384 and 131,072.
	Idle, Calls int
	// Lazy is how many bytes of entries a state file may lack while nobody needs it: what it takes to begin anew with the
	// rollout. Zero means 1 MiB.
	Lazy int64
	// Mode is the mode of files that are made, whatever the umask; folders let in whoever may read. Zero means 0640.
	Mode fs.FileMode

	Observe Observe
}

func (o Options) withDefaults() Options {
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	set(&o.Syncs, 64)
	set(&o.Files, 256)
	set(&o.Idle, 16384)
	set(&o.Calls, 131072)
	if o.GiveUp <= 0 {
		o.GiveUp = 30 * time.Second
	}
	if o.Lazy <= 0 {
		o.Lazy = 1 << 20
	}
	return o
}

// Store keeps the token files of one folder. It is safe for concurrent use, and any number of stores, in any number of
// processes, the reference's included, may work on one folder.
type Store struct {
	o       Options
	fs      files
	secure  Secure
	syncs   chan struct{} // a token for each call of Secure
	dir     storefs.DirSync
	lineage resolver

	quit    context.Context // ends when nothing must wait for a lock any more
	abandon context.CancelCauseFunc
	wg      sync.WaitGroup // every goroutine of the store

	mu       sync.Mutex // guards the rest; never held across a system call
	closed   bool
	rollouts map[string]*rollout
	idle     list.List // of *rollout, least recently used first
	warm     list.List // of those that keep descriptors or whose state lacks much, in the same order
	calls    int       // that idle rollouts remember
	open     int       // descriptors that idle rollouts keep
	sweeps   bool      // the goroutine that closes them runs
	sweeping *time.Timer
}

// Open makes the folder when it is missing and returns a store. The caller owns it and must Close it.
func Open(o Options) (*Store, error) { return open(o, osFiles{o.Mode}) }

func open(o Options, fsys files) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("token store: no folder")
	}
	dir, err := filepath.Abs(o.Dir) // the working directory may change
	if err != nil {
		return nil, fmt.Errorf("token store: %w", err)
	}
	o.Dir = dir
	if err := storefs.MakeFolder(dir, o.Mode); err != nil {
		return nil, fmt.Errorf("token store: %w", err)
	}
	s := &Store{o: o.withDefaults(), fs: fsys, rollouts: map[string]*rollout{}}
	s.quit, s.abandon = context.WithCancelCause(context.Background())
	s.syncs = make(chan struct{}, s.o.Syncs)
	s.dir.Sync = func() error { return fsys.syncDir(dir) }
	if s.secure = o.Secure; s.secure == nil {
		s.secure = s.syncFiles
	}
	s.lineage.init(s.o)
	return s, nil
}

// Use calls use with s, or when that is nil with a store of its own in o.Dir, which it closes; not at all where the folder has nothing of the
// rollout.
func Use(ctx context.Context, s *Store, o Options, rollout string, use func(*Store) error) error {
	if !Exists(o.Dir, rollout) {
		return nil
	}
	if s != nil {
		return use(s)
	}
	s, err := Open(o)
	if err != nil {
		return err
	}
	return errors.Join(use(s), s.Close(ctx))
}

// Begin says durably that a call is about to be sent. Until it has an entry, or is withdrawn, the rollout counts as incomplete. When
// Begin fails nothing must be sent.
//
// When ctx ends first, Begin returns its cause at once, and the intent may become durable all the same: Withdraw it.
func (s *Store) Begin(ctx context.Context, rollout, callID string) error {
	if !ValidID(rollout) || !ValidCall(callID) {
		return fmt.Errorf("begin call: %w: %q of %q", ErrInvalidID, callID, rollout)
	}
	return s.do(ctx, rollout, &op{intent: callID}, "begin call")
}

// Put writes the entry and returns nil only when it would survive a power cut. An entry that is there already, equal byte for
// byte, is no error; one of another payload is ErrConflict and marks the rollout. After any other error the entry may be there
// or not, and the caller marks the rollout.
//
// When ctx ends first, Put returns its cause at once and the entry may still become durable.
func (s *Store) Put(ctx context.Context, e *Entry) error {
	l, err := encode(e)
	if err != nil {
		return fmt.Errorf("put entry: %w", err)
	}
	return s.do(ctx, e.Rollout, &op{line: l}, "put entry")
}

// do queues an operation and waits for it.
func (s *Store) do(ctx context.Context, id string, o *op, what string) error {
	o.done = make(chan struct{})
	if err := s.enqueue(id, o); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		return fmt.Errorf("%s: not done in time: %w", what, context.Cause(ctx))
	}
	if o.err != nil {
		return fmt.Errorf("%s of %s: %w", what, id, o.err)
	}
	return nil
}

func (s *Store) enqueue(id string, o *op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	r := s.rollouts[id]
	if r == nil {
		r = &rollout{id: id}
		s.rollouts[id] = r
	}
	s.wakeLocked(r)
	r.queue = append(r.queue, o)
	if !r.busy {
		r.busy = true
		s.wg.Go(func() { s.drain(r) })
	}
	return nil
}

// Close takes no more operations, waits for those that are queued until ctx ends, writes the states that lack much, and ends
// every goroutine.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	if s.sweeping != nil {
		s.sweeping.Reset(0)
	}
	s.mu.Unlock()
	joined := make(chan struct{})
	go func() { s.wg.Wait(); close(joined) }()
	var err error
	select {
	case <-joined:
	case <-ctx.Done():
		err = fmt.Errorf("close token store: %w", context.Cause(ctx))
		s.abandon(ErrClosed)
		return err // a call inside the kernel can outlive it
	}
	s.mu.Lock()
	var rest []*rollout
	for _, r := range s.rollouts {
		rest = append(rest, r)
	}
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { s.abandon(ErrClosed) }) // whoever holds a lock does not hold us for longer
	defer stop()
	for _, r := range rest {
		if ctx.Err() == nil {
			s.persist(r)
		}
		r.closeHandles()
	}
	s.abandon(ErrClosed)
	return nil
}

func (s *Store) trouble(rollout string, err error) {
	if f := s.o.Observe.Trouble; f != nil {
		f(rollout, err)
	}
}
