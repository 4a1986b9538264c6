package dialect

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/sse"
)

// ReadError is Translator.ReadError of every dialect: what stands in front of an upstream answers in shapes of its own, whatever is asked.
func ReadError(status int, body []byte) *canon.Problem {
	p := ReadProblem(status, body)
	if p.Status == 0 {
		p.Status = 502
	}
	return p
}

// ReadProblem reads what is said of a failure in an error body, an error frame or the error member of one: any bytes, in the shapes of
// OpenAI, vLLM and Anthropic, and of what stands in front of them (wire.md 1.7, 2.1, 3.1.4, 3.2.6):
//
//	{"error":{"message","type","param","code"}}   code a number, a word or null; Anthropic has neither param nor code
//	{"object":"error","message","type","param","code"}
//	{"error":"Unauthorized"}   {"detail":"Not Found"}   {"detail":[{"loc":[…],"msg":"…"}]}
//	{"error":{"msg"}}   {"detail":{"message"}}   {"errors":[{"message"}]}   {"errors":["…"]}
//	{"response":{"error":{…}}}
//	text, a page, or an event stream with any of these
//
// The status is 0 when the given one is no error's and the body stands for none. The message is never empty, bounded, and names no address:
// clients are not told where the upstream is. JSON that nobody knows is not quoted, as it may repeat what the client sent.
func ReadProblem(status int, body []byte) *canon.Problem {
	body = bytes.TrimSpace(body)
	p := new(canon.Problem)
	switch {
	case jsonx.Valid(body):
		readJSON(p, body)
	case readFrames(p, body):
	default:
		p.Message = plainWords(body)
	}
	if 400 <= status && status <= 599 {
		p.Status = status
	}
	p.Message = presentable(p.Message)
	if p.Message == "" {
		p.Message = "the upstream failed and gave no reason"
		if p.Status != 0 {
			p.Message = "the upstream answered with status " + strconv.Itoa(p.Status) + " and gave no reason"
		}
	}
	if overflows(p) {
		p.Code = canon.CodeOverflow
		if p.Status == 0 {
			p.Status = 400
		}
	}
	if p.Code == "" {
		p.Code = StatusCode(p)
	}
	return p
}

// Aborted is an answer that its engine gave up (wire.md 5.2). It may be asked for again.
func Aborted() *canon.Problem {
	return &canon.Problem{Status: 503, Code: "overloaded", Message: "the upstream aborted the answer"}
}

// Broke is an answer that its engine failed to finish, and says only that.
func Broke() *canon.Problem {
	return &canon.Problem{Status: 502, Message: "the upstream failed while it answered"}
}

// Nameless is an answer in which a tool was called and not named: nobody can run the call, and without it the answer is another one.
func Nameless() *canon.Problem {
	return canon.Unreadable("the upstream sent a tool call without a name")
}

// AppendCallID appends the id of a call that came without one: call_<exchange>_<part>. No other call of the exchange has it.
func AppendCallID(dst []byte, exchange string, part int) []byte {
	dst = append(append(append(dst, "call_"...), exchange...), '_')
	return strconv.AppendInt(dst, int64(part), 10)
}

// StatusCode is the code, in OpenAI's words, of an error that came without one; "" where clients steer by none (dialects.md 1.15.2). A 404 that
// does not speak of a model is about the path.
func StatusCode(p *canon.Problem) string {
	switch p.Status {
	case 404:
		if p.Param == "model" || strings.Contains(strings.ToLower(p.Message), "model") {
			return "model_not_found"
		}
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_exceeded"
	case 503, 529:
		return "overloaded"
	}
	return ""
}

// readJSON reads the object that says what went wrong, or the words in its place.
func readJSON(p *canon.Problem, raw []byte) {
	inner := failureIn(raw)
	if jsonx.KindOf(inner) != jsonx.KindObject {
		p.Message = spoken(inner, 0)
		p.Status = ErrorStatus(nil, inner)
	} else {
		var members [3][]byte
		jsonx.GetAll(inner, []string{"type", "param", "code"}, members[:])
		p.Type, _ = jsonx.Text(members[0])
		if p.Type == "error" { // the type of the whole, in the flat forms
			p.Type = ""
		}
		p.Param, _ = jsonx.Text(members[1])
		p.Code, _ = jsonx.Text(members[2])
		if _, err := strconv.Atoi(p.Code); err == nil {
			p.Code = "" // codes are words (wire.md 5.3); a status is one by itself
		}
		p.Status = ErrorStatus(members[2], members[0])
		p.Message = spoken(inner, 0)
	}
	if p.Message == "" { // {"error":true,"message":"…"}
		p.Message = spoken(raw, 0)
	}
}

// failureIn is what an object has as its error, which may be inside of a response or of a detail; else the object itself.
func failureIn(raw []byte) []byte {
	if inner := jsonx.Get(raw, "error"); !jsonx.IsNull(inner) {
		return inner
	}
	if inner := jsonx.Get(jsonx.Get(raw, "response"), "error"); !jsonx.IsNull(inner) {
		return inner
	}
	inner := jsonx.Get(raw, "detail")
	if jsonx.KindOf(inner) != jsonx.KindObject || jsonx.KindOf(jsonx.Get(raw, "message")) == jsonx.KindString {
		return raw
	}
	if nested := jsonx.Get(inner, "error"); !jsonx.IsNull(nested) {
		return nested
	}
	return inner
}

// maxSpoken is how deep words are looked for.
const maxSpoken = 6

// spoken is the words in a value: a text, those of the elements of a list, or those of the first member of an object that has any and is
// known to be words, behind the place that FastAPI gives them, {"loc","msg"}. Of no other member anything is said: it may repeat what the
// client sent.
func spoken(raw []byte, depth int) string {
	if depth == maxSpoken {
		return ""
	}
	switch jsonx.KindOf(raw) {
	case jsonx.KindString:
		text, _ := jsonx.Text(raw)
		return text
	case jsonx.KindArray:
		var all strings.Builder
		for it := jsonx.Array(raw); it.Next() && all.Len() < maxMessage; {
			text := spoken(it.Value(), depth+1)
			if text != "" && all.Len() > 0 {
				all.WriteString("; ")
			}
			all.WriteString(text)
		}
		return all.String()
	case jsonx.KindObject:
		for _, name := range [...]string{"message", "msg", "detail", "errors", "error", "error_description", "title"} {
			if text := spoken(jsonx.Get(raw, name), depth+1); text != "" {
				return placeOf(jsonx.Get(raw, "loc")) + text
			}
		}
	}
	return ""
}

// placeOf is FastAPI's list of names and numbers in front of what is said of it.
func placeOf(loc []byte) string {
	var place strings.Builder
	for it := jsonx.Array(loc); it.Next() && place.Len() < maxMessage; {
		if place.Len() > 0 {
			place.WriteByte('.')
		}
		if name, ok := jsonx.Text(it.Value()); ok {
			place.WriteString(name)
		} else {
			place.Write(it.Value())
		}
	}
	if place.Len() > 0 {
		place.WriteString(": ")
	}
	return place.String()
}

// readFrames reads the first event of a stream that says what went wrong, without the framing around it; false: that is no stream.
func readFrames(p *canon.Problem, body []byte) bool {
	var split sse.Splitter
	split.Push(body)
	found := false
	var ev sse.Event
	for p.Message == "" && (split.Next(&ev) || split.Finish(&ev)) {
		*p = canon.Problem{}
		if jsonx.Valid(ev.Data) {
			readJSON(p, ev.Data)
		} else {
			p.Message = plainWords(ev.Data)
		}
		found = found || ev.HasData
	}
	return found
}

// plainWords is what a body that is no JSON says: plain text as it is, a page its title or else its text, and neither broken JSON nor bytes.
func plainWords(body []byte) string {
	body = bytes.ToValidUTF8(body[:min(len(body), maxPage)], []byte("\uFFFD"))
	if len(body) > 0 && body[0] == '<' {
		body = pageWords(body)
	}
	switch {
	case len(body) == 0 || body[0] == '{' || body[0] == '[' || body[0] == '"':
		return ""
	case !bytes.ContainsFunc(body, unicode.IsLetter):
		return ""
	case bytes.ContainsFunc(body, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }):
		return ""
	}
	return string(body)
}

// pageWords is the title of a page, else its text, on one line.
func pageWords(page []byte) []byte {
	lower := asciiLower(page)
	words := title(page, lower)
	if len(words) == 0 {
		for tag := bytes.IndexByte(page, '<'); tag >= 0; tag = bytes.IndexByte(page, '<') {
			words = append(append(words, page[:tag]...), ' ')
			behind := tag + unseen(lower[tag:])
			page, lower = page[behind:], lower[behind:]
		}
		words = append(words, page...)
	}
	line := bytes.Join(bytes.Fields(words), []byte{' '})
	return []byte(html.UnescapeString(string(line)))
}

func title(page, lower []byte) []byte {
	from := bytes.Index(lower, []byte("<title"))
	if from < 0 {
		return nil
	}
	from += unseen(lower[from:])
	length := bytes.Index(lower[from:], []byte("</title>"))
	if length < 0 {
		return nil
	}
	return bytes.TrimSpace(page[from : from+length])
}

// unseen is how long the tag is that a page begins with, and with it what stands in a comment, a script or a style.
func unseen(lower []byte) int {
	end := ">"
	for _, e := range [...][2]string{{"<!--", "-->"}, {"<script", "</script>"}, {"<style", "</style>"}} {
		if bytes.HasPrefix(lower, []byte(e[0])) {
			end = e[1]
		}
	}
	if n := bytes.Index(lower, []byte(end)); n >= 0 {
		return n + len(end)
	}
	return len(lower)
}

// asciiLower changes no length, as letters of other alphabets may.
func asciiLower(text []byte) []byte {
	lower := bytes.Clone(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c | 0x20
		}
	}
	return lower
}

const (
	maxMessage = 4 << 10  // bytes of a message
	maxPage    = 64 << 10 // bytes of a body that is no JSON that are looked at
)

// presentable trims a message, bounds it and takes addresses out of it.
func presentable(message string) string {
	message = strings.TrimSpace(message)
	if n := maxMessage; len(message) > n {
		for n > 0 && !utf8.RuneStart(message[n]) {
			n--
		}
		message = message[:n] + "…"
	}
	if !strings.Contains(message, "://") {
		return message
	}
	var out strings.Builder
	for {
		i := strings.Index(message, "://")
		if i < 0 {
			out.WriteString(message)
			return out.String()
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
			out.WriteString(message[:scheme])
			out.WriteString("[url]")
		} else {
			out.WriteString(message[:end])
		}
		message = message[end:]
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// overflows tells that a prompt is too long, by evidence (dialects.md 1.15.2; the texts: wire.md 1.7, 2.1 and 3.1.4): a refusal that merely
// names max_tokens is none.
func overflows(p *canon.Problem) bool {
	if p.Status != 0 && p.Status != 400 && p.Status != 413 {
		return false
	}
	if p.Code == canon.CodeOverflow || p.Type == "exceed_context_size_error" {
		return true
	}
	text := strings.ToLower(p.Message)
	for _, words := range [...]string{"maximum context length", "max_model_len", "context window", "prompt is too long", "model's context length",
		"context length is only", "available context size"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	if _, rest, ok := strings.Cut(text, "input length"); ok && strings.Contains(rest, "exceed") {
		return true
	}
	switch p.Param {
	case "input_tokens", "max_tokens", "max_completion_tokens", "max_output_tokens":
		return countsTokens(text)
	}
	return false
}

// countsTokens: a number and then "tokens", with at most one word between them, "5000 input tokens"; or vLLM's "value=5000".
func countsTokens(text string) bool {
	if _, value, ok := strings.Cut(text, "value="); ok && value != "" && '0' <= value[0] && value[0] <= '9' {
		return true
	}
	words := strings.Fields(text)
	for i, word := range words {
		if _, err := strconv.Atoi(strings.ReplaceAll(strings.Trim(word, "(),."), ",", "")); err != nil {
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
