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

// Target is what a request's target says of the call.
type Target struct {
	Model  string // decoded; "": the body says it
	Stream bool
}

// MustBe is what a refusal says of a value that is of another kind than this.
func MustBe(kind jsonx.Kind) string {
	switch kind {
	case jsonx.KindString:
		return "must be a string"
	case jsonx.KindNumber:
		return "must be a number"
	case jsonx.KindBool:
		return "must be true or false"
	case jsonx.KindArray:
		return "must be a list"
	}
	return "must be an object"
}
