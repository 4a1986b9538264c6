package gemini

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

type gemini struct{}

// New is the dialect; it has no state.
func New() dialect.Dialect { return gemini{} }

func (gemini) Name() canon.Dialect { return canon.Gemini }

// Path has a place for the model in it.
func (gemini) Path() string { return "/v1beta/models/{model}:generateContent" }

// ReadRequest: a body may name its model, and never says that it wants a stream.
func (gemini) ReadRequest(body []byte) (model string, stream bool) {
	model, _ = jsonx.Text(jsonx.Get(body, "model"))
	return trimModel(model), false
}

// modelPrefix begins the resource name of a model.
const modelPrefix = "models/"

func trimModel[T ~string | ~[]byte](name T) T {
	if len(name) >= len(modelPrefix) && string(name[:len(modelPrefix)]) == modelPrefix {
		return name[len(modelPrefix):]
	}
	return name
}

// camel is the name of a member as it is compared: snake_case is another spelling of camelCase.
func camel(key []byte) []byte {
	name := fold.Name(key)
	if bytes.IndexByte(name, '_') <= 0 {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if c := name[i]; c == '_' && i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z' {
			i++
			out = append(out, name[i]-'a'+'A')
		} else {
			out = append(out, c)
		}
	}
	return out
}

// get is the member of an object under either spelling of its name.
func get(object []byte, name string) []byte {
	if found := jsonx.Get(object, name); found != nil {
		return found
	}
	for it := jsonx.Object(object); it.Next(); {
		if bytes.IndexByte(it.Key(), '_') > 0 && string(camel(it.Key())) == name {
			return it.Value()
		}
	}
	return nil
}
