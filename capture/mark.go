package capture

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"rolltap/capture/protocol"
	"rolltap/internal/jsonx"
)

const (
	marksMax    = 4096 // rollouts whose mark is not durable yet
	marksAtOnce = 64   // that share one sync of the folder
	markPause   = 100 * time.Millisecond
	markPauseTo = 5 * time.Second
	// markPatience is how long a caller whose record is lost waits for the mark to be durable, so that no kill takes both.
	markPatience = 250 * time.Millisecond
)

// mark is one line of an incomplete marker on its way to the disk.
type mark struct {
	rollout, callID, stage, err string
	at                          time.Time

	do    protocol.Mark // next
	more  *mark         // the last loss since the writing began, or since there is this one; nil for none
	wrote bool          // it was written for what it says, perhaps in vain
	tries int
	next  time.Time     // not before
	gone  chan struct{} // closed when there is nothing left to do
}

func (k *mark) line() []byte {
	b := jsonx.AppendString([]byte(`{"call_id":`), k.callID)
	b = appendUnix(append(b, `,"at":`...), k.at)
	b = jsonx.AppendString(append(b, `,"stage":`...), k.stage)
	b = jsonx.AppendString(append(b, `,"error":`...), k.err)
	return append(b, "}\n"...)
}

// begin returns what is to be written now. What was lost until here needs nothing else.
func (k *mark) begin() []byte {
	if k.more != nil && k.wrote {
		k.callID, k.stage, k.err, k.at = k.more.callID, k.more.stage, k.more.err, k.more.at
	}
	k.more, k.wrote = nil, true
	return k.line()
}

// again puts the mark off, for longer each time.
func (k *mark) again() {
	k.next = time.Now().Add(min(markPause<<min(k.tries, 10), markPauseTo))
	k.tries++
}

// marker holds the marks that are not durable yet. One goroutine writes them and another one syncs them, each only while it
// has something to do: readers ask only whether a marker exists, so a slow sync of one must not keep the next from existing.
type marker struct {
	s       *Store
	closing chan struct{}
	wake    chan struct{} // a new mark, for the writing goroutine; buffers one

	mu               sync.Mutex // guards the rest, and the marks; never held across a system call
	pending          map[string]*mark
	writing, syncing bool // the goroutine runs
	closed           bool
}

func (m *marker) init(s *Store) {
	m.s, m.closing, m.wake, m.pending = s, make(chan struct{}), make(chan struct{}, 1), map[string]*mark{}
}

// Mark says in the store that the rollout lacks a record: it appends a line to <id>.capture.incomplete, durably. It returns
// at once; a store that cannot take the mark is asked again with growing pauses, soon when it has taken a record, and once more by Close. Until then one mark
// for each of at most 4,096 rollouts is kept. callID is the call that is missing, stage what was done with it and err why
// that failed. A mark is never taken back.
func (s *Store) Mark(rollout, callID, stage string, err error) {
	if !ValidID(rollout) {
		return
	}
	if f := s.o.Observe.Incomplete; f != nil {
		f(rollout)
	}
	k := &mark{rollout: rollout, callID: callID, stage: stage, at: time.Now(), gone: make(chan struct{})}
	if err != nil {
		k.err = err.Error()
	}
	m := &s.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	switch now := m.pending[rollout]; {
	case now != nil:
		now.more = k
	case len(m.pending) < marksMax:
		m.pending[rollout] = k
		m.start()
	}
}

// hurry has marks that wait for their next try wait for the shortest pause at most.
func (m *marker) hurry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	soon := time.Now().Add(markPause)
	hurried := false
	for _, k := range m.pending {
		if k.do == protocol.WriteMark && k.next.After(soon) {
			k.next, hurried = soon, true
		}
	}
	if hurried {
		m.start()
	}
}

// start makes sure that somebody writes what is due. It is called with mu held.
func (m *marker) start() {
	if !m.writing && !m.closed {
		m.writing = true
		m.s.wg.Go(m.writeLoop)
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *marker) writeLoop() {
	for {
		due, next := m.due(time.Now())
		if due == nil && next.IsZero() {
			return
		}
		if len(due) > 0 {
			m.write(due)
			continue
		}
		t := time.NewTimer(time.Until(next))
		select {
		case <-t.C:
		case <-m.wake:
		case <-m.closing:
		}
		t.Stop()
	}
}

// due returns the marks to write now, or when the next one is; neither ends the goroutine.
func (m *marker) due(now time.Time) (due []*mark, next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.pending {
		switch {
		case k.do != protocol.WriteMark:
		case !k.next.After(now):
			due = append(due, k)
		case next.IsZero() || k.next.Before(next):
			next = k.next
		}
	}
	if m.closed { // Close tries the rest
		due, next = nil, time.Time{}
	}
	m.writing = len(due) > 0 || !next.IsZero()
	return due, next
}

// write writes the marks and has those that could be written synced.
func (m *marker) write(marks []*mark) {
	for _, k := range marks {
		m.mu.Lock()
		line := k.begin()
		m.mu.Unlock()
		path := markerPath(m.s.o.Dir, k.rollout)
		err := m.s.fs.mark(path, line)
		if errors.Is(err, fs.ErrNotExist) {
			if err = m.s.fs.mkdir(m.s.o.Dir); err == nil {
				err = m.s.fs.mark(path, line)
			}
		}
		m.mu.Lock()
		if k.do = k.do.Next(sawOf(err), k.more != nil); err != nil {
			k.again()
		} else if !m.syncing && !m.closed {
			m.syncing = true
			m.s.wg.Go(m.syncLoop)
		}
		m.mu.Unlock()
	}
}

func (m *marker) syncLoop() {
	for {
		marks := m.written()
		if len(marks) == 0 {
			return
		}
		m.sync(marks)
	}
}

// written returns marks to sync; none ends the goroutine.
func (m *marker) written() (marks []*mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.pending {
		if k.do == protocol.SyncMark && len(marks) < marksAtOnce {
			marks = append(marks, k)
		}
	}
	m.syncing = len(marks) > 0
	return marks
}

// sync makes the marks durable and forgets them. Those that could not be synced are written once more.
func (m *marker) sync(marks []*mark) {
	saws := make([]protocol.Saw, len(marks))
	for i, k := range marks {
		err := m.s.fs.syncMark(markerPath(m.s.o.Dir, k.rollout))
		if saws[i] = sawOf(err); errors.Is(err, fs.ErrNotExist) && !m.folderGone() {
			saws[i] = protocol.Gone // the mark was about what was cleared
		}
	}
	folder := sawOf(m.s.fs.syncDir(m.s.o.Dir))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, k := range marks {
		if k.do = k.do.Next(saws[i], k.more != nil); k.do == protocol.SyncMarkFolder {
			k.do = k.do.Next(folder, k.more != nil)
		}
		if k.do == protocol.Forget {
			delete(m.pending, k.rollout)
			close(k.gone)
			continue
		}
		if saws[i] == protocol.Failed || folder == protocol.Failed {
			k.again()
		}
		m.start()
	}
}

func sawOf(err error) protocol.Saw {
	if err != nil {
		return protocol.Failed
	}
	return protocol.Done
}

// wait returns when the loss of a record may be told, see protocol.TellLoss.
func (m *marker) wait(rollout string) {
	m.mu.Lock()
	k := m.pending[rollout]
	m.mu.Unlock()
	if k == nil {
		return
	}
	t := time.NewTimer(markPatience)
	defer t.Stop()
	for impatient := false; !protocol.TellLoss(m.step(k), impatient); {
		select {
		case <-k.gone:
		case <-m.closing:
			impatient = true
		case <-t.C:
			impatient = true
		}
	}
}

func (m *marker) step(k *mark) protocol.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return k.do
}

func (m *marker) folderGone() bool {
	_, err := m.s.fs.stat(m.s.o.Dir)
	return err != nil
}

// close lets no goroutine start any more and ends the pause of the one that writes.
func (m *marker) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	close(m.closing)
}

// unwritten returns those that are not written: one that was while the store closed only lacks its sync.
func (m *marker) unwritten(marks []*mark) (left []*mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range marks {
		if k.do == protocol.WriteMark {
			left = append(left, k)
		}
	}
	return left
}

// last tries once more, when every goroutine is gone and until ctx ends, and returns how many marks are lost.
func (m *marker) last(ctx context.Context) int {
	m.mu.Lock()
	marks := make([]*mark, 0, len(m.pending))
	for _, k := range m.pending {
		marks = append(marks, k)
	}
	m.mu.Unlock()
	for len(marks) > 0 && ctx.Err() == nil {
		n := min(len(marks), marksAtOnce)
		m.write(m.unwritten(marks[:n]))
		m.sync(m.written())
		marks = marks[n:]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pending)
}
