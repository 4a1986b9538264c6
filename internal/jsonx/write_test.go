package jsonx

import (
	"os"
	"strings"
	"testing"
)

var writeCases = []struct{ name, in, want string }{
	{"empty", "", ""},
	{"plain", "hello world", "hello world"},
	{"quotes and backslashes", `say "C:\"`, `say \"C:\\\"`},
	{"line ends and tabs", "a\r\n\tb", `a\r\n\tb`},
	{"backspace and form feed", "\b\f", `\b\f`},
	{"ESC, as coloured terminal output has it", "\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`},
	{"NUL, BEL and unit separator", "\x00\x07\x1f", `\u0000\u0007\u001f`},
	{"DEL stays raw", "\x7f", "\x7f"},
	{"nothing is escaped for HTML", "<b>&amp;</b>", "<b>&amp;</b>"},
	{"U+0085, U+2028 and U+2029 stay raw", "\u0085\u2028\u2029", "\u0085\u2028\u2029"},
	{"every length of UTF-8", "é東😀\U000e0001", "é東😀\U000e0001"},
	{"U+FFFD itself", "\ufffd", "\ufffd"},
	{"a byte that UTF-8 never has", "a\xffb", "a\ufffdb"},
	{"two lone continuation bytes", "\x80\x80", "\ufffd\ufffd"},
	{"a cut sequence is one replacement", "\xe6\x9d\"", "\ufffd\\\""},
	{"a cut sequence at the end", "a\xf0\x9f\x98", "a\ufffd"},
	{"a cut sequence before a whole one", "\xe6\x9d東", "\ufffd東"},
	{"a surrogate in UTF-8", "\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
	{"an overlong slash", "\xc0\xaf", "\ufffd\ufffd"},
	{"beyond U+10FFFF", "\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
	{"a long run between escapes", strings.Repeat("0123456789", 9) + "\n" + strings.Repeat("x", 77), strings.Repeat("0123456789", 9) + `\n` + strings.Repeat("x", 77)},
}

func TestWrite(t *testing.T) {
	for _, tc := range writeCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(AppendString([]byte("x"), tc.in)); got != `x"`+tc.want+`"` {
				t.Errorf("AppendString: %q", got)
			}
			if got := string(AppendEscaped(nil, []byte(tc.in))); got != tc.want {
				t.Errorf("AppendEscaped: %q, want %q", got, tc.want)
			}
			for _, cuts := range cutsOf([]byte(tc.in)) {
				if got := escapeCut([]byte(tc.in), cuts...); got != tc.want {
					t.Fatalf("TextEscaper, cut at %v: %q, want %q", cuts, got, tc.want)
				}
			}
		})
	}
}

func escapeCut(in []byte, cuts ...int) string {
	var e TextEscaper
	var out []byte
	from := 0
	for _, cut := range append(cuts, len(in)) {
		out = e.Append(out, in[from:cut])
		from = cut
	}
	return string(e.Finish(out))
}

func TestWriteAllocatesNothing(t *testing.T) {
	in := string(agentRequest(4 << 10))
	dst := make([]byte, 0, 2*len(in))
	var e TextEscaper
	if n := testing.AllocsPerRun(10, func() {
		out := AppendString(dst, in)
		out = e.Append(out[:0], []byte("ab\xe6"))
		out = e.Finish(out)
		AppendUnquoted(out, []byte(`a\u00e9\n`))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendString(b *testing.B) {
	for _, in := range []struct{ name, text string }{
		{"source", strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"open %s: %w\", name, err)\n\t}\n", 1000)},
		{"plain", strings.Repeat("plain text without anything to escape, ", 1000)},
		{"scripts", strings.Repeat("東京の天気は晴れです。", 1000)},
		{"token", " the"},
		{"stream", recorded(b, "chat-stream-control-characters.sse")},
		{"responses", recorded(b, "responses-stream-text.sse")},
	} {
		b.Run(in.name, func(b *testing.B) {
			dst := make([]byte, 0, 2*len(in.text)+2)
			b.ReportAllocs()
			b.SetBytes(int64(len(in.text)))
			for b.Loop() {
				AppendString(dst, in.text)
			}
		})
	}
}

// recorded is a recorded stream, over and over.
func recorded(b *testing.B, name string) string {
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(string(text), 10)
}

func TestAppendMembers(t *testing.T) {
	names := []string{"a", `q"`, "c"}
	for want, values := range map[string][][]byte{
		`x{}`:                {nil, nil, nil},
		`x{"q\"":[1, 2]}`:    {nil, []byte(`[1, 2]`), nil},
		`x{"a":null,"c":{}}`: {[]byte(`null`), nil, []byte(`{}`)},
	} {
		if got := string(AppendMembers([]byte("x"), names, values)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
