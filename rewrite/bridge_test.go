package rewrite

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/quick"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// through runs events through a filter, each with buffers of its own.
func through(t testing.TB, f filter, events ...canon.Event) (out []canon.Event) {
	t.Helper()
	for i := range events {
		var err error
		if out, err = f.next(out, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// unbridged is the free text of a custom call whose arguments arrive in pieces.
func unbridged(t testing.TB, pieces ...string) (input string, losses []canon.Loss) {
	t.Helper()
	names := newToolNames([]canon.Tool{custom("", "exec")})
	names.bridged = true
	var l canon.Losses
	f := &unbridge{names: names, l: &l}
	events := []canon.Event{{Kind: canon.Open, Type: canon.CallPart, Part: 2, Call: canon.Call{ID: canon.Text("c"), Name: canon.Text("exec")}}}
	for _, p := range pieces {
		if p != "" {
			events = append(events, canon.Event{Kind: canon.Delta, Part: 2, Text: canon.Text(p)})
		}
	}
	out := through(t, f, append(events, canon.Event{Kind: canon.Close, Part: 2})...)
	if c := out[0].Call; !c.Custom || string(c.Name) != "exec" || string(c.ID) != "c" {
		t.Fatalf("no custom call: %+v", c)
	}
	if out[len(out)-1].Kind != canon.Close {
		t.Fatalf("not closed: %+v", out)
	}
	for _, e := range out[1 : len(out)-1] {
		if e.Kind != canon.Delta || e.Part != 2 || len(e.Text) == 0 || !isInterior(e.Text) {
			t.Fatalf("no delta: %+v %q", e, e.Text)
		}
		input += string(e.Text)
	}
	return input, l.List()
}

// splitUnits cuts a text between characters.
func splitUnits(s string) (units []string) {
	for len(s) > 0 {
		_, n := unit([]byte(s))
		for n < len(s) && s[n]&0xc0 == 0x80 {
			n++
		}
		units = append(units, s[:n])
		s = s[n:]
	}
	return units
}

func TestUnbridge(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		whole          bool
	}{
		{"plain", `{\"input\":\"abc\"}`, `abc`, true},
		{"empty", `{\"input\":\"\"}`, ``, true},
		{"white space everywhere", ` {\n \"input\" :\t\"a\" }\n`, `a`, true},
		{"quotes and backslashes", `{\"input\":\"a \\\"b\\\" \\\\ \\/\"}`, `a \"b\" \\ \/`, true},
		{"a line feed", `{\"input\":\"*** Begin Patch\\n*** End Patch\"}`, `*** Begin Patch\n*** End Patch`, true},
		{"a raw line feed", `{\"input\":\"a\nb\"}`, `a\nb`, true},
		{"raw letters", `{\"input\":\"é東\"}`, `é東`, true},
		{"escapes of letters", `{\"input\":\"\\u00e9\\ud83d\\ude00\"}`, `\u00e9\ud83d\ude00`, true},
		{"escapes in the outer string", `{\u0022input\u0022:\"\u00e9\ud83d\ude00\u003c\"}`, `\u00e9\ud83d\ude00\u003c`, true},
		{"half a surrogate pair", `{\"input\":\"\\ud83dx\\ud83d\\n\\ud83d\"}`, `\ud83dx\ud83d\n\ud83d`, true},
		{"two high surrogates", `{\"input\":\"\\ud83d\\ud83d\\ude00\"}`, `\ud83d\ud83d\ude00`, true},
		{"no arguments", ``, ``, true},
		{"an unknown escape", `{\"input\":\"\\d+ \\u12g\"}`, `\\d+ \\u12g`, false},
		{"more members", `{\"input\":\"a\",\"b\":1}`, `a`, false},
		{"another member", `{\"command\":\"a\"}`, `{\"command\":\"a\"}`, false},
		{"another member first", `{\"inp\":1,\"input\":\"a\"}`, `{\"inp\":1,\"input\":\"a\"}`, false},
		{"no string", `{\"input\":[1]}`, `{\"input\":[1]}`, false},
		{"an empty object", `{}`, `{}`, false},
		{"free text", `ls -la\n`, `ls -la\n`, false},
		{"cut in front", `{\"inp`, `{\"inp`, false},
		{"cut inside", `{\"input\":\"ab`, `ab`, false},
		{"cut inside an escape", `{\"input\":\"ab\\`, `ab\\`, false},
		{"cut inside a pair", `{\"input\":\"ab\\ud83d\\ud`, `ab\ud83d\\ud`, false},
		{"cut behind", `{\"input\":\"ab\"`, `ab`, false},
		{"something behind", `{\"input\":\"ab\"} x`, `ab`, false},
	} {
		for _, pieces := range [][]string{{tc.in}, splitUnits(tc.in)} {
			got, losses := unbridged(t, pieces...)
			if got != tc.want || (len(losses) == 0) != tc.whole {
				t.Errorf("%s, %d pieces: %s %v; want %s", tc.name, len(pieces), got, losses, tc.want)
			}
			if !tc.whole && (len(losses) != 1 || losses[0] != canon.Loss{Path: "output[2].arguments", Reason: canon.NoEquivalent}) {
				t.Errorf("%s: %v", tc.name, losses)
			}
		}
	}
}

func TestUnbridgeIsTheReverse(t *testing.T) {
	f := func(text string, cut uint16) bool {
		in := jsonx.AppendEscaped(nil, []byte(text))
		units := splitUnits(string(bridgeArguments(in)))
		at := int(cut) % (len(units) + 1)
		got, losses := unbridged(t, strings.Join(units[:at], ""), strings.Join(units[at:], ""))
		return got == string(in) && losses == nil
	}
	if err := quick.Check(f, nil); err != nil {
		t.Error(err)
	}
}

// FuzzUnbridge: however the arguments are split, the input is the same, and it is the text that a JSON reader finds.
func FuzzUnbridge(f *testing.F) {
	for _, s := range []string{`{"input":"a"}`, `{"input":"a\n\"b\" é \ud83d\ude00"}`, `{ "input" : "x" } `, `{"input":1}`, `{"input":"a","b":2}`, `{"input":"\ud83d"}`, `{"input":"\q"}`, "*** Begin Patch\n", `{"input":"\u00`} {
		f.Add(s, uint16(3), uint16(9))
	}
	f.Fuzz(func(t *testing.T, arguments string, a, b uint16) {
		interior := string(jsonx.AppendEscaped(nil, []byte(arguments)))
		arguments = plainText(canon.Text(interior)) // what is no UTF-8 was replaced
		whole, lost := unbridged(t, interior)
		units := splitUnits(interior)
		i, j := int(a)%(len(units)+1), int(b)%(len(units)+1)
		i, j = min(i, j), max(i, j)
		for _, pieces := range [][]string{units, {strings.Join(units[:i], ""), strings.Join(units[i:j], ""), strings.Join(units[j:], "")}} {
			if got, losses := unbridged(t, pieces...); got != whole || len(losses) != len(lost) {
				t.Fatalf("%q is %s %v in pieces and %s %v whole", arguments, got, losses, whole, lost)
			}
		}
		var read map[string]any
		if dec := json.Unmarshal([]byte(arguments), &read); dec == nil && len(read) == 1 && len(lost) == 0 {
			want, _ := jsonx.Text(jsonx.Get([]byte(arguments), "input"))
			if got := plainText(canon.Text(whole)); got != want {
				t.Fatalf("%q is %q; want %q", arguments, got, want)
			}
		}
	})
}

func TestUnbridgeRestoresNamespaces(t *testing.T) { // vector 47
	names := newToolNames([]canon.Tool{function("mcp__weather", "get_weather"), custom("n", "exec")})
	f := &unbridge{names: names}
	out := through(t, f,
		canon.Event{Kind: canon.Open, Type: canon.CallPart, Call: canon.Call{Name: canon.Text("mcp__weather__get_weather")}},
		canon.Event{Kind: canon.Delta, Text: canon.Text(`{\"a\":1}`)}, canon.Event{Kind: canon.Close},
		canon.Event{Kind: canon.Open, Type: canon.CallPart, Part: 1, Call: canon.Call{Name: canon.Text("n__exec"), Custom: true}},
		canon.Event{Kind: canon.Delta, Part: 1, Text: canon.Text(`ls`)}, canon.Event{Kind: canon.Close, Part: 1})
	if len(out) != 6 || string(out[0].Call.Namespace) != "mcp__weather" || string(out[0].Call.Name) != "get_weather" || out[0].Call.Custom || string(out[1].Text) != `{\"a\":1}` {
		t.Errorf("%+v", out)
	}
	if c := out[3].Call; string(c.Namespace) != "n" || string(c.Name) != "exec" || !c.Custom || string(out[4].Text) != "ls" {
		t.Errorf("a custom call of the upstream's own: %+v", c)
	}
}

func TestFiltersThatHaveNothingToDo(t *testing.T) {
	p := policyWith(func(p *Policy) { p.ThinkTags = "parse" })
	names := newToolNames([]canon.Tool{function("n", "f")})
	all := p.filters(&canon.Request{From: canon.Messages}, names, nil)
	if len(all) != 3 {
		t.Fatalf("%d filters", len(all))
	}
	if off := DefaultPolicy(); off.filters(&canon.Request{From: canon.Responses}, nil, nil) != nil {
		t.Error("filters that nobody needs")
	}
	open := []canon.Event{{Kind: canon.Start}, {Kind: canon.Open, Type: canon.TextPart}, {Kind: canon.Delta, Text: canon.Text("Hello")}, {Kind: canon.Open, Part: 1, Type: canon.CallPart, Call: canon.Call{Name: canon.Text("g")}}}
	dst := make([]canon.Event, 0, 16)
	for _, f := range all {
		through(t, f, open...)
		for _, e := range []canon.Event{{Kind: canon.Delta, Text: canon.Text(`a \n <b>`)}, {Kind: canon.Delta, Part: 1, Text: canon.Text("{}")}, {Kind: canon.Ping}} {
			if n := testing.AllocsPerRun(10, func() { dst, _ = f.next(dst[:0], &e) }); n > 0 || len(dst) != 1 {
				t.Errorf("%T: %v allocations for %+v, %d events", f, n, e, len(dst))
			}
		}
	}
}
