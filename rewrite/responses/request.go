package responses

import "rolltap/rewrite/dialect"

func (responses) ReadRequest(body []byte) (model string, stream bool) {
	return dialect.ModelAndStream(body)
}
