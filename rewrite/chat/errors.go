package chat

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func (chat) AppendError(dst []byte, p canon.Problem) []byte {
	return dialect.AppendOpenAIError(dst, p)
}
