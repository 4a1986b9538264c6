package capture

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"time"

	"rolltap/capture/protocol"
)

const journalBatchMax = 4 << 20 // bytes that one write gathers

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
			err = j.gather(s, b)
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

// gather writes all entries of a batch in one write, from one boundary of a block to another.
func (j *journal) gather(s *segment, b *journalBatch) error {
	buf := alignedBuf(j.scratch, int(b.bytes)+directBlock)
	defer func() { j.scratch = buf[:0] }()
	for _, e := range b.entries {
		at := len(buf)
		buf = appendEntryHead(buf, e)
		body := len(buf)
		crc := crc32.Checksum(buf[at+entryPrefix:], castagnoli())
		buf = append(buf, e.data...)
		crc = crc32.Update(crc, castagnoli(), buf[body:]) // what was written, and it is in the cache
		if err := sealEntry(buf[at:body], int64(len(e.data)), crc); err != nil {
			return err
		}
	}
	return s.write(appendPadding(buf))
}

// write writes at the end. After an error the segment is of no more use.
func (s *segment) write(p []byte) error {
	n, err := s.f.WriteAt(p, s.size)
	s.size += int64(n)
	return err
}
