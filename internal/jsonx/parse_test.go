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
	if v.Kind() != KindObject {
		t.Errorf("kind %d", v.Kind())
	}
	if got := v.Get("s").Str(); got != "a\né" {
		t.Errorf("s: %q", got)
	}
	if n, ok := v.Get("i").Int(); n != -12 || !ok {
		t.Errorf("i: %d, %v", n, ok)
	}
	for _, name := range []string{"f", "big", "huge", "s", "none"} {
		if n, ok := v.Get(name).Int(); ok {
			t.Errorf("%s is no int64, got %d", name, n)
		}
	}
	if k := v.Get("t").Kind(); k != KindBool {
		t.Errorf("t: kind %d", k)
	}
	if k := v.Get("n").Kind(); k != KindNull {
		t.Errorf("null: kind %d", k)
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
	for _, names := range [][]string{{"o", "none", "q"}, {"a", "0"}, {"s", "x"}} {
		if k := v.Get(names...).Kind(); k != KindInvalid {
			t.Errorf("%q is not there, but of kind %d", names, k)
		}
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
}

func TestAbsentValue(t *testing.T) {
	var v Value
	for range v.Items() {
		t.Error("an item of nothing")
	}
	if _, isInt := v.Int(); v.Kind() != KindInvalid || v.Get("a", "b").Kind() != KindInvalid || v.Str() != "" || isInt {
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
	if d.Root().Kind() != KindInvalid {
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
				_, _ = d.Root().Get("model").Str(), d.Root().Get("messages").Kind()
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
			return d.Root().Get("model").Str() == "m" && d.Root().Get("stream").Kind() == KindBool
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
