package jsonx

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// seed adds every table of the package and every fixture.
func seed(f *testing.F, add func([]byte)) {
	for _, tc := range validCases {
		add([]byte(tc.in))
	}
	for _, tc := range markCases {
		add([]byte(tc.in))
	}
	for _, tc := range invalidCases {
		add([]byte(tc.in))
	}
	for _, tc := range walkCases {
		add([]byte(tc.in))
	}
	for _, tc := range brokenCases {
		add([]byte(tc.in))
	}
	for _, tc := range writeCases {
		add([]byte(tc.in))
	}
	for _, b := range fixtures(f) {
		add(b)
	}
}

// FuzzCompactor: the verdict is that of encoding/json plus UTF-8 and our depth, the output is its Compact,
// and no split changes either.
func FuzzCompactor(f *testing.F) {
	seed(f, func(b []byte) { f.Add(b, uint(len(b)/3), uint(len(b)/2)) })
	f.Fuzz(func(t *testing.T, in []byte, a, b uint) {
		first, second := int(a%uint(len(in)+1)), int(b%uint(len(in)+1))
		if first > second {
			first, second = second, first
		}
		out, kind, tight, err := compact(in)
		cutOut, cutKind, cutTight, cutErr := compact(in, first, second)
		if (err == nil) != (cutErr == nil) || err == nil && (!bytes.Equal(out, cutOut) || kind != cutKind || tight != cutTight) {
			t.Fatalf("cut at %d and %d: %q %v, whole: %q %v", first, second, cutOut, cutErr, out, err)
		}
		body, marked := bytes.CutPrefix(in, bom[:])
		if Valid(in) != (err == nil && !marked) {
			t.Fatalf("Valid %v, Compactor %v", Valid(in), err)
		}
		var check Checker
		_, e1 := check.Write(in[:first])
		_, e2 := check.Write(in[first:second])
		_, e3 := check.Write(in[second:])
		if got := e1 == nil && e2 == nil && e3 == nil && check.Valid(); got != Valid(in) {
			t.Fatalf("cut at %d and %d: Checker %v, Valid %v", first, second, got, Valid(in))
		}
		if depth(body) <= MaxDepth {
			if want := json.Valid(body) && utf8.Valid(body); want != (err == nil) {
				t.Fatalf("encoding/json says %v, Compactor %v", want, err)
			}
		}
		if err != nil {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, body); err != nil || !bytes.Equal(out, want.Bytes()) {
			t.Fatalf("got %q, want %q (%v)", out, want.Bytes(), err)
		}
		if tight != bytes.Equal(in, out) || kind != KindOf(out) {
			t.Fatalf("tight %v, kind %d", tight, kind)
		}
		if again, _, tight, err := compact(out); err != nil || !tight || !bytes.Equal(again, out) {
			t.Fatalf("compacted twice: %q, tight %v, %v", again, tight, err)
		}
	})
}

// depth is at least how deep the containers of b lie in each other.
func depth(b []byte) int { return bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")) }

// FuzzWalk: nothing panics or goes on forever, and on valid input the walk sees what encoding/json sees.
func FuzzWalk(f *testing.F) {
	seed(f, func(b []byte) { f.Add(b, "model") })
	f.Fuzz(func(t *testing.T, in []byte, key string) {
		exercise(t, in)
		Get(in, key)
		if d, err := Parse(in); err == nil {
			sameTree(t, in, d.Root())
			d.Release()
		} else if strings.Contains(err.Error(), key) && len(key) > len(ErrSyntax.Error()) {
			t.Fatal("the error quotes the payload")
		}
		if !Valid(in) {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(in, &object) == nil {
			for name, want := range object {
				if got := Get(in, name); !bytes.Equal(got, want) {
					t.Fatalf("Get %q: %q, want %q", name, got, want)
				}
			}
			for it := Object(in); it.Next(); {
				if v := it.Value(); ValueEnd(v, 0, 1) != len(v) {
					t.Fatalf("%q ends at %d", v, ValueEnd(v, 0, 1))
				}
				if name := string(AppendUnquoted(nil, it.Key())); object[name] == nil {
					t.Fatalf("member %q", name)
				}
			}
		}
		var array []json.RawMessage
		if json.Unmarshal(in, &array) == nil {
			it := Array(in)
			for _, want := range array {
				if !it.Next() || !bytes.Equal(it.Value(), want) {
					t.Fatalf("element %q, want %q", it.Value(), want)
				}
			}
			if it.Next() {
				t.Fatal("an element too many")
			}
		}
		var text string
		if got, ok := Text(in); json.Unmarshal(in, &text) == nil && KindOf(in) == KindString && (!ok || got != text) {
			t.Fatalf("Text %q, want %q", got, text)
		}
		var n int64
		if got, ok := Int(in); KindOf(in) == KindNumber && (json.Unmarshal(in, &n) == nil) != ok || got != n {
			t.Fatalf("Int %d %v, want %d", got, ok, n)
		}
	})
}

// sameTree compares the tree with the walk.
func sameTree(t *testing.T, raw []byte, v Value) {
	if v.Kind() != KindOf(raw) {
		t.Fatalf("kind %d of %q", v.Kind(), raw)
	}
	if text, ok := Text(raw); ok && v.Str() != text {
		t.Fatalf("Str %q of %q", v.Str(), raw)
	}
	if n, ok := Int(raw); ok {
		if got, same := v.Int(); !same || got != n {
			t.Fatalf("Int %d of %q", got, raw)
		}
	}
	elements := slices.Collect(v.Items())
	i := 0
	for it := Array(raw); it.Next(); i++ {
		if i == len(elements) {
			t.Fatalf("%d elements of %q, and more", i, raw)
		}
		sameTree(t, it.Value(), elements[i])
	}
	parts := len(elements)
	if o := v.object(); o != nil {
		parts = o.Len()
	}
	for it := Object(raw); it.Next(); i++ {
		name := string(AppendUnquoted(nil, it.Key()))
		if i < 64 { // looking up every member of a big object is quadratic
			sameTree(t, Get(raw, name), v.Get(name))
		}
	}
	if parts != i {
		t.Fatalf("%d parts of %q, walked %d", parts, raw, i)
	}
}

// FuzzAppendString: the output is valid JSON, decodes to the input, and pieces make the same as the whole.
func FuzzAppendString(f *testing.F) {
	seed(f, func(b []byte) { f.Add(string(b), uint(len(b)/2)) })
	f.Fuzz(func(t *testing.T, in string, a uint) {
		out := AppendString(nil, in)
		if !Valid(out) || !json.Valid(out) {
			t.Fatalf("invalid: %q", out)
		}
		got, ok := Text(out)
		if !ok || utf8.ValidString(in) && got != in {
			t.Fatalf("got %q, want %q", got, in)
		}
		if !utf8.ValidString(in) && (!utf8.ValidString(got) || strings.ToValidUTF8(in, "") != strings.ReplaceAll(got, replacement, "") && !strings.Contains(in, replacement)) {
			t.Fatalf("got %q for %q", got, in)
		}
		cut := int(a % uint(len(in)+1))
		if pieces := escapeCut([]byte(in), cut); pieces != string(out[1:len(out)-1]) {
			t.Fatalf("cut at %d: %q, want %q", cut, pieces, out)
		}
		var std string
		if err := json.Unmarshal(out, &std); err != nil || std != got {
			t.Fatalf("encoding/json reads %q (%v), want %q", std, err, got)
		}
	})
}
