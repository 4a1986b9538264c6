package messages

import "rolltap/internal/jsonx"

// ReadRequest: only a literal true asks for a stream.
func (messages) ReadRequest(body []byte) (model string, stream bool) {
	model, _ = jsonx.Text(jsonx.Get(body, "model"))
	return model, string(jsonx.Get(body, "stream")) == "true"
}
