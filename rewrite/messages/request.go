package messages

import "rolltap/rewrite/dialect"

func (messages) ReadRequest(body []byte) (model string, stream bool) {
	return dialect.ModelAndStream(body)
}
