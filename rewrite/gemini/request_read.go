package gemini

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// ReadCall reads a GenerateContentRequest. What asks for more than one answer, for another than text, or for what only Google keeps is refused by
// name; safety settings and log probabilities are losses.
func (gemini) ReadCall(body []byte, o dialect.Options) (*canon.Request, error) {
	in := callReader{o: o, r: &canon.Request{From: canon.Gemini, Body: body, Show: canon.Show{Unthought: true}}}
	in.read(body)
	if in.bad != nil {
		return nil, in.bad
	}
	return in.r, nil
}

// callReader reads one request. The first problem is kept; what is read after it does not matter.
type callReader struct {
	o     dialect.Options
	r     *canon.Request
	bad   *canon.Problem
	made  []byte     // the texts that are not in the body as they are
	calls []openCall // of the model's last turn, in order
}

func (in *callReader) fail(path, message string) {
	if in.bad == nil {
		in.bad = canon.Invalid(path, message)
	}
}

func (in *callReader) refuse(path, message string) {
	if in.bad == nil {
		in.bad = canon.Unsupported(path, message)
	}
}

func (in *callReader) lose(path string, why canon.Reason) { in.o.Losses.Add(path, why) }

func (in *callReader) read(body []byte) {
	var system, contents, tools, choice, config []byte
	r := in.r
	for it := jsonx.Object(body); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(camel(it.Key())) {
		case "model":
			r.Model = trimModel(in.text(value, "model"))
		case "systemInstruction":
			system = value
		case "contents":
			contents = value
		case "tools":
			tools = value
		case "toolConfig":
			choice = value
		case "generationConfig":
			config = in.of(jsonx.KindObject, value, "generationConfig")
		case "safetySettings":
			if jsonx.Truthy(value) {
				in.lose("safetySettings", canon.NoEquivalent)
			}
		case "cachedContent":
			if jsonx.Truthy(value) {
				in.refuse("cachedContent", "contents that Google keeps cannot be read here")
			}
		default:
			r.Extra = append(r.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value})
		}
	}
	in.target()
	in.system(system)
	in.contents(contents)
	in.tools(tools)
	in.choice(choice)
	in.config(config)
}

// target takes from the path what it says; it wins over the body.
func (in *callReader) target() {
	r, t := in.r, &in.o.Target
	r.Stream = t.Stream
	if t.Model == "" {
		return
	}
	quoted := jsonx.AppendString(nil, t.Model)
	asked := canon.Text(quoted[1 : len(quoted)-1])
	if r.Model != nil && string(fold.Name(r.Model)) != string(fold.Name(asked)) {
		in.lose("model", canon.NoEquivalent)
	}
	r.Model = asked
}
