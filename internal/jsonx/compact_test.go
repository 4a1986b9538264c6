package jsonx

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var validCases = []struct {
	name, in, want string
	kind           Kind
}{
	{"null", "null", "null", KindNull},
	{"true", "true", "true", KindBool},
	{"false with space around", " false\r\n", "false", KindBool},
	{"zero", "0", "0", KindNumber},
	{"minus zero", "-0", "-0", KindNumber},
	{"a number at the end of the input", " 12", "12", KindNumber},
	{"a number before space", "12 ", "12", KindNumber},
	{"a number keeps its spelling", "-1.50e+03", "-1.50e+03", KindNumber},
	{"an upper-case exponent", "1E-7", "1E-7", KindNumber},
	{"a number beyond every type", strings.Repeat("9", 400) + "e99999", strings.Repeat("9", 400) + "e99999", KindNumber},
	{"empty string", `""`, `""`, KindString},
	{"all short escapes", `"\"\\\/\b\f\n\r\t"`, `"\"\\\/\b\f\n\r\t"`, KindString},
	{"an escaped letter keeps its spelling", `"\u0041\u00E9"`, `"\u0041\u00E9"`, KindString},
	{"a surrogate pair", `"\ud83d\ude00"`, `"\ud83d\ude00"`, KindString},
	{"a lone high surrogate", `"\ud800"`, `"\ud800"`, KindString},
	{"a lone low surrogate before text", `"\uDC00x"`, `"\uDC00x"`, KindString},
	{"DEL, U+0085 and U+2028 raw", "\"\x7f\u0085\u2028\u2029\"", "\"\x7f\u0085\u2028\u2029\"", KindString},
	{"two, three and four bytes", `"é東😀 é東😀"`, `"é東😀 é東😀"`, KindString},
	{"the bounds of UTF-8", "\"\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff\"", "\"\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff\"", KindString},
	{"space inside a string stays", `"a  b"`, `"a  b"`, KindString},
	{"a quote at every place of a word", `["1\"","12\"","123\"","1234\"","12345\"","123456\"","1234567\"","12345678\""]`, `["1\"","12\"","123\"","1234\"","12345\"","123456\"","1234567\"","12345678\""]`, KindArray},
	{"empty array", "[]", "[]", KindArray},
	{"empty containers with space inside", "[ { } , [\n] ]", "[{},[]]", KindArray},
	{"all kinds in an array", `[null, true, false, 0, -1.5, "s", [], {}]`, `[null,true,false,0,-1.5,"s",[],{}]`, KindArray},
	{"empty object", "{}", "{}", KindObject},
	{"an object with space everywhere", "\t{ \"a\" :\n1 , \"b\" : [ 1 , 2 ]\r\n} ", `{"a":1,"b":[1,2]}`, KindObject},
	{"the same name twice", `{"a":1,"a":2}`, `{"a":1,"a":2}`, KindObject},
	{"an empty name", `{"":{"":""}}`, `{"":{"":""}}`, KindObject},
	{"an array in an object in an array", `[{"a":[{"b":[]}]}]`, `[{"a":[{"b":[]}]}]`, KindArray},
	{"as deep as allowed", strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), KindArray},
	{"objects as deep as allowed", strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth), strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth), KindObject},
}

// Rows with a mark are valid for a Compactor, which drops it, and not for Valid.
var markCases = []struct {
	name, in, want string
	ok             bool
}{
	{"a byte-order mark in front", "\ufeff{}", "{}", true},
	{"a byte-order mark before space", "\ufeff []", "[]", true},
	{"a byte-order mark after space", " \ufeff[]", "", false},
	{"two byte-order marks", "\ufeff\ufeff[]", "", false},
	{"a byte-order mark behind", "[]\ufeff", "", false},
	{"a byte-order mark alone", "\ufeff", "", false},
	{"half a byte-order mark", "\xef\xbb[]", "", false},
}

var invalidCases = []struct{ name, in string }{
	{"nothing", ""},
	{"white space only", " \n"},
	{"NaN", "NaN"},
	{"nan", "nan"},
	{"Infinity", "-Infinity"},
	{"inf", "inf"},
	{"a leading zero", "01"},
	{"a leading zero after minus", "-01"},
	{"a plus sign", "+1"},
	{"minus alone", "-"},
	{"two signs", "--1"},
	{"no digit before the point", ".5"},
	{"no digit after the point", "1."},
	{"no digit between point and exponent", "1.e5"},
	{"two points", "1.2.3"},
	{"an exponent without digits", "1e"},
	{"a signed exponent without digits", "1e+"},
	{"a fraction in the exponent", "1e5.0"},
	{"hexadecimal", "0x10"},
	{"a number with a letter", "1a"},
	{"a cut literal", "tru"},
	{"a literal that goes on", "trueX"},
	{"an upper-case literal", "True"},
	{"two literals in one", "[nulltrue]"},
	{"an open string", `"abc`},
	{"an open string after a backslash", `"abc\`},
	{"an escaped closing quote", `"abc\"`},
	{"an unknown escape", `"\q"`},
	{"an apostrophe escape", `"\'"`},
	{"a short unicode escape", `"\u12"`},
	{"a unicode escape that is not hexadecimal", `"\u12g4"`},
	{"an upper-case U escape", `"\U1234"`},
	{"single quotes", `'a'`},
	{"a raw line feed", "\"a\nb\""},
	{"a raw tab", "\"a\tb\""},
	{"a raw NUL", "\"a\x00b\""},
	{"a raw ESC in a long string", "\"0123456789abcdef\x1b[0m\""},
	{"a raw control character in a name", "{\"a\x01\":1}"},
	{"a lone continuation byte", "\"\x80\""},
	{"a cut sequence", "\"\xe6\x9d\""},
	{"a cut sequence at the end", "\"\xe6\x9d"},
	{"a surrogate in UTF-8", "\"\xed\xa0\x80\""},
	{"an overlong slash", "\"\xc0\xaf\""},
	{"an overlong three-byte sequence", "\"\xe0\x80\xaf\""},
	{"an overlong four-byte sequence", "\"\xf0\x80\x80\xaf\""},
	{"beyond U+10FFFF", "\"\xf4\x90\x80\x80\""},
	{"a byte that UTF-8 never has", "\"\xff\""},
	{"invalid UTF-8 outside of strings", "[\xc3\xa9]"},
	{"a no-break space between tokens", "[1,\u00a02]"},
	{"a form feed between tokens", "[1,\f2]"},
	{"an open array", "[1"},
	{"an open object", `{"a":1`},
	{"a closing bracket alone", "]"},
	{"the wrong bracket", "[1}"},
	{"the wrong brace", `{"a":1]`},
	{"an object closed as an array at once", "{]"},
	{"an array closed as an object at once", "[}"},
	{"a trailing comma in an array", "[1,]"},
	{"a trailing comma in an object", `{"a":1,}`},
	{"a leading comma", "[,1]"},
	{"two commas", "[1,,2]"},
	{"a missing comma", "[1 2]"},
	{"a comma at the top", "1,2"},
	{"a comma for a colon", `{"a",1}`},
	{"a colon in an array", "[1:2]"},
	{"a missing colon", `{"a" 1}`},
	{"two colons", `{"a"::1}`},
	{"a missing value", `{"a":}`},
	{"a name alone", `{"a"}`},
	{"a name without quotes", `{a:1}`},
	{"a number as name", `{1:1}`},
	{"two values", "{} {}"},
	{"two numbers", "1 2"},
	{"a closing bracket too many", "[]]"},
	{"a comment", "/* */ 1"},
	{"a line comment", "[1 // one\n]"},
	{"too deep", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)},
	{"too deep with objects", strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1)},
}

// compact pushes the parts of in between the cuts.
func compact(in []byte, cuts ...int) (out []byte, kind Kind, tight bool, err error) {
	var c Compactor
	var check Compactor
	from := 0
	for _, cut := range append(cuts, len(in)) {
		out, err = c.Append(out, in[from:cut])
		if checked := check.Check(in[from:cut]); checked != err {
			panic("Check and Append disagree")
		}
		if err != nil {
			return out, KindInvalid, false, err
		}
		from = cut
	}
	kind, err = c.Finish()
	return out, kind, c.Tight(), err
}

// cutsOf gives every way to cut in once, and into single bytes.
func cutsOf(in []byte) [][]int {
	var all [][]int
	var bytewise []int
	for i := range len(in) + 1 {
		all = append(all, []int{i})
		bytewise = append(bytewise, i)
	}
	return append(all, bytewise)
}

func TestCompactorAccepts(t *testing.T) {
	for _, tc := range validCases {
		t.Run(tc.name, func(t *testing.T) {
			in := []byte(tc.in)
			if !Valid(in) {
				t.Error("Valid says no")
			}
			for _, cuts := range cutsOf(in) {
				out, kind, tight, err := compact(in, cuts...)
				if err != nil || string(out) != tc.want || kind != tc.kind || tight != (tc.in == tc.want) {
					t.Fatalf("cut at %v: %q, kind %d, tight %v, %v; want %q, kind %d", cuts, out, kind, tight, err, tc.want, tc.kind)
				}
			}
		})
	}
}

func TestCompactorRefuses(t *testing.T) {
	for _, tc := range invalidCases {
		t.Run(tc.name, func(t *testing.T) {
			in := []byte(tc.in)
			if Valid(in) {
				t.Error("Valid says yes")
			}
			for _, cuts := range cutsOf(in) {
				if out, _, _, err := compact(in, cuts...); err != ErrSyntax {
					t.Fatalf("cut at %v: %q, %v", cuts, out, err)
				}
			}
		})
	}
}

func TestCompactorByteOrderMark(t *testing.T) {
	for _, tc := range markCases {
		t.Run(tc.name, func(t *testing.T) {
			in := []byte(tc.in)
			if Valid(in) {
				t.Error("Valid says yes")
			}
			for _, cuts := range cutsOf(in) {
				out, _, tight, err := compact(in, cuts...)
				if (err == nil) != tc.ok || tc.ok && (string(out) != tc.want || tight) {
					t.Fatalf("cut at %v: %q, tight %v, %v", cuts, out, tight, err)
				}
			}
		})
	}
}

func TestCompactorFailsAtTheFirstImpossibleByte(t *testing.T) {
	for _, tc := range []struct{ name, good, bad string }{
		{"a leading zero", "[0", "1"},
		{"an unknown escape", `"\`, "q"},
		{"a surrogate in UTF-8", "\"\xed", "\xa0"},
		{"an overlong sequence", `"`, "\xc0"},
		{"a control character", `"abc`, "\x1f"},
		{"a wrong literal", "nu", "x"},
		{"a trailing comma", `{"a":1,`, "}"},
		{"the wrong bracket", `[{}`, "}"},
		{"one container too many", strings.Repeat("[", MaxDepth), "["},
		{"a second value", "{} ", "{"},
		{"a byte-order mark that is none", "\xef\xbb", "\xbe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c Compactor
			if err := c.Check([]byte(tc.good)); err != nil {
				t.Fatalf("%q refused", tc.good)
			}
			out, err := c.Append([]byte("kept"), []byte(" " + tc.bad)[1:])
			if err != ErrSyntax || string(out) != "kept" {
				t.Errorf("%q: %q, %v", tc.bad, out, err)
			}
			if out, err := c.Append(out, []byte("1")); err != ErrSyntax || string(out) != "kept" {
				t.Errorf("the error is not sticky: %q, %v", out, err)
			}
			if _, err := c.Finish(); err != ErrSyntax {
				t.Errorf("Finish: %v", err)
			}
			c.Reset()
			if err := c.Check([]byte("[1]")); err != nil {
				t.Errorf("after Reset: %v", err)
			}
		})
	}
}

func TestCompactorAgreesWithEncodingJSON(t *testing.T) {
	for _, in := range append(fixtures(t), agentRequest(100<<10)) {
		for _, indent := range []string{"", " ", "\t"} {
			var loose, want bytes.Buffer
			if err := json.Indent(&loose, in, "", indent); err != nil {
				t.Fatal(err)
			}
			if err := json.Compact(&want, in); err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1, 7, 4096, loose.Len()} {
				var cuts []int
				for i := size; i < loose.Len(); i += size {
					cuts = append(cuts, i)
				}
				out, _, tight, err := compact(loose.Bytes(), cuts...)
				if err != nil || !bytes.Equal(out, want.Bytes()) || tight {
					t.Fatalf("in steps of %d: %v, tight %v\n got %.200q\nwant %.200q", size, err, tight, out, want.Bytes())
				}
			}
		}
	}
}

func TestCompactorAllocatesNothing(t *testing.T) {
	in := agentRequest(20 << 10)
	dst := make([]byte, 0, len(in))
	var c Compactor
	if n := testing.AllocsPerRun(10, func() {
		c.Reset()
		if _, err := c.Append(dst, in); err != nil {
			t.Fatal(err)
		}
		if !Valid(in) {
			t.Fatal("not valid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// fixtures returns the recorded answers, and the data lines of the recorded streams that hold JSON.
func fixtures(t testing.TB) [][]byte {
	t.Helper()
	var all [][]byte
	for _, pattern := range []string{"testdata/*.json", "testdata/*.sse"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s matches nothing (%v)", pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".json") {
				all = append(all, b)
				continue
			}
			before := len(all)
			for line := range bytes.Lines(b) {
				if data, ok := bytes.CutPrefix(line, []byte("data: {")); ok {
					all = append(all, append([]byte("{"), data...))
				}
			}
			if len(all) == before {
				t.Fatalf("%s has no JSON", name)
			}
		}
	}
	return slices.Clip(all)
}

func TestAppendCompact(t *testing.T) {
	for in, want := range map[string]string{
		"{ \"a b\" :\r\n[ 1 , \"\\n\" ] }": `{"a b":[1,"\n"]}`, " \"a b\"\n": `"a b"`, "\t-1.50 ": "-1.50", "null": "null", "[\n]": "[]",
	} {
		if got := string(AppendCompact([]byte("x"), []byte(in))); got != "x"+want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestUnquoted(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "a", `a\n\u00e9\/`: "a\né/", `\ud800`: "\uFFFD"} {
		if got := string(Unquoted([]byte(in))); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

// TestTextEnd: what is cut there stands for the same as the whole.
func TestTextEnd(t *testing.T) {
	for in, want := range map[string]int{
		``: 0, `abc`: 3, `a"b`: 1, `a\"b"`: 4, `a\`: 1, `a\n`: 3, `a\u00e`: 1, `\u00e9`: 6, `\u00e9\`: 6,
		`\ud83d`: 0, `\ud83d\`: 0, `\ud83d\ude0`: 0, `\ud83d\ude00`: 12, `\ud83d\n`: 8, `\ud83dx`: 7, `\ud83d"`: 6,
		`\ud83d\ud83d\ude`: 6, `\ude00`: 6, `\\ud83d`: 7, `\\`: 2,
	} {
		if got := TextEnd([]byte(in)); got != want {
			t.Errorf("%s ends at %d, want %d", in, got, want)
		}
	}
}
