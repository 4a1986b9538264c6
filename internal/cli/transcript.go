package cli

import (
	"bufio"
	"fmt"
	"hash/maphash"
	"strings"
	"time"
	"unicode/utf8"

	"rolltap/capture/trajectory"
	"rolltap/internal/jsonx"
)

// How much of a text is shown. Answers of the model are what one reads a transcript for, results and prompts mostly not.
const (
	systemLines, systemRunes = 6, 600
	userLines, userRunes     = 40, 4000
	thoughtLines             = 30
	resultLines, resultRunes = 8, 800
	answerLines, answerRunes = 200, 20000
	argRunes, callRunes      = 80, 240
	errorLines, errorRunes   = 6, 600
)

// transcript prints the calls of one rollout so that a person follows the conversation: of each call only what no earlier
// one has shown.
type transcript struct {
	c     *Console
	w     *bufio.Writer
	seed  maphash.Seed
	past  []conversation
	tools string // the tools that the last call offered
	day   string // of the last call
}

func newTranscript(c *Console, w *bufio.Writer) *transcript {
	return &transcript{c: c, w: w, seed: maphash.MakeSeed()}
}

// damaged prints a line that is no record.
func (t *transcript) damaged(number, line int, damage error) error {
	fmt.Fprintf(t.w, "%s  %s\n\n", t.c.paint(bold, fmt.Sprintf("call %d", number)),
		t.c.paint(red, fmt.Sprintf("line %d is damaged: %s", line, inertLine(damage.Error()))))
	return t.w.Flush()
}

// call prints one record. Its number counts from 1 like the lines of the file.
func (t *transcript) call(number int, c call) error {
	asked := trajectory.RequestItems(c.dialect, c.request)
	news, after := t.fresh(asked)
	t.head(number, c, after)
	t.offered(c.request)
	for _, it := range news {
		t.item(it)
	}
	if len(news) == 0 && len(asked) > 0 {
		t.block("", dim, "nothing new in the request", plain)
	}
	if c.rawRequest != nil {
		t.raw("user", "request that is no JSON object", c.rawRequest)
	}
	answer := trajectory.ResponseItems(c.dialect, c.response)
	for _, it := range answer {
		t.item(it)
	}
	t.ending(c, len(answer) > 0)
	t.remember(number, append(asked, answer...))
	fmt.Fprintln(t.w)
	return t.w.Flush()
}

func (t *transcript) head(number int, c call, after int) {
	p := t.c.paint
	parts := []string{p(bold, fmt.Sprintf("call %d", number))}
	add := func(s style, text string) {
		if text != "" {
			parts = append(parts, p(s, inertLine(text)))
		}
	}
	if !c.started.IsZero() {
		at := c.started.In(t.c.zone())
		layout := time.TimeOnly
		if day := at.Format(time.DateOnly); day != t.day {
			t.day, layout = day, time.DateTime
		}
		add(dim, at.Format(layout))
	}
	if c.upstreamDialect != "" && c.upstreamDialect != c.dialect {
		add(plain, c.dialect+" → "+c.upstreamDialect)
	} else {
		add(plain, c.dialect)
	}
	add(cyan, c.model)
	add(outcomeStyle(c.outcome), c.outcome)
	if c.finish != "" {
		add(plain, "finish "+c.finish)
	}
	if c.latency >= 0 {
		timing := took(c.latency)
		if c.stream && c.ttft >= 0 && c.status < 400 { // an error has a first byte
			timing += ", first token " + took(c.ttft)
		}
		add(plain, timing)
	}
	if c.prompt >= 0 || c.completion >= 0 {
		tokens := count(c.prompt) + " → " + count(c.completion) + " tokens"
		var of []string
		if c.cached > 0 {
			of = append(of, fmt.Sprintf("%d cached", c.cached))
		}
		if c.reasoning > 0 {
			of = append(of, fmt.Sprintf("%d reasoning", c.reasoning))
		}
		if of != nil {
			tokens += " (" + strings.Join(of, ", ") + ")"
		}
		add(plain, tokens)
	}
	if after > 0 {
		add(dim, fmt.Sprintf("goes on after call %d", after))
	}
	fmt.Fprintln(t.w, strings.Join(parts, "  "))
}

// offered names the tools of a request where they are others than before.
func (t *transcript) offered(request []byte) {
	var names []string
	for it := jsonx.Array(jsonx.Get(request, "tools")); it.Next(); {
		name := text(it.Value(), "name")
		for _, in := range []string{"function", "custom"} {
			if name == "" {
				name = text(jsonx.Get(it.Value(), in), "name")
			}
		}
		if name == "" {
			name = text(it.Value(), "type")
		}
		names = append(names, name)
	}
	tools := strings.Join(names, ", ")
	if tools != "" && tools != t.tools {
		cut, more := shorten(tools, 1, callRunes)
		if more {
			cut += fmt.Sprintf(" … (%d in all)", len(names))
		}
		t.block("tools", dim, cut, dim)
	}
	t.tools = tools
}

// ending says what went wrong with a call, or is not as one would think.
func (t *transcript) ending(c call, answered bool) {
	if c.failed() || c.category != "" {
		words := []string{c.outcome}
		if c.category != "" && c.category != c.outcome {
			words = append(words, c.category)
		}
		if c.status >= 0 {
			words = append(words, fmt.Sprintf("status %d", c.status))
		}
		if c.localReason != "" {
			words = append(words, "answered by rolltap: "+c.localReason)
		}
		line := strings.Join(words, ", ")
		if s := trajectory.ErrorText(c.response); s != "" {
			s, _ = shorten(s, errorLines, errorRunes)
			line += ": " + s
		}
		label, ls := "error", red
		if !c.failed() {
			label, ls = "note", yellow // the exchange went well; what was said did not
		}
		t.block(label, ls, line, ls)
	}
	if !answered && c.rawRes != nil && trajectory.ErrorText(c.response) == "" {
		t.raw("answer", "raw answer", c.rawRes)
	}
	if !answered && c.response == nil && c.rawRes == nil && !c.failed() {
		t.block("answer", dim, "(empty)", dim)
	}
	if c.losses != nil {
		t.block("losses", yellow, strings.Join(c.losses, ", "), plain)
	}
	if c.outlined > 0 {
		t.block("long", yellow, "a line of "+size(c.outlined)+": of texts beyond 16 KiB and of long lists only the beginning was read; --json has all of it", plain)
	}
	if c.truncated != nil {
		t.block("cut", yellow, "only the beginning was kept of: "+strings.Join(c.truncated, ", "), plain)
	}
}

func (t *transcript) raw(label, what string, raw []byte) {
	s, _ := jsonx.Text(raw)
	cut, _ := shorten(s, errorLines, errorRunes)
	t.block(label, yellow, fmt.Sprintf("(%s, %s)\n%s", what, size(int64(len(s))), cut), dim)
}

func (t *transcript) item(it trajectory.Item) {
	switch it.Kind {
	case trajectory.Thought:
		t.short("thinks", dim, it.Text, dim, thoughtLines, userRunes)
	case trajectory.Called:
		t.block("calls", magenta, callLine(it.Name, it.Text), plain)
	case trajectory.Returned:
		label, s, body := "result", yellow, it.Text
		if it.Bad {
			label, s = "failed", red
		}
		if it.Name != "" {
			body = it.Name + ": " + body
		}
		t.short(label, s, body, dim, resultLines, resultRunes)
	case trajectory.Attached, trajectory.Strange:
		t.block(it.Role, roleStyle(it.Role), "["+it.Text+"]", dim)
	default:
		s := plain
		if it.Bad {
			s = red
		}
		switch it.Role {
		case "system":
			t.short(it.Role, dim, it.Text, dim, systemLines, systemRunes)
		case "assistant":
			t.short(it.Role, green, it.Text, s, answerLines, answerRunes)
		default:
			t.short(it.Role, roleStyle(it.Role), it.Text, s, userLines, userRunes)
		}
	}
}

func roleStyle(role string) style {
	switch role {
	case "user":
		return blue
	case "assistant":
		return green
	}
	return yellow
}

// short prints a text up to a length, with a note of what is missing.
func (t *transcript) short(label string, ls style, body string, bs style, lines, runes int) {
	body = strings.Trim(body, "\n")
	cut, more := shorten(body, lines, runes)
	if more {
		cut += "\n… " + amount(body) + " in all"
	}
	if cut == "" {
		cut, bs = "(empty)", dim
	}
	t.block(label, ls, cut, bs)
}

// labelWidth is the column that labels stand in.
const labelWidth = 9

// block prints a label and beside it the lines of a text, made inert.
func (t *transcript) block(label string, ls style, body string, bs style) {
	label = inertLine(label)
	pad := strings.Repeat(" ", max(1, labelWidth+2-utf8.RuneCountInString(label)))
	lead := "  " + t.c.paint(ls, label) + pad
	for l := range strings.SplitSeq(inert(body), "\n") {
		for _, l := range wrap(l, t.c.Width-labelWidth-4) {
			fmt.Fprintln(t.w, strings.TrimRight(lead+t.c.paint(bs, l), " "))
			lead = strings.Repeat(" ", labelWidth+4)
		}
	}
}

// callLine writes a tool call as people write one: name(key=value, …), cut where it gets long.
func callLine(name, args string) string {
	raw := []byte(args)
	var b strings.Builder
	b.WriteString(name + "(")
	if !jsonx.ValidObject(raw) {
		cut, more := shorten(strings.TrimSpace(args), 1, callRunes)
		b.WriteString(cut)
		if more {
			b.WriteString(" … " + amount(args))
		}
		return b.String() + ")"
	}
	left := callRunes
	for i, it := 0, jsonx.Object(raw); it.Next(); i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		if left <= 0 {
			b.WriteString("… " + size(int64(len(args))))
			break
		}
		value := string(it.Value())
		cut, more := shorten(value, 1, argRunes)
		if more {
			cut += "… " + size(int64(len(value)))
		}
		key := string(jsonx.AppendUnquoted(nil, it.Key()))
		left -= utf8.RuneCountInString(key) + utf8.RuneCountInString(cut)
		b.WriteString(key + "=" + cut)
	}
	return b.String() + ")"
}
