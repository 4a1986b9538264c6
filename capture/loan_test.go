package capture

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestLoan(t *testing.T) {
	b := NewBudget(100)
	one, other := Loan{Budget: b}, Loan{Budget: b}
	left := func(want int64) {
		t.Helper()
		if got := b.left.Load(); got != want {
			t.Errorf("%d bytes are left, want %d", got, want)
		}
	}
	if !one.Hold(60) || other.Hold(41) {
		t.Error("what is there is given, and no more")
	}
	left(40)
	if !one.Hold(20) || !other.Hold(80) {
		t.Error("what was given back is given to another")
	}
	left(0)
	one.Must(70)
	left(-50)
	if one.Hold(71) || !one.Hold(70) || !one.Hold(60) {
		t.Error("beyond the budget a loan can only become less")
	}
	left(-40)
	one.Release()
	other.Release()
	left(100)
	if none := (Loan{}); !none.Hold(1 << 40) {
		t.Error("no budget is no bound")
	}
}

// A fold counts where copies do, and goes to a file where they have left nothing.
func TestFold(t *testing.T) {
	object := []byte(`{"text":"` + strings.Repeat("x", spoolTail) + `"}`)
	size := int64(len(object))
	for _, c := range []struct {
		name   string
		budget int64
		left   int64
		filed  bool
	}{{"there is room", size + 1, 1, false}, {"there is none", size - 1, size - 1, true}} {
		b := NewBudget(c.budget)
		f := Fold(CopyOptions{Budget: b, Dir: t.TempDir()}, bytes.Clone(object))
		if b.left.Load() != c.left || (f.spool != nil) != c.filed || !f.IsObject() || f.Truncated() {
			t.Errorf("%s: %d bytes left, filed %t, object %t", c.name, b.left.Load(), f.spool != nil, f.IsObject())
		}
		if got, err := io.ReadAll(f.NewReader()); err != nil || !bytes.Equal(got, object) {
			t.Errorf("%s: read %d bytes, %v", c.name, len(got), err)
		}
		if f.Release(); b.left.Load() != c.budget {
			t.Errorf("%s: %d bytes are not given back", c.name, c.budget-b.left.Load())
		}
	}
	b := NewBudget(0)
	if f := Fold(CopyOptions{Budget: b, Dir: t.TempDir()}, []byte(`{}`)); f.spool != nil || !f.IsObject() {
		t.Error("a short one needs no file")
	}
	if f := Fold(CopyOptions{Budget: b, Dir: t.TempDir() + "/missing"}, object); f.Truncated() || f.Len() != size {
		t.Error("without a file it stays where it is")
	}
}
