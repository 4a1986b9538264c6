package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// ReadCall reads a request (wire.md 3.1.1). Members of output_config and thinking that nobody knows are Extra of the request under the
// path that leads to them, "output_config.task_budget".
func (messages) ReadCall(body []byte, o dialect.Options) (*canon.Request, error) {
	in := callReader{o: o, r: &canon.Request{From: canon.Messages, Body: body}}
	in.read(body)
	if in.bad != nil {
		return nil, in.bad
	}
	return in.r, nil
}

// callReader reads one request. The first problem is kept; what is read after it does not matter.
type callReader struct {
	o      dialect.Options
	r      *canon.Request
	bad    *canon.Problem
	fields []canon.Member // a stack: the members of the blocks that are being read
	parts  []canon.Part   // likewise: the parts of the contents that are being read
	made   []byte         // the texts that are not in the body as they are: arguments, search results
}

func (in *callReader) fail(path, message string) {
	if in.bad == nil {
		in.bad = canon.Invalid(path, message)
	}
}

func (in *callReader) read(body []byte) {
	var system, turns, tools, choice, config, format []byte
	r := in.r
	for it := jsonx.Object(body); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(name) {
		case "model":
			r.Model = in.text(value, "model", "")
		case "max_tokens":
			r.Params[canon.ParamMaxTokens] = in.count(value, "max_tokens", "")
		case "system":
			system = value
		case "messages":
			turns = value
		case "tools":
			tools = value
		case "tool_choice":
			choice = value
		case "stop_sequences":
			in.stops(value)
		case "stream":
			r.Stream = in.flag(value, "stream", "")
		case "temperature":
			r.Params[canon.ParamTemperature] = in.number(value, "temperature", "")
		case "top_p":
			r.Params[canon.ParamTopP] = in.number(value, "top_p", "")
		case "top_k":
			r.Params[canon.ParamTopK] = in.number(value, "top_k", "")
		case "thinking":
			in.thinking(value)
		case "output_config":
			config = value
		case "output_format":
			format = value
		case "metadata":
			r.Params[canon.ParamMetadata] = in.object(value, "metadata", "")
		case "service_tier":
			r.Params[canon.ParamServiceTier] = value
		case "container":
			r.Params[canon.ParamContainer] = value
		case "mcp_servers":
			r.Params[canon.ParamMCPServers] = value
		case "context_management":
			r.Params[canon.ParamContextManagement] = value
		case "cache_control":
			r.Params[canon.ParamCacheControl] = value
		default: // inference_geo, speed, diagnostics among them
			if within(name, "output_config.") || within(name, "thinking.") { // would be taken for a member of those
				in.o.Losses.Add(string(name), canon.NotKnown)
				continue
			}
			r.Extra = append(r.Extra, canon.Member{Name: canon.Text(name), Value: value})
		}
	}
	in.outputConfig(config)
	if format != nil { // what output_config.format was called before
		in.format(format, "output_format")
	}
	in.system(system)
	in.messages(turns)
	in.tools(tools)
	in.choice(choice)
}

func (in *callReader) stops(raw []byte) {
	if jsonx.KindOf(raw) != jsonx.KindArray {
		in.fail("stop_sequences", "must be a list of strings")
		return
	}
	i := 0
	for it := jsonx.Array(raw); it.Next(); i++ {
		text, ok := jsonx.Interior(it.Value())
		if !ok {
			in.fail(at("stop_sequences", "", i), "must be a string")
			return
		}
		in.r.Stop = append(in.r.Stop, text)
	}
}

// thinking reads {"type": "enabled", "budget_tokens", "display"}, {"type": "adaptive"} and {"type": "disabled"}. One of another type is kept
// whole, for an upstream of this dialect.
func (in *callReader) thinking(raw []byte) {
	if in.object(raw, "thinking", "") == nil {
		return
	}
	t := &in.r.Thinking
	switch string(in.word(jsonx.Get(raw, "type"), "thinking.type", "")) {
	case "":
		in.fail("thinking.type", "is missing")
		return
	case "enabled":
		t.Mode = canon.ThinkingOn
	case "adaptive":
		t.Mode = canon.ThinkingAdaptive
	case "disabled":
		t.Mode = canon.ThinkingOff
	default:
		in.r.Extra = append(in.r.Extra, canon.Member{Name: canon.Text("thinking"), Value: raw})
		return
	}
	t.Path = "thinking"
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(name) {
		case "type":
		case "budget_tokens":
			t.Budget = in.count(value, "thinking.budget_tokens", "")
		case "display":
			t.Display = in.text(value, "thinking.display", "")
		default:
			in.extra("thinking.", name, value)
		}
	}
}

func (in *callReader) outputConfig(raw []byte) {
	if raw == nil || in.object(raw, "output_config", "") == nil {
		return
	}
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(name) {
		case "effort":
			in.r.Thinking.Effort = in.text(value, "output_config.effort", "")
			if in.r.Thinking.Path == "" {
				in.r.Thinking.Path = "output_config"
			}
		case "format":
			in.format(value, "output_config.format")
		default:
			in.extra("output_config.", name, value)
		}
	}
}

// format reads {"type": "json_schema", "schema"}.
func (in *callReader) format(raw []byte, path string) {
	if in.object(raw, path, "") == nil {
		return
	}
	if in.r.Format.Kind != 0 {
		in.o.Losses.Add(path, canon.NoEquivalent)
		return
	}
	f := &in.r.Format
	f.Path = path
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		switch string(name) {
		case "type":
			if string(in.word(value, path, ".type")) != "json_schema" {
				in.fail(path+".type", "must be json_schema")
				return
			}
			f.Kind = canon.FormatSchema
		case "schema":
			f.Schema = in.object(value, path, ".schema")
		default:
			in.o.Losses.Add(path+"."+string(name), canon.NotKnown)
		}
	}
	switch {
	case f.Kind == 0:
		in.fail(path+".type", "is missing")
	case f.Schema == nil:
		in.fail(path+".schema", "is missing")
	}
}

func (in *callReader) extra(prefix string, name, value []byte) {
	in.r.Extra = append(in.r.Extra, canon.Member{Name: canon.Text(prefix + string(name)), Value: value})
}
