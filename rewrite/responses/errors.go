package responses

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func (responses) AppendError(dst []byte, p canon.Problem) []byte {
	return dialect.AppendOpenAIError(dst, p)
}
