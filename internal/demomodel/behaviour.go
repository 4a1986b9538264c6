package demomodel

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// plan is what the model is going to say, before it is cut by anything.
type plan struct {
	reasoning string // with its newlines; empty: no think block
	content   string
	calls     []plannedCall
}

type plannedCall struct{ name, arguments string }

// variant is the plan of the choice i: texts of several choices differ, unless
// they have to be calls or JSON.
func (p plan) variant(r *request, i int) plan {
	if i > 0 && len(p.calls) == 0 && r.ResponseFormat == nil {
		p.content += " (" + strconv.Itoa(i+1) + ")"
	}
	return p
}

var (
	wantsWords = regexp.MustCompile(`(?i)\b(\d{1,6}) (?:words|tokens)\b`)
	wantsCount = regexp.MustCompile(`(?i)\bcount to (\d{1,5})\b`)
	wantsThink = regexp.MustCompile(`(?i)\b(?:think|why|reason|reasoning)\b`)
	wantsTool  = regexp.MustCompile(`(?i)\b(?:tools?|weather|parallel|twice)\b`)
	wantsTwo   = regexp.MustCompile(`(?i)\b(?:parallel|twice|both)\b`)
	safeTool   = regexp.MustCompile(`(?i)get|read|list|search|weather|view|glob`)
)

// unicodeText has everything that framing and escaping get wrong: characters of
// two to four bytes, a combining accent, an escape sequence, U+2028 and quotes.
const unicodeText = "héllo 世界 🙂 e\u0301 \x1b[31mred\x1b[0m \"quoted\" back\\slash\u2028line\ttab end"

// decide reads the request as doc.go describes.
func decide(r *request) plan {
	asked := lastUserText(r)
	var p plan
	think := thinks(r, asked)
	choice, named := r.toolChoice()
	answering := len(r.Messages) > 0 && r.Messages[len(r.Messages)-1].Role == "tool"

	var t *tool
	switch {
	case choice == choiceNamed:
		t = named
	case choice == choiceRequired && len(r.Tools) > 0:
		t = chooseTool(r.Tools, asked)
	case choice == choiceAuto && len(r.Tools) > 0 && !answering && asksForTool(r.Tools, asked):
		t = chooseTool(r.Tools, asked)
	}
	switch {
	case r.ContinueFinal:
		// The text goes on where the client's began, so there is no room for thoughts.
		return plan{content: " and so on."}
	case t != nil:
		n := 1
		if wantsTwo.MatchString(asked) && (r.Parallel == nil || *r.Parallel) {
			n = 2
		}
		for i := range n {
			m := maker{names: capitalised(asked), call: i}
			p.calls = append(p.calls, plannedCall{t.Function.Name, m.arguments(t.Function.Parameters)})
		}
		if think {
			p.reasoning = "\nI need the tool " + t.Function.Name + " for this.\n"
		} else if choice == choiceAuto {
			p.content = "Let me check." // enforced calls leave no room for a text
		}
	case answering:
		p.content = "The tool says: " + clip(r.Messages[len(r.Messages)-1].Content.Text, 80)
		if think {
			p.reasoning = "\nThe tool has answered. I can tell the user.\n"
		}
	default:
		p.content = r.answerText(asked)
		if think {
			p.reasoning = "\nThe user wants a short answer. I know this.\n"
		}
	}
	return p
}

func (r *request) answerText(asked string) string {
	lower := strings.ToLower(asked)
	if f := r.ResponseFormat; f != nil && f.Type == "json_schema" {
		m := maker{names: capitalised(asked), root: f.JSONSchema.Schema}
		return string(m.value(nil, f.JSONSchema.Schema, "", 0))
	} else if f != nil && f.Type == "json_object" {
		return `{"answer": "demo"}`
	}
	if echo(asked) {
		return strings.TrimPrefix(asked[len("echo:"):], " ")
	}
	if m := wantsWords.FindStringSubmatch(asked); m != nil {
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(" word", n) // one token each
	}
	if m := wantsCount.FindStringSubmatch(asked); m != nil {
		n, _ := strconv.Atoi(m[1])
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.Itoa(i + 1))
		}
		return b.String()
	}
	switch {
	case strings.Contains(lower, "unicode"):
		return unicodeText
	case strings.Contains(lower, "capital of france"):
		return "The capital of France is Paris."
	case strings.Contains(lower, "sky"):
		return "The sky is blue because air scatters short blue waves of sunlight more than long red ones."
	}
	return "This is the demo model. You said: " + clip(asked, 60)
}

func echo(asked string) bool {
	return len(asked) >= len("echo:") && strings.EqualFold(asked[:len("echo:")], "echo:")
}

// thinks tells whether the answer starts with reasoning.
func thinks(r *request, asked string) bool {
	if e := r.TemplateKwargs.EnableThinking; e != nil {
		return *e
	}
	if r.ReasoningEffort != "" {
		return r.ReasoningEffort != "none"
	}
	// The words of a text that is only to be repeated mean nothing.
	return r.ThinkingBudget != nil || wantsThink.MatchString(asked) && !echo(asked)
}

func asksForTool(tools []tool, asked string) bool {
	return wantsTool.MatchString(asked) || mentioned(tools, asked) != nil
}

// chooseTool takes the tool that the message names, else one that looks as if it
// only reads, else the first.
func chooseTool(tools []tool, asked string) *tool {
	if t := mentioned(tools, asked); t != nil {
		return t
	}
	for i := range tools {
		if safeTool.MatchString(tools[i].Function.Name) {
			return &tools[i]
		}
	}
	return &tools[0]
}

func mentioned(tools []tool, asked string) *tool {
	for i := range tools {
		// A name that is also an ordinary word would be "mentioned" all the time.
		if name := tools[i].Function.Name; strings.ContainsAny(name, "_-.") && strings.Contains(asked, name) {
			return &tools[i]
		}
	}
	return nil
}

func lastUserText(r *request) string {
	if i := lastUser(r.Messages); i < len(r.Messages) {
		return r.Messages[i].Content.Text
	}
	return ""
}

// capitalised lists the words with a capital inside sentences: names, mostly.
func capitalised(text string) (names []string) {
	for i, w := range strings.Fields(text) {
		w = strings.TrimFunc(w, unicode.IsPunct)
		if i > 0 && w != "" && w != "I" && unicode.IsUpper([]rune(w)[0]) {
			names = append(names, w)
		}
	}
	return names
}

// clip shortens a text to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
