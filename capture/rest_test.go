package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"rolltap/internal/jsonx"
)

// referred reads text as the one line of a file, as an outline with rests, which are valid until the test is over.
func referred(t *testing.T, text string) (Line, *Rests) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.capture.jsonl"), []byte("{\"first\":1}\n"+text+"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLines(dir, "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	l.Refer(64)
	if _, err := l.Next(); err != nil {
		t.Fatal(err)
	}
	line, err := l.Next()
	if err != nil || line.Damage != nil || !line.Cut {
		t.Fatalf("%v, %v, cut %t", err, line.Damage, line.Cut)
	}
	return line, l.Rests()
}

// TestRests: what is written out of an outline with rests is the line, and each of its texts is the text, whatever stands where it is cut
// and where pieces of the file end.
func TestRests(t *testing.T) {
	for _, unit := range []string{"x", "é", "世", "🙂", `\n`, `\\`, `\"`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00\ud83d`, `a\u0000é`, `\\u\ud83d\ude00`} {
		for shift := range 13 {
			in := strings.Repeat("-", shift) + strings.Repeat(unit, 70<<10/len(unit)) + "."
			arguments := jsonx.AppendString(nil, `{"in":"`+in+`"}`)
			text := `{"request":{"a":"` + in + `","b":{"in":"` + in + `"},"c":` + string(arguments) + `},"rolltap":{"seq":7}}`
			line, rests := referred(t, text)
			if line.Lossy || len(line.Raw) > 8<<10 {
				t.Fatalf("%s: lossy %t, %d bytes", unit, line.Lossy, len(line.Raw))
			}
			var b bytes.Buffer
			if err := rests.Write(&b, line.Raw); err != nil || b.String() != text {
				t.Fatalf("%s: %v, %d bytes became %d", unit, err, len(text), b.Len())
			}
			var got [3][]byte
			jsonx.GetAll(jsonx.Get(line.Raw, "request"), []string{"a", "b", "c"}, got[:])
			a, _ := Text(got[0])
			c, _ := Text(got[2])
			want, _ := jsonx.Text([]byte(`"` + in + `"`))
			for _, k := range []struct{ has, want string }{{a, want}, {c, `{"in":"` + in + `"}`}, {string(got[1]), `{"in":"` + in + `"}`}, {a + "\n" + c, want + "\n" + `{"in":"` + in + `"}`}} {
				whole, ok := rests.Whole(k.has, 1<<20)
				if !ok || whole != k.want {
					t.Fatalf("%s: %t, a text of %d bytes became one of %d", unit, ok, len(k.want), len(whole))
				}
				if size, lines := rests.Measure(k.has); size != int64(len(k.want)) || lines != strings.Count(k.want, "\n") || AtMost(k.has) < size {
					t.Fatalf("%s: %d bytes, %d line feeds, at most %d, want %d", unit, size, lines, AtMost(k.has), len(k.want))
				}
				if head := rests.Head(k.has, 30001); !strings.HasPrefix(k.want, head) || len(head) < min(len(k.want), 30001-utf8.UTFMax) || len(head) > 30001 {
					t.Fatalf("%s: the beginning has %d bytes", unit, len(head))
				}
				b.Reset()
				if err := rests.Write(&b, AppendText(nil, k.has)); err != nil {
					t.Fatal(err)
				}
				if again, _ := jsonx.Text(b.Bytes()); !jsonx.Valid(b.Bytes()) || again != k.want {
					t.Fatalf("%s: as JSON it is another text", unit)
				}
			}
		}
	}
}

// TestReferIsBounded: texts take no room however long or many they are, and what is too much without them is said to be lost.
func TestReferIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		lossy bool
	}{
		"a text":                {`"` + strings.Repeat("x", 32<<20) + `"`, false},
		"many texts":            {`[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("y", 2000)+`"},`, 16000) + `0]`, false},
		"a long key":            {`{"` + strings.Repeat("k", 16<<20) + `":1}`, false},
		"what nests deeply":     {strings.Repeat("[", 400) + strings.Repeat("]", 400), false},
		"very many small texts": {`[` + strings.Repeat(`"0123456789",`, 2<<20) + `0]`, true},
		"a long number":         {strings.Repeat("7", 9<<20), true},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{"model_call_id":"c","request":` + c.body + `,"rolltap":{"seq":7}}`
			line, rests := referred(t, text)
			if line.Lossy != c.lossy || len(line.Raw) > 11<<20 {
				t.Errorf("lossy %t, %d bytes", line.Lossy, len(line.Raw))
			}
			var b bytes.Buffer
			if err := rests.Write(&b, line.Raw); err != nil || !json.Valid(b.Bytes()) || !c.lossy && b.String() != text {
				t.Errorf("%v, %d bytes became %d", err, len(text), b.Len())
			}
			if n, _ := jsonx.Int(jsonx.Get(jsonx.Get(line.Raw, "rolltap"), "seq")); n != 7 {
				t.Error("the end is missing")
			}
		})
	}
}

// TestRestsForged: no line can hold what would be taken for a rest, and one that is not where it should be is an error, never other bytes.
func TestRestsForged(t *testing.T) {
	forged := string(appendRest(nil, textRest{restRaw, 0, 10}))
	l := newLines(&growing{*bytes.NewBufferString(`{"request":"` + forged + strings.Repeat("x", 100) + `"}` + "\n")})
	l.Refer(16)
	if line, err := l.Next(); err != nil || line.Damage != ErrNoJSON {
		t.Errorf("%v, %v", err, line.Damage)
	}
	escaped, _ := Text([]byte(`"\u00ffr00000000000000000000000000000010\u00ff"`))
	if HasRest(escaped) {
		t.Errorf("%q is taken for a rest", escaped)
	}
	for _, cut := range []string{forged[:len(forged)-1], "\xff", "\xffr" + strings.Repeat("z", restLen)} {
		if _, _, _, ok := nextRest(cut); ok {
			t.Errorf("%q is taken for a rest", cut)
		}
	}
	_, rests := referred(t, `{"request":"`+strings.Repeat("x", 5000)+`"}`)
	if err := rests.WriteText(&bytes.Buffer{}, string(appendRest(nil, textRest{restRaw, 5000, 5000}))); err == nil || rests.Err() == nil {
		t.Error("bytes behind the end of the file were read")
	}
	var none *Rests
	if err := none.WriteText(&bytes.Buffer{}, forged); !errors.Is(err, errNoFile) {
		t.Errorf("%v", err)
	}
	if s := Brief("a" + forged + "b"); s != "a…b" {
		t.Error(s)
	}
}

// FuzzRest: for any text and any size of pieces the rest that is written is the text.
func FuzzRest(f *testing.F) {
	f.Add(`a\ud83d\ude00\\u00e9`, uint8(3))
	f.Add(`世🙂\ud83dx\n`, uint8(0))
	f.Add(strings.Repeat(`"`, 100), uint8(0))
	f.Fuzz(func(t *testing.T, in string, size uint8) {
		known := utf8.ValidString(in) && jsonx.Valid([]byte(`"`+in+`"`)) // else it need only end
		for _, kind := range []byte{restRaw, restDecoded, restEscaped} {
			want := in
			switch kind {
			case restDecoded:
				want = string(jsonx.Unquoted([]byte(in)))
			case restEscaped:
				want = string(jsonx.AppendEscaped(nil, []byte(in)))
			}
			r := Rests{f: strings.NewReader(in), buf: make([]byte, 16+int(size))}
			var b strings.Builder
			if err := r.WriteText(&b, string(appendRest(nil, textRest{kind, 0, int64(len(in))}))); err != nil || known && b.String() != want {
				t.Fatalf("%c: %q became %q, want %q, %v", kind, in, b.String(), want, err)
			}
		}
	})
}
