package chat

import "rolltap/rewrite/dialect"

func (chat) AppendError(dst []byte, p dialect.Problem) []byte {
	return dialect.AppendOpenAIError(dst, p)
}
