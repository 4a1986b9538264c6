package messages

import (
	"strconv"

	"rolltap/rewrite/dialect"
)

var _ dialect.Counter = messages{}

// CountedCall: count_tokens is asked as the call is (wire.md 3.1.5).
func (messages) CountedCall(body []byte) []byte { return body }

func (messages) AppendCount(dst []byte, tokens int64) []byte {
	return append(strconv.AppendInt(append(dst, `{"input_tokens":`...), tokens, 10), '}')
}
