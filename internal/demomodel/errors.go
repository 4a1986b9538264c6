package demomodel

import (
	"fmt"
	"net/http"
	"strconv"

	"rolltap/internal/jsonx"
)

// Types of vLLM's error object. Validation errors have one of their own.
const (
	typeValidation = "Bad Request"
	typeBadRequest = "BadRequestError"
	typeNotFound   = "NotFoundError"
	typeInternal   = "InternalServerError"
)

// problem is a refusal in vLLM's form.
type problem struct {
	status  int
	message string
	kind    string
	param   string // empty: null
}

// refuse names the parameter at the end of the message, as vLLM does.
func refuse(message, param, value string) *problem {
	message += " (parameter=" + param
	if value != "" {
		message += ", value=" + value
	}
	return &problem{http.StatusBadRequest, message + ")", typeBadRequest, param}
}

// invalid is a body of the wrong shape, described in Python's literals.
func invalid(kind, at, message string, members int) *problem {
	return &problem{http.StatusBadRequest, fmt.Sprintf(
		"1 validation error:\n  {'type': '%s', 'loc': '%s', 'msg': '%s', 'input': '<dict of %d items>'}", kind, at, message, members),
		typeValidation, at}
}

// unknownModel is nil for the model that is served, which is also what a request means that names none.
func unknownModel(asked, served string) *problem {
	if asked == "" || asked == served {
		return nil
	}
	return &problem{http.StatusNotFound, "The model `" + asked + "` does not exist. Valid aliases: " + served + ".", typeNotFound, "model"}
}

func tooLong(tokens int) *problem {
	return refuse(fmt.Sprintf("This model's maximum context length is %d tokens. However, your prompt contains at least %d input tokens, "+
		"which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.", maxModelLen, tokens),
		"input_tokens", strconv.Itoa(tokens))
}

// append writes the body. An error inside a stream has spaces behind colons and
// commas, one in a body has none: whoever matches bytes must notice.
func (p *problem) append(dst []byte, spaced bool) []byte {
	colon, comma := `":`, `,"`
	if spaced {
		colon, comma = `": `, `, "`
	}
	dst = append(dst, `{"error`+colon+`{"message`+colon...)
	dst = jsonx.AppendString(dst, p.message)
	dst = append(dst, comma+`type`+colon...)
	dst = jsonx.AppendString(dst, p.kind)
	dst = append(dst, comma+`param`+colon...)
	if p.param == "" {
		dst = append(dst, "null"...)
	} else {
		dst = jsonx.AppendString(dst, p.param)
	}
	dst = append(dst, comma+`code`+colon...)
	dst = strconv.AppendInt(dst, int64(p.status), 10)
	return append(dst, "}}"...)
}

func (p *problem) send(w http.ResponseWriter) {
	sendJSON(w, p.status, p.append(nil, false))
}

func sendJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left needs no answer
}
