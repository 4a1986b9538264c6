package cli

import (
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestInert(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text stays", "héllo 世界 🙂\n\tend", "héllo 世界 🙂\n\tend"},
		{"colours", "\x1b[31mred\x1b[0m", "␛[31mred␛[0m"},
		{"a title", "\x1b]0;owned\a", "␛]0;owned␇"},
		{"eight-bit CSI", "a\u009b31m", "a<U+009B>31m"},
		{"overwriting a line", "good\rbad\b", "good␍bad␈"},
		{"a Windows line end is a line end", "a\r\nb", "a\nb"},
		{"reordering", "\u202eabc\u2066", "<U+202E>abc<U+2066>"},
		{"invisible text", "a\u200bb\ufeff\U000e0041", "a<U+200B>b<U+FEFF><U+E0041>"},
		{"the joiner of emoji stays", "👩\u200d💻", "👩\u200d💻"},
		{"line separators", "a\u2028b", "a<U+2028>b"},
		{"DEL", "\x7f", "␡"},
		{"no UTF-8", "a\xffb", "a\ufffdb"},
	} {
		if got := inert(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := inertLine("a\nb\tc"); got != "a⏎b c" {
		t.Errorf("a line that has to stay one: got %q", got)
	}
}

// Whatever a store holds, nothing that a terminal obeys comes out.
func FuzzInert(f *testing.F) {
	f.Add("\x1b[2J\u009b\u202e\x00\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range inert(s) {
			if r != '\n' && r != '\t' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf) {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
	})
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		in           string
		lines, runes int
		want         string
		cut          bool
	}{
		{"abc", 1, 3, "abc", false},
		{"abcd", 1, 3, "abc", true},
		{"äöü", 1, 3, "äöü", false},
		{"a\nb", 2, 9, "a\nb", false},
		{"a\nb\nc", 2, 9, "a\nb", true},
		{"", 1, 0, "", false},
	} {
		if got, cut := shorten(c.in, c.lines, c.runes); got != c.want || cut != c.cut {
			t.Errorf("shorten(%q, %d, %d) = %q, %t, want %q, %t", c.in, c.lines, c.runes, got, cut, c.want, c.cut)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"one two three four five six", 0, "one two three four five six"},
		{"one two three four five six", 20, "one two three four|five six"},
		{strings.Repeat("x", 30) + " end", 20, strings.Repeat("x", 30) + "|end"},
		{"äää äää äää äää äää äää", 20, "äää äää äää äää äää|äää"},
		{"twenty runes exactly", 20, "twenty runes exactly"},
	} {
		if got := strings.Join(wrap(c.in, c.width), "|"); got != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestAmounts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 ms", 1500 * time.Microsecond: "1.5 ms", 312 * time.Millisecond: "312 ms", 1400 * time.Millisecond: "1.4 s",
		61 * time.Second: "1m01s", 3*time.Hour + 5*time.Minute: "3h05m",
	} {
		if got := took(d); got != want {
			t.Errorf("took(%d) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 1<<20 - 1: "1.0 MiB", 5 << 30: "5.0 GiB", 3 << 40: "3.0 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	var b strings.Builder
	c := &Console{Out: &b}
	err := c.table(&b, [][]cell{heads("name", ">n", "end"), {{text: "äö"}, {text: "100", right: true}, {text: "x"}}, {{text: "longer"}}})
	if want := "name      n  end\näö      100  x\nlonger\n"; err != nil || b.String() != want {
		t.Errorf("got %v\n%s want\n%s", err, b.String(), want)
	}
}
