package gemini

import (
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/dialect"
)

var _ dialect.Counter = gemini{}

// CountedCall: a CountTokensRequest has contents, or a whole request in generateContentRequest.
func (gemini) CountedCall(body []byte) []byte {
	if whole := get(body, "generateContentRequest"); jsonx.KindOf(whole) == jsonx.KindObject {
		return whole
	}
	return body
}

func (gemini) AppendCount(dst []byte, tokens int64) []byte {
	return append(strconv.AppendInt(append(dst, `{"totalTokens":`...), tokens, 10), '}')
}
