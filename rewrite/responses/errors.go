package responses

import "rolltap/rewrite/dialect"

func (responses) AppendError(dst []byte, p dialect.Problem) []byte {
	return dialect.AppendOpenAIError(dst, p)
}
