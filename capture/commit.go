package capture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	batchMax = 4 << 20 // bytes of lines in one batch, except that one line is always a batch

	// Whoever waits for a lock looks for it now and then, so a rollout that is written without a break on a slow disk would
	// never be free at the right moment. Behind a batch that held the lock for longer than courteous, the next one lets it go
	// for a part of that time, at most for longer than anybody pauses.
	courteous  = 2 * time.Millisecond
	courtesy   = 16
	courtesyTo = 2 * lockPauseTo
)

// batch is consecutive lines of one rollout.
type batch struct {
	r       *rollout
	entries []*entry
	bytes   int64
}

// commitFunc makes a batch durable. It is the seam between the queue and the disk:
//
//   - It is called by one goroutine at a time for each rollout, for any number of rollouts at the same time, and gets the
//     batches of a rollout in the order of their seq.
//   - nil promises that every line of the batch, whole and in order, is readable in the file that the rollout's path names
//     and would survive a power cut. The batch is then acknowledged as a whole.
//   - An error promises nothing: each line may be in the file or not. No line of the batch is acknowledged, and the next call
//     starts from what it finds on the disk.
//   - It waits for nothing longer than Options.GiveUp, the disk excepted, and for nothing at all once Store.quit has ended.
type commitFunc func(b *batch) error

// enqueue numbers the entry and queues it. An entry that is refused has used up a number all the same, where it could: the
// gap in seq proves the loss.
func (s *Store) enqueue(e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	r := s.rollouts.get(e.rollout)
	r.seq++
	if s.pending > 0 && s.pending+e.line.size > s.o.Pending {
		if !r.busy {
			s.rollouts.rest(r) // what is kept for the one that is forgotten is closed in a moment, and not with mu held
		}
		return ErrFull
	}
	e.line.writer, e.line.seq = r.writer, r.seq
	r.queue = append(r.queue, e)
	s.pending += e.line.size
	s.records++
	if !r.busy {
		r.busy = true
		s.wg.Go(func() { s.drain(r) })
	}
	return nil
}

// drain commits what is queued for one rollout until nothing is: all that came while one batch was written is the next.
func (s *Store) drain(r *rollout) {
	for {
		b := s.next(r)
		if b == nil {
			return
		}
		err := s.commit(b)
		s.acknowledge(b, err)
	}
}

// next takes a batch from the queue; nil ends the committer.
func (s *Store) next(r *rollout) *batch {
	s.mu.Lock()
	if len(r.queue) == 0 {
		r.busy = false
		old := s.rollouts.rest(r)
		s.mu.Unlock()
		if old != nil {
			s.kept.drop(dataPath(s.o.Dir, old.id))
		}
		return nil
	}
	defer s.mu.Unlock()
	b := &r.batch
	*b = batch{r: r}
	n := 0
	for n < len(r.queue) && (n == 0 || b.bytes+r.queue[n].line.size <= batchMax) {
		b.bytes += r.queue[n].line.size
		n++
	}
	b.entries = r.queue[:n:n]
	r.queue = r.queue[n:]
	return b
}

// acknowledge tells every waiter of a batch what became of it.
func (s *Store) acknowledge(b *batch, err error) {
	s.mu.Lock()
	s.pending -= b.bytes
	s.records -= len(b.entries)
	s.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("append to %s: %w", b.r.id, err)
		s.failed(b.r.id, err)
	}
	inTime := false
	for _, e := range b.entries {
		e.line.release()
		s.lines.put(e.line.buf, pooledBuf)
		e.line = nil
		e.err = err
		ours := e.state.CompareAndSwap(waiting, acknowledged)
		switch {
		case err == nil && ours:
			inTime = true
			s.result(ResultOK)
		case err == nil:
			s.result(ResultLate)
		default:
			if ours { // else the caller has marked it
				s.Mark(e.rollout, e.callID, "append", err)
			}
			s.result(ResultLost)
		}
	}
	if inTime {
		s.recovered()
	}
	for _, e := range b.entries {
		close(e.done) // last: who waits may look at Trouble and the counters
	}
	b.entries = nil // an idle rollout does not hold on to them
}

// commitFile is the commitFunc that appends to the rollout's own file.
//
// A batch is written afresh only when the file it was written to is not the one that the path names any more: then the lines
// are taken back from the old file first, as far as it lets us. After a failed write or sync it is not tried again, because
// what failed may be on the disk all the same, and a second copy would be a record twice.
func (s *Store) commitFile(b *batch) error {
	path := dataPath(s.o.Dir, b.r.id)
	time.Sleep(time.Until(b.r.free))
	giveUp := time.Now().Add(s.o.GiveUp)
	for {
		l, err := s.lock(giveUp, path)
		if err != nil {
			return err
		}
		began := time.Now()
		again, err := s.writeLocked(b, path, l.file, l.info)
		if err != nil || again {
			l.Close()
		} else {
			l.lock.Close() // its error says nothing about what Sync has promised
			s.kept.put(path, l.file, l.info)
		}
		if held := time.Since(began); held > courteous {
			b.r.free = time.Now().Add(min(held/courtesy, courtesyTo))
		}
		if err != nil || !again {
			return err
		}
	}
}

// lock opens and locks the file that the path names, without holding any of the tokens for writing.
func (s *Store) lock(giveUp time.Time, path string) (*locked, error) {
	began := time.Now()
	l, err := waitLock(s.quit, giveUp, s.fs, path, true, s.kept)
	if err == nil && s.o.Observe.LockWait != nil {
		s.o.Observe.LockWait(time.Since(began))
	}
	return l, err
}

// writeLocked writes the batch to the locked file f, whose size is in st. again says that the file lost its name meanwhile.
func (s *Store) writeLocked(b *batch, path string, f file, st fs.FileInfo) (again bool, err error) {
	began := time.Now()
	old := st.Size()
	id, sure, err := identityOfLocked(f, st)
	if err != nil {
		return false, err
	}
	known := b.r.seen.is(identity{id, old})
	heal := false
	if b.r.seen != (identity{id, old}) { // else it ends where we ended it, with a newline
		if heal, err = torn(f, old); err != nil {
			return false, err
		}
	}
	buf := s.batches.get()
	defer func() { s.batches.put(buf, batchMax+pooledBuf) }()
	written, buf, data, err := s.writeBatch(f, b, heal, buf)
	if err != nil {
		f.Truncate(old) // if this fails, too, the tail is torn and the next batch ends it
		return false, err
	}
	ref, err := s.secure(b, f, securing{id: id, inJournal: known && sure, offset: old, data: data})
	if err != nil {
		return false, err
	}
	if ref != nil {
		defer func() {
			if err == nil && !again {
				ref.applied(b.r.id)
			} else {
				ref.forsaken()
			}
		}()
	}
	gone := false
	if !known {
		err := s.dir.wait()
		gone = errors.Is(err, fs.ErrNotExist)
		if err != nil && !gone {
			return false, fmt.Errorf("sync the folder: %w", err)
		}
	}
	ok, err := named(s.fs, path, st)
	if err != nil {
		return false, err
	}
	if gone || !ok {
		f.Truncate(old) // nobody else writes here: we hold the lock, and a second copy is about to be made
		return true, nil
	}
	b.r.seen = identity{id, old + int64(written)}
	if heal && s.o.Observe.Healed != nil {
		s.o.Observe.Healed(b.r.id)
	}
	if s.o.Observe.Batch != nil {
		s.o.Observe.Batch(len(b.entries), written, time.Since(began))
	}
	return false, nil
}

func (s *Store) sync(f file) error {
	select {
	case s.syncs <- struct{}{}:
	case <-s.quit.Done():
		return context.Cause(s.quit)
	}
	defer func() { <-s.syncs }()
	var began time.Time
	err := s.convoy.do(func() error {
		began = time.Now()
		return f.Sync()
	})
	if s.o.Observe.Fsync != nil {
		s.o.Observe.Fsync(time.Since(began))
	}
	return err
}

// writeBatch writes the lines, all small ones that follow each other in one write, with a newline in front when the file
// ends inside a line. It returns how many bytes it wrote, the buffer that it was lent, and what it wrote when that was one
// write.
func (s *Store) writeBatch(f file, b *batch, heal bool, lent []byte) (n int, buf, data []byte, err error) {
	buf = lent
	if len(b.entries) == 1 && len(b.entries[0].line.cuts) == 0 && !heal {
		data = b.entries[0].line.whole()
		n, err = f.Write(data)
		return n, buf, data, err
	}
	if len(b.entries) > 1 || len(b.entries[0].line.cuts) == 0 {
		buf = slices.Grow(buf, int(min(b.bytes, batchMax))+1)
	}
	if heal {
		buf = append(buf, '\n')
	}
	pieces := false
	flush := func() error {
		pieces = true
		if len(buf) == 0 {
			return nil
		}
		w, err := f.Write(buf)
		n += w
		buf = buf[:0]
		return err
	}
	for _, e := range b.entries {
		if len(e.line.cuts) == 0 {
			buf = e.line.appendTo(buf)
			continue
		}
		if err := flush(); err != nil {
			return n, buf, nil, err
		}
		c := &countWriter{f: f}
		w := bufio.NewWriterSize(c, pieceSize)
		err := e.line.writeTo(w, make([]byte, pieceSize))
		if err == nil {
			err = w.Flush()
		}
		n += c.n
		if err != nil {
			return n, buf, nil, err
		}
	}
	if pieces {
		return n, buf, nil, flush()
	}
	n, err = f.Write(buf)
	return n, buf, buf, err
}

type countWriter struct {
	f file
	n int
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.f.Write(p)
	c.n += n
	return n, err
}

// identityOfLocked tells which file f is, whose Stat was st. It is sure where the file system tells files apart that had the
// same number one after the other.
func identityOfLocked(f file, st fs.FileInfo) (id fileID, sure bool, err error) {
	id, err = identityOf(f)
	if errors.Is(err, errNoBirthTime) {
		return fileID{dev: deviceOf(st), ino: inodeOf(st)}, false, nil
	}
	return id, err == nil, err
}

func deviceOf(st fs.FileInfo) uint64 {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Dev)
	}
	return 0
}

func inodeOf(st fs.FileInfo) uint64 {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return sys.Ino
	}
	return 0
}

// dirSync makes directory entries durable for many callers at once: one sync serves all who asked before it began.
type dirSync struct {
	sync func() error

	run  sync.Mutex // held while a sync runs
	mu   sync.Mutex // guards next; never held across a system call
	next *dirWait   // those whose sync has not begun, nil for none
}

type dirWait struct {
	done chan struct{}
	err  error // valid when done is closed
}

func (d *dirSync) wait() error {
	d.mu.Lock()
	w := d.next
	first := w == nil
	if first {
		w = &dirWait{done: make(chan struct{})}
		d.next = w
	}
	d.mu.Unlock()
	if !first {
		<-w.done
		return w.err
	}
	d.run.Lock()
	defer d.run.Unlock()
	d.mu.Lock()
	d.next = nil // whoever comes from here on may have come too late for this sync
	d.mu.Unlock()
	w.err = d.sync()
	close(w.done)
	return w.err
}
