package messages

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// malformed is an answer, or an event of one, that is not of this dialect.
func malformed(message string) *canon.Problem {
	return &canon.Problem{Status: 502, Code: "upstream_invalid", Message: message}
}

// aborted is an answer that its engine gave up: vLLM ends it like any other, but without a stop reason (vllm.md 4). It may be asked for again.
func aborted() *canon.Problem {
	return &canon.Problem{Status: 503, Code: "overloaded", Message: "the upstream aborted the answer: it has no stop reason"}
}

// ReadError reads the envelope of this dialect, that of OpenAI in both its forms, FastAPI's detail, and what is no JSON (wire.md 1.7, vllm.md 3).
func (messages) ReadError(status int, body []byte) *canon.Problem {
	p := readProblem(body)
	if status >= 400 && status <= 599 {
		p.Status = status
	}
	return settle(p)
}

// streamProblem is what an error event says; e is its error member.
func streamProblem(e []byte) *canon.Problem { return settle(readErrorMember(e)) }

// IsError: an answer has no error member, and its type is message.
func (messages) IsError(body []byte) bool {
	var top [3][]byte
	jsonx.GetAll(body, []string{"error", "type", "object"}, top[:])
	for _, word := range top[1:] {
		if kind, _ := jsonx.Interior(word); string(kind) == "error" {
			return true
		}
	}
	return !jsonx.IsNull(top[0])
}

// settle fills in what the upstream left open: status, code, message.
func settle(p *canon.Problem) *canon.Problem {
	if p.Status == 0 {
		p.Status = 502
	}
	p.Message = withoutURLs(strings.TrimSpace(p.Message))
	if overflows(p) {
		p.Code = canon.CodeOverflow
	}
	if p.Code == "" {
		p.Code = statusCode(p.Status)
	}
	if p.Message == "" {
		p.Message = "the upstream answered with status " + strconv.Itoa(p.Status) + " and said nothing more"
	}
	return p
}

// statusCode is the code, in OpenAI's words, of an error that came without one (dialects.md 1.15.2).
func statusCode(status int) string {
	switch status {
	case 404:
		return "model_not_found"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_exceeded"
	case 503, 529:
		return "overloaded"
	}
	return ""
}

func readProblem(body []byte) *canon.Problem {
	body = bytes.TrimSpace(body)
	if jsonx.KindOf(body) != jsonx.KindObject || !jsonx.Valid(body) {
		return &canon.Problem{Message: plainText(body)}
	}
	var top [3][]byte
	jsonx.GetAll(body, []string{"error", "detail", "message"}, top[:])
	switch {
	case !jsonx.IsNull(top[0]):
		return readErrorMember(top[0])
	case !jsonx.IsNull(top[2]):
		return readErrorMember(body) // flat, as older engines
	case !jsonx.IsNull(top[1]):
		return &canon.Problem{Message: detail(top[1])}
	}
	return &canon.Problem{Message: cut(string(body))}
}

// readErrorMember reads the object that says what went wrong, or the word that vLLM's key check sends in its place.
func readErrorMember(raw []byte) *canon.Problem {
	if word, ok := jsonx.Text(raw); ok {
		return &canon.Problem{Status: dialect.ErrorStatus(nil, raw), Message: cut(word)}
	}
	var e [4][]byte
	jsonx.GetAll(raw, []string{"message", "type", "param", "code"}, e[:])
	p := &canon.Problem{Status: dialect.ErrorStatus(e[3], e[1])}
	var ok bool
	if p.Message, ok = jsonx.Text(e[0]); !ok && !jsonx.IsNull(e[0]) {
		p.Message = string(e[0])
	}
	if p.Message = cut(p.Message); p.Message == "" && !jsonx.IsNull(raw) && jsonx.IsNull(e[0]) {
		p.Message = cut(string(raw))
	}
	p.Type, _ = jsonx.Text(e[1])
	p.Param, _ = jsonx.Text(e[2])
	p.Code, _ = jsonx.Text(e[3])
	if _, err := strconv.Atoi(p.Code); err == nil {
		p.Code = "" // a status
	}
	return p
}

// detail is the text of FastAPI's errors: a string, or a list of objects with msg.
func detail(raw []byte) string {
	if text, ok := jsonx.Text(raw); ok {
		return cut(text)
	}
	var all []string
	for it := jsonx.Array(raw); it.Next(); {
		if msg, ok := jsonx.Text(jsonx.Get(it.Value(), "msg")); ok {
			all = append(all, msg)
		}
	}
	if all == nil {
		return cut(string(raw))
	}
	return cut(strings.Join(all, "; "))
}

// plainText is what a body that is no JSON object says: of HTML the title.
func plainText(body []byte) string {
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	if strings.HasPrefix(text, "<") {
		lower := strings.ToLower(text)
		if len(lower) != len(text) { // some letters change their length
			lower = text
		}
		_, rest, ok := strings.Cut(lower, "<title>")
		title, _, closed := strings.Cut(rest, "</title>")
		if !ok || !closed {
			return "the upstream answered with a page of HTML"
		}
		from := len(text) - len(rest)
		return cut(strings.TrimSpace(text[from : from+len(title)]))
	}
	return cut(text)
}

// cut bounds a message.
func cut(text string) string {
	const most = 4 << 10
	if len(text) <= most {
		return text
	}
	n := most
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// withoutURLs takes addresses out of a message: they may be those of the upstream.
func withoutURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	var out strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		from := i
		for from > 0 && isLetter(text[from-1]) {
			from--
		}
		end := i + len("://")
		for end < len(text) && !strings.ContainsRune(" \t\r\n\"'`<>)]},;", rune(text[end])) {
			end++
		}
		out.WriteString(text[:from])
		out.WriteString("[url]")
		text = text[end:]
	}
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
