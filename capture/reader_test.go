package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// collect reads all lines as "number/index raw [damage] [torn]".
func collect(t testing.TB, l *Lines) (out []string) {
	t.Helper()
	for {
		line, err := l.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprintf("%d/%d %s", line.Number, line.Index, line.Raw)
		if line.Damage != nil {
			s += " [" + line.Damage.Error() + "]"
		}
		if line.Torn {
			s += " torn"
		}
		out = append(out, s)
	}
}

func TestLines(t *testing.T) {
	long := `{"t":"` + strings.Repeat("x", 3*readBuf) + `"}`
	deep := strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat(`}`, 600)
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty file", "", nil},
		{"R18: a blank line takes no index", "\n{\"a\":1}\n \t\r\n{\"b\":2}\n", []string{`2/0 {"a":1}`, `4/1 {"b":2}`}},
		{"R19: a damaged line keeps its index", "{\"a\":1}\n{not-json\n{\"b\":2}\n", []string{`1/0 {"a":1}`, `2/1 {not-json [invalid JSON]`, `3/2 {"b":2}`}},
		{"no object", "[]\n1\nnull\n", []string{`1/0 [] [no JSON object]`, `2/1 1 [no JSON object]`, `3/2 null [no JSON object]`}},
		{"torn", "{\"a\":1}\n{\"b\":", []string{`1/0 {"a":1}`, `2/1 {"b": [invalid JSON] torn`}},
		{"whole without its newline", `{"a":1}`, []string{`1/0 {"a":1} torn`}},
		{"blanks at the end", "{}\n  ", []string{`1/0 {}`}},
		{"CRLF and spaces", " {\"a\":1} \r\n", []string{`1/0 {"a":1}`}},
		{"NUL bytes in front", "\x00\x00{\"a\":1}\n", []string{`1/0 {"a":1}`}},
		{"NUL bytes and nothing else", "\x00\x00\n{}\n", []string{`1/0  [NUL bytes and nothing else]`, `2/1 {}`}},
		{"NUL bytes inside", "{\"a\":\x001}\n", []string{"1/0 {\"a\":\x001} [invalid JSON]"}},
		{"longer than the buffer", "{}\n" + long + "\n{}\n", []string{`1/0 {}`, `2/1 ` + long, `3/2 {}`}},
		{"longer than may be", "{}\n" + long + long + "\n{}\n", []string{`1/0 {}`, `2/1  [` + ErrTooLong.Error() + `]`, `3/2 {}`}},
		{"torn and longer than may be", "{}\n" + long + long, []string{`1/0 {}`, `2/1  [` + ErrTooLong.Error() + `] torn`}},
		{"deeper than bodies may be", deep + "\n", []string{`1/0 ` + deep}},
		{"separators that are no newlines", "{\"a\":\"\u2028\u0085\"}\n", []string{"1/0 {\"a\":\"\u2028\u0085\"}"}},
	} {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in)), "with EOF": iotest.DataErrReader(strings.NewReader(c.in))} {
			l := newLines(io.NopCloser(r))
			l.max = len(long) + 10
			if got := collect(t, l); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("%s, %s:\ngot  %.300q\nwant %.300q", c.name, name, got, c.want)
			}
		}
	}
}

func TestLinesOfNoFile(t *testing.T) {
	l, err := OpenLines(t.TempDir(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Next(); err != io.EOF {
		t.Errorf("got %v", err)
	}
	l.Close()
}

// TestLinesFollow: a reader that has come to the end sees what is appended, and a torn line once more when it has grown.
func TestLinesFollow(t *testing.T) {
	path := dataPath(t.TempDir(), "r")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := OpenLines(filepath.Dir(path), "r")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, step := range []struct{ add, want string }{
		{"", ""}, {"{\"a\":1}\n", `1/0 {"a":1}`}, {"", ""}, {"{\"b\"", `2/1 {"b" [invalid JSON] torn`}, {"", ""}, {":2}", `2/1 {"b":2} torn`},
		{"\n{}\n", `2/1 {"b":2},3/2 {}`}, {" ", ""}, {"\n", ""}, {"{}\n", "5/3 {}"},
	} {
		f.WriteString(step.add)
		if got := strings.Join(collect(t, l), ","); got != step.want {
			t.Errorf("after %q: got %q, want %q", step.add, got, step.want)
		}
	}
}

func TestLinesReadError(t *testing.T) {
	l := newLines(io.NopCloser(io.MultiReader(strings.NewReader("{}\n{"), iotest.ErrReader(os.ErrDeadlineExceeded))))
	if _, err := l.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Next(); err != os.ErrDeadlineExceeded {
			t.Errorf("got %v", err)
		}
	}
}

// TestGymRecords: every record of the reference is readable.
func TestGymRecords(t *testing.T) {
	n := 0
	for _, path := range gymFiles(t) {
		id := strings.TrimSuffix(filepath.Base(path), dataSuffix)
		if filepath.Base(filepath.Dir(path)) != "gym" {
			continue
		}
		got := readBack(t, filepath.Dir(path), id)
		if (got.damaged > 0) != (id == "0-8-torn") {
			t.Errorf("%s: %d damaged lines", id, got.damaged)
		}
		n += len(got.records)
	}
	if n < 8 {
		t.Errorf("%d records", n)
	}
}

func gymFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/*" + dataSuffix)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	return paths
}

// FuzzLines: the reader never panics, agrees with a simple one about what is a line, and takes encoding/json's word for it.
func FuzzLines(f *testing.F) {
	seeds := 0
	for _, path := range gymFiles(f) {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 0)
		f.Add(b[:len(b)/2], 7)
		seeds++
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Add([]byte("\x00\x00{}\n\n[]\n{\"a\":"), 3)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		type want struct {
			number, index int
			raw           []byte
			good          bool
		}
		var wants []want
		number, index := 0, 0
		for line := range bytes.Lines(b) {
			number++
			raw := bytes.TrimSpace(line)
			hole := bytes.HasPrefix(raw, []byte{0})
			if hole {
				raw = bytes.TrimLeft(raw, "\x00 \t\r\n")
			}
			if len(raw) == 0 && !hole {
				continue
			}
			wants = append(wants, want{number, index, raw, len(raw) > 0 && raw[0] == '{' && json.Valid(raw) && utf8.Valid(raw)})
			index++
		}
		var r io.Reader = bytes.NewReader(b)
		if step > 0 {
			r = iotest.HalfReader(r)
		}
		l := newLines(io.NopCloser(r))
		for i := 0; ; i++ {
			line, err := l.Next()
			if err == io.EOF {
				if i != len(wants) {
					t.Fatalf("%d lines, want %d", i, len(wants))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if i >= len(wants) {
				t.Fatalf("a line too many: %+v", line)
			}
			w := wants[i]
			if line.Number != w.number || line.Index != w.index || !bytes.Equal(line.Raw, w.raw) || (line.Damage == nil) != w.good {
				t.Fatalf("line %d: got %+v, want %+v", i, line, w)
			}
			if line.Torn != (line.start+line.size == int64(len(b)) && !bytes.HasSuffix(b, []byte("\n"))) {
				t.Fatalf("line %d: torn is %t", i, line.Torn)
			}
		}
	})
}
