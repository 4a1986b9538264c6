package capture

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"rolltap/internal/storefs"
)

// powerDisk is a folder of which is known what a power cut would leave. The store under test writes to the real folder through
// files and journalFiles; behind every call the folder is looked at, and what has changed is noted as not durable until its sync:
//
//   - of a file, each sector that was written, by itself, and each size that the file has had;
//   - of a folder, each name, by itself, with everything that it has stood for.
//
// Folders are taken for durable: storefs.MakeFolder makes them before anything is in them. What a failed sync covered is durable only
// when its sector is written again.
type powerDisk struct {
	t    testing.TB
	dir  string // of the store
	keep string // every file that ever was, by number, so that it keeps number and birth

	mu   sync.Mutex // held during each call, so that what changed in it is known
	now  diskState
	past []*diskState                      // a copy behind everything that changed
	lie  func(path string, late bool) bool // syncs that do nothing; late: of a segment's files
	fail func(path string) bool            // syncs that fail
}

// diskState is what is known at one moment.
type diskState struct {
	files map[uint64]*image
	names map[string][]uint64 // path in the store: what it may stand for behind a cut, last what it does now; 0 is no file
	acked map[string]string   // call to rollout
	lost  map[string]string   // of callers who were told so

	cleared map[string]bool // calls that must not come back
}

// image is a file.
type image struct {
	durable, now []byte
	sizes        []int // that it may have beside that of durable
	ops          []diskOp
}

// diskOp is a write, or a truncation when it is empty.
type diskOp struct {
	from, to int
	after    []byte // the whole file behind it
	dropped  bool   // its sync failed
}

func newPowerDisk(t testing.TB) *powerDisk {
	t.Helper()
	// In memory it is a hundred times faster, and nothing here rests on what a real disk does.
	root, err := os.MkdirTemp("/dev/shm", "capture-power-")
	if err != nil {
		root = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	d := &powerDisk{t: t, dir: filepath.Join(root, "store"), keep: filepath.Join(root, "keep")}
	d.now = diskState{map[uint64]*image{}, map[string][]uint64{}, map[string]string{}, map[string]string{}, map[string]bool{}}
	if err := os.Mkdir(d.keep, 0o750); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *powerDisk) kept(number uint64) string {
	return filepath.Join(d.keep, strconv.FormatUint(number, 10))
}

// do lets something happen and looks what has changed.
func (d *powerDisk) do(what func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := what()
	d.look()
	d.past = append(d.past, d.now.copy())
	return err
}

func (d *powerDisk) look() {
	found := map[string]uint64{}
	filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // somebody has just removed it
		}
		st, err := os.Stat(path)
		if err != nil {
			return nil
		}
		number := st.Sys().(*syscall.Stat_t).Ino
		if d.now.files[number] == nil {
			if os.Link(path, d.kept(number)) != nil {
				return nil
			}
			d.now.files[number] = &image{}
		}
		rel, _ := filepath.Rel(d.dir, path)
		found[rel] = number
		return nil
	})
	for rel := range d.now.names {
		if _, ok := found[rel]; !ok {
			found[rel] = 0
		}
	}
	for rel, number := range found {
		was := d.now.names[rel]
		if was == nil {
			was = []uint64{0}
		}
		if was[len(was)-1] != number {
			was = append(slices.Clone(was), number)
		}
		d.now.names[rel] = was
	}
	for number, f := range d.now.files {
		p, err := os.ReadFile(d.kept(number))
		if err != nil {
			d.t.Error(err)
		}
		f.changed(p)
	}
}

func (f *image) changed(p []byte) {
	if bytes.Equal(p, f.now) {
		return
	}
	n := 0
	for n < len(p) && n < len(f.now) && p[n] == f.now[n] {
		n++
	}
	f.ops = append(slices.Clip(f.ops), diskOp{from: n, to: len(p), after: p})
	f.sizes = append(slices.Clip(f.sizes), len(p))
	f.now = p
}

// synced makes what was written to a file durable, or drops it.
func (f *image) synced(ok bool) {
	if !ok {
		f.ops = slices.Clone(f.ops)
		for i := range f.ops {
			f.ops[i].dropped = true
		}
		return
	}
	next := make([]byte, len(f.now))
	copy(next, f.durable)
	var left []diskOp
	for _, op := range f.ops {
		if op.dropped {
			op.after = f.now // the disk has what it had, or what is in memory
			left = append(left, op)
		}
	}
	for _, op := range f.ops {
		if !op.dropped {
			from := op.from / sector * sector
			to := min((op.to+sector-1)/sector*sector, len(f.now))
			if from < to {
				copy(next[from:to], f.now[from:to])
			}
		}
	}
	f.durable, f.sizes, f.ops = next, nil, left
}

func (d *powerDisk) syncFile(path string, late bool, sync func() error) error {
	return d.do(func() error {
		d.look()
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		f := d.now.files[st.Sys().(*syscall.Stat_t).Ino]
		switch {
		case d.fail != nil && d.fail(path):
			f.synced(false)
			return &fs.PathError{Op: "sync", Path: path, Err: syscall.EIO}
		case d.lie != nil && d.lie(path, late):
			return nil
		}
		if err = sync(); err == nil {
			f.synced(true)
		}
		return err
	})
}

func (d *powerDisk) syncDir(dir string) error {
	return d.do(func() error {
		d.look()
		if d.lie != nil && d.lie(dir, false) {
			return nil
		}
		if err := storefs.SyncFolder(dir); err != nil {
			return err
		}
		d.durableNames(dir)
		return nil
	})
}

func (d *powerDisk) durableNames(dir string) {
	for rel, was := range d.now.names {
		if filepath.Join(d.dir, filepath.Dir(rel)) == dir {
			d.now.names[rel] = was[len(was)-1:]
		}
	}
}

func (s *diskState) copy() *diskState {
	c := &diskState{map[uint64]*image{}, maps.Clone(s.names), maps.Clone(s.acked), maps.Clone(s.lost), maps.Clone(s.cleared)}
	for n, f := range s.files {
		g := *f
		c.files[n] = &g
	}
	return c
}

// outcomes are all contents that a cut may leave of a file.
func (f *image) outcomes() [][]byte {
	sizes := map[int]bool{len(f.durable): true}
	sectors := map[int][][]byte{}
	for _, op := range f.ops {
		for at := op.from / sector; at*sector < max(op.to, op.from+1); at++ {
			v := piece(op.after, at)
			if old := piece(f.durable, at); sectors[at] == nil {
				sectors[at] = [][]byte{old}
			}
			if !slices.ContainsFunc(sectors[at], func(x []byte) bool { return bytes.Equal(x, v) }) {
				sectors[at] = append(sectors[at], v)
			}
			if op.from < at*sector && at*sector < op.to {
				sizes[at*sector] = !op.dropped || sizes[at*sector] // a write that came to its middle
			}
		}
	}
	for _, n := range f.sizes {
		sizes[n] = true
	}
	longest := 0
	for n := range sizes {
		longest = max(longest, n)
	}
	base := make([]byte, (longest+sector)/sector*sector)
	copy(base, f.durable)
	all := [][]byte{base}
	for at, versions := range sectors {
		var next [][]byte
		for _, b := range all {
			for _, v := range versions {
				if at*sector >= len(b) {
					continue
				}
				c := slices.Clone(b)
				copy(c[at*sector:], v)
				next = append(next, c)
			}
		}
		if next != nil {
			all = next
		}
	}
	seen := map[string]bool{}
	var out [][]byte
	for _, b := range all {
		for n, may := range sizes {
			if !may || n > len(b) || seen[string(b[:n])] {
				continue
			}
			seen[string(b[:n])] = true
			out = append(out, b[:n:n])
		}
	}
	return out
}

// piece is a sector of a file, with NUL bytes behind its end.
func piece(p []byte, at int) []byte {
	s := make([]byte, sector)
	if at*sector < len(p) {
		copy(s, p[at*sector:])
	}
	return s
}

// The seam.

type powerFiles struct {
	osFiles
	d *powerDisk
}

func (f powerFiles) lock(path string, create bool) (l lock, err error) {
	err = f.d.do(func() error { l, err = f.osFiles.lock(path, create); return err })
	return l, err
}

func (f powerFiles) data(path string) (file, error) {
	h, err := f.osFiles.data(path)
	if err != nil {
		return nil, err
	}
	return powerFile{h, path, f.d}, nil
}

func (f powerFiles) mark(path string, line []byte) error {
	return f.d.do(func() error { return f.osFiles.mark(path, line) })
}

func (f powerFiles) syncMark(path string) error {
	return f.d.syncFile(path, false, func() error { return f.osFiles.syncMark(path) })
}

func (f powerFiles) syncDir(dir string) error { return f.d.syncDir(dir) }

type powerFile struct {
	file
	path string
	d    *powerDisk
}

func (f powerFile) Write(p []byte) (n int, err error) {
	err = f.d.do(func() error { n, err = f.file.Write(p); return err })
	return n, err
}

func (f powerFile) Truncate(size int64) error {
	return f.d.do(func() error { return f.file.Truncate(size) })
}

func (f powerFile) Sync() error { return f.d.syncFile(f.path, false, f.file.Sync) }

type powerJournal struct {
	osJournalFiles
	d *powerDisk
}

func (f powerJournal) create(path string) (s segmentFile, err error) {
	err = f.d.do(func() error { s, err = f.osJournalFiles.create(path); return err })
	return powerSegment{s, path, f.d}, err
}

func (f powerJournal) syncData(path string) error {
	return f.d.syncFile(path, true, func() error { return f.osJournalFiles.syncData(path) })
}

func (f powerJournal) syncDir(dir string) error { return f.d.syncDir(dir) }

type powerSegment struct {
	segmentFile
	path string
	d    *powerDisk
}

func (s powerSegment) WriteAt(p []byte, off int64) (n int, err error) {
	err = s.d.do(func() error { n, err = s.segmentFile.WriteAt(p, off); return err })
	return n, err
}

func (s powerSegment) Sync() error { return s.d.syncFile(s.path, false, s.segmentFile.Sync) }

// isData reports whether a path is a rollout's file.
func isData(path string) bool { return strings.HasSuffix(path, dataSuffix) }
