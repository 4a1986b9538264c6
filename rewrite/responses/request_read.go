package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// callReader reads one request.
type callReader struct {
	req    *canon.Request
	losses *canon.Losses
	named  map[string]int // where in req.Tools a tool is; nil until an item brings tools
	parts  partRoom

	// levels are the objects that are open: one inside of the other.
	levels struct{ top, item, part, inner members }
}

// ReadCall reads a request (wire.md 3.2.1). What needs a state that nobody here has, previous_response_id and the like, is refused;
// values that change nothing are ignored (dialects.md 1.3.1).
func (responses) ReadCall(body []byte, o dialect.Options) (*canon.Request, error) {
	r := callReader{req: &canon.Request{From: canon.Responses, Body: body}, losses: o.Losses}
	m := r.levels.top.read(body)
	for _, read := range []func(*members) error{
		r.state, r.head, r.params, r.text, r.reasoning, r.include, r.declared, r.conversation, r.choice,
	} {
		if err := read(m); err != nil {
			return nil, err
		}
	}
	r.req.Extra = append(r.req.Extra, m.rest()...)
	return r.req, nil
}

// state refuses what asks for a kept conversation, and takes what means nothing to one that is not kept.
func (r *callReader) state(m *members) error {
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if m.take(name) != nil {
			return canon.Unsupported(name, "needs a server that keeps state, which the upstream's dialect has no word for")
		}
	}
	background, err := m.takeOf(jsonx.KindBool, "", "background")
	if err != nil {
		return err
	}
	if string(background) == "true" {
		return canon.Unsupported("background", "the upstream's dialect cannot answer in the background")
	}
	if truncation, err := m.text("", "truncation"); err != nil {
		return err
	} else if truncation != nil && string(jsonx.Unquoted(truncation)) != "disabled" {
		r.losses.Add("truncation", canon.NoEquivalent)
	}
	m.take("stream_options") // obfuscation, which is never made
	for _, name := range []string{"client_metadata", "max_tool_calls"} {
		if m.take(name) != nil {
			r.losses.Add(name, canon.NoEquivalent)
		}
	}
	return nil
}

func (r *callReader) head(m *members) (err error) {
	if r.req.Model, err = m.text("", "model"); err != nil {
		return err
	}
	stream, err := m.takeOf(jsonx.KindBool, "", "stream")
	r.req.Stream = string(stream) == "true"
	if err != nil {
		return err
	}
	r.req.Choice.Parallel, err = m.takeOf(jsonx.KindBool, "", "parallel_tool_calls")
	return err
}

func (r *callReader) params(m *members) (err error) {
	for p := range canon.NumParams {
		name, kind := paramName(p)
		switch {
		case name == "":
		case kind == jsonx.KindInvalid:
			r.req.Params[p] = m.take(name)
		default:
			if r.req.Params[p], err = m.takeOf(kind, "", name); err != nil {
				return err
			}
		}
	}
	return nil
}

// paramName is what a parameter is called here, and its kind, KindInvalid for any; "" where there is none, or it is inside of text.
func paramName(p canon.Param) (string, jsonx.Kind) {
	switch p {
	case canon.ParamMaxTokens:
		return "max_output_tokens", jsonx.KindNumber
	case canon.ParamTemperature:
		return "temperature", jsonx.KindNumber
	case canon.ParamTopP:
		return "top_p", jsonx.KindNumber
	case canon.ParamTopLogprobs:
		return "top_logprobs", jsonx.KindNumber
	case canon.ParamUser:
		return "user", jsonx.KindString
	case canon.ParamMetadata:
		return "metadata", jsonx.KindObject
	case canon.ParamServiceTier:
		return "service_tier", jsonx.KindString
	case canon.ParamStore:
		return "store", jsonx.KindBool
	case canon.ParamPromptCacheKey:
		return "prompt_cache_key", jsonx.KindString
	case canon.ParamPromptCacheRetention:
		return "prompt_cache_retention", jsonx.KindString
	case canon.ParamSafetyIdentifier:
		return "safety_identifier", jsonx.KindString
	case canon.ParamModeration:
		return "moderation", jsonx.KindInvalid
	}
	return "", jsonx.KindInvalid
}

// text reads {"format":{"type":"json_schema","name":…,"schema":{…},"strict":true},"verbosity":"low"}.
func (r *callReader) text(top *members) error {
	raw, err := top.takeOf(jsonx.KindObject, "", "text")
	if raw == nil || err != nil {
		return err
	}
	m := r.levels.item.read(raw)
	if r.req.Params[canon.ParamVerbosity], err = m.takeOf(jsonx.KindString, "text", "verbosity"); err != nil {
		return err
	}
	format, err := m.takeOf(jsonx.KindObject, "text", "format")
	if err != nil {
		return err
	}
	if format != nil {
		if err := r.format(format); err != nil {
			return err
		}
	}
	r.inner("text", m)
	return nil
}

func (r *callReader) format(raw canon.Raw) error {
	const path = "text.format"
	m := r.levels.part.read(raw)
	kind, err := m.needed(path, "type")
	if err != nil {
		return err
	}
	f := &r.req.Format
	f.Path = path
	switch string(jsonx.Unquoted(kind)) {
	case "text":
	case "json_object":
		f.Kind = canon.FormatJSON
	case "json_schema":
		f.Kind = canon.FormatSchema
		if f.Name, err = m.text(path, "name"); err != nil {
			return err
		}
		if f.Description, err = m.text(path, "description"); err != nil {
			return err
		}
		if f.Strict, err = m.takeOf(jsonx.KindBool, path, "strict"); err != nil {
			return err
		}
		if f.Schema, err = m.takeOf(jsonx.KindObject, path, "schema"); err != nil {
			return err
		}
		if f.Schema == nil {
			return canon.Invalid(path+".schema", "is missing")
		}
	default:
		return canon.Unsupported(path+".type", "must be text, json_object or json_schema")
	}
	r.lose(m, path)
	return nil
}

// reasoning reads {"effort":"high","summary":"auto"}; generate_summary is the old name of summary.
func (r *callReader) reasoning(top *members) error {
	raw, err := top.takeOf(jsonx.KindObject, "", "reasoning")
	if raw == nil || err != nil {
		return err
	}
	const path = "reasoning"
	m := r.levels.item.read(raw)
	t := &r.req.Thinking
	t.Path = path
	if t.Effort, err = m.text(path, "effort"); err != nil {
		return err
	}
	if t.Summary, err = m.text(path, "summary"); err != nil {
		return err
	}
	old, err := m.text(path, "generate_summary")
	if t.Summary == nil {
		t.Summary = old
	}
	r.inner(path, m)
	return err
}

// inner keeps what nobody took of a top-level object, as members called "reasoning.context".
func (r *callReader) inner(path string, m *members) {
	for _, e := range m.rest() {
		r.req.Extra = append(r.req.Extra, canon.Member{Name: canon.Text(path + "." + string(e.Name)), Value: e.Value})
	}
}

// include reads what else the client wants to see. Results of hosted tools are among it, of which none will be there.
func (r *callReader) include(top *members) error {
	raw, err := top.takeOf(jsonx.KindArray, "", "include")
	if raw == nil || err != nil {
		return err
	}
	for i, it := 0, jsonx.Array(raw); it.Next(); i++ {
		text, ok := jsonx.Interior(it.Value())
		if !ok {
			return canon.Invalid(canon.At("include", i), "must be a string")
		}
		switch word := string(jsonx.Unquoted(text)); word {
		case "reasoning.encrypted_content":
			r.req.Show.Encrypted = true
		case "message.output_text.logprobs":
			r.req.Show.Logprobs = true
		case "file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
			"computer_call_output.output.image_url", "code_interpreter_call.outputs":
		default:
			r.losses.Add("include."+word, canon.NotKnown)
		}
	}
	return nil
}

// conversation reads instructions and input.
func (r *callReader) conversation(m *members) error {
	instructions, err := m.text("", "instructions")
	if err != nil {
		return err
	}
	if len(instructions) > 0 {
		r.plain(canon.System, "instructions", instructions)
	}
	input := m.take("input")
	switch jsonx.KindOf(input) {
	case jsonx.KindString:
		text, _ := jsonx.Interior(input)
		r.plain(canon.User, "input", text)
	case jsonx.KindArray:
		for i, it := 0, jsonx.Array(input); it.Next(); i++ {
			if err := r.item(it.Value(), canon.At("input", i)); err != nil {
				return err
			}
		}
	case jsonx.KindInvalid:
		return canon.Invalid("input", "is missing")
	default:
		return canon.Invalid("input", "must be a string or a list of items")
	}
	return nil
}

func (r *callReader) plain(role canon.Role, path string, text canon.Text) {
	parts := r.parts.add(nil)
	p := &parts[0]
	p.Type, p.Text, p.Path = canon.TextPart, text, path
	r.req.Messages = append(r.req.Messages, canon.Message{Role: role, Plain: true, Path: path, Parts: parts})
}
