package trajectory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestLongTexts: what is too long to be held is recognised as what is not, though it is spelled anew and stands in a line that is read
// in another way: an answer in a line that is read whole and in a history that is not, arguments of either length, the end of a text.
func TestLongTexts(t *testing.T) {
	words := strings.Repeat("größer, \"größer\"\n", 200<<10) // 4 MiB and more with its escapes
	half := words[:len("größer, \"größer\"\n")*60<<10]
	args := func(text, space string) string {
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return `{"path":` + space + `"a",` + space + `"content":` + space + string(b) + `}`
	}
	use := func(text string) any {
		return map[string]any{"type": "tool_use", "id": "t1", "name": "Write", "input": map[string]any{"path": "a", "content": text}}
	}
	for why, c := range map[string]struct {
		dialect      string
		first, again any // the answer, and as the history has it
		exact        bool
	}{
		"a text":                     {"chat", says(words), says("\n" + words + " "), true},
		"a text in a short line":     {"chat", says(half), says(half + "\n"), true},
		"a text that ends otherwise": {"chat", says(words), says(words + "."), false},
		"arguments":                  {"chat", calls("t1", "write", args(words, "")), calls("t1", "write", args(words, " ")), true},
		"shorter arguments":          {"chat", calls("t1", "write", args(half, "")), calls("t1", "write", args(half, "\t")), true},
		"other arguments":            {"chat", calls("t1", "write", args(words, "")), calls("t1", "write", args(words+".", "")), false},
		"arguments that are values":  {"messages", use(words), use(words), true},
		"shorter values":             {"messages", use(half), use(half), true},
	} {
		if raceDetector && why != "a text" && why != "shorter values" {
			continue // they take seconds each, and there is one goroutine
		}
		t.Run(why, func(t *testing.T) {
			s := newSession(t, c.dialect)
			pad := user(strings.Repeat("p", max(1, 5<<20-len(fmt.Sprint(c.again))))) // the line of the second call is long in any case
			switch c.dialect {
			case "messages":
				result := map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "t1", "content": "done"}}}
				s.call(talk(user("hi")), map[string]any{"content": []any{c.first}}, "ok")
				s.call(talk(user("hi"), map[string]any{"role": "assistant", "content": []any{c.again}}, result, pad), map[string]any{"content": "Seen."}, "ok")
			default:
				s.call(talk(user("hi")), reply(c.first), "ok")
				s.call(talk(user("hi"), c.again, pad), reply(says("Seen.")), "ok")
			}
			s.lines[1] = strings.ReplaceAll(s.lines[1], "ö", `\u00f6`)
			r := s.read()
			if exact := r.Calls[1].Parent == 0 && r.Calls[1].Exact; exact != c.exact {
				t.Fatalf("parent %d, exact %t, roles %s, gaps %s", r.Calls[1].Parent, r.Calls[1].Exact, roles(r), codes(r))
			}
			line, _ := s.chat(r)
			want := 2
			if !c.exact {
				want = 1
			}
			if n := line.learned(t); n != want {
				t.Fatalf("%d answers are to be learned", n)
			}
			if c.exact && c.dialect == "chat" { // whole, and as it was answered
				got, _ := json.Marshal(line.Messages[1])
				if len(got) < len(half) {
					t.Errorf("the answer became %d bytes", len(got))
				}
				if text, ok := c.first.(map[string]any)["content"].(string); ok && line.Messages[1].Content != text {
					t.Error("the answer is another one")
				}
			}
		})
	}
}

// TestTooLong: a call with more than can be compared is named, left out of the lines for training, and shown by its beginning.
func TestTooLong(t *testing.T) {
	for why, messages := range map[string]int{"in a short line": elementMax + 1, "in a long line": 110_000} {
		t.Run(why, func(t *testing.T) {
			s := newSession(t, "chat")
			s.call(talk(user("hi")), reply(says("Hello there, what can I do?")), "ok")
			many := []any{user("hi"), says("Hello there, what can I do?")}
			for len(many) < messages {
				many = append(many, user(strings.Repeat("on ", 20)))
			}
			s.call(talk(many...), reply(says("Enough.")), "ok")
			r := s.read()
			if roles(r) != "turn turn" || codes(r) != GapLong || !r.Calls[1].Long || r.Calls[1].Parent >= 0 {
				t.Fatalf("%s, gaps %s, %+v", roles(r), codes(r), r.Calls[1])
			}
			var told []string
			var b strings.Builder
			if _, err := r.WriteChat(&b, s.dir, func(l Left) { told = append(told, l.Reason) }); err != nil {
				t.Fatal(err)
			}
			if strings.Join(told, " ") != LeftLong || strings.Contains(b.String(), "Enough.") || !strings.Contains(b.String(), "Hello there") {
				t.Errorf("left out %q: %s", told, b.String())
			}
			b.Reset()
			if err := r.WriteJSON(&b, s.dir, true); err != nil {
				t.Fatal(err)
			}
			var out struct {
				Turns []struct{ Question, Answer any }
				Calls []struct{ Request, Response any } `json:"model_calls"`
			}
			if err := json.Unmarshal([]byte(b.String()), &out); err != nil {
				t.Fatal(err)
			}
			if out.Turns[1].Question != nil || out.Turns[1].Answer != nil || out.Calls[1].Request != nil || out.Calls[1].Response != nil || out.Calls[0].Request == nil {
				t.Errorf("%+v", out.Turns[1])
			}
		})
	}
}
