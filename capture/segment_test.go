package capture

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"rolltap/internal/storefs"
)

// testEntries are entries of every shape, in a segment.
func testEntries() (entries []journalEntry, segment []byte) {
	entries = []journalEntry{
		{name: "r", file: fileID{dev: 1, ino: 2, birth: 3, gen: 4}, offset: 0, lines: 1, data: []byte(testLine("a", 3))},
		{name: fileName(strings.Repeat("R", storefs.MaxIDLen)), file: fileID{math.MaxUint64, math.MaxUint64, math.MinInt64, math.MaxUint32}, offset: 1 << 40, lines: 2,
			data: []byte("\n" + testLine("b", 1) + testLine("c", 1))},
		{name: "r-2", file: fileID{dev: 1, ino: 3, birth: 5}, offset: 7, lines: 0x01020304, data: nil},
		{name: "r/tokens", file: fileID{dev: 1, ino: 4, birth: 6}, offset: 0, lines: 1, data: []byte(testLine("a", 2))},
		{name: nameOf(strings.Repeat("R", storefs.MaxIDLen), PartIntents), file: fileID{dev: 1, ino: 5, birth: 7}, offset: 9, lines: 2, data: []byte("a\nb\n")},
		{name: "r", file: fileID{dev: 1, ino: 2, birth: 3, gen: 4}, offset: 35, lines: 1, data: []byte(testLine("d", 70_000))},
	}
	segment = appendSegmentHeader(nil, time.Unix(1700000000, 5), 0x0102030405060708)
	for _, e := range entries {
		segment = appendTestEntry(segment, &e)
	}
	return entries, segment
}

func appendTestEntry(segment []byte, e *journalEntry) []byte {
	at := len(segment)
	segment = appendEntryHead(segment, e)
	body := len(segment)
	segment = append(segment, e.data...)
	if err := sealEntry(segment[at:body], int64(len(e.data)), crc32.Checksum(segment[at+entryPrefix:], castagnoli())); err != nil {
		panic(err)
	}
	return segment
}

// blocks is a segment of these batches.
func blocks(batches ...[]journalEntry) []byte {
	segment := appendPadding(appendSegmentHeader(nil, time.Unix(1700000000, 5), 0x0102030405060708))
	for _, b := range batches {
		for _, e := range b {
			segment = appendTestEntry(segment, &e)
		}
		segment = appendPadding(segment)
	}
	return segment
}

// readAll returns what a reader makes of bytes, and the error that ended it.
func readAll(b []byte) (entries []segmentEntry, skipped int64, err error) {
	s, err := newSegmentReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, int64(len(b)), err
	}
	for {
		e, err := s.next()
		if err != nil {
			return entries, s.skipped(), err
		}
		entries = append(entries, e)
	}
}

func (e segmentEntry) is(want journalEntry, segment []byte) bool {
	return e.name == want.name && e.file == want.file && e.offset == want.offset && e.lines == want.lines &&
		string(segment[e.at:e.at+e.size]) == string(want.data)
}

// TestSegmentFormat holds the bytes: what one version wrote the next one reads.
func TestSegmentFormat(t *testing.T) {
	entries, _ := testEntries()
	segment := blocks(entries[:3], entries[3:5])
	for version, count := range map[int]int{1: 3, 2: 5, 3: 5} {
		name := filepath.Join("testdata", "journal", fmt.Sprintf("v%d.seg", version))
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if version == segmentVersion && !bytes.Equal(golden, segment) {
			t.Errorf("other bytes than in %s", name)
		}
		got, _, err := readAll(golden)
		if err != io.EOF || len(got) != count {
			t.Fatalf("%s: %d entries, %v", name, len(got), err)
		}
		for i, e := range got {
			if !e.is(entries[i], golden) {
				t.Errorf("%s: entry %d is %+v", name, i, e)
			}
		}
		s, err := newSegmentReader(bytes.NewReader(golden), int64(len(golden)))
		if err != nil || s.created.UnixNano() != 1700000000_000000005 || s.dev != 0x0102030405060708 {
			t.Errorf("%s: header: %v, %v, %v", name, s.created, s.dev, err)
		}
	}
	for _, version := range []byte{0, segmentVersion + 1} {
		b := bytes.Clone(segment)
		b[8] = version
		if _, _, err := readAll(b); err != errNoSegment {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// TestSegmentTornAnywhere cuts a segment at every byte, and lets zeros follow as a power cut does.
func TestSegmentTornAnywhere(t *testing.T) {
	entries, segment := testEntries()
	segment = segment[:len(segment)-len(appendTestEntry(nil, &entries[len(entries)-1]))]
	all, _, _ := readAll(segment)
	for cut := range len(segment) {
		for _, zeros := range []int{0, 1, 100} {
			b := append(bytes.Clone(segment[:cut]), make([]byte, zeros)...)
			got, skipped, err := readAll(b)
			want, end := 0, int64(segmentHeader)
			for _, e := range all {
				if e.at+e.size <= int64(cut) {
					want, end = want+1, e.at+e.size
				}
			}
			if len(bytes.Trim(b[min(end, int64(len(b))):], "\x00")) == 0 { // padding
				end = int64(len(b))
			}
			switch {
			case len(b) == 0:
				if err != io.EOF {
					t.Fatalf("empty: %v", err)
				}
			case cut < segmentHeader:
				if err != errNoSegment {
					t.Fatalf("cut at %d: %v", cut, err)
				}
			case len(got) != want || skipped != int64(len(b))-end:
				t.Fatalf("cut at %d with %d zeros: %d entries, %d skipped, want %d, %d", cut, zeros, len(got), skipped, want, int64(len(b))-end)
			case (err == io.EOF) != (skipped == 0) || err != io.EOF && err != errDamagedEntry:
				t.Fatalf("cut at %d with %d zeros: %v", cut, zeros, err)
			}
		}
	}
}

// TestSegmentFlipped changes every byte: no entry is ever another one.
func TestSegmentFlipped(t *testing.T) {
	entries, segment := testEntries()
	short := len(segment) - len(appendTestEntry(nil, &entries[len(entries)-1]))
	all, _, _ := readAll(segment)
	if len(all) != len(entries) {
		t.Fatalf("%d entries", len(all))
	}
	for at := range short {
		b := bytes.Clone(segment)
		b[at] ^= 0x41
		got, _, err := readAll(b)
		want := 0
		for want < len(all) && all[want].at+all[want].size <= int64(at) {
			want++
		}
		if at < segmentHeader {
			if err != errNoSegment {
				t.Fatalf("byte %d: %v", at, err)
			}
			continue
		}
		if len(got) != want || err != errDamagedEntry {
			t.Fatalf("byte %d: %d entries, %v, want %d", at, len(got), err, want)
		}
	}
}

func TestSegmentGoesOn(t *testing.T) {
	entries, segment := testEntries()
	last := len(appendTestEntry(nil, &entries[len(entries)-1]))
	for _, c := range []struct {
		name string
		at   int
		want bool
	}{
		{"in the data of one in the middle", segmentHeader + entryPrefix + entryFixed + 20, true},
		{"in the last", len(segment) - 5, false},
		{"in the length of the last", len(segment) - last, false},
	} {
		b := bytes.Clone(segment)
		b[c.at] ^= 1
		s, err := newSegmentReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.next()
		}
		if err != errDamagedEntry || s.goesOn() != c.want {
			t.Errorf("%s: %v, goes on: %v", c.name, err, !c.want)
		}
	}
	for damaged, want := range []bool{true, true, false} { // the length of the only entry of each batch
		b := blocks(entries[:1], entries[1:2], entries[2:3])
		b[(1+damaged)*directBlock+1] ^= 1
		s, err := newSegmentReader(bytes.NewReader(b), int64(len(b)))
		for err == nil {
			_, err = s.next()
		}
		if err != errDamagedEntry || s.goesOn() != want {
			t.Errorf("batch %d: %v, goes on: %v", damaged, err, !want)
		}
	}
}

// TestSegmentPadding: behind the last entry of a batch the next block is read, whatever is left of this one, and what is no padding stays damage.
func TestSegmentPadding(t *testing.T) {
	entry := func(size int) journalEntry {
		return journalEntry{name: "r", file: fileID{dev: 1, ino: 2, birth: 3}, lines: 1, data: []byte(strings.Repeat("x", size))}
	}
	probe := entry(0)
	head := len(appendTestEntry(nil, &probe))
	for left := range 2 * entryPrefix { // bytes of padding, or none
		// What comes behind it, in the same batch or in the next one, has a length of which the first two bytes are NUL.
		first, second := entry(directBlock-head-left), entry(1<<16-(head-entryPrefix))
		for name, segment := range map[string][]byte{
			"one batch": blocks([]journalEntry{first, second}),
			"two":       blocks([]journalEntry{first}, []journalEntry{second}),
		} {
			got, _, err := readAll(segment)
			if err != io.EOF || len(got) != 2 || !got[0].is(first, segment) || !got[1].is(second, segment) {
				t.Fatalf("%s, %d bytes left: %d entries, %v", name, left, len(got), err)
			}
		}
	}
	segment := blocks([]journalEntry{entry(100)}, []journalEntry{entry(100)})
	for name, change := range map[string]func(b []byte) []byte{
		"a byte in the padding":   func(b []byte) []byte { b[2*directBlock-1] = 1; return b },
		"a block that never came": func(b []byte) []byte { clear(b[2*directBlock:]); return b },
		"another byte behind it":  func(b []byte) []byte { return append(b, 1) },
		"another block behind it": func(b []byte) []byte { return append(b, make([]byte, directBlock)...) },
	} {
		if got, skipped, err := readAll(change(bytes.Clone(segment))); err != errDamagedEntry || skipped == 0 || len(got) == 0 {
			t.Errorf("%s: %d entries, %d bytes skipped, %v", name, len(got), skipped, err)
		}
	}
}

// TestSegmentAroundMemory: what is not written in whole blocks goes through the system's memory, and so does what follows.
func TestSegmentAroundMemory(t *testing.T) {
	f, err := osJournalFiles{}.create(filepath.Join(t.TempDir(), "a.seg"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := appendPadding([]byte("in a block"))
	for _, p := range [][]byte{appendPadding(append(alignedBuf(nil, directBlock), "in a block"...)), []byte("in none"), []byte("nor this")} {
		at := int64(len(want))
		if bytes.HasPrefix(p, []byte("in a block")) {
			at = 0
		} else {
			want = append(want, p...)
		}
		if n, err := f.WriteAt(p, at); n != len(p) || err != nil {
			t.Fatalf("%q: %d, %v", p[:7], n, err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(f.(*osSegment).Name()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

// badReader fails behind its first bytes.
type badReader struct {
	b   []byte
	err error
}

func (r badReader) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, r.b[min(off, int64(len(r.b))):])
	if n < len(p) {
		return n, r.err
	}
	return n, nil
}

func TestSegmentThatCannotBeRead(t *testing.T) {
	_, segment := testEntries()
	for _, cut := range []int{10, segmentHeader, segmentHeader + 20, len(segment) - 10} {
		s, err := newSegmentReader(badReader{segment[:cut], iotest.ErrTimeout}, int64(len(segment)))
		for err == nil {
			_, err = s.next()
		}
		if !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	// The file became shorter while it was read.
	s, err := newSegmentReader(badReader{segment[:len(segment)-10], io.EOF}, int64(len(segment)))
	for err == nil {
		_, err = s.next()
	}
	if err != errDamagedEntry {
		t.Errorf("got %v", err)
	}
}

func TestSealEntryTooLong(t *testing.T) {
	head := appendEntryHead(nil, &journalEntry{name: "r"})
	if err := sealEntry(head, math.MaxUint32, 0); !errors.Is(err, errEntryTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestSameFile(t *testing.T) {
	was := fileID{dev: 5, ino: 6, birth: 7, gen: 8}
	for _, c := range []struct {
		name          string
		now           fileID
		wasDev, isDev uint64
		want          bool
	}{
		{"the same", was, 5, 5, true},
		{"devices were numbered anew", fileID{9, 6, 7, 8}, 5, 9, true},
		{"another device", fileID{9, 6, 7, 8}, 5, 5, false},
		{"another device, the journal elsewhere", fileID{9, 6, 7, 8}, 4, 9, false},
		{"another inode", fileID{5, 1, 7, 8}, 5, 5, false},
		{"the inode used again", fileID{5, 6, 8, 8}, 5, 5, false},
		{"the inode used again within a tick", fileID{5, 6, 7, 9}, 5, 5, false},
	} {
		if got := sameFile(was, c.now, c.wasDev, c.isDev); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// FuzzSegment: whatever the bytes, the reader returns exactly the entries in front of the first damage, which an independent
// reading by the book finds too.
func FuzzSegment(f *testing.F) {
	entries, segment := testEntries()
	segment = segment[:len(segment)-len(appendTestEntry(nil, &entries[len(entries)-1]))]
	seeds := [][]byte{
		nil, segment[:10], segment[:segmentHeader], segment, segment[:len(segment)-1],
		append(bytes.Clone(segment), 0), append(bytes.Clone(segment), make([]byte, 200)...),
		append(bytes.Clone(segment), bytes.Repeat([]byte{0xff}, 100)...),
		append(bytes.Clone(segment), segment[segmentHeader:]...),
		append(bytes.Clone(segment), segment...),
		bytes.Replace(segment, []byte("rolltapj"), []byte("rolltapk"), 1),
		bytes.Replace(segment, []byte("pad"), []byte("pAd"), 1),
		appendTestEntry(bytes.Clone(segment), &journalEntry{name: "a/../b", data: []byte("x")}),
		appendTestEntry(bytes.Clone(segment), &journalEntry{name: "r/tokens/intents", data: []byte("x")}),
		appendTestEntry(bytes.Clone(segment), &journalEntry{name: "r/state", data: []byte("x")}),
		appendTestEntry(bytes.Clone(segment), &journalEntry{name: "r/", data: []byte("x")}),
		appendTestEntry(bytes.Clone(segment), &journalEntry{name: "/tokens", data: []byte("x")}),
		appendTestEntry(bytes.Clone(segment), &journalEntry{name: "r", offset: -1, data: []byte("x")}),
		appendTestEntry(bytes.Clone(segment), &journalEntry{name: "r", offset: math.MaxInt64, data: []byte("x")}),
	}
	if len(seeds) != 19 {
		f.Fatalf("%d seeds", len(seeds))
	}
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, skipped, err := readAll(b)
		var want []string
		end := 0
		if err != errNoSegment && len(b) > 0 {
			want, end = byTheBook(b)
		}
		if len(got) != len(want) {
			t.Fatalf("%d entries, want %d", len(got), len(want))
		}
		for i, e := range got {
			if s := fmt.Sprint(e.name, e.file, e.offset, e.lines, string(b[e.at:e.at+e.size])); s != want[i] {
				t.Errorf("entry %d: %q, want %q", i, s, want[i])
			}
			if !e.name.valid() || e.offset < 0 || e.offset+e.size < e.offset {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		if err != errNoSegment && skipped != int64(len(b)-end) {
			t.Errorf("%d bytes skipped, want %d", skipped, len(b)-end)
		}
	})
}

// byTheBookName: an id, and perhaps which of its token files.
func byTheBookName(name string) bool {
	id := strings.TrimSuffix(strings.TrimSuffix(name, "/tokens"), "/intents")
	return ValidID(id) && (name == id || name == id+"/tokens" || name == id+"/intents")
}

// byTheBook reads entries with as little in common with the reader as the diagram allows.
func byTheBook(b []byte) (entries []string, end int) {
	num := func(p []byte) (n uint64) {
		for i := len(p) - 1; i >= 0; i-- {
			n = n<<8 | uint64(p[i])
		}
		return n
	}
	for end = 32; ; {
		text, size := entryByTheBook(num, b[end:])
		if size == 0 && b[8] >= 3 && end%4096 != 0 { // padding?
			if rest := b[end:min(len(b), (end/4096+1)*4096)]; len(bytes.TrimLeft(rest, "\x00")) == 0 {
				end += len(rest)
				text, size = entryByTheBook(num, b[end:])
			}
		}
		if size == 0 {
			return entries, end
		}
		entries = append(entries, text)
		end += size
	}
}

// entryByTheBook reads one entry; size is 0 when p begins with none.
func entryByTheBook(num func([]byte) uint64, p []byte) (text string, size int) {
	if len(p) < 8 || num(p[:4]) == 0 || num(p[:4]) > uint64(len(p)-8) {
		return "", 0
	}
	length := int(num(p[:4]))
	payload := p[8 : 8+length]
	if uint64(crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli))) != num(p[4:8]) || length < 43 {
		return "", 0
	}
	n := int(num(payload[36:38]))
	if length < 42+n || !byTheBookName(string(payload[38:38+n])) {
		return "", 0
	}
	offset := int64(num(payload[24:32]))
	if offset < 0 || offset > math.MaxInt64-int64(length) {
		return "", 0
	}
	id := fileID{num(payload[:8]), num(payload[8:16]), int64(num(payload[16:24])), uint32(num(payload[32:36]))}
	return fmt.Sprint(string(payload[38:38+n]), id, offset, int(num(payload[38+n:42+n])), string(payload[42+n:])), 8 + length
}
