package capture

import (
	"container/list"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rolltap/capture/protocol"
)

// entry is one record on its way to the disk.
type entry struct {
	line    *line
	rollout string
	callID  string
	claim   atomic.Int32 // a protocol.Claim
	leave   func()       // the record is in flight no more; set in front of Expired, of whoever acknowledges behind it
	err     error        // set before done is closed
	done    chan struct{}
}

// take claims the record for the committer or for its caller and reports whether it is theirs.
func (e *entry) take(by protocol.Claim) bool {
	for {
		now := e.claim.Load()
		next, ours := protocol.Take(protocol.Claim(now), by)
		if e.claim.CompareAndSwap(now, int32(next)) {
			return ours
		}
	}
}

// rollout is what a store remembers of one rollout.
type rollout struct {
	id     string
	writer string
	seq    int64    // of the last line queued
	queue  []*entry // waiting for the committer
	busy   bool     // a committer goroutine runs
	idle   *list.Element

	// The committer's own.
	batch batch     // the one that is being written
	seen  identity  // the file whose directory entry is durable, as it was left
	free  time.Time // until then the lock is left to others
}

// identity says whether a file is the one that was written to last time. Inode numbers are used again at once, and not every
// file system tells more, so the file must not have become shorter either.
type identity struct {
	id   fileID
	size int64
}

// is reports whether f is the file i, with more appended. Nothing is the zero identity.
func (i identity) is(f identity) bool { return i.size > 0 && i.id == f.id && i.size <= f.size }

// rolloutSet holds the rollouts that are being written and, least recently used first, at most max idle ones. It is guarded
// by Store.mu.
//
// A writer token stands for one unbroken memory of a rollout: seq counts up from 1 under it. Whoever is forgotten and comes
// back counts from 1 again, so from the first eviction on a new rollout gets a token with the number of evictions in it.
type rolloutSet struct {
	base      string
	max       int
	byID      map[string]*rollout
	idle      list.List
	evictions int64
}

func newRolloutSet(base string, max int) rolloutSet {
	return rolloutSet{base: base, max: max, byID: map[string]*rollout{}}
}

func (s *rolloutSet) get(id string) *rollout {
	r := s.byID[id]
	if r == nil {
		r = &rollout{id: id, writer: s.base}
		if s.evictions > 0 {
			r.writer += "-" + strconv.FormatInt(s.evictions, 10)
		}
		s.byID[id] = r
	}
	if r.idle != nil {
		s.idle.Remove(r.idle)
		r.idle = nil
	}
	return r
}

// rest puts a rollout to the idle ones and forgets the one that has been idle for longest when they are too many; that one is
// returned.
func (s *rolloutSet) rest(r *rollout) *rollout {
	r.queue = nil
	r.idle = s.idle.PushBack(r)
	if s.idle.Len() <= s.max {
		return nil
	}
	old := s.idle.Remove(s.idle.Front()).(*rollout)
	delete(s.byID, old.id)
	s.evictions++
	return old
}

// Buffers of lines and of batches are used again; what is larger than pooledBuf is left to the garbage collector. Every line that
// is built in memory fits as a rule.
const pooledBuf = 2 << 20

type bufPool struct{ p sync.Pool }

func (p *bufPool) get() []byte {
	if b, ok := p.p.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func (p *bufPool) put(b []byte, most int) {
	if cap(b) > 0 && cap(b) <= most {
		p.p.Put(&b)
	}
}
