package jsonx

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

func parse(t testing.TB, in string) Value {
	t.Helper()
	d, err := Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return d.Root()
}

func TestValue(t *testing.T) {
	v := parse(t, ` {"s":"a\n\u00e9","i":-12,"f":1.5,"t":true,"n":null,"a":[1,"x",{"k":[]}],"o":{"p":{"q":7},"p":{"q":8}},
		"big":1e999,"huge":99999999999999999999,"\u006eame":"first","name":"last","e":"\u0000"} `)
	if v.Kind() != KindObject || v.Len() != 12 {
		t.Errorf("kind %d, %d members", v.Kind(), v.Len())
	}
	if got := v.Get("s").Str(); got != "a\né" {
		t.Errorf("s: %q", got)
	}
	if n, ok := v.Get("i").Int(); n != -12 || !ok {
		t.Errorf("i: %d, %v", n, ok)
	}
	if f, ok := v.Get("f").Float(); f != 1.5 || !ok {
		t.Errorf("f: %v, %v", f, ok)
	}
	if f, ok := v.Get("i").Float(); f != -12 || !ok {
		t.Errorf("i as float: %v, %v", f, ok)
	}
	for _, name := range []string{"f", "big", "huge", "s", "none"} {
		if n, ok := v.Get(name).Int(); ok {
			t.Errorf("%s is no int64, got %d", name, n)
		}
	}
	if _, ok := v.Get("big").Float(); ok {
		t.Error("1e999 fits no float")
	}
	if !v.Get("t").Bool() || v.Get("s").Bool() || v.Get("none").Bool() {
		t.Error("Bool")
	}
	if n := v.Get("n"); !n.Exists() || n.Kind() != KindNull {
		t.Error("null exists")
	}
	if n, _ := v.Get("o", "p", "q").Int(); n != 8 {
		t.Errorf("the last of two members counts, got %d", n)
	}
	if got := v.Get("name").Str(); got != "last" {
		t.Errorf("the last of two members counts, got %q", got)
	}
	if got := v.Get("e").Str(); got != "\x00" {
		t.Errorf("an escaped NUL: %q", got)
	}
	if v.Get("o", "none", "q").Exists() || v.Get("a", "0").Exists() || v.Get("s", "x").Exists() {
		t.Error("what is not there exists")
	}
	if a := v.Get("a"); a.Len() != 3 || a.Index(1).Str() != "x" || a.Index(3).Exists() || a.Index(-1).Exists() || a.Index(2).Get("k").Kind() != KindArray {
		t.Error("Index")
	}
	count := 0
	for e := range v.Get("a").Items() {
		if count++; count == 2 {
			if e.Str() != "x" {
				t.Error("Items out of order")
			}
			break
		}
	}
	for range v.Get("o").Items() {
		t.Error("an object has no items")
	}
	var names []string
	v.Each(func(name string, member Value) { names = append(names, name) })
	if got := strings.Join(names, " "); got != "s i f t n a o big huge name name e" {
		t.Errorf("Each: %s", got)
	}
	v.Get("a").Each(func(string, Value) { t.Error("an array has no members") })
}

func TestAbsentValue(t *testing.T) {
	var v Value
	v.Each(func(string, Value) { t.Error("a member of nothing") })
	for range v.Items() {
		t.Error("an item of nothing")
	}
	_, isInt := v.Int()
	_, isFloat := v.Float()
	if v.Exists() || v.Kind() != KindInvalid || v.Get("a", "b").Exists() || v.Index(0).Exists() || v.Len() != 0 || v.Str() != "" || isInt || isFloat || v.Bool() {
		t.Error("an absent value has something")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range invalidCases {
		if _, err := Parse([]byte(tc.in)); err != ErrSyntax {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	deep := strings.Repeat("[", 400) + "1" + strings.Repeat("]", 400)
	if _, err := Parse([]byte(deep)); err != ErrSyntax || !Valid([]byte(deep)) {
		t.Errorf("400 arrays inside each other: %v", err)
	}
	deep = strings.Repeat("[", 299) + "1" + strings.Repeat("]", 299)
	if _, err := Parse([]byte(deep)); err != nil {
		t.Errorf("299 arrays inside each other: %v", err)
	}
}

func TestParseLeavesItsInputAlone(t *testing.T) {
	in := []byte(`{"a\n":"\ud800","b":"\u0041\ufffd"}`)
	before := bytes.Clone(in)
	d, err := Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	a, b := d.Root().Get("a\n").Str(), d.Root().Get("b").Str()
	if a != "\ufffd" || b != "A\ufffd" || !bytes.Equal(in, before) {
		t.Errorf("%q, %q, input %q", a, b, in)
	}
	d.Release()
	d.Release()
	if d.Root().Exists() {
		t.Error("a released document has a root")
	}
	other := parse(t, `{"a\n":"zzzzzz","b":"zzzzzzzzzzzz"}`)
	if a != "\ufffd" || b != "A\ufffd" || other.Get("b").Str() != "zzzzzzzzzzzz" {
		t.Error("a string changed after Release")
	}
}

func TestParseConcurrently(t *testing.T) {
	in := fixtures(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, b := range in {
				d, err := Parse(b)
				if err != nil {
					t.Error(err)
					return
				}
				d.Root().Each(func(name string, v Value) { _, _ = v.Kind(), v.Str() })
				d.Release()
			}
		})
	}
	wg.Wait()
}

// The way to read two members matters more than anything else here.
func BenchmarkReadModel(b *testing.B) {
	in := agentRequest(400 << 10)
	for _, run := range []struct {
		name string
		f    func() bool
	}{
		{"Get", func() bool { s, _ := Text(Get(in, "model")); return s == "m" && Truthy(Get(in, "stream")) }},
		{"Parse", func() bool {
			d, err := Parse(in)
			if err != nil {
				return false
			}
			defer d.Release()
			return d.Root().Get("model").Str() == "m" && d.Root().Get("stream").Bool()
		}},
		{"encoding_json", func() bool {
			var r struct {
				Model  string
				Stream bool
			}
			return json.Unmarshal(in, &r) == nil && r.Model == "m" && r.Stream
		}},
	} {
		b.Run(run.name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if !run.f() {
					b.Fatal("wrong answer")
				}
			}
		})
	}
}
