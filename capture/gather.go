package capture

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"time"

	"rolltap/capture/protocol"
)

const (
	journalBatchMax = 4 << 20 // bytes that one write gathers
	journalDirect   = 1 << 20 // larger data is not copied into the batch
)

// writeBatch makes a batch durable in the segment that it returns. protocol.Entries says what is done next.
func (j *journal) writeBatch(b *journalBatch) (s *segment, p protocol.Entries, err error) {
	j.mu.Lock()
	s = j.cur
	j.mu.Unlock()
	for p = protocol.BeginEntries(s != nil); !p.Ended(); p = p.Next(sawOf(err)) {
		switch p.Do {
		case protocol.MakeSegment:
			if s, err = j.newSegment(); err != nil {
				err = fmt.Errorf("new segment: %w", err)
			}
		case protocol.SyncSegments: // the content is synced with the first batch
			if err = j.o.fs.syncDir(j.folder); err != nil {
				s.drop()
				err = fmt.Errorf("new segment: %w", err)
				continue
			}
			j.use(s)
		case protocol.WriteEntries:
			if e := b.entries[0]; e.stream != nil {
				err = j.stream(s, e)
			} else {
				err = j.gather(s, b)
			}
		case protocol.SyncEntries:
			began := time.Now()
			err = s.f.Sync()
			if j.o.synced != nil {
				j.o.synced(time.Since(began))
			}
		case protocol.LookSegment:
			var now fs.FileInfo
			now, err = j.o.fs.stat(s.path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(s.info, now) {
				err = errJournalMoved
			}
		}
	}
	return s, p, err
}

// gather writes all entries of a batch in one write, save those that are too large to be copied for that.
func (j *journal) gather(s *segment, b *journalBatch) error {
	buf := slices.Grow(j.scratch[:0], int(min(b.bytes, journalBatchMax)))
	defer func() { j.scratch = buf[:0] }()
	for _, e := range b.entries {
		direct := len(e.data) > journalDirect
		at := len(buf)
		buf = appendEntryHead(buf, e)
		body := len(buf)
		crc := crc32.Checksum(buf[at+entryPrefix:], castagnoli())
		if direct {
			crc = crc32.Update(crc, castagnoli(), e.data)
		} else {
			buf = append(buf, e.data...)
			crc = crc32.Update(crc, castagnoli(), buf[body:]) // what was written, and it is in the cache
		}
		if err := sealEntry(buf[at:body], int64(len(e.data)), crc); err != nil {
			return err
		}
		if !direct {
			continue
		}
		if err := s.write(buf); err != nil {
			return err
		}
		buf = buf[:0]
		if err := s.write(e.data); err != nil {
			return err
		}
	}
	return s.write(buf)
}

// stream writes an entry whose source is read only once: its head is filled in when its length and checksum are known.
func (j *journal) stream(s *segment, e *journalEntry) error {
	head := appendEntryHead(make([]byte, 0, entryHead), e)
	at := s.size
	if err := s.write(head); err != nil {
		return err
	}
	w := streamWriter{s: s, buf: slices.Grow(j.scratch[:0], pieceSize), crc: crc32.Checksum(head[entryPrefix:], castagnoli())}
	err := e.stream(&w)
	if err == nil {
		err = w.flush()
	}
	j.scratch = w.buf[:0]
	if err != nil {
		return err
	}
	if err := sealEntry(head, s.size-at-int64(len(head)), w.crc); err != nil {
		return err
	}
	_, err = s.f.WriteAt(head[:entryPrefix], at)
	return err
}

// write writes at the end. After an error the segment is of no more use.
func (s *segment) write(p []byte) error {
	n, err := s.f.WriteAt(p, s.size)
	s.size += int64(n)
	return err
}

// streamWriter gathers small pieces and keeps the checksum.
type streamWriter struct {
	s   *segment
	buf []byte
	crc uint32
}

func (w *streamWriter) Write(p []byte) (int, error) {
	w.crc = crc32.Update(w.crc, castagnoli(), p)
	if len(w.buf)+len(p) > cap(w.buf) {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > cap(w.buf) {
		return len(p), w.s.write(p)
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *streamWriter) flush() error {
	err := w.s.write(w.buf)
	w.buf = w.buf[:0]
	return err
}
