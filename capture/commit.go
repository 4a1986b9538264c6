package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"rolltap/capture/protocol"
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
		waited := e.take(protocol.Acknowledged)
		if !waited {
			e.leave()
		}
		result, mark := protocol.Settle(err == nil, waited)
		if mark {
			s.Mark(e.rollout, e.callID, "append", err)
		}
		inTime = inTime || result == protocol.OK
		s.result(resultOf(result))
	}
	if inTime {
		s.recovered()
	}
	for _, e := range b.entries {
		close(e.done) // last: who waits may look at Trouble and the counters
	}
	b.entries = nil // an idle rollout does not hold on to them
}

// resultOf is the word for what protocol.Settle says.
func resultOf(r protocol.Result) Result {
	switch r {
	case protocol.OK:
		return ResultOK
	case protocol.Late:
		return ResultLate
	}
	return ResultLost
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
