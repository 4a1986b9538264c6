package rewrite

import (
	"strings"
	"unicode/utf8"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// Notes are texts in the place of history that an upstream has no form for. The same history makes the same notes, byte for byte, so that
// prompts keep their prefix from turn to turn.

// maxNote is how much of one hosted item is told.
const maxNote = 4000

// hostedNote tells of a tool that another provider has run: its name, and what of it can be read.
//
//	[web_search_call: query: cats; url: https://…]
func hostedNote(raw canon.Raw) canon.Text {
	name, ok := jsonx.Interior(jsonx.Get(raw, "type"))
	if !ok {
		name = jsonx.AppendEscaped(nil, []byte(typeOf(raw)))
	}
	note := append(canon.Text{'['}, name...)
	w := noteWriter{text: note, left: maxNote}
	w.walk("", raw, 0)
	return append(w.text, ']')
}

// noteWriter collects what can be read.
type noteWriter struct {
	text canon.Text
	left int
	some bool
}

// readable are members that a reader understands; the rest are ids, states and encrypted or encoded contents.
func readable(key string) bool {
	switch key {
	case "name", "server_label", "tool_name", "query", "queries", "pattern", "url", "title", "filename", "path", "command", "commands", "code", "arguments",
		"input", "text", "content", "output", "logs", "stdout", "stderr", "error", "error_code", "message":
		return true
	}
	return false
}

func (w *noteWriter) walk(key string, raw canon.Raw, depth int) {
	if depth > 8 || w.left <= 0 {
		return
	}
	switch jsonx.KindOf(raw) {
	case jsonx.KindObject:
		for it := jsonx.Object(raw); it.Next(); {
			inner := plainText(it.Key())
			if key == "input" && depth > 0 && !readable(inner) {
				inner = key // an argument of a call, whatever it is called
			}
			w.walk(inner, it.Value(), depth+1)
		}
	case jsonx.KindArray:
		for it := jsonx.Array(raw); it.Next(); {
			w.walk(key, it.Value(), depth+1)
		}
	case jsonx.KindString:
		if s, _ := jsonx.Interior(raw); len(s) > 0 && readable(key) {
			w.add(key, s)
		}
	}
}

func (w *noteWriter) add(key string, s canon.Text) {
	if w.some {
		w.text = append(w.text, "; "...)
	} else {
		w.text = append(w.text, ": "...)
	}
	w.some = true
	w.text = append(w.text, key...)
	w.text = append(w.text, ": "...)
	cut := cutText(s, w.left)
	w.text = append(w.text, cut...)
	if len(cut) < len(s) {
		w.text = append(w.text, "…"...)
	}
	w.left -= len(cut)
}

// cutText is the beginning of s, at most most bytes, that ends in no escape and no character.
func cutText(s canon.Text, most int) canon.Text {
	if len(s) <= most {
		return s
	}
	end, whole := 0, 0 // whole is the last end that is not inside a surrogate pair
	for end < len(s) {
		_, n := unit(s[end:])
		if s[end] >= utf8.RuneSelf {
			_, n = utf8.DecodeRune(s[end:])
		}
		if end+n > most {
			break
		}
		if end += n; n != 6 || !isHigh(hex4(s[end-4:end])) {
			whole = end
		}
	}
	return s[:whole]
}

// callNote tells of an earlier call of a custom tool that the upstream does not have.
func callNote(c *canon.Call) canon.Text {
	name := c.Name
	note := append(canon.Text("[Called the tool "), name...)
	note = append(note, ` with this input]\n`...)
	return append(note, c.Arguments...)
}

// resultAsText makes a message of the user of a custom tool's result.
func resultAsText(m canon.Message, p *canon.Part) canon.Message {
	parts := []canon.Part{{Type: canon.TextPart, Text: canon.Text(`[Result of the tool]\n`), Path: p.Path}}
	for _, part := range p.Result.Parts {
		if last := &parts[len(parts)-1]; part.Type == canon.TextPart && len(parts) == 1 {
			last.Text = append(append(canon.Text{}, last.Text...), part.Text...)
			continue
		}
		parts = append(parts, part)
	}
	return canon.Message{Role: canon.User, Parts: parts, Plain: len(parts) == 1, Path: strings.TrimSuffix(m.Path, ".content")}
}
