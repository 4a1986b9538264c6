package capture

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"rolltap/capture/protocol"
	"rolltap/internal/storefs"
)

// sector is the least that a file system writes.
const sector = 512

// writing is one batch on its way to the disk. protocol.Batch says what is done next; here it is done.
type writing struct {
	s      *Store
	b      *batch
	path   string
	giveUp time.Time // for the lock
	buf    []byte    // lent

	// Of one attempt, which ends when the lock is given back.
	l      *locked // nil when there is none
	began  time.Time
	id     fileID
	old    int64  // size of the file in front of the batch
	wrote  int    // bytes
	data   []byte // what was written, nil when it was more than one write
	ref    *segmentRef
	failed error // why the last step failed
}

// commitFile is the commitFunc that appends to the rollout's own file.
func (s *Store) commitFile(b *batch) error {
	time.Sleep(time.Until(b.r.free))
	w := writing{s: s, b: b, path: dataPath(s.o.Dir, b.r.id), giveUp: time.Now().Add(s.o.GiveUp), buf: s.batches.get()}
	defer func() { s.batches.put(w.buf, batchMax+pooledBuf) }()
	p := protocol.Begin(s.mode)
	for !p.Ended() {
		p = p.Next(w.do(p))
		if p.Do == protocol.Lock {
			w.leave(p)
		}
	}
	if p.Do == protocol.Acknowledge {
		w.acknowledge(p)
	}
	w.leave(p)
	if p.Do != protocol.Acknowledge {
		return cmp.Or(w.failed, errUnfinished)
	}
	return nil
}

// errUnfinished is never seen: no batch fails for nothing.
var errUnfinished = errors.New("internal error: the batch came to no end")

// do does the step that is next and says what came of it.
func (w *writing) do(p protocol.Batch) protocol.Event {
	e := protocol.Event{Saw: protocol.Done}
	var err error
	switch p.Do {
	case protocol.Lock:
		err = w.lock(&e)
	case protocol.Look:
		e.Torn, err = torn(w.l.file, w.old)
	case protocol.Write:
		w.wrote, w.buf, w.data, err = w.s.writeBatch(w.l.file, w.old, w.b, p.Heal, w.buf)
		e.Whole = w.data != nil
		e.Crowded = w.s.journal != nil && len(w.data) < journalTo && w.s.crowded()
	case protocol.SyncFile:
		if err = w.s.sync(w.l.file.Sync); err == nil && w.wrote >= directFrom {
			storefs.DropPages(w.l.file, w.old, int64(w.wrote))
		}
	case protocol.SyncLater:
		w.s.lazy.soon(w.b.r.id)
	case protocol.Enter:
		w.ref, err = w.s.journal.commit(&journalEntry{
			name: nameOf(w.b.r.id, partRecords), file: w.id, offset: w.old, lines: len(w.b.entries), data: w.data,
		})
	case protocol.SyncFolder:
		err = w.s.dir.Wait()
		if errors.Is(err, fs.ErrNotExist) {
			e.Saw, err = protocol.Gone, nil
		} else if err != nil {
			err = fmt.Errorf("sync the folder: %w", err)
		}
	case protocol.LookName:
		var ok bool
		if ok, err = named(w.s.fs, w.path, w.l.info); !ok {
			e.Saw = protocol.Gone
		}
	case protocol.CutBack: // nobody else writes here: we hold the lock
		w.l.Truncate(w.old)
		return e // it failed, if so, for the reason that is noted
	}
	w.failed = err
	if err != nil {
		e.Saw = protocol.Failed
	}
	return e
}

// lock opens and locks the file that the path names, without holding any of the tokens for writing.
func (w *writing) lock(e *protocol.Event) error {
	began := time.Now()
	l, err := waitLock(w.s.quit, w.giveUp, w.s.fs, w.path, true, w.s.kept)
	if err != nil {
		return err
	}
	w.l, w.began = l, time.Now()
	if w.s.o.Observe.LockWait != nil {
		w.s.o.Observe.LockWait(w.began.Sub(began))
	}
	w.old = l.info.Size()
	w.id, e.Sure, err = identityOfLocked(l.file, l.info)
	now, r := identity{w.id, w.old}, w.b.r
	e.Known, e.AsLeft = r.seen.is(now), r.seen == now
	e.Boundary = w.old > 0 && w.old%sector == 0
	return err
}

// acknowledge notes what the next batch has to know, behind one that is durable.
func (w *writing) acknowledge(p protocol.Batch) {
	o, r := w.s.o.Observe, w.b.r
	r.seen = identity{w.id, w.old + int64(w.wrote)}
	if p.Torn && o.Healed != nil {
		o.Healed(r.id)
	}
	if o.Batch != nil {
		o.Batch(len(w.b.entries), w.wrote, time.Since(w.began))
	}
}

// leave ends an attempt: the journal is told whether its entry counts, and the lock is given back.
func (w *writing) leave(p protocol.Batch) {
	if w.ref != nil {
		if p.Do == protocol.Acknowledge {
			w.ref.applied(nameOf(w.b.r.id, partRecords))
		} else {
			w.ref.forsaken()
		}
		w.ref = nil
	}
	if p.Doubt && w.s.journal != nil { // what earlier batches left to it is in the same file
		w.s.journal.doubt(nameOf(w.b.r.id, partRecords))
	}
	if w.l == nil {
		return
	}
	if p.Do == protocol.Acknowledge {
		w.l.lock.Close() // its error says nothing about what a sync has promised
		w.s.kept.put(w.path, w.l.file, w.l.info)
	} else {
		w.l.Close()
	}
	w.l = nil
	if held := time.Since(w.began); held > courteous {
		w.b.r.free = time.Now().Add(min(held/courtesy, courtesyTo))
	}
}

// sync makes a file durable, together with others and not with too many.
func (s *Store) sync(f func() error) error {
	select {
	case s.syncs <- struct{}{}:
	case <-s.quit.Done():
		return context.Cause(s.quit)
	}
	defer func() { <-s.syncs }()
	var began time.Time
	err := s.convoy.do(func() error {
		began = time.Now()
		return f()
	})
	if s.o.Observe.Fsync != nil {
		s.o.Observe.Fsync(time.Since(began))
	}
	return err
}

// writeBatch writes the lines to a file of that size, all small ones that follow each other in one write, with a newline in front when the file
// ends inside a line. It returns how many bytes it wrote, the buffer that it was lent, and what it wrote when that was one
// write.
func (s *Store) writeBatch(f file, size int64, b *batch, heal bool, lent []byte) (n int, buf, data []byte, err error) {
	buf = lent[:0] // a batch that is written again finds there what it wrote first
	if len(b.entries) == 1 && len(b.entries[0].line.cuts) == 0 && !heal {
		data = b.entries[0].line.whole()
		if len(data) >= directFrom {
			n, buf, err = writeAround(f, data, size, buf)
		} else {
			n, err = f.Write(data)
		}
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
