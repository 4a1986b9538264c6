package capture

import (
	"container/list"
	"io/fs"
	"os"
	"sync"
	"time"
)

const (
	keepFor   = 300 * time.Millisecond // that a descriptor is kept unused
	keepPause = 50 * time.Millisecond  // at least between two looks at them
)

// keeper keeps descriptors of data files between batches. What it has is nobody's: a batch takes a descriptor out, behind the
// lock, and puts it back only when nothing went wrong with it. They are kept for a moment only, so that a volume can be
// remounted and the blocks of removed files come back.
type keeper struct {
	max  int
	wg   *sync.WaitGroup
	quit chan struct{} // closed by close

	mu     sync.Mutex // guards what follows; never held across a system call
	byPath map[string]*list.Element
	used   list.List // of *kept, least recently used first
	sweeps bool      // the goroutine that closes what is unused runs; it does while anything is kept
	closed bool
}

type kept struct {
	file
	path  string
	info  fs.FileInfo
	since time.Time
}

func newKeeper(max int, wg *sync.WaitGroup) *keeper {
	return &keeper{max: max, wg: wg, quit: make(chan struct{}), byPath: map[string]*list.Element{}}
}

// take returns the descriptor that is kept for the path when it is of the file st, else nil. No other file can have the
// number of one that a descriptor keeps alive. A nil keeper has none.
func (k *keeper) take(path string, st fs.FileInfo) file {
	h := k.pull(path)
	if h == nil {
		return nil
	}
	if !os.SameFile(h.info, st) {
		h.Close()
		return nil
	}
	return h.file
}

// drop closes what is kept for the path.
func (k *keeper) drop(path string) {
	if h := k.pull(path); h != nil {
		h.Close()
	}
}

func (k *keeper) pull(path string) *kept {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.byPath[path]; e != nil {
		return k.remove(e)
	}
	return nil
}

// remove is called with mu held.
func (k *keeper) remove(e *list.Element) *kept {
	h := k.used.Remove(e).(*kept)
	delete(k.byPath, h.path)
	return h
}

// put keeps f, of the file st, for the next batch. Only one batch at a time puts for a path.
func (k *keeper) put(path string, f file, st fs.FileInfo) {
	if old := k.add(&kept{file: f, path: path, info: st, since: time.Now()}); old != nil {
		old.Close()
	}
}

// add returns what there is no place for.
func (k *keeper) add(h *kept) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return h
	}
	k.byPath[h.path] = k.used.PushBack(h)
	if !k.sweeps {
		k.sweeps = true
		k.wg.Go(k.sweep)
	}
	if k.used.Len() > k.max {
		return k.remove(k.used.Front())
	}
	return nil
}

// sweep closes what has been unused for keepFor, until nothing is kept.
func (k *keeper) sweep() {
	for pause := keepFor; pause > 0; {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-k.quit:
			t.Stop()
		}
		var old []*kept
		old, pause = k.expired()
		for _, h := range old {
			h.Close()
		}
	}
}

// expired takes out what has to be closed and says when to look again, 0 for never: then the next put starts a new sweep.
func (k *keeper) expired() (old []*kept, pause time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := k.used.Front(); e != nil; e = k.used.Front() {
		left := keepFor - time.Since(e.Value.(*kept).since)
		if left > 0 && !k.closed {
			return old, max(left, keepPause)
		}
		old = append(old, k.remove(e))
	}
	k.sweeps = false
	return old, 0
}

// close lets the sweep, if there is one, close everything and end. Nothing is kept from then on.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.closed = true
		close(k.quit)
	}
}
