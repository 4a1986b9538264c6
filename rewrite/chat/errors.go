package chat

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

func (chat) AppendError(dst []byte, p canon.Problem) []byte {
	return dialect.AppendOpenAIError(dst, p)
}

func (chat) ReadError(status int, body []byte) *canon.Problem { return dialect.ReadError(status, body) }

// IsError: {"error": …}, {"object":"error", …} and {"detail": …} come with any status from some.
func (chat) IsError(body []byte) bool {
	var top [4][]byte
	jsonx.GetAll(body, []string{"error", "object", "detail", "choices"}, top[:])
	return !jsonx.IsNull(top[0]) || isFlatError(top[1]) || jsonx.IsNull(top[3]) && !fold.Blank(top[2])
}
