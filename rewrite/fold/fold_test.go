package fold

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestObject(t *testing.T) {
	set := func(name, raw string) func(*Object) { return func(o *Object) { o.Set([]byte(name), []byte(raw)) } }
	grow := func(name, raw string) func(*Object) { return func(o *Object) { o.Grow([]byte(name), []byte(raw)) } }
	add := func(name, raw string) func(*Object) { return func(o *Object) { o.Add([]byte(name), []byte(raw)) } }
	replace := func(name, raw string) func(*Object) { return func(o *Object) { o.Replace([]byte(name), []byte(raw)) } }
	type steps []func(*Object)
	for _, c := range []struct {
		name  string
		steps steps
		want  string
	}{
		{"nothing", nil, `{}`},
		{"members keep the order they came in", steps{set("b", "1"), set("a", "2"), set("b", "3")}, `{"b":3,"a":2}`},
		{"blanks do not replace", steps{set("a", "1"), set("a", "null"), set("a", `""`), set("a", "[ ]"), set("a", "{}")}, `{"a":1}`},
		{"zero and false do", steps{set("a", "1"), set("a", "0"), set("b", "true"), set("b", "false")}, `{"a":0,"b":false}`},
		{"the first blank keeps its spelling", steps{set("a", "null"), set("b", `""`), set("c", "[]"), set("b", "null")}, `{"a":null,"b":"","c":[]}`},
		{"text grows by its interiors", steps{grow("a", `"x\ud83d"`), grow("a", `""`), grow("a", "null"), grow("a", `"\ude00"`)}, `{"a":"x\ud83d\ude00"}`},
		{"text after null", steps{grow("a", "null"), grow("a", `"x"`)}, `{"a":"x"}`},
		{"text after an empty value", steps{set("a", `""`), grow("a", `"x"`)}, `{"a":"x"}`},
		{"lists grow by their elements", steps{grow("a", "[1]"), grow("a", "[ ]"), grow("a", "[ 2,[3] ]")}, `{"a":[1,2,[3]]}`},
		{"a list from elements", steps{set("a", "null"), add("a", "1"), add("a", "{}")}, `{"a":[1,{}]}`},
		{"what does not fit is left out", steps{grow("a", `"x"`), grow("a", "[1]"), grow("a", "2"), add("a", "3"), set("a", "4")}, `{"a":"x"}`},
		{"what fits nothing yet decides", steps{grow("a", `""`), grow("a", "[1]")}, `{"a":[1]}`},
		{"a replacement replaces what grew", steps{grow("a", `"x"`), replace("a", `"y"`), replace("a", "null")}, `{"a":"y"}`},
		{"an object inside", steps{func(o *Object) { o.Sub([]byte("a")).Set([]byte("b"), []byte("1")) }, set("a", "2")}, `{"a":{"b":1}}`},
		{"no object where a value is", steps{set("a", "1"), func(o *Object) {
			if o.Sub([]byte("a")) != nil {
				panic("a value became an object")
			}
		}}, `{"a":1}`},
		{"a default is no news", steps{set("a", "1"), func(o *Object) { o.Default("a", "2"); o.Default("b", "3") }}, `{"a":1,"b":3}`},
		{"all members of another", steps{set("a", "1"), func(o *Object) { o.Merge([]byte(`{ "a" : null, "b" : [ 1 ], "a" : 2 }`)) }}, `{"a":2,"b":[ 1 ]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o Object
			for _, step := range c.steps {
				step(&o)
			}
			if got := string(o.Append([]byte("kept"))); got != "kept"+c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNamesAreComparedWithoutTheirEscapes(t *testing.T) {
	for key, want := range map[string]string{"a": "a", `\u0061`: "a", `a\/b`: "a/b", `\"`: `\"`, `\u001b`: `\u001b`, `\ud800\u0061`: `\ud800\u0061`} {
		if got := string(Name([]byte(key))); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}

func TestManyMembersAreFoundWithoutLookingAtAll(t *testing.T) {
	var o Object
	const n = 100_000 // seconds if each look-up scanned
	for round := range 2 {
		for i := range n {
			o.Set(fmt.Appendf(nil, "m%d", i), fmt.Appendf(nil, "%d", round))
		}
	}
	if o.Len() != n || string(o.Value("m99999")) != "1" || o.Known("x") {
		t.Errorf("got %d members", o.Len())
	}
}

func TestListCostsWhatWasMet(t *testing.T) {
	var l List[int]
	for _, index := range []int64{math.MaxInt64, 7, math.MinInt64, 7, -1} {
		*l.At(index)++
	}
	var got []string
	for index, n := range l.Sorted {
		got = append(got, fmt.Sprint(index, "×", *n))
	}
	if want := fmt.Sprint([]string{fmt.Sprint(int64(math.MinInt64), "×", 1), "-1×1", "7×2", fmt.Sprint(int64(math.MaxInt64), "×", 1)}); fmt.Sprint(got) != strings.ReplaceAll(want, " × ", "×") {
		t.Errorf("got %v, want %v", got, want)
	}
	if l.Last() != -1 {
		t.Errorf("the last one asked for: got %d", l.Last())
	}
}

func TestAFullListSaysSo(t *testing.T) {
	var l List[int]
	for i := range int64(MaxEntries) {
		if l.At(i*3) == nil {
			t.Fatalf("full at %d", i)
		}
	}
	if l.At(1) != nil || l.At(3) == nil || l.Len() != MaxEntries {
		t.Error("a full list takes no new index and finds the old ones")
	}
}

func TestAgain(t *testing.T) {
	const event = `{"i":1,"d":{"t":"ab"},"z":2}`
	learn := func(text string) (*Again, *Object) {
		a, o := new(Again), new(Object)
		data := []byte(event)
		at := strings.Index(event, text)
		a.Forget()
		o.Grow([]byte("t"), data[at:at+len(text)])
		a.Grew(o, []byte("t"), data[at:at+len(text)])
		a.Learn([]byte("n"), data)
		return a, o
	}
	for _, c := range []struct {
		name, event, data string
		want              bool
		text              string
	}{
		{"the same event", "n", event, true, "abab"},
		{"another text", "n", `{"i":1,"d":{"t":"\u001b é\""},"z":2}`, true, `ab\u001b é\"`},
		{"an empty text has to be read", "n", `{"i":1,"d":{"t":""},"z":2}`, false, "ab"},
		{"another event name", "m", event, false, "ab"},
		{"another member before", "n", `{"i":2,"d":{"t":"ab"},"z":2}`, false, "ab"},
		{"another member behind", "n", `{"i":1,"d":{"t":"ab"},"z":3}`, false, "ab"},
		{"a quote that ends the text early", "n", `{"i":1,"d":{"t":"ab","u":"x"},"z":2}`, false, "ab"},
		{"a broken escape", "n", `{"i":1,"d":{"t":"a\x"},"z":2}`, false, "ab"},
		{"a control character", "n", "{\"i\":1,\"d\":{\"t\":\"a\x01\"},\"z\":2}", false, "ab"},
		{"invalid UTF-8", "n", "{\"i\":1,\"d\":{\"t\":\"a\xff\"},\"z\":2}", false, "ab"},
		{"beginning and end overlap", "n", `{"i":1,"d":{"t":"},"z":2}`, false, "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, o := learn(`"ab"`)
			if got := a.Fold([]byte(c.event), []byte(c.data)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := string(o.Text("t")); got != c.text {
				t.Errorf("got %s, want %s", got, c.text)
			}
		})
	}
	for _, c := range []struct {
		name, learned, number, data string
		want                        bool
		text                        string
	}{
		{"a number in front", `{"n":7,"t":"ab"}`, "7", `{"n":18,"t":"c"}`, true, "abc"},
		{"a number behind", `{"t":"ab","n":7}`, "7", `{"t":"c","n":18}`, true, "abc"},
		{"the last", `{"t":"ab","n":7}`, "7", `{"t":"c","n":0}`, true, "abc"},
		{"digits beside it", `{"n":7,"t":"12"}`, "7", `{"n":8,"t":"34"}`, true, "1234"},
		{"digits beside it, behind", `{"t":"12","n":7}`, "7", `{"t":"34","n":8}`, true, "1234"},
		{"none", `{"n":7,"t":"ab"}`, "7", `{"n":,"t":"c"}`, false, "ab"},
		{"none behind", `{"t":"ab","n":7}`, "7", `{"t":"c","n":}`, false, "ab"},
		{"no number of JSON", `{"n":7,"t":"ab"}`, "7", `{"n":07,"t":"c"}`, false, "ab"},
		{"no number of JSON, behind", `{"t":"ab","n":7}`, "7", `{"t":"c","n":07}`, false, "ab"},
		{"a long one", `{"n":7,"t":"ab"}`, "7", `{"n":1234567890123456789,"t":"c"}`, false, "ab"},
		{"a fraction", `{"n":7,"t":"ab"}`, "7", `{"n":7.5,"t":"c"}`, false, "ab"},
		{"a negative one", `{"n":7,"t":"ab"}`, "7", `{"n":-7,"t":"c"}`, false, "ab"},
		{"one that was no count is a member like others", `{"n":7.5,"t":"ab"}`, "7.5", `{"n":7.5,"t":"c"}`, true, "abc"},
		{"and another one has to be read", `{"n":7.5,"t":"ab"}`, "7.5", `{"n":8,"t":"c"}`, false, "ab"},
		{"something else in front", `{"n":7,"m":1,"t":"ab"}`, "7", `{"n":7,"m":2,"t":"c"}`, false, "ab"},
		{"something else behind", `{"n":7,"t":"ab","m":1}`, "7", `{"n":7,"t":"c","m":2}`, false, "ab"},
		{"cut short", `{"t":"ab","n":7}`, "7", `7}`, false, "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, o, data := new(Again), new(Object), []byte(c.learned)
			part := func(s string) []byte { at := strings.Index(c.learned, s); return data[at : at+len(s)] }
			text := part(`"t":"`)[len(`"t":`):]
			text = text[:bytes.IndexByte(text[1:cap(text)], '"')+2]
			a.Forget()
			a.Counts(part(c.number))
			o.Grow([]byte("t"), text)
			a.Grew(o, []byte("t"), text)
			a.Learn(nil, data)
			if got := a.Fold(nil, []byte(c.data)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := string(o.Text("t")); got != c.text {
				t.Errorf("got %s, want %s", got, c.text)
			}
		})
	}
	t.Run("two growths are not learned", func(t *testing.T) {
		a, o, data := new(Again), new(Object), []byte(event)
		a.Forget()
		a.Grew(o, []byte("t"), data[16:20])
		a.Grew(nil, nil, nil)
		if a.Learn(nil, data); a.Fold(nil, data) {
			t.Error("recognised")
		}
	})
	t.Run("text from elsewhere is not learned", func(t *testing.T) {
		a, o := new(Again), new(Object)
		a.Grew(o, []byte("t"), []byte(`"ab"`))
		if a.Learn(nil, []byte(event)); a.Fold(nil, []byte(event)) {
			t.Error("recognised")
		}
	})
	t.Run("forgotten is not recognised", func(t *testing.T) {
		a, _ := learn(`"ab"`)
		if a.Forget(); a.Fold([]byte("n"), []byte(event)) {
			t.Error("recognised")
		}
	})
}

func TestFinish(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "}"
	for _, c := range []struct{ name, doc, want string }{
		{"a compact object stays", `{"a":1}`, `{"a":1}`},
		{"white space goes", "{ \"a\" : [ 1 , \" b \" ]\n}", `{"a":[1," b "]}`},
		{"no object is taken back", `[1]`, ""},
		{"no JSON is taken back", `{"a":`, ""},
		{"nor is anything that is nested too deeply", deep, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(Finish([]byte("kept"+c.doc), 4)); got != "kept"+c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		data, want string
		invalid    bool
	}{
		{"", "", false}, {" \t", "", false}, {"[DONE]", "", false}, {" [DONE] ", "", false}, {` {"a":1} `, `{"a":1}`, false},
		{"[1]", "", true}, {"null", "", true}, {"{", "", true}, {`{"a":1}{}`, "", true}, {"\ufeff{}", "", true}, {"[done]", "", true},
	} {
		raw, invalid := Open([]byte(c.data))
		if string(raw) != c.want || invalid != c.invalid {
			t.Errorf("%q: got %q %v", c.data, raw, invalid)
		}
	}
}
