package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func (responses) AppendError(dst []byte, p canon.Problem) []byte {
	return dialect.AppendOpenAIError(dst, p)
}

func (responses) ReadError(status int, body []byte) *canon.Problem {
	return dialect.ReadError(status, body)
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
