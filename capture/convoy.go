package capture

import (
	"sync"
	"time"
)

// patience is the longest that a sync waits for the round before it: one that hangs must not hold the others up.
const patience = 50 * time.Millisecond

// convoy lets the syncs of many files begin together. A file system that journals commits once for all files whose syncs
// overlap, and that commit is most of what a sync costs; syncs that trickle in pay for one each. So while a round of syncs
// runs, whoever comes waits for the next, which begins when the round is over. Nobody waits when nothing runs, and no timer
// delays anybody: the round that forms during one commit is the next.
//
// A round is only when a sync begins. Each file is synced by its own call in its own goroutine.
type convoy struct {
	mu      sync.Mutex // guards what follows; never held across a sync
	running *round     // the last round that began, nil once it is over
	next    *round     // those who wait, nil for none
}

type round struct {
	begin chan struct{} // closed when the round begins
	left  int           // members that have not ended
}

// do runs sync in the next round.
func (c *convoy) do(sync func() error) error {
	r := c.join()
	err := sync()
	c.leave(r)
	return err
}

func (c *convoy) join() *round {
	c.mu.Lock()
	if c.running == nil {
		r := &round{left: 1}
		c.running = r
		c.mu.Unlock()
		return r
	}
	r := c.next
	first := r == nil
	if first {
		r = &round{begin: make(chan struct{})}
		c.next = r
	}
	r.left++
	c.mu.Unlock()
	if !first {
		<-r.begin
		return r
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-r.begin:
	case <-t.C:
		c.mu.Lock()
		if c.next == r {
			c.start()
		}
		c.mu.Unlock()
	}
	return r
}

func (c *convoy) leave(r *round) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.left--; r.left == 0 && c.running == r {
		c.start()
	}
}

// start begins the next round, if anybody waits for it. It is called with mu held.
func (c *convoy) start() {
	c.running, c.next = c.next, nil
	if c.running != nil {
		close(c.running.begin)
	}
}
