package chat

import "rolltap/internal/jsonx"

// ReadRequest: only a literal true asks for a stream.
func (chat) ReadRequest(body []byte) (model string, stream bool) {
	model, _ = jsonx.Text(jsonx.Get(body, "model"))
	return model, string(jsonx.Get(body, "stream")) == "true"
}
