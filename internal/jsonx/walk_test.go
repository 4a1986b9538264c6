package jsonx

import (
	"fmt"
	"strings"
	"testing"
)

var walkCases = []struct{ name, in, want string }{
	{"no members", "{}", ""},
	{"no elements", " [ ] ", ""},
	{"members in order, duplicates too", `{"b":1,"a":2,"b":3}`, `b=1 a=2 b=3`},
	{"values of all kinds", `{"a":null,"b":true,"c":-1e5,"d":"x","e":[1,[2]],"f":{"g":{}}}`, `a=null b=true c=-1e5 d="x" e=[1,[2]] f={"g":{}}`},
	{"values are trimmed", "\t{ \"a\" : 1 ,\n\"b\" : [ 1 , 2 ] } ", `a=1 b=[ 1 , 2 ]`},
	{"names keep their escapes", `{"\u0061\"":1}`, `\u0061\"=1`},
	{"brackets in strings are text", `{"a":"}]{[\"","b":["]",{"}":"\\"}],"c":1}`, `a="}]{[\"" b=["]",{"}":"\\"}] c=1`},
	{"backslashes before the closing quote", `["\\","\\\\","\\\"",""]`, `"\\" "\\\\" "\\\"" ""`},
	{"quotes and backslashes at every place of three words", everyPlace(), everyPlace()[1 : len(everyPlace())-1]},
	{"elements", `[1, "a,b" , {"x":[1]},[]]`, `1 "a,b" {"x":[1]} []`},
	{"a number alone", `12`, ``},
	{"nothing", ``, ``},
}

// brokenCases are not valid; a walk over them only has to end.
var brokenCases = []struct{ name, in string }{
	{"an open brace", `{`},
	{"an open name", `{"`},
	{"a name alone", `{"a"`},
	{"a name and a colon", `{"a":`},
	{"an open value", `{"a":[1,{"b":"`},
	{"an open bracket", `[`},
	{"commas only", `[,,,]`},
	{"a trailing comma", `[1,`},
	{"a lone backslash", `"\`},
	{"a quote alone", `"`},
	{"closing brackets only", `[}]}`},
	{"a cut escape", `{"\u00":"\ud83d\u"}`},
}

// everyPlace is a list of one element, an object with an escaped quote and an escaped backslash behind 0, 1, 2 … other characters.
func everyPlace() string {
	text := `[{"":""`
	for n := range 26 {
		some := strings.Repeat("x", n)
		text += `,"` + some + `\\":"` + some + `\"}","` + some + `\"":"` + some + `\\"`
	}
	return text + "}]"
}

func walk(raw []byte) string {
	var parts []string
	for it := Object(raw); it.Next(); {
		parts = append(parts, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	for it := Array(raw); it.Next(); {
		parts = append(parts, string(it.Value()))
	}
	return strings.Join(parts, " ")
}

func TestWalk(t *testing.T) {
	for _, tc := range walkCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := walk([]byte(tc.in)); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestWalkEndsOnAnything(t *testing.T) {
	for _, tc := range brokenCases {
		t.Run(tc.name, func(t *testing.T) { exercise(t, []byte(tc.in)) })
	}
	for _, tc := range invalidCases {
		t.Run(tc.name, func(t *testing.T) { exercise(t, []byte(tc.in)) })
	}
}

// exercise calls everything that reads raw JSON.
func exercise(t testing.TB, raw []byte) {
	members, elements := 0, 0
	it := Object(raw)
	for it.Next() {
		members++
		Get(it.Value(), string(it.Key()))
		AppendUnquoted(nil, it.Key())
	}
	at := Array(raw)
	for at.Next() {
		elements++
		Text(at.Value())
	}
	if members > len(raw) || elements > len(raw) || it.Next() || at.Next() {
		t.Errorf("%d members and %d elements in %d bytes, or a walk that goes on after its end", members, elements, len(raw))
	}
	Get(raw, "a")
	Interior(raw)
	Text(raw)
	Int(raw)
	KindOf(raw)
	IsNull(raw)
	Truthy(raw)
	AppendUnquoted(nil, raw)
}

func TestGet(t *testing.T) {
	for _, tc := range []struct{ name, in, key, want string }{
		{"the last of two counts", `{"a":1,"b":2,"a":3}`, "a", "3"},
		{"the last of two counts when spelled differently", `{"a":1,"\u0061":2}`, "a", "2"},
		{"an escaped name", `{"a\n\u00e9\ud83d\ude00":1}`, "a\né😀", "1"},
		{"a name with a lone surrogate", `{"\ud800":1}`, "\ufffd", "1"},
		{"an escaped name that is longer", `{"a\nb":1}`, "a\n", ""},
		{"an escaped name that is shorter", `{"a\n":1}`, "a\nb", ""},
		{"an empty name", `{"":1}`, "", "1"},
		{"null is a value", `{"a":null}`, "a", "null"},
		{"only the outermost members", `{"b":{"a":1}}`, "a", ""},
		{"absent", `{"b":1}`, "a", ""},
		{"in an array", `["a",1]`, "a", ""},
		{"in nothing", ``, "a", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Get([]byte(tc.in), tc.key)
			var all [2][]byte
			GetAll([]byte(tc.in), []string{"no such key", tc.key}, all[:])
			if string(all[1]) != string(got) || all[0] != nil {
				t.Errorf("GetAll finds %q and %q, Get %q", all[0], all[1], got)
			}
			if string(got) != tc.want || (got == nil) != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWalkAllocatesNothing(t *testing.T) {
	in := agentRequest(20 << 10)
	var sum int64
	if n := testing.AllocsPerRun(10, func() {
		for it := Array(Get(in, "messages")); it.Next(); {
			content, _ := Interior(Get(it.Value(), "content"))
			sum += int64(len(content))
		}
		limit, _ := Int([]byte("12"))
		sum += limit
	}); n != 0 || sum == 0 {
		t.Errorf("%v allocations, %d bytes", n, sum)
	}
}

func TestScalars(t *testing.T) {
	for _, tc := range []struct {
		in      string
		kind    Kind
		null    bool
		truthy  bool
		integer int64
		isInt   bool
	}{
		{in: "", null: true},
		{in: " ", null: true},
		{in: "null", kind: KindNull, null: true},
		{in: " null ", kind: KindNull, null: true},
		{in: "true", kind: KindBool, truthy: true},
		{in: "false", kind: KindBool},
		{in: "0", kind: KindNumber, isInt: true},
		{in: "-0", kind: KindNumber, isInt: true},
		{in: "0.00", kind: KindNumber},
		{in: "0e5", kind: KindNumber},
		{in: "0.001", kind: KindNumber, truthy: true},
		{in: "1e0", kind: KindNumber, truthy: true},
		{in: " 42\n", kind: KindNumber, truthy: true, integer: 42, isInt: true},
		{in: "-7", kind: KindNumber, truthy: true, integer: -7, isInt: true},
		{in: "1.0", kind: KindNumber, truthy: true},
		{in: "9223372036854775807", kind: KindNumber, truthy: true, integer: 1<<63 - 1, isInt: true},
		{in: "9223372036854775808", kind: KindNumber, truthy: true},
		{in: "-9223372036854775808", kind: KindNumber, truthy: true, integer: -1 << 63, isInt: true},
		{in: "-9223372036854775809", kind: KindNumber, truthy: true},
		{in: "92233720368547758070", kind: KindNumber, truthy: true},
		{in: "-", kind: KindNumber},
		{in: "01", kind: KindNumber, truthy: true},
		{in: `""`, kind: KindString},
		{in: `"0"`, kind: KindString, truthy: true},
		{in: "[]", kind: KindArray},
		{in: " [ ] ", kind: KindArray},
		{in: "[0]", kind: KindArray, truthy: true},
		{in: "{\n}", kind: KindObject},
		{in: `{"a":0}`, kind: KindObject, truthy: true},
		{in: "x"},
	} {
		t.Run(tc.in, func(t *testing.T) {
			raw := []byte(tc.in)
			n, ok := Int(raw)
			if KindOf(raw) != tc.kind || IsNull(raw) != tc.null || Truthy(raw) != tc.truthy || n != tc.integer || ok != tc.isInt {
				t.Errorf("kind %d, null %v, truthy %v, int %d %v", KindOf(raw), IsNull(raw), Truthy(raw), n, ok)
			}
		})
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", `"abc"`, "abc"},
		{"with space around", ` "abc" `, "abc"},
		{"empty", `""`, ""},
		{"short escapes", `"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{"unicode escapes", `"\u0041\u00e9\u6771"`, "Aé東"},
		{"a surrogate pair", `"x\uD83D\uDE00y"`, "x😀y"},
		{"a lone high surrogate keeps what follows", `"\ud800A"`, "\ufffdA"},
		{"a lone high surrogate before another escape", `"\ud800\u0041"`, "\ufffdA"},
		{"two high surrogates, the second with its pair", `"\ud83d\ud83d\ude00"`, "\ufffd😀"},
		{"a lone low surrogate", `"\ude00\ud83d"`, "\ufffd\ufffd"},
		{"an escaped backslash before u", `"\\ud800"`, `\ud800`},
		{"raw UTF-8", `"é東😀"`, "é東😀"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, ok := Text([]byte(tc.in)); !ok || got != tc.want {
				t.Errorf("Text: %q, %v; want %q", got, ok, tc.want)
			}
			d, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Release()
			if got := d.Root().Str(); got != tc.want {
				t.Errorf("Str: %q, want %q", got, tc.want)
			}
		})
	}
	for _, in := range []string{"", "1", "null", `"`, `"a`, `{"a":1}`} {
		if got, ok := Text([]byte(in)); ok {
			t.Errorf("%q is no string, got %q", in, got)
		}
	}
}
