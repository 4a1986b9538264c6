package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// rest reads on from a cursor and returns the call indices with what stands in the lines.
func rest(t testing.TB, dir string, c Cursor) (texts []string, indices []int, behind Cursor) {
	t.Helper()
	l, err := ResumeLines(dir, "r", c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Outline(64)
	for {
		line, err := l.Next()
		if err == io.EOF || err == nil && line.Torn {
			return texts, indices, l.Cursor()
		}
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := l.Copy(&b, line); err != nil {
			t.Fatal(err)
		}
		texts, indices = append(texts, b.String()+"\n"), append(indices, line.Index)
	}
}

// A reader goes on behind what it has read, with the same numbers as one that never stopped, long lines and blank ones included; not in another
// file, nor inside of a line.
func TestCursor(t *testing.T) {
	dir := t.TempDir()
	if texts, _, c := rest(t, dir, Cursor{}); len(texts) != 0 || c != (Cursor{}) {
		t.Errorf("nothing there: %q, %v", texts, c)
	}
	path := dataPath(dir, "r")
	long := `{"a":"` + strings.Repeat("x", 1000) + "\"}\n"
	write := func(s string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err == nil {
			_, err = f.WriteString(s)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("{\"n\":1}\n\n" + long + "{\"torn\":")
	texts, indices, c := rest(t, dir, Cursor{})
	if len(texts) != 2 || texts[1] != long || indices[1] != 1 {
		t.Fatalf("%q, %v", texts, indices)
	}
	c, err := ParseCursor(c.String())
	if err != nil {
		t.Fatal(err)
	}
	if texts, _, again := rest(t, dir, c); len(texts) != 0 || again != c {
		t.Errorf("nothing new: %q, %v, want %v", texts, again, c)
	}
	write("3}\n")
	if texts, indices, c = rest(t, dir, c); len(texts) != 1 || texts[0] != "{\"torn\":3}\n" || indices[0] != 2 {
		t.Errorf("its end came: %q, %v", texts, indices)
	}
	inside := c
	inside.offset--
	for name, c := range map[string]Cursor{"inside of a line": inside, "behind the end": {c.inode, c.birth, c.offset + 9, 1, 1}} {
		if _, err := ResumeLines(dir, "r", c); !errors.Is(err, ErrCursor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Clear(t.Context(), dir, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := ResumeLines(dir, "r", c); !errors.Is(err, ErrCursor) {
		t.Errorf("cleared: %v", err)
	}
	write("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":1000000000000000000000000000000000000}\n")
	if _, err := ResumeLines(dir, "r", c); !errors.Is(err, ErrCursor) {
		t.Errorf("another attempt: %v", err)
	}
}

func TestParseCursor(t *testing.T) {
	for _, s := range []string{"", "1", "1-2-3-4", "1-2-3-4-5-6", "x-0-0-0-0", "1-1--1-0-0", "1-1-0-1-2", "1-1-0-0-0 ", "1-1-99999999999999999999-0-0"} {
		if _, err := ParseCursor(s); !errors.Is(err, ErrCursor) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
