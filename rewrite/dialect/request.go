package dialect

import "rolltap/internal/jsonx"

// ModelAndStream reads the two members that the requests of all dialects so far have in common, in one pass: a prompt may be
// long. Only a literal true asks for a stream.
func ModelAndStream(body []byte) (model string, stream bool) {
	var found [2][]byte
	jsonx.GetAll(body, []string{"model", "stream"}, found[:])
	model, _ = jsonx.Text(found[0])
	return model, string(found[1]) == "true"
}
