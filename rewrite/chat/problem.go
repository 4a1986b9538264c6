package chat

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

func (chat) ReadError(status int, body []byte) *canon.Problem {
	p := readProblem(status, body)
	if p.Status == 0 {
		p.Status = 502
	}
	return p
}

// IsError: {"error": …}, {"object":"error", …} and {"detail": …} come with any status from some.
func (chat) IsError(body []byte) bool {
	var top [4][]byte
	jsonx.GetAll(body, []string{"error", "object", "detail", "choices"}, top[:])
	return !jsonx.IsNull(top[0]) || isFlatError(top[1]) || jsonx.IsNull(top[3]) && !fold.Blank(top[2])
}

// readProblem reads an error body or frame, any bytes, in the shapes of wire.md 1.7 and 2.1:
//
//	{"error":{"message","type","param","code"}}   code a number, a word or null
//	{"object":"error","message","type","param","code"}
//	{"error":"Unauthorized"}   {"detail":"Not Found"}   {"detail":[{"loc":[…],"msg":"…"}]}
//
// The status is 0 when the given one is no error status and the body stands for none.
func readProblem(status int, body []byte) *canon.Problem {
	if status < 400 || status > 599 {
		status = 0
	}
	raw, _ := fold.Open(body)
	object := raw
	if inner := jsonx.Get(raw, "error"); jsonx.KindOf(inner) == jsonx.KindObject {
		object = inner
	}
	var members [6][]byte
	jsonx.GetAll(object, []string{"message", "type", "param", "code", "error", "detail"}, members[:])
	code := members[3]
	p := &canon.Problem{Status: status}
	p.Type, _ = jsonx.Text(members[1])
	p.Param, _ = jsonx.Text(members[2])
	p.Code, _ = jsonx.Text(code)
	if p.Status == 0 {
		p.Status = dialect.ErrorStatus(code, members[1])
	}
	for _, said := range [][]byte{members[0], members[4], members[5]} {
		if p.Message = spoken(said); p.Message != "" {
			break
		}
	}
	if p.Message == "" {
		p.Message = silent(status, body, raw != nil)
	}
	p.Message = presentable(p.Message)
	if isOverflow(p) {
		p.Code = canon.CodeOverflow
		if p.Status == 0 {
			p.Status = 400
		}
	}
	return p
}

// spoken is the words in a member: text, or FastAPI's list of {"loc","msg"}.
func spoken(raw []byte) string {
	if jsonx.KindOf(raw) != jsonx.KindArray {
		text, _ := jsonx.Text(raw)
		return strings.TrimSpace(text)
	}
	var b strings.Builder
	for it := jsonx.Array(raw); it.Next() && b.Len() < maxMessage; {
		msg, ok := jsonx.Text(jsonx.Get(it.Value(), "msg"))
		if !ok {
			if msg, ok = jsonx.Text(it.Value()); !ok {
				continue
			}
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		first := true
		for loc := jsonx.Array(jsonx.Get(it.Value(), "loc")); loc.Next(); first = false {
			if !first {
				b.WriteByte('.')
			}
			if name, ok := jsonx.Text(loc.Value()); ok {
				b.WriteString(name)
			} else {
				b.Write(loc.Value())
			}
		}
		if !first {
			b.WriteString(": ")
		}
		b.WriteString(msg)
	}
	return b.String()
}

const (
	maxMessage = 8 << 10
	maxExcerpt = 200
)

// silent is the message for a body without one: short plain text is quoted, pages and other formats are not.
func silent(status int, body []byte, isJSON bool) string {
	message := "the upstream failed"
	if status != 0 {
		message = "the upstream answered " + strconv.Itoa(status)
	}
	if text := bytes.TrimSpace(body); !isJSON && isWords(text) {
		if len(text) > maxExcerpt {
			text = append(cut(text, maxExcerpt), "…"...)
		}
		message += ": " + string(text)
	}
	return message
}

// isWords tells plain text from pages, JSON and bytes.
func isWords(text []byte) bool {
	if len(text) == 0 || bytes.IndexByte([]byte(`<{["`), text[0]) >= 0 || !utf8.Valid(text) {
		return false
	}
	return bytes.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }) < 0
}

// cut is the first bytes of text, whole characters; appending to it does not change the rest.
func cut(text []byte, most int) []byte {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most:most]
}

// presentable bounds a message and takes addresses out of it: clients are not told where the upstream is.
func presentable(message string) string {
	if len(message) > maxMessage {
		message = string(append(cut([]byte(message), maxMessage), "…"...))
	}
	if !strings.Contains(message, "://") {
		return message
	}
	var b strings.Builder
	for {
		i := strings.Index(message, "://")
		if i < 0 {
			b.WriteString(message)
			return b.String()
		}
		scheme := i
		for scheme > 0 && isLetter(message[scheme-1]) {
			scheme--
		}
		end := i + len("://")
		for end < len(message) && !strings.ContainsRune(" \t\r\n\"'`<>(){}[],;", rune(message[end])) {
			end++
		}
		if word := message[scheme:i]; strings.EqualFold(word, "http") || strings.EqualFold(word, "https") {
			b.WriteString(message[:scheme])
			b.WriteString("[url]")
		} else {
			b.WriteString(message[:end])
		}
		message = message[end:]
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isOverflow recognises a prompt that is too long by evidence (dialects.md 1.15.2; the texts: wire.md 1.7 and 2.1). A refusal that merely
// names max_tokens is none.
func isOverflow(p *canon.Problem) bool {
	if p.Status != 0 && p.Status != 400 && p.Status != 413 {
		return false
	}
	if p.Code == canon.CodeOverflow || p.Type == "exceed_context_size_error" {
		return true
	}
	text := strings.ToLower(p.Message)
	for _, words := range []string{"maximum context length", "max_model_len", "context window", "prompt is too long", "model's context length", "available context size"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	if i := strings.Index(text, "input length"); i >= 0 && strings.Contains(text[i:], "exceeds") {
		return true
	}
	switch p.Param {
	case "input_tokens", "max_tokens", "max_completion_tokens":
		return countsTokens(text)
	}
	return false
}

// countsTokens: a number and then "tokens", maybe "input tokens".
func countsTokens(text string) bool {
	words := strings.Fields(text)
	for i, word := range words {
		if _, err := strconv.Atoi(strings.Trim(word, "(),.")); err != nil {
			continue
		}
		for _, next := range words[i+1 : min(len(words), i+3)] {
			if strings.HasPrefix(next, "tokens") {
				return true
			}
		}
	}
	return false
}
