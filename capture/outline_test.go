package capture

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"rolltap/internal/jsonx"
)

// outlined reads text as one line with the outline from so many bytes on, in pieces of the size.
func outlined(t *testing.T, text string, beyond int) Line {
	t.Helper()
	l := newLines(io.NopCloser(strings.NewReader(text)))
	l.Outline(beyond)
	line, err := l.Next()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestOutlineKeepsSmallLines(t *testing.T) {
	text := `{ "a" : [1, -2.50e1, true, null, "x\"\\ \u00e9\ud83d\ude00é"] , "b":{}, "c" :[] }`
	line := outlined(t, text+"\n", 1)
	if want := `{"a":[1,-2.50e1,true,null,"x\"\\ \u00e9\ud83d\ude00é"],"b":{},"c":[]}`; string(line.Raw) != want || !line.Cut || line.Damage != nil {
		t.Errorf("%s, %v", line.Raw, line.Damage)
	}
	if line := outlined(t, text+"\n", len(text)+1); string(line.Raw) != text || line.Cut {
		t.Errorf("a line that is not too long became %s", line.Raw)
	}
}

// TestOutlineIsBounded: what is large is cut wherever it stands, and the ends survive.
func TestOutlineIsBounded(t *testing.T) {
	big := strings.Repeat("é🙂\\n\\u00e9", 2<<20)
	many := strings.Repeat(`{"role":"user","content":"`+strings.Repeat("x", 2000)+`"},`, 20000)
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	for name, c := range map[string]struct{ body, want string }{
		"a text":               {`"` + big + `"`, ""},
		"a text, even":         {`"` + strings.Repeat("é", 4<<20) + `"`, ""},
		"a text, odd":          {`"x` + strings.Repeat("é", 4<<20) + `"`, ""},
		"many messages":        {`{"messages":[` + many + `{"role":"last"}],"model":"m"}`, `{"role":"last"}],"model":"m"}`},
		"a long number":        {strings.Repeat("7", 9<<20), "null"},
		"a long key":           {`{"` + big + `":1,"model":"m"}`, `"model":"m"}`},
		"many members":         {`{` + strings.Repeat(`"k":1234567890,`, 2<<20) + `"model":"m"}`, `"model":"m"}`},
		"many small elements":  {`[` + strings.Repeat(`1,`, 8<<20) + `2]`, `,2]`},
		"what nests deeply":    {`[` + strings.Repeat(deep+",", 9000) + `3]`, `,3]`},
		"white space":          {`[` + strings.Repeat(" ", 9<<20) + `]`, `[]`},
		"many texts, one list": {`[` + strings.Repeat(`"`+strings.Repeat("z", 15<<10)+`",`, 2000) + `"end"]`, `"end"]`},
	} {
		line := outlined(t, `{"model_call_id":"c","request":`+c.body+`,"rolltap":{"seq":7}}`+"\n", 1<<20)
		if line.Damage != nil || !line.Cut {
			t.Errorf("%s: %v, cut %t", name, line.Damage, line.Cut)
			continue
		}
		if !json.Valid(line.Raw) || len(line.Raw) > 3<<20 {
			t.Errorf("%s: %d bytes, valid: %t", name, len(line.Raw), json.Valid(line.Raw))
		}
		if n, _ := jsonx.Int(jsonx.Get(jsonx.Get(line.Raw, "rolltap"), "seq")); n != 7 || !strings.HasSuffix(string(jsonx.Get(line.Raw, "request")), c.want) {
			t.Errorf("%s: the end is %q", name, line.Raw[max(0, len(line.Raw)-120):])
		}
	}
}

func TestOutlineDamage(t *testing.T) {
	pad := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		text string
		want error
		torn bool
	}{
		"no JSON":           {`{"a":"` + pad + `",}` + "\n", ErrNoJSON, false},
		"no object":         {`["` + pad + `"]` + "\n", ErrNoObject, false},
		"cut":               {`{"a":"` + pad + "\n", ErrNoJSON, false},
		"torn":              {`{"a":"` + pad, ErrNoJSON, true},
		"torn and whole":    {`{"a":"` + pad + `"}`, nil, true},
		"NUL bytes":         {strings.Repeat("\x00", 200) + "\n", ErrHole, false},
		"NUL bytes before":  {strings.Repeat("\x00", 50) + `{"a":"` + pad + `"}` + "\n", nil, false},
		"raw control bytes": {`{"a":"` + pad + "\x01" + `"}` + "\n", ErrNoJSON, false},
	} {
		line := outlined(t, c.text, 32)
		if line.Damage != c.want || line.Torn != c.torn {
			t.Errorf("%s: %v, torn %t", name, line.Damage, line.Torn)
		}
		if whole := outlined(t, c.text, 0); whole.Damage != line.Damage || whole.hole != line.hole {
			t.Errorf("%s: read whole it is %v, hole %t, outlined hole %t", name, whole.Damage, whole.hole, line.hole)
		}
	}
	// A torn line is handed out again when its end has come, and the line behind it is another one.
	r := &growing{}
	l := newLines(r)
	l.Outline(16)
	r.Write([]byte(`{"a":"` + pad))
	if line, err := l.Next(); err != nil || !line.Torn {
		t.Fatalf("%+v, %v", line, err)
	}
	r.Write([]byte("\"}\n{\"b\":1}\n"))
	if line, err := l.Next(); err != nil || line.Torn || line.Damage != nil || line.Number != 1 {
		t.Fatalf("%+v, %v", line, err)
	}
	if line, err := l.Next(); err != nil || string(line.Raw) != `{"b":1}` || line.Cut || line.Index != 1 {
		t.Fatalf("%+v, %v", line, err)
	}
}

// growing is a file that is appended to.
type growing struct{ bytes.Buffer }

func (*growing) Close() error { return nil }

// FuzzOutline: for any line and any split the verdict is that of the line read whole, and a line whose values are small comes
// out as it was, compacted.
func FuzzOutline(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"\ud83d\ude00\\"}],"c":-1e5}`), uint64(1))
	f.Add([]byte("\x00\x00 {\"a\" : \"\\u00e9\xc3\xa9\"}"), uint64(2))
	f.Add([]byte(`{"a":}`), uint64(3))
	f.Add([]byte(`{"request":{"a" : [1]},"response_raw":""x","response":[ ],"request":2}`), uint64(4))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		// A line that is read whole is trimmed as Unicode has it, one that is outlined as JSON has it.
		if bytes.ContainsAny(text, "\n\v\f\u0085\u00a0") || bytes.IndexFunc(text, func(r rune) bool { return r > 0x7f && unicode.IsSpace(r) }) >= 0 || len(text) > 8<<10 {
			return
		}
		o, rnd := newOutline(), rand.New(rand.NewPCG(seed, 0))
		for rest := text; len(rest) > 0; {
			n := 1 + rnd.IntN(min(len(rest), 9))
			o.add(rest[:n])
			rest = rest[n:]
		}
		raw, hole, damage := o.result()
		whole := newLines(io.NopCloser(strings.NewReader("")))
		line, blank := whole.line(text, false)
		if blank {
			if len(raw) > 0 || damage != nil {
				t.Fatalf("%q is blank, outlined %q %v", text, raw, damage)
			}
			return
		}
		if deep := damage == ErrNoJSON && bytes.Count(text, []byte("[")) > 500; !deep && (damage != line.Damage || hole != line.hole) {
			t.Fatalf("%q: %v %t, whole %v %t", text, damage, hole, line.Damage, line.hole)
		}
		if damage == nil {
			for i, name := range []string{"request", "response", "request_raw", "response_raw"} {
				want := jsonx.Get(line.Raw, name)
				switch jsonx.KindOf(want) {
				case jsonx.KindObject, jsonx.KindArray, jsonx.KindString:
				default:
					want = nil
				}
				if at := o.spans[i]; string(text[at.from:at.from+at.size]) != string(want) {
					t.Fatalf("%q: %s is at %+v, want %q", text, name, at, want)
				}
			}
		}
		if damage == nil && bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) < outlineDepth {
			if want := jsonx.AppendCompact(nil, line.Raw); !bytes.Equal(raw, want) {
				t.Fatalf("%q became %q, want %q", text, raw, want)
			}
		}
	})
}

func BenchmarkOutline(b *testing.B) {
	var text bytes.Buffer
	text.WriteString(`{"request":{"messages":[`)
	for i := range 4000 {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(`{"role":"user","content":"` + strings.Repeat(`some text with \"quotes\" and lines\n`, 100) + strconv.Itoa(i) + `"}`)
	}
	text.WriteString(`]},"response":null}`)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		o := newOutline()
		for rest := text.Bytes(); len(rest) > 0; {
			n := min(len(rest), readBuf)
			o.add(rest[:n])
			rest = rest[n:]
		}
	}
}
