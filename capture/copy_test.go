package capture

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

func TestCopyKeeps(t *testing.T) {
	for _, c := range []struct {
		name            string
		o               CopyOptions
		write, kept     int
		inMemory, whole bool
	}{
		{"nothing", CopyOptions{}, 0, 0, true, true},
		{"in memory", CopyOptions{}, 1000, 1000, true, true},
		{"exactly the memory", CopyOptions{Memory: 1000}, 1000, 1000, true, true},
		{"beyond the memory", CopyOptions{Memory: 1000}, 1001, 1001, false, true},
		{"far beyond", CopyOptions{Memory: 1000}, 300_000, 300_000, false, true},
		{"exactly the maximum", CopyOptions{Max: 5000}, 5000, 5000, true, true},
		{"beyond the maximum", CopyOptions{Max: 5000}, 5001, 5000, true, false},
		{"spooled and beyond the maximum", CopyOptions{Memory: 1000, Max: 100_000}, 200_000, 100_000, false, false},
		{"no budget, but small", CopyOptions{Budget: NewBudget(0)}, 100, 100, true, true},
		{"no budget", CopyOptions{Budget: NewBudget(0)}, 100_000, 100_000, false, true},
		{"budget for a while", CopyOptions{Budget: NewBudget(5000)}, 100_000, 100_000, false, true},
		{"budget and tail buffer", CopyOptions{Budget: NewBudget(50_000)}, 100_000, 100_000, false, true},
		{"no folder for a spool", CopyOptions{Memory: 1000, Dir: "/nonexistent"}, 5000, 1000, true, false},
	} {
		for _, step := range []int{1, 7, 333, 40_000, 1 << 20} {
			if step == 1 && c.write > 5001 {
				continue
			}
			if c.o.Dir == "/nonexistent" && step != 1 {
				continue // how much is kept depends on the steps
			}
			want := make([]byte, c.write)
			for i := range want {
				want[i] = byte(rand.N(256))
			}
			k := NewCopy(c.o)
			for rest := want; len(rest) > 0; {
				n := min(step, len(rest))
				if m, err := k.Write(rest[:n]); m != n || err != nil {
					t.Fatalf("%s: Write says %d, %v", c.name, m, err)
				}
				rest = rest[n:]
			}
			if k.Total() != int64(c.write) || k.Len() != int64(c.kept) || k.Truncated() == c.whole {
				t.Errorf("%s by %d: total %d, kept %d, truncated %t", c.name, step, k.Total(), k.Len(), k.Truncated())
			}
			b, ok := k.Bytes()
			if ok != c.inMemory || ok && !bytes.Equal(b, want[:c.kept]) {
				t.Errorf("%s by %d: Bytes gives %d bytes, %t", c.name, step, len(b), ok)
			}
			r := k.NewReader()
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want[:c.kept]) {
				t.Errorf("%s by %d: read %d bytes, %v", c.name, step, len(got), err)
			}
			k.Write([]byte("more"))
			if rest, _ := io.ReadAll(r); c.whole && k.Len() > int64(c.kept) != (len(rest) > 0) {
				t.Errorf("%s by %d: a reader at the end does not see what is appended", c.name, step)
			}
			k.Release()
			k.Release()
			if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s: reading after Release: %v", c.name, err)
			}
			if b := c.o.Budget; b != nil {
				if left := b.left.Load(); left != map[string]int64{"no budget, but small": 0, "no budget": 0, "budget for a while": 5000, "budget and tail buffer": 50_000}[c.name] {
					t.Errorf("%s: %d of the budget came back", c.name, left)
				}
			}
		}
	}
}

func TestCopyLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	c := NewCopy(CopyOptions{Memory: 10, Dir: dir})
	io.WriteString(c, strings.Repeat("x", 100_000))
	if es, _ := os.ReadDir(dir); len(es) > 0 {
		t.Errorf("a kill would leave %s", es[0].Name())
	}
	c.Release()
}

func TestCopyJudges(t *testing.T) {
	for _, c := range []struct {
		text   string
		object bool
		tight  bool
	}{
		{`{}`, true, true}, {`{ }`, true, false}, {"\ufeff{}", true, false}, {`[]`, false, true}, {``, false, false}, {`{`, false, true}, {`{}x`, false, true},
		{`{"s":"` + strings.Repeat("x", 400_000) + `"}`, true, true},
	} {
		for _, memory := range []int64{1, 1 << 20} {
			k := NewCopy(CopyOptions{Memory: memory})
			io.WriteString(k, c.text)
			for range 2 {
				if k.IsObject() != c.object {
					t.Errorf("%.20q: IsObject is %t", c.text, !c.object)
				}
			}
			if _, tight := k.judge(); c.object && tight != c.tight {
				t.Errorf("%.20q: tight is %t", c.text, !c.tight)
			}
			if want := c.object || c.text == `[]`; k.IsJSON() != want {
				t.Errorf("%.20q: IsJSON is %t", c.text, !want)
			}
			if c.object {
				io.WriteString(k, "x")
				if k.IsObject() {
					t.Errorf("%.20q: the judgment outlives a write", c.text)
				}
			}
			k.Release()
		}
	}
}

func TestCopyConcurrently(t *testing.T) {
	c := NewCopy(CopyOptions{Memory: 5000})
	defer c.Release()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				b, err := io.ReadAll(c.NewReader())
				if err != nil {
					t.Error(err)
					return
				}
				for i, x := range b {
					if x != byte(i) {
						t.Errorf("byte %d is %d", i, x)
						return
					}
				}
				c.Len()
				c.Bytes()
				c.IsObject()
			}
		})
	}
	for i := range 100_000 / 50 {
		p := make([]byte, 50)
		for j := range p {
			p[j] = byte(i*50 + j)
		}
		c.Write(p)
	}
	wg.Wait()
}

func TestLentMemoryOutlivesItsCopy(t *testing.T) {
	c := NewCopy(CopyOptions{Reuse: true, Budget: NewBudget(1 << 20)})
	c.Expect(4 << 10)
	first, ok := c.Lend()
	if !ok || len(first) != 0 {
		t.Fatalf("lent %q %v", first, ok)
	}
	room := c.Room()
	n := copy(room, "filled in place")
	c.Wrote(n)
	second, ok := c.Lend()
	if !ok || string(second) != "filled in place" || c.Len() != int64(n) || c.Total() != int64(n) {
		t.Fatalf("lent %q %v, %d of %d", second, ok, c.Len(), c.Total())
	}
	c.Write(make([]byte, 8<<10)) // grows out of what is lent
	if m := c.o.Budget.reuse(4 << 10); &m[:1][0] == &second[0] {
		t.Fatal("lent memory is used again once the copy has grown out of it")
	}
	c.Release()
	if _, ok := c.Lend(); ok || c.Room() != nil {
		t.Error("a released copy lends")
	}
	c.Return()
	if c.mem == nil {
		t.Error("dropped while somebody has it")
	}
	c.Return()
	if c.mem != nil {
		t.Error("kept when nobody has it")
	}
	if string(second) != "filled in place" {
		t.Errorf("changed to %q", second)
	}
}

func TestRoomEndsAtTheBounds(t *testing.T) {
	c := NewCopy(CopyOptions{Max: 700})
	c.Expect(1000)
	if n := len(c.Room()); n != 700 {
		t.Errorf("room for %d bytes, want 700", n)
	}
	c.Wrote(700)
	if n := len(c.Room()); n != 0 {
		t.Errorf("room for %d bytes more", n)
	}
	c.Write([]byte("x"))
	if c.Room() != nil || !c.Truncated() || c.Total() != 701 {
		t.Errorf("truncated %v, total %d", c.Truncated(), c.Total())
	}
	c.Release()
}

// A copy that has been used waits in a file for its record when less than half of the memory is left, and in memory otherwise.
func TestScarceMemory_movesWhatWasLent(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 20<<10)
	for name, total := range map[string]int64{"scarce": 600 << 10, "plenty": 700 << 10, "scarce, and so are descriptors": 600 << 10} {
		t.Run(name, func(t *testing.T) {
			o := CopyOptions{Budget: NewBudget(total), Dir: t.TempDir(), Reuse: true}
			if o.Budget.shelves.Load() < 10 {
				t.Error("no copy may move to a file")
			}
			if o.Budget.shelves.Store(1); name != "scarce" {
				o.Budget.shelves.Store(0)
			}
			c := NewCopy(o)
			defer c.Release()
			c.Expect(int64(len(text)))
			io.WriteString(c, text)
			c.Lend()
			c.Lend()
			seen, _ := c.Bytes()
			c.Return()
			if _, ok := c.Bytes(); !ok {
				t.Fatal("moved while somebody has it")
			}
			c.Return()
			if _, ok := c.Bytes(); ok != (name != "scarce") {
				t.Fatalf("in memory: %t", ok)
			}
			if left := o.Budget.left.Load(); (left == total) != (name == "scarce") {
				t.Errorf("%d of %d are left", left, total)
			}
			other := NewCopy(o)
			other.Expect(int64(len(text)))
			other.Wrote(copy(other.Room(), strings.Repeat("x", len(text))))
			if got, err := io.ReadAll(c.NewReader()); err != nil || string(got) != text || string(seen) != text {
				t.Errorf("%d bytes are read, %v", len(got), err)
			}
			if n, _ := c.Write([]byte("!")); n != 1 || c.Len() != int64(len(text))+1 {
				t.Errorf("%d bytes behind it", c.Len())
			}
			other.Release()
			c.Release()
			if n := o.Budget.shelves.Load(); (n == 1) != (name == "scarce") {
				t.Errorf("%d copies may move to files", n)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for name, o := range map[string]CopyOptions{"in memory": {}, "in a file": {Memory: 10}} {
		c := NewCopy(o)
		io.WriteString(c, strings.Repeat("a", 50<<10))
		io.WriteString(c, "tail")
		c.Cut(1 << 20)
		if c.Truncated() || c.Len() != 50<<10+4 {
			t.Errorf("%s: cut to %d", name, c.Len())
		}
		for _, n := range []int64{50<<10 + 2, 1000, 0} {
			c.Cut(n)
			got, err := io.ReadAll(c.NewReader())
			if err != nil || int64(len(got)) != n || c.Len() != n || !c.Truncated() {
				t.Errorf("%s: cut to %d: %d of %d, %v", name, n, len(got), c.Len(), err)
			}
		}
		c.Release()
	}
}

func TestAdopt(t *testing.T) {
	b := NewBudget(0)
	c := Adopt(CopyOptions{Budget: b, Reuse: true, Max: 2}, []byte(`{"a":1}`))
	got, ok := c.Bytes()
	if !ok || string(got) != `{"a":1}` || c.Total() != 7 || c.Truncated() || !c.IsObject() {
		t.Errorf("%q %t, %d in all", got, ok, c.Total())
	}
	c.Release()
	if m := b.reuse(7); cap(m) > 0 && &m[:1][0] == &got[0] {
		t.Error("what was adopted is used again")
	}
}

// A file that takes nothing more costs a copy what comes, and nothing of what it has.
func TestFullSpool_keepsWhatIsKept(t *testing.T) {
	c := NewCopy(CopyOptions{Memory: 1})
	defer c.Release()
	io.WriteString(c, strings.Repeat("a", spoolTail)) // to the file
	io.WriteString(c, strings.Repeat("b", 1000))      // gathered
	real := c.spool.f
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	c.spool.f = full
	io.WriteString(c, strings.Repeat("c", spoolTail))
	c.spool.f = real
	got, err := io.ReadAll(c.NewReader())
	if want := strings.Repeat("a", spoolTail) + strings.Repeat("b", 1000); err != nil || string(got) != want || !c.Truncated() || c.Len() != int64(len(want)) {
		t.Errorf("%d bytes of %d are kept, truncated: %t, %v", len(got), len(want), c.Truncated(), err)
	}
}
