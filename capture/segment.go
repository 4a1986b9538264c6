package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// fileID says which file an entry was meant for. Inode numbers are used again at once, and the clock that stamps a birth
// ticks only every few milliseconds, so it takes all four to tell an attempt from the one before it. The device number
// alone may be another after a restart of the machine; see sameFile.
type fileID struct {
	dev, ino uint64
	birth    int64  // nanoseconds since 1970
	gen      uint32 // generation of the inode; 0 where the file system does not tell
}

// errNoBirthTime is returned where files cannot be told apart for certain. Who writes to such a file syncs it itself.
var errNoBirthTime = errors.New("the file system does not tell when a file was made")

// Errors about segments.
var (
	// errNoSegment says that a file does not begin as a segment that this program understands.
	errNoSegment = errors.New("no journal segment of a known version")
	// errDamagedEntry ends the reading of a segment. A power cut leaves such an end; nobody was told that what is there is durable.
	errDamagedEntry = errors.New("entry with a wrong length or checksum")
	// errEntryTooLong is returned for an entry that the format cannot hold.
	errEntryTooLong = errors.New("too long for the journal")
)

// A segment is a header and batches of entries, all numbers little endian. The header and every batch begin at a multiple of directBlock and are
// padded to one with NUL bytes, so that they can be written around the system's memory; inside a batch there are no gaps:
//
//	header     0        8        12       16       24       32
//	           ├────────┼────────┼────────┼────────┼────────┤
//	           │rolltapj│ u32    │ u32    │ i64    │ u64    │
//	           │        │ version│ CRC of │ created│ device │
//	           │        │        │ the    │ ns     │ of the │
//	           │        │        │ rest   │        │ segment│
//
//	entry      0        4        8        16       24       32       40       44       46       +name    +4
//	           ├────────┼────────┼────────┼────────┼────────┼────────┼────────┼────────┼────────┼────────┼──────────
//	           │ u32    │ u32    │ u64    │ u64    │ i64    │ i64    │ u32    │ u16    │name of │ u32    │ data
//	           │ length │ CRC    │ device │ inode  │ birth  │ offset │ gener- │ length │the file│ number │ as it is
//	           │        │        │        │        │ ns     │        │ ation  │of name │        │ of     │ appended
//	           │        │        │        │        │        │        │        │        │        │ lines  │
//	                             └─────────────────────────────── payload ──────────────────────────────────────────
//
// length counts the payload, CRC is the CRC-32C of the payload. A length of 0 is no entry, so zeros are not taken for one.
const (
	segmentMagic   = "rolltapj"
	segmentVersion = 3 // 1 knew files of records only, and 2 no blocks
	segmentHeader  = 32

	entryPrefix = 8  // length and CRC
	entryFixed  = 38 // of the payload, in front of the name
	entryLeast  = entryFixed + 1 + 4
	entryHead   = entryPrefix + entryFixed + maxNameLen + 4 // the most that stands in front of the data
)

// castagnoli is a method of the processor; the table is shared and made once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func appendSegmentHeader(b []byte, created time.Time, dev uint64) []byte {
	at := len(b)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, segmentVersion)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(created.UnixNano()))
	b = binary.LittleEndian.AppendUint64(b, dev)
	binary.LittleEndian.PutUint32(b[at+12:], crc32.Checksum(b[at+16:], castagnoli()))
	return b
}

// appendEntryHead appends everything that stands in front of the data, with length and CRC left open.
func appendEntryHead(b []byte, e *journalEntry) []byte {
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, e.file.dev)
	b = binary.LittleEndian.AppendUint64(b, e.file.ino)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.file.birth))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.offset))
	b = binary.LittleEndian.AppendUint32(b, e.file.gen)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.name)))
	b = append(b, e.name...)
	return binary.LittleEndian.AppendUint32(b, uint32(e.lines))
}

// sealEntry fills in length and CRC; head is what appendEntryHead made, and data of size bytes with its part in crc follows.
func sealEntry(head []byte, size int64, crc uint32) error {
	length := int64(len(head)-entryPrefix) + size
	if length > math.MaxUint32 {
		return fmt.Errorf("%w: %d bytes", errEntryTooLong, length)
	}
	binary.LittleEndian.PutUint32(head, uint32(length))
	binary.LittleEndian.PutUint32(head[4:], crc)
	return nil
}

// segmentEntry is an entry as it was read; its data stays in the segment.
type segmentEntry struct {
	name   fileName
	file   fileID
	offset int64 // where the data begins in that file
	lines  int
	at     int64 // where the data begins in the segment
	size   int64 // of the data
}

// segmentReader reads a segment entry by entry, in memory that does not depend on their size. Every entry that next returned
// had the right checksum. It is used by one goroutine.
type segmentReader struct {
	r       io.ReaderAt
	size    int64 // of the segment
	off     int64 // of the next entry
	created time.Time
	dev     uint64 // of the segment when it was made
	padded  bool   // batches are padded to blocks
	buf     []byte
	crc     hash.Hash32
}

// newSegmentReader returns errNoSegment when r does not begin as a segment, io.EOF when r is empty.
func newSegmentReader(r io.ReaderAt, size int64) (*segmentReader, error) {
	if size == 0 {
		return nil, io.EOF
	}
	var h [segmentHeader]byte
	if n, err := r.ReadAt(h[:], 0); n < len(h) {
		if err != nil && err != io.EOF {
			return nil, err
		}
		return nil, errNoSegment
	}
	version := binary.LittleEndian.Uint32(h[8:])
	if string(h[:8]) != segmentMagic || version < 1 || version > segmentVersion ||
		binary.LittleEndian.Uint32(h[12:]) != crc32.Checksum(h[16:], castagnoli()) {
		return nil, errNoSegment
	}
	return &segmentReader{
		r: r, size: size, off: segmentHeader,
		created: time.Unix(0, int64(binary.LittleEndian.Uint64(h[16:]))),
		dev:     binary.LittleEndian.Uint64(h[24:]),
		padded:  version >= 3,
		buf:     make([]byte, 64<<10),
		crc:     crc32.New(castagnoli()),
	}, nil
}

// next returns the next entry, io.EOF at a clean end, errDamagedEntry where the readable part ends, and what the file system
// says. After errDamagedEntry it stays where it is.
func (s *segmentReader) next() (segmentEntry, error) {
	e, end, err := s.read(s.off)
	if errors.Is(err, errDamagedEntry) && s.padded {
		var more bool
		if more, err = s.skipPadding(); err == nil && !more {
			err = errDamagedEntry
		} else if err == nil {
			e, end, err = s.read(s.off)
		}
	}
	if err == nil {
		s.off = end
	}
	return e, err
}

// skipPadding goes on to the next block when there is nothing but NUL bytes up to there. It is asked where no entry is: of one that begins just in
// front of a block, what is there may be NUL bytes as well.
func (s *segmentReader) skipPadding() (ok bool, err error) {
	rest := s.buf[:min(-s.off&(directBlock-1), s.size-s.off)]
	if n, err := s.r.ReadAt(rest, s.off); n < len(rest) {
		return false, shortSegment(err)
	}
	if len(rest) == 0 || len(bytes.Trim(rest, "\x00")) > 0 {
		return false, nil
	}
	s.off += int64(len(rest))
	return true, nil
}

// skipped is how many bytes are behind the last entry that was returned.
func (s *segmentReader) skipped() int64 { return s.size - s.off }

// goesOn reports whether a whole entry follows the damaged one, where its length says or at the beginning of a batch: then the damage is no torn
// end.
func (s *segmentReader) goesOn() bool {
	var p [entryPrefix]byte
	if n, _ := s.r.ReadAt(p[:], s.off); n < len(p) {
		return false
	}
	if _, _, err := s.read(s.off + entryPrefix + int64(binary.LittleEndian.Uint32(p[:]))); err == nil {
		return true
	}
	for at := s.off&^(directBlock-1) + directBlock; s.padded && at < s.size; at += directBlock {
		if _, _, err := s.read(at); err == nil {
			return true
		}
	}
	return false
}

func (s *segmentReader) read(off int64) (e segmentEntry, end int64, err error) {
	if off >= s.size {
		return e, 0, io.EOF
	}
	if s.size-off < entryPrefix+entryLeast {
		return e, 0, errDamagedEntry
	}
	head := s.buf[:min(int64(len(s.buf)), s.size-off)]
	if n, err := s.r.ReadAt(head, off); n < len(head) {
		return e, 0, shortSegment(err)
	}
	length := int64(binary.LittleEndian.Uint32(head))
	want := binary.LittleEndian.Uint32(head[4:])
	end = off + entryPrefix + length
	if length < entryLeast || end > s.size {
		return e, 0, errDamagedEntry
	}
	// The head is taken before the buffer is used for the rest, and judged behind the checksum.
	if whole := entryPrefix + length; whole < int64(len(head)) {
		head = head[:whole]
	}
	payload := head[entryPrefix:]
	e, ok := parseEntry(payload, length)
	e.at += off + entryPrefix
	s.crc.Reset()
	s.crc.Write(payload)
	for at := off + int64(len(head)); at < end; {
		piece := s.buf[:min(int64(len(s.buf)), end-at)]
		if n, err := s.r.ReadAt(piece, at); n < len(piece) {
			return e, 0, shortSegment(err)
		}
		s.crc.Write(piece)
		at += int64(len(piece))
	}
	if s.crc.Sum32() != want || !ok {
		return segmentEntry{}, 0, errDamagedEntry
	}
	return e, end, nil
}

// shortSegment is the error for bytes that are not there although the segment's size says so.
func shortSegment(err error) error {
	if err == nil || err == io.EOF {
		return errDamagedEntry
	}
	return err
}

// parseEntry reads what stands in front of the data. p is the beginning of a payload of that length, with all of the head.
func parseEntry(p []byte, length int64) (e segmentEntry, ok bool) {
	e.file.dev = binary.LittleEndian.Uint64(p)
	e.file.ino = binary.LittleEndian.Uint64(p[8:])
	e.file.birth = int64(binary.LittleEndian.Uint64(p[16:]))
	e.offset = int64(binary.LittleEndian.Uint64(p[24:]))
	e.file.gen = binary.LittleEndian.Uint32(p[32:])
	n := int(binary.LittleEndian.Uint16(p[36:]))
	if n > maxNameLen || len(p) < entryFixed+n+4 {
		return segmentEntry{}, false
	}
	e.lines = int(binary.LittleEndian.Uint32(p[entryFixed+n:]))
	e.at = int64(entryFixed + n + 4)
	e.size = length - e.at
	e.name = fileName(p[entryFixed : entryFixed+n])
	return e, e.name.valid() && e.offset >= 0 && e.offset <= math.MaxInt64-length
}

// sameFile reports whether now is the file that an entry in a segment was meant for. wasDev and isDev are the devices of the
// segment when it was made and now: a restart may number devices anew, but a store and its journal stay together.
func sameFile(was, now fileID, wasDev, isDev uint64) bool {
	dev := was.dev == now.dev || was.dev == wasDev && now.dev == isDev
	return dev && was.ino == now.ino && was.birth == now.birth && was.gen == now.gen
}
