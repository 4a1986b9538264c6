package rewrite

import (
	"strings"
	"testing"

	"rolltap/rewrite/canon"
)

// said is what parts were made of text that arrives in pieces: R(…) for reasoning, T(…) for text, C for a call.
func said(t testing.TB, events []canon.Event) string {
	t.Helper()
	var order []int
	parts := map[int]*strings.Builder{}
	open := map[int]bool{}
	for _, e := range events {
		switch e.Kind {
		case canon.Open:
			if parts[e.Part] != nil || e.Part != len(parts) {
				t.Fatalf("part %d opens after %d others", e.Part, len(parts))
			}
			b := &strings.Builder{}
			b.WriteString(map[canon.PartType]string{canon.TextPart: "T(", canon.ReasoningPart: "R(", canon.CallPart: "C("}[e.Type])
			parts[e.Part], open[e.Part] = b, true
			order = append(order, e.Part)
		case canon.Delta, canon.Seal, canon.Cite, canon.Close:
			if !open[e.Part] {
				t.Fatalf("part %d is not open", e.Part)
			}
			if e.Kind == canon.Delta {
				if len(e.Text) == 0 || !isInterior(e.Text) {
					t.Fatalf("no text: %q", e.Text)
				}
				parts[e.Part].Write(e.Text)
			}
			if e.Kind == canon.Close {
				open[e.Part] = false
			}
		}
	}
	s := ""
	for _, i := range order {
		s += parts[i].String() + ")"
		if open[i] {
			s += "…"
		}
	}
	return s
}

func textEvents(part int, pieces ...string) []canon.Event {
	events := []canon.Event{{Kind: canon.Open, Type: canon.TextPart, Part: part, ItemID: canon.Text("i")}}
	for _, p := range pieces {
		if p != "" {
			events = append(events, canon.Event{Kind: canon.Delta, Part: part, Text: canon.Text(p)})
		}
	}
	return append(events, canon.Event{Kind: canon.Close, Part: part})
}

func TestThinkTags(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"thinking and text", `<think>a</think>b`, `R(a)T(b)`},
		{"its white space", `<think>\na\n</think>\n\nb`, `R(\na\n)T(\n\nb)`},
		{"white space in front", ` \n<think>a</think>b`, `R( \na)T(b)`},
		{"escaped tags", `\u003cthink\u003ea\u003c/think\u003eb`, `R(a)T(b)`},
		{"an escaped slash", `<think>a<\/think>b`, `R(a)T(b)`},
		{"no tags", `Hello`, `T(Hello)`},
		{"nothing", ``, `T()`},
		{"white space alone", ` \n`, `T( \n)`},
		{"a late tag", `a <think>b</think>c`, `T(a <think>b</think>c)`},
		{"a second one", `<think>a</think>b<think>c</think>`, `R(a)T(b<think>c</think>)`},
		{"a lone closing tag", `a</think>b`, `T(a</think>b)`},
		{"never closed", `<think>a </thin`, `R(a </thin)`},
		{"nothing but thinking", `<think>a</think>`, `R(a)`},
		{"empty thinking", `<think></think>b`, `R()T(b)`},
		{"half a tag", `<thi`, `T(<thi)`},
		{"another tag", `<thing>a</thing>`, `T(<thing>a</thing>)`},
		{"almost closed", `<think>a<</</thin</think>b`, `R(a<</</thin)T(b)`},
		{"escapes around", `<think>\"\u00e9\ud83d\ude00\\</think>\\b`, `R(\"\u00e9\ud83d\ude00\\)T(\\b)`},
	} {
		for _, pieces := range [][]string{{tc.in}, splitUnits(tc.in)} {
			if got := said(t, through(t, &thinkParser{}, textEvents(0, pieces...)...)); got != tc.want {
				t.Errorf("%s, %d pieces: %s; want %s", tc.name, len(pieces), got, tc.want)
			}
		}
	}
}

func TestThinkTagsAreLive(t *testing.T) {
	f := &thinkParser{}
	for i, tc := range []struct{ in, want string }{{"<th", ""}, {"ink>a", "a"}, {"b <", "b "}, {"x", "<x"}, {"</think", ""}, {">c", "c"}, {"<think>", "<think>"}} {
		e := canon.Event{Kind: canon.Delta, Text: canon.Text(tc.in)}
		if i == 0 {
			through(t, f, canon.Event{Kind: canon.Open, Type: canon.TextPart})
		}
		got := ""
		for _, out := range through(t, f, e) {
			got += string(out.Text)
		}
		if got != tc.want {
			t.Errorf("%s gives %q; want %q", tc.in, got, tc.want)
		}
	}
}

func TestThinkTagsRenumberOtherParts(t *testing.T) {
	events := append(textEvents(0, "<think>a</think>b"), canon.Event{Kind: canon.Open, Part: 1, Type: canon.CallPart}, canon.Event{Kind: canon.Open, Part: 2, Type: canon.CallPart},
		canon.Event{Kind: canon.Delta, Part: 1, Text: canon.Text("{}")}, canon.Event{Kind: canon.Close, Part: 1}, canon.Event{Kind: canon.Close, Part: 2})
	events = append(events, textEvents(3, "<think>c</think>")...)
	if got := said(t, through(t, &thinkParser{}, events...)); got != `R(a)T(b)C({})C()R(c)` {
		t.Error(got)
	}
	// A text that is open while something else opens.
	f := &thinkParser{}
	out := through(t, f, textEvents(0, "<thi")[:2]...)
	out = append(out, through(t, f, canon.Event{Kind: canon.Open, Part: 1, Type: canon.CallPart}, canon.Event{Kind: canon.Delta, Text: canon.Text("nk>a")},
		canon.Event{Kind: canon.Fail, Problem: canon.Invalid("", "x")})...)
	if got := said(t, out); got != `C()…R(a)…` || out[len(out)-1].Kind != canon.Fail {
		t.Error(got)
	}
	f = &thinkParser{}
	out = through(t, f, textEvents(0, "<thi")[:2]...)
	out = append(out, through(t, f, canon.Event{Kind: canon.Fail, Problem: canon.Invalid("", "x")})...)
	if got := said(t, out); got != `T(<thi)…` || out[len(out)-1].Kind != canon.Fail || string(out[0].ItemID) != "i" {
		t.Errorf("what was held back is lost: %s", got)
	}
}

func TestThinkTagsKeepLogprobsWithText(t *testing.T) {
	f := &thinkParser{}
	out := through(t, f, canon.Event{Kind: canon.Open, Type: canon.TextPart}, canon.Event{Kind: canon.Delta, Text: canon.Text("<think>a"), Logprobs: canon.Raw("[1]")},
		canon.Event{Kind: canon.Delta, Text: canon.Text("</think>b"), Logprobs: canon.Raw("[2]")}, canon.Event{Kind: canon.Delta, Text: canon.Text("c"), Logprobs: canon.Raw("[3]")})
	got := ""
	for _, e := range out {
		got += string(e.Text) + string(e.Logprobs)
	}
	if got != "ab[2]c[3]" {
		t.Error(got)
	}
}

func FuzzThinkTags(f *testing.F) {
	for _, s := range []string{`<think>a</think>b`, ` \n<think>`, `</think>`, `<think>\u003c/think>`, `<\/think>`} {
		f.Add(s, uint16(3))
	}
	f.Fuzz(func(t *testing.T, text string, cut uint16) {
		if !isInterior([]byte(text)) {
			t.Skip()
		}
		whole := said(t, through(t, &thinkParser{}, textEvents(0, text)...))
		units := splitUnits(text)
		at := int(cut) % (len(units) + 1)
		for _, pieces := range [][]string{units, {strings.Join(units[:at], ""), strings.Join(units[at:], "")}} {
			if got := said(t, through(t, &thinkParser{}, textEvents(0, pieces...)...)); got != whole {
				t.Fatalf("%s in pieces, %s whole", got, whole)
			}
		}
	})
}
