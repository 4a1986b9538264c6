package training

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"rolltap/internal/storefs"
)

// Candidate is a committed call that a request may continue.
type Candidate struct {
	CallID        string
	Fingerprint   string
	ContextLen    int
	ContextDigest string
	CumLen        int
	Digest        string // "" when its writer made none
}

// resolver is an index of what can be looked up. Own entries come from memory, in their place; what others appended is read
// when somebody asks. It is only a cache: what is evicted is read again.
type resolver struct {
	dir               string
	maxIdle, maxCalls int

	mu     sync.Mutex // guards the rest; never held across a system call
	byID   map[string]*lineage
	recent list.List // of *lineage, least recently used first
	calls  int
}

// lineage is the index of one rollout.
type lineage struct {
	id    string
	place *list.Element // guarded by resolver.mu
	calls int           // that resolver.calls counts for it; the same

	mu     sync.Mutex // guards the rest; held while the file is read
	file   storefs.FileID
	offset int64 // of the file, that the index covers
	byKey  map[string][]Candidate
	n      int
}

func (x *resolver) init(o Options) {
	x.dir, x.maxIdle, x.maxCalls, x.byID = o.Dir, o.Idle, o.Calls, map[string]*lineage{}
}

// get returns the index of a rollout as the most recently used one.
func (x *resolver) get(id string, create bool) *lineage {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.byID[id]
	switch {
	case l != nil:
		x.recent.MoveToBack(l.place)
	case create:
		l = &lineage{id: id}
		x.byID[id] = l
		l.place = x.recent.PushBack(l)
	}
	return l
}

// count says how large an index has become and forgets others when all are too large.
func (x *resolver) count(l *lineage, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byID[l.id] == l {
		x.calls += n - l.calls
		l.calls = n
	}
	for x.recent.Len() > 1 && (x.recent.Len() > x.maxIdle || x.calls > x.maxCalls) {
		x.removeLocked(x.recent.Front().Value.(*lineage))
	}
}

func (x *resolver) removeLocked(l *lineage) {
	x.recent.Remove(l.place)
	delete(x.byID, l.id)
	x.calls -= l.calls
}

func (x *resolver) forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.byID[id]; l != nil {
		x.removeLocked(l)
	}
}

// add indexes an entry that was just written, if everything before it is indexed.
func (x *resolver) add(id string, file storefs.FileID, from, to int64, e *line) {
	l := x.get(id, from == 0)
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if from == 0 {
		l.reset(file)
	}
	if l.file != file || l.offset != from {
		return
	}
	l.offset = to
	if e.indexed {
		l.put(e.cand)
		x.count(l, l.n)
	}
}

func (l *lineage) reset(file storefs.FileID) {
	l.file, l.offset, l.n, l.byKey = file, 0, 0, map[string][]Candidate{}
}

// put adds a candidate. A call that is there twice is one.
func (l *lineage) put(c Candidate) {
	for _, have := range l.byKey[c.Fingerprint] {
		if have.CallID == c.CallID {
			return
		}
	}
	l.byKey[c.Fingerprint] = append(l.byKey[c.Fingerprint], c)
	l.n++
}

// Candidates returns the committed calls of a rollout, by whatever process, whose conversation has this fingerprint, in the
// order of the file. A Put that has returned, anywhere, is seen. Fingerprints of another version than
// ours are not looked up.
func (s *Store) Candidates(rollout, fingerprint string) ([]Candidate, error) {
	if !ValidID(rollout) {
		return nil, fmt.Errorf("candidates: %w: %q", ErrInvalidID, rollout)
	}
	if fingerprint == "" {
		return nil, nil
	}
	l := s.lineage.get(rollout, true)
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.refresh(dataPath(s.o.Dir, rollout))
	if err != nil { // perhaps what was read before is not there any more
		l.reset(storefs.FileID{})
		err = l.refresh(dataPath(s.o.Dir, rollout))
	}
	s.lineage.count(l, l.n)
	if err != nil {
		return nil, fmt.Errorf("candidates of %s: %w", rollout, err)
	}
	return append([]Candidate(nil), l.byKey[fingerprint]...), nil
}

// refresh reads what the file has beyond the index.
func (l *lineage) refresh(path string) error {
	f, err := openRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		l.reset(storefs.FileID{})
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	id, _, err := storefs.IdentityOf(f)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if id != l.file || st.Size() < l.offset || l.byKey == nil {
		l.reset(id)
	}
	if st.Size() == l.offset {
		return nil
	}
	r := NewReader(f, l.offset, st.Size())
	for {
		v, err := r.Next()
		if err == io.EOF {
			if r.newline {
				l.offset = r.Offset()
			}
			return nil
		}
		if d := (*Damage)(nil); errors.As(err, &d) && d.Torn {
			return nil // somebody is writing it
		}
		if err != nil {
			return fmt.Errorf("%w: at byte %d of the entries: %w", ErrDamaged, r.Offset(), err)
		}
		if !r.newline {
			return nil // it is not committed yet
		}
		if c, ok := v.candidate(); ok {
			l.put(c)
		}
		l.offset = r.Offset()
	}
}
