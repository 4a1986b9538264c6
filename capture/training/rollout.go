package training

import (
	"container/list"
	"time"

	"rolltap/internal/storefs"
)

const (
	keepFor   = 300 * time.Millisecond // that descriptors are kept unused
	stateIdle = 30 * time.Second       // after which the state of a rollout that lacks much is written

	batchMax = 4 << 20 // bytes of lines that one batch collects
)

// op is one operation on a rollout. Exactly one of intent, line and run is set. done is closed when err is valid.
type op struct {
	intent string
	line   *line
	run    func(*turn) error // alone, under the lock
	err    error
	done   chan struct{}
}

// rollout is what a store remembers of one. Nothing of it is true but what the files say: it is read again as soon as they
// look different.
type rollout struct {
	id    string
	queue []*op         // guarded by Store.mu, like the next three
	busy  bool          // a goroutine runs its operations
	place *list.Element // in Store.idle
	warm  *list.Element // in Store.warm
	since time.Time     // idle

	// Of the goroutine that runs its operations, and of who holds Store.mu while there is none.
	loaded   bool // st is what the state file says
	stamp    stamp
	st       *state
	indexed  bool // st is what the file of entries says, too
	dataID   storefs.FileID
	dataSure bool
	unsure   bool    // it has lines that we did not make durable
	rests    bool    // it has lines that may be durable by Options.Secure alone, and not in their file
	behind   int64   // bytes of entries that the state file lacks
	counted  int     // calls that Store.calls counts for it
	data     *handle // nil when not open
	intents  *handle
	known    [2]storefs.FileID // the files whose names are durable
	left     int64             // size of the file of intents as we left it
	free     time.Time         // until then the lock is left to others
}

// forget makes the next operation read everything again.
func (r *rollout) forget() {
	r.loaded, r.indexed, r.unsure, r.rests, r.st, r.behind = false, false, false, false, nil, 0
	r.closeHandles()
}

func (r *rollout) closeHandles() {
	for _, h := range []**handle{&r.data, &r.intents} {
		if *h != nil {
			(*h).Close()
			*h = nil
		}
	}
}

func (r *rollout) handles() (n int) {
	if r.data != nil {
		n++
	}
	if r.intents != nil {
		n++
	}
	return n
}

// wakeLocked takes a rollout off the idle ones. It is called with mu held.
func (s *Store) wakeLocked(r *rollout) {
	if r.warm != nil {
		s.warm.Remove(r.warm)
		r.warm = nil
	}
	if r.place != nil {
		s.idle.Remove(r.place)
		r.place = nil
		s.calls -= r.counted
		s.open -= r.handles()
	}
}

// drain runs what is queued for one rollout until nothing is: intents and entries that came together are one batch.
func (s *Store) drain(r *rollout) {
	for {
		ops := s.next(r)
		if ops == nil {
			return
		}
		time.Sleep(time.Until(r.free))
		s.turn(r, ops)
		for _, o := range ops {
			close(o.done)
		}
	}
}

// next takes from the queue what one turn does. nil ends the goroutine.
func (s *Store) next(r *rollout) []*op {
	s.mu.Lock()
	if len(r.queue) == 0 {
		r.busy, r.queue = false, nil
		old := s.restLocked(r)
		s.mu.Unlock()
		for _, o := range old {
			s.persist(o)
			o.closeHandles()
		}
		return nil
	}
	defer s.mu.Unlock()
	n, bytes := 0, int64(0)
	for n < len(r.queue) {
		o := r.queue[n]
		if o.run != nil {
			n = max(n, 1)
			break
		}
		if o.line != nil {
			if bytes += o.line.size; n > 0 && bytes > batchMax {
				break
			}
		}
		n++
	}
	ops := r.queue[:n:n]
	r.queue = r.queue[n:]
	return ops
}

// restLocked puts a rollout to the idle ones and takes out those that are too many; they are the caller's. It is called with
// mu held.
func (s *Store) restLocked(r *rollout) (old []*rollout) {
	r.since = time.Now()
	r.place = s.idle.PushBack(r)
	if r.counted = 0; r.st != nil {
		r.counted = len(r.st.digests)
	}
	s.calls += r.counted
	s.open += r.handles()
	for s.idle.Len() > s.o.Idle || s.calls > s.o.Calls && s.idle.Len() > 1 {
		o := s.idle.Front().Value.(*rollout)
		s.wakeLocked(o)
		delete(s.rollouts, o.id)
		old = append(old, o)
	}
	if (r.handles() > 0 || r.behind > s.o.Lazy) && r.place != nil && s.rollouts[r.id] == r {
		r.warm = s.warm.PushBack(r)
		if !s.sweeps && !s.closed {
			s.sweeps = true
			s.sweeping = time.NewTimer(keepFor)
			s.wg.Go(s.sweep)
		}
	}
	if s.open > s.o.Files && s.sweeps {
		s.sweeping.Reset(0)
	}
	return old
}

// sweep closes descriptors that have been unused for a while, or are too many, and writes the states of rollouts that have
// been idle for long, until there is neither.
func (s *Store) sweep() {
	for {
		<-s.sweeping.C
		var unused []*handle
		var behind []*rollout
		again := time.Duration(0)
		s.mu.Lock()
		now := time.Now()
		for e := s.warm.Front(); e != nil; {
			r := e.Value.(*rollout)
			e = e.Next()
			idle := now.Sub(r.since)
			if idle < keepFor && s.open <= s.o.Files && !s.closed {
				again = keepFor - idle
				break
			}
			s.open -= r.handles()
			for _, h := range []**handle{&r.data, &r.intents} {
				if *h != nil {
					unused = append(unused, *h)
					*h = nil
				}
			}
			if r.behind > s.o.Lazy && idle < stateIdle {
				again = stateIdle - idle // unless somebody who came later is due before
				continue
			}
			s.warm.Remove(r.warm)
			r.warm = nil
			if r.behind > s.o.Lazy {
				behind = append(behind, r)
			}
		}
		closed := s.closed
		if again == 0 || closed {
			s.sweeps = false
		} else {
			s.sweeping.Reset(max(again, keepFor/4))
		}
		s.mu.Unlock()
		for _, h := range unused {
			h.Close()
		}
		for _, r := range behind {
			s.enqueue(r.id, &op{done: make(chan struct{}), run: func(t *turn) error { return t.writeLazy() }}) // closed: Close does it
		}
		if again == 0 || closed {
			return
		}
	}
}
