package capture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rolltap/internal/storefs"
)

// refusing is a file whose direct writes are refused, or end early.
type refusing struct {
	file
	err     error
	after   int // writes that succeed
	partial int // bytes that the failing one has written
}

func (r *refusing) Write(p []byte) (int, error) {
	if r.after--; r.after != -1 {
		return r.file.Write(p)
	}
	n := 0
	if r.partial > 0 {
		storefs.Direct(r.file, false)
		n, _ = r.file.Write(p[:r.partial])
	}
	return n, r.err
}

// TestWriteAround: whatever the place and the length, the file holds what was written, and the next line follows it.
func TestWriteAround(t *testing.T) {
	var lent []byte
	long := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for _, size := range []int{0, 1, directBlock - 1, directBlock, 3*directBlock + 7} {
		for _, n := range []int{directFrom, directFrom + 1, directPiece, directPiece + directBlock - 1, 2*directPiece + 100, len(long)} {
			name := filepath.Join(t.TempDir(), fmt.Sprint(size, "-", n))
			if err := os.WriteFile(name, long[:size], 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := osFiles{}.data(name)
			if err != nil {
				t.Fatal(err)
			}
			var wrote int
			wrote, lent, err = writeAround(f, long[:n], int64(size), lent)
			if err != nil || wrote != n {
				t.Fatalf("%d bytes behind %d: wrote %d, %v", n, size, wrote, err)
			}
			if _, err := f.Write([]byte("behind\n")); err != nil {
				t.Fatalf("behind %d bytes behind %d: %v", n, size, err)
			}
			f.Close()
			want := append(append(bytes.Clone(long[:size]), long[:n]...), "behind\n"...)
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes behind %d: the file has %d, want %d, %v", n, size, len(got), len(want), err)
			}
		}
	}
}

// TestWriteAround_refused: a file system that has no such writes gets ordinary ones, one that fails is told of as it is.
func TestWriteAround_refused(t *testing.T) {
	p := bytes.Repeat([]byte("x"), directFrom+directPiece+100)
	for _, c := range []struct {
		name    string
		f       refusing
		want    int
		wantErr error
	}{
		{"at once", refusing{err: syscall.EINVAL, after: 1}, len(p), nil},
		{"in the middle", refusing{err: syscall.EINVAL, after: 2}, len(p), nil},
		{"in front", refusing{err: syscall.EIO}, 0, syscall.EIO},
		{"full", refusing{err: syscall.ENOSPC, after: 2, partial: 512}, directBlock - 1 + directPiece + 512, syscall.ENOSPC},
	} {
		name := filepath.Join(t.TempDir(), "a")
		if err := os.WriteFile(name, []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := osFiles{}.data(name)
		if err != nil {
			t.Fatal(err)
		}
		c.f.file = f
		n, _, err := writeAround(&c.f, p, 1, nil)
		f.Close()
		if n != c.want || err != c.wantErr {
			t.Errorf("%s: wrote %d, %v, want %d, %v", c.name, n, err, c.want, c.wantErr)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, append([]byte("1"), p[:c.want]...)) {
			t.Errorf("%s: the file has %d bytes, %v", c.name, len(got), err)
		}
	}
}
