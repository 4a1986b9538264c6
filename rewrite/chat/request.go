package chat

import "rolltap/rewrite/dialect"

func (chat) ReadRequest(body []byte) (model string, stream bool) { return dialect.ModelAndStream(body) }
