package responses

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

var (
	urls = regexp.MustCompile(`(?i)\bhttps?://[^\s"'<>()\[\]]+`)
	// overflows are the texts of dialects.md 1.15.2 and wire.md 1.7.
	overflows = regexp.MustCompile(`(?i)maximum context length|max_model_len|context window|context length is only|prompt is too long|input length.{0,60}exceeds`)
	counted   = regexp.MustCompile(`(?i)\b\d[\d,]*\s+(input |output |prompt |completion )?tokens?\b|value=\d+`)
	titles    = regexp.MustCompile(`(?is)<title[^>]*>\s*(.*?)\s*</title>`)
)

// maxMessage bounds the words of a body that is no JSON.
const maxMessage = 2000

// ReadError reads what OpenAI, vLLM and what stands in front of them say (wire.md 1.7 and 3.2.6): {"error":{"message","type","param","code"}},
// the same without the outer object, {"error":"…"}, {"detail":…}, a failed response, or any text.
func (responses) ReadError(status int, body []byte) *canon.Problem {
	body = bytes.TrimSpace(body)
	p := new(canon.Problem)
	if len(body) > 0 && body[0] == '{' && jsonx.Valid(body) {
		p = readProblem(errorObject(body))
	} else if text, ok := jsonx.Text(body); ok && jsonx.Valid(body) {
		p.Message = text
	} else {
		p.Message = plainMessage(body)
	}
	if status >= 400 && status <= 599 {
		p.Status = status
	}
	if p.Status == 0 {
		p.Status = 502
	}
	settle(p)
	return p
}

// IsError: a response that failed is an answer.
func (responses) IsError(body []byte) bool {
	names := [...]string{"error", "output", "object", "type", "detail", "status"}
	var found [len(names)][]byte
	jsonx.GetAll(body, names[:], found[:])
	object, _ := jsonx.Text(found[2])
	kind, _ := jsonx.Text(found[3])
	switch {
	case object == "response" || jsonx.KindOf(found[1]) == jsonx.KindArray:
		return false
	case object == "error" || kind == "error":
		return true
	}
	return !jsonx.IsNull(found[0]) || !jsonx.IsNull(found[4]) && jsonx.IsNull(found[5])
}

// errorObject is the part of a body that says what went wrong; it may be a string.
func errorObject(body []byte) []byte {
	for _, name := range []string{"error", "message", "detail"} {
		switch raw := jsonx.Get(body, name); {
		case jsonx.IsNull(raw):
		case name == "message": // flat: code and type stand beside it
			return body
		default:
			return raw
		}
	}
	if failure := jsonx.Get(jsonx.Get(body, "response"), "error"); !jsonx.IsNull(failure) {
		return failure
	}
	return body
}

// problemOf is the problem that an error object inside a good answer tells. Its status is that of its words, 0 when they tell none.
func problemOf(raw []byte) *canon.Problem {
	p := readProblem(raw)
	settle(p)
	return p
}

// readProblem reads an error object, or what stands in its place.
func readProblem(raw []byte) *canon.Problem {
	p := new(canon.Problem)
	switch jsonx.KindOf(raw) {
	case jsonx.KindString:
		p.Message, _ = jsonx.Text(raw)
		p.Status = dialect.ErrorStatus(nil, raw)
	case jsonx.KindArray: // FastAPI's list of {"loc", "msg"}
		p.Message = details(raw)
	case jsonx.KindObject:
		p.Message, _ = jsonx.Text(jsonx.Get(raw, "message"))
		p.Type, _ = jsonx.Text(jsonx.Get(raw, "type"))
		p.Param, _ = jsonx.Text(jsonx.Get(raw, "param"))
		p.Code, _ = jsonx.Text(jsonx.Get(raw, "code"))
		if _, err := strconv.Atoi(p.Code); err == nil {
			p.Code = "" // codes are words (wire.md 5.3); a status is one by itself
		}
		p.Status = dialect.StatusOf(raw)
	}
	return p
}

// settle makes a problem what others may rely on: a message that is not empty and names no address, and the codes of dialects.md 1.15.2.
func settle(p *canon.Problem) {
	p.Message = strings.TrimSpace(urls.ReplaceAllString(p.Message, "(address)"))
	if p.Message == "" {
		p.Message = "the upstream gave no reason"
		if p.Status != 0 {
			p.Message = "the upstream answered with status " + strconv.Itoa(p.Status) + " and gave no reason"
		}
	}
	switch {
	case overflown(p):
		p.Code = canon.CodeOverflow
		if p.Status == 0 {
			p.Status = 400
		}
	case p.Code != "":
	case p.Status == 404 && p.Param == "model":
		p.Code = "model_not_found"
	case p.Status == 413:
		p.Code = "request_too_large"
	case p.Status == 429:
		p.Code = "rate_limit_exceeded"
	case p.Status == 503 || p.Status == 529:
		p.Code = "overloaded"
	}
}

// overflown tells by evidence, not by any text that mentions tokens (dialects.md 1.15.2).
func overflown(p *canon.Problem) bool {
	switch {
	case p.Code == canon.CodeOverflow:
		return true
	case p.Status != 400 && p.Status != 413:
		return false
	case overflows.MatchString(p.Message):
		return true
	}
	switch p.Param {
	case "input_tokens", "max_tokens", "max_completion_tokens", "max_output_tokens":
		return counted.MatchString(p.Message)
	}
	return false
}

func details(raw []byte) string {
	var all []string
	for it := jsonx.Array(raw); it.Next() && len(all) < 10; {
		text, _ := jsonx.Text(jsonx.Get(it.Value(), "msg"))
		if text == "" {
			continue
		}
		var where []string
		for loc := jsonx.Array(jsonx.Get(it.Value(), "loc")); loc.Next(); {
			if word, ok := jsonx.Text(loc.Value()); ok {
				where = append(where, word)
			} else {
				where = append(where, string(loc.Value()))
			}
		}
		if len(where) > 0 {
			text = strings.Join(where, ".") + ": " + text
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// plainMessage is what a body that is no JSON says: of a page its title.
func plainMessage(body []byte) string {
	if len(body) > 0 && body[0] == '<' {
		if m := titles.FindSubmatch(body); m != nil {
			return string(bytes.ToValidUTF8(clip(m[1]), []byte("\uFFFD")))
		}
		return ""
	}
	return string(bytes.ToValidUTF8(clip(body), []byte("\uFFFD")))
}

func clip(text []byte) []byte { return text[:min(len(text), maxMessage)] }
