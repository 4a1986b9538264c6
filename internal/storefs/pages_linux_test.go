package storefs

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resident is how many pages of the file are in memory.
func resident(t *testing.T, f *os.File, size int) (pages int) {
	t.Helper()
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	in := make([]byte, size/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(size), uintptr(unsafe.Pointer(&in[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, page := range in {
		pages += int(page & 1)
	}
	return pages
}

// openedDirect is how many pages are in memory behind a write to a file that was opened for such writes: more than none where the file system takes
// them and writes through its memory all the same, as ext4 does with data=journal.
func openedDirect(t *testing.T, name string, p []byte) int {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_DIRECT, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(p); err != nil {
		t.Fatal(err)
	}
	return resident(t, f, len(p))
}

func TestPages(t *testing.T) {
	const size = 1 << 20
	whole := size / os.Getpagesize()
	dir := t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Type == unix.TMPFS_MAGIC {
		t.Skipf("files are in memory here, and nowhere else (%v)", err)
	}
	make1 := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	aligned := make([]byte, 2*size)
	aligned = aligned[-int(uintptr(unsafe.Pointer(&aligned[0])))&(os.Getpagesize()-1):][:size]

	f := make1("asked")
	if _, err := f.Write(aligned); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, size, unix.FADV_DONTNEED); err != nil || resident(t, f, size) != 0 {
		t.Skipf("pages cannot be dropped here (%v)", err) // what lies below may be in memory, too
	}

	f = make1("dropped")
	if _, err := f.Write(aligned); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, f, size); n != whole {
		t.Fatalf("%d of %d pages are in memory behind a write", n, whole)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	DropPages(f, 0, size)
	if n := resident(t, f, size); n != 0 {
		t.Errorf("%d pages are in memory, though they were dropped", n)
	}

	f = make1("direct")
	if !Direct(f, true) {
		t.Skip("this file system takes no direct writes")
	}
	if _, err := f.Write(aligned); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, f, size); n != 0 && n != openedDirect(t, filepath.Join(dir, "opened"), aligned) {
		t.Errorf("%d pages are in memory behind a direct write", n)
	}
	if !Direct(f, false) {
		t.Error("direct writes cannot be ended")
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Errorf("behind them: %v", err)
	}
}
