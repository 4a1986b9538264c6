package storefs

import "sync"

// DirSync makes directory entries durable for many callers at once: one sync serves all who asked before it began. Its zero value needs Sync.
type DirSync struct {
	Sync func() error

	run  sync.Mutex // held while a sync runs
	mu   sync.Mutex // guards next; never held across a system call
	next *dirWait   // those whose sync has not begun, nil for none
}

type dirWait struct {
	done chan struct{}
	err  error // valid when done is closed
}

// Wait returns what a Sync said that began behind the call.
func (d *DirSync) Wait() error {
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
	w.err = d.Sync()
	close(w.done)
	return w.err
}
