package capture

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// pickedLine reads text as the one line of a file with Pick; it is valid until the test is over.
func pickedLine(t *testing.T, text string, picks Picks) (Line, *Rests) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.capture.jsonl"), []byte("\n"+text+"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLines(dir, "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	l.Pick(16, picks)
	line, err := l.Next()
	if err != nil || line.Damage != nil || !line.Cut {
		t.Fatalf("%v, %v, cut %t", err, line.Damage, line.Cut)
	}
	return line, l.Rests()
}

func TestPick(t *testing.T) {
	long := strings.Repeat("é", 20<<10)
	many := strings.Repeat(`"0123456789",`, 2<<20) + `0`
	picks := Picks{"ref": nil, "request": Picks{}, "response": Picks{"choices": Picks{"message": Picks{"all": nil}}}}
	for _, c := range []struct{ why, text, want string }{
		{"a list is looked through", `{"response":{"choices":[[{"message":{"all":[{"x":{}}],"y":{}},"logprobs":[1]}],2],"tools":[3]}}`,
			`{"response":{"choices":[[{"message":{"all":[{"x":{}}],"y":null},"logprobs":null}],2],"tools":null}}`},
		{"scalars stay", `{"request":{"model":"m","messages":[{}],"n":1.50,"b":true},"ref":{"a":[]},"other":{"a":1}}`,
			`{"request":{"model":"m","messages":null,"n":1.50,"b":true},"ref":{"a":[]},"other":null}`},
		{"names are decoded", `{"\u0072ef":{"a":1},"re\u0066":[]}`, `{"\u0072ef":{"a":1},"re\u0066":[]}`},
		{"what is not picked has no bound", `{"request":{"messages":[` + many + `],"model":"m"},"ref":{}}`, `{"request":{"messages":null,"model":"m"},"ref":{}}`},
		{"texts are whole", `{"id":"` + long + `","ref":"` + long + `","response":{"id":"` + long + `"}}`, ""},
	} {
		line, rests := pickedLine(t, c.text, picks)
		if c.want == "" {
			c.want = c.text
		}
		var b bytes.Buffer
		if err := rests.Write(&b, line.Raw); err != nil || b.String() != c.want || line.Lossy || len(line.Raw) > 60<<10 {
			t.Errorf("%s: %.300s, lossy %t, %v", c.why, b.String(), line.Lossy, err)
		}
	}
	if line, _ := pickedLine(t, `{"response":{"choices":[`+many+`]}}`, picks); !line.Lossy {
		t.Error("elements of a list that is picked are missing, and nothing says so")
	}
}

// TestBody: what Body stands for is the member as it is in the file.
func TestBody(t *testing.T) {
	for text, want := range map[string][bodies]string{
		` { "request" : { "a" : [ 1 ] } , "response":{}, "request_raw":"x\"y", "response_raw" : "" } `: {`{ "a" : [ 1 ] }`, `{}`, `"x\"y"`, `""`},
		`{"request":[{"request":{}}],"response":"z","x":{"response":{"y":1}},"pad":[1,2,3]}`:           {`[{"request":{}}]`, `"z"`},
		`{"request":{"n":1},"request":{"n":2},"response":{},"r\u0065sponse":null,"pad":{}}`:            {`{"n":2}`},
		`{"request":null,"response":12.5,"request_raw":false,"pad":"request"}`:                         {},
		`{"response":{"deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + ` }}`:           {"", `{"deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + ` }`},
	} {
		for _, picks := range []Picks{nil, {}, {"request": {}}} {
			line, rests := pickedLine(t, text, picks)
			for i, name := range []string{"request", "response", "request_raw", "response_raw"} {
				value, kind := line.Body(name)
				var b strings.Builder
				if err := rests.Write(&b, value); err != nil || b.String() != want[i] || kind != jsonx.KindOf([]byte(want[i])) {
					t.Errorf("%s of %s is %q, %v", name, text, b.String(), err)
				}
			}
		}
	}
	if value, kind := (Line{}).Body("request"); value != nil || kind != jsonx.KindInvalid {
		t.Error("a line that is whole has a body elsewhere")
	}
}

// TestValue: a long text that is JSON is written as the value that it is, and no other text is taken for one.
func TestValue(t *testing.T) {
	for _, unit := range []string{`x`, `é`, `世`, `🙂`, `\n`, `\\`, `\"`, `\u00e9`, `\ud83d\ude00`} {
		for shift := range 7 {
			in := strings.Repeat("-", shift) + strings.Repeat(unit, 70<<10/len(unit))
			for _, text := range []string{` { "a" : [ "` + in + `" , 1 ] , "b":"c d" } `, `"` + in + `" `, "\n[\n\"" + in + "\"\n]", strings.Repeat(" ", 3000) + "-1.5e3 "} {
				line, rests := pickedLine(t, `{"request":{"arguments":`+string(jsonx.AppendString(nil, text))+`}}`, nil)
				value, ok := rests.Value(jsonx.Get(jsonx.Get(line.Raw, "request"), "arguments"))
				var b bytes.Buffer
				if err := rests.Write(&b, value); !ok || err != nil || b.String() != string(jsonx.AppendCompact(nil, []byte(text))) {
					t.Fatalf("%s: %t, %v, a text of %d bytes became a value of %d", unit, ok, err, len(text), b.Len())
				}
			}
		}
	}
	long := strings.Repeat("x", 3000)
	for _, text := range []string{long, `{"a":"` + long, `"` + long + `"}`, "\ufeff\"" + long + `"`, `["` + long + "\x01\"]", strings.Repeat(" ", 3000), strings.Repeat("[", 2000) + strings.Repeat("]", 2000)} {
		for _, raw := range [][]byte{jsonx.AppendString(nil, text), bytes.ReplaceAll(jsonx.AppendString(nil, text), []byte("\ufeff"), []byte(`\ufeff`))} {
			line, rests := pickedLine(t, `{"request":{"arguments":`+string(raw)+`}}`, nil)
			if value, ok := rests.Value(jsonx.Get(jsonx.Get(line.Raw, "request"), "arguments")); ok || json.Valid([]byte(text)) && len(text) < 4000 {
				t.Errorf("%.20q… is the value %q", text, value)
			}
			if rests.Err() != nil {
				t.Error(rests.Err())
			}
		}
	}
}
