package gemini

import (
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// config reads generationConfig. Members that nobody knows are Extra of the request, under the path of the config.
func (in *callReader) config(raw []byte) {
	const path = "generationConfig"
	r := in.r
	var mimeType, schema, schemaPath = "", []byte(nil), ""
	for it := jsonx.Object(raw); it.Next() && in.bad == nil; {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		word := string(camel(it.Key()))
		at := path + "." + word
		switch word {
		case "temperature":
			r.Params[canon.ParamTemperature] = in.of(jsonx.KindNumber, value, at)
		case "topP":
			r.Params[canon.ParamTopP] = in.of(jsonx.KindNumber, value, at)
		case "topK":
			r.Params[canon.ParamTopK] = in.of(jsonx.KindNumber, value, at)
		case "presencePenalty":
			r.Params[canon.ParamPresencePenalty] = in.of(jsonx.KindNumber, value, at)
		case "frequencyPenalty":
			r.Params[canon.ParamFrequencyPenalty] = in.of(jsonx.KindNumber, value, at)
		case "seed":
			r.Params[canon.ParamSeed] = in.integer(value, at)
		case "maxOutputTokens":
			r.Params[canon.ParamMaxTokens] = in.integer(value, at)
		case "stopSequences":
			in.stops(value, at)
		case "candidateCount":
			if n, _ := jsonx.Int(in.integer(value, at)); n != 1 {
				in.refuse(at, "one candidate can be given here")
			}
		case "responseMimeType":
			mimeType = in.word(value, at)
		case "responseSchema", "responseJsonSchema":
			if schema != nil {
				in.lose(at, canon.NoEquivalent)
				continue
			}
			schema, schemaPath = in.of(jsonx.KindObject, value, at), at
		case "thinkingConfig":
			in.thinking(value, at)
		case "responseModalities":
			in.modalities(value, at)
		case "responseLogprobs", "logprobs":
			if jsonx.Truthy(value) {
				in.lose(at, canon.NoEquivalent)
			}
		default: // speechConfig, imageConfig, mediaResolution, routingConfig and what is new
			r.Extra = append(r.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: path})
		}
	}
	in.format(mimeType, schema, schemaPath)
}

// format: without a media type that asks for JSON a schema is none that Google accepts.
func (in *callReader) format(mimeType string, schema []byte, path string) {
	const typePath = "generationConfig.responseMimeType"
	f := &in.r.Format
	switch {
	case mimeType == "application/json" && schema != nil:
		f.Kind, f.Path, f.Schema = canon.FormatSchema, path, in.schema(schema)
	case mimeType == "application/json":
		f.Kind, f.Path = canon.FormatJSON, typePath
	case mimeType != "" && mimeType != "text/plain":
		in.refuse(typePath, "only text/plain and application/json can be asked for here")
	case schema != nil:
		in.fail(typePath, "must be application/json where there is a schema")
	}
}

func (in *callReader) stops(raw []byte, path string) {
	in.of(jsonx.KindArray, raw, path)
	i := 0
	for it := jsonx.Array(raw); it.Next(); i++ {
		text, ok := jsonx.Interior(it.Value())
		if !ok {
			in.fail(canon.At(path, i), "must be a string")
			return
		}
		in.r.Stop = append(in.r.Stop, text)
	}
}

func (in *callReader) modalities(raw []byte, path string) {
	in.of(jsonx.KindArray, raw, path)
	i := 0
	for it := jsonx.Array(raw); it.Next(); i++ {
		if word := in.word(it.Value(), canon.At(path, i)); !strings.EqualFold(word, "text") {
			in.refuse(canon.At(path, i), "the answer can only be text here")
		}
	}
}

// thinking reads {"includeThoughts", "thinkingBudget", "thinkingLevel"}. A budget of 0 switches thinking off, one of -1 leaves it to the model.
func (in *callReader) thinking(raw []byte, path string) {
	in.of(jsonx.KindObject, raw, path)
	t := &in.r.Thinking
	t.Path = path
	for it := jsonx.Object(raw); it.Next(); {
		value := it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		word := string(camel(it.Key()))
		at := path + "." + word
		switch word {
		case "includeThoughts":
			in.r.Show.Unthought = !in.flag(value, at)
		case "thinkingBudget":
			switch n, _ := jsonx.Int(in.integer(value, at)); {
			case n == 0:
				t.Mode = canon.ThinkingOff
			case n > 0:
				t.Budget = in.integer(value, at)
			}
		case "thinkingLevel":
			if level := strings.ToLower(in.word(value, at)); level != "thinking_level_unspecified" {
				t.Effort = canon.Text(level)
			}
		default:
			in.r.Extra = append(in.r.Extra, canon.Member{Name: fold.Name(it.Key()), Value: value, Path: path})
		}
	}
}
