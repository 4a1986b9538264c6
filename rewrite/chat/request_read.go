package chat

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// ReadCall decodes a request of Chat Completions, with what vLLM and the legacy function interface add to it (wire.md 1.3, 3.3).
//
// The deprecated functions, function_call and messages of role function become what replaced them: tools, tool_choice, calls and results,
// whose ids are made from the place of the call, so that a conversation that grows keeps them. Who offers nothing but functions is answered in
// kind.
func (chat) ReadCall(body []byte, o dialect.Options) (*canon.Request, error) {
	in := callReader{o: o, req: &canon.Request{From: canon.Chat, Body: body}}
	in.request(body)
	if in.problem != nil {
		return nil, in.problem
	}
	return in.req, nil
}

// callReader reads one request. The first problem is kept; what is read after it is of no use.
type callReader struct {
	o       dialect.Options
	req     *canon.Request
	problem *canon.Problem

	custom []canon.Text // ids of custom calls so far
	legacy canon.Text   // id of the last legacy call
}

func (in *callReader) fail(param, message string) {
	if in.problem == nil {
		in.problem = canon.Invalid(param, message)
	}
}

func (in *callReader) request(body []byte) {
	r := in.req
	var messages, functions, functionCall, choice, maxTokens, maxCompletion []byte
	for it := jsonx.Object(body); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch string(jsonx.Unquoted(it.Key())) {
		case "model":
			r.Model = in.text(v, "model")
		case "messages":
			messages = v
		case "stream":
			r.Stream = in.bool(v, "stream")
		case "stream_options":
			in.streamOptions(v)
		case "max_tokens":
			maxTokens = in.number(v, "max_tokens")
		case "max_completion_tokens":
			maxCompletion = in.number(v, "max_completion_tokens")
		case "tools":
			in.tools(v)
		case "functions":
			functions = v
		case "tool_choice":
			choice = v
		case "function_call":
			functionCall = v
		case "parallel_tool_calls":
			in.bool(v, "parallel_tool_calls")
			r.Choice.Parallel = v
		case "stop":
			in.stop(v)
		case "response_format":
			in.format(v, it.Key())
		case "logprobs":
			r.Show.Logprobs = in.bool(v, "logprobs")
		case "reasoning_effort":
			r.Thinking.Effort, r.Thinking.Path = in.text(v, "reasoning_effort"), "reasoning_effort"
		case "thinking_token_budget":
			r.Thinking.Budget = in.number(v, "thinking_token_budget")
			if r.Thinking.Path == "" {
				r.Thinking.Path = "thinking_token_budget"
			}
		default:
			in.param(it.Key(), v)
		}
	}
	if maxCompletion == nil {
		maxCompletion = maxTokens
	}
	r.Params[canon.ParamMaxTokens] = maxCompletion
	if functions != nil {
		r.Show.Legacy = len(r.Tools) == 0
		in.functions(functions)
	}
	switch {
	case choice != nil:
		in.choice(choice)
	case functionCall != nil:
		in.functionChoice(functionCall)
	}
	in.messages(messages)
}

// param keeps a parameter, or a member that nobody knows.
func (in *callReader) param(key, v []byte) {
	p, kind := paramOf(string(jsonx.Unquoted(key)))
	if kind == jsonx.KindInvalid {
		in.req.Extra = append(in.req.Extra, canon.Member{Name: key, Value: v})
		return
	}
	if jsonx.KindOf(v) != kind {
		in.fail(p.String(), dialect.MustBe(kind))
	}
	in.req.Params[p] = v
}

// streamOptions reads what concerns the answer. Padding against eavesdroppers is nobody's loss.
func (in *callReader) streamOptions(v []byte) {
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail("stream_options", "must be an object")
	}
	for it := jsonx.Object(v); it.Next(); {
		switch name := string(jsonx.Unquoted(it.Key())); name {
		case "include_usage":
			in.req.Show.Usage = string(it.Value()) == "true"
		case "include_obfuscation":
		case "continuous_usage_stats":
			if string(it.Value()) == "true" {
				in.o.Losses.Add("stream_options.continuous_usage_stats", canon.NoEquivalent)
			}
		default:
			in.o.Losses.Add("stream_options."+name, canon.NotKnown)
		}
	}
}

// stop reads a string or a list of them.
func (in *callReader) stop(v []byte) {
	if jsonx.KindOf(v) != jsonx.KindArray {
		in.req.Stop = append(in.req.Stop, in.text(v, "stop"))
		return
	}
	for it := jsonx.Array(v); it.Next(); {
		in.req.Stop = append(in.req.Stop, in.text(it.Value(), "stop"))
	}
}

// format reads response_format. Types that only vLLM knows, such as structural_tag, stay whole for an upstream of this dialect.
func (in *callReader) format(v, key []byte) {
	const path = "response_format"
	if jsonx.KindOf(v) != jsonx.KindObject {
		in.fail(path, "must be an object")
		return
	}
	f := &in.req.Format
	switch string(in.word(jsonx.Get(v, "type"), path+".type")) {
	case "text":
	case "json_object":
		f.Kind, f.Path = canon.FormatJSON, path
		in.strangers(v, path, "type")
	case "json_schema":
		f.Kind, f.Path = canon.FormatSchema, path+".json_schema"
		in.strangers(v, path, "type", "json_schema")
		in.schema(f, jsonx.Get(v, "json_schema"))
	default:
		f.Kind, f.Path = canon.FormatOther, path
		in.req.Extra = append(in.req.Extra, canon.Member{Name: key, Value: v})
	}
}

func (in *callReader) schema(f *canon.Format, v []byte) {
	const path = "response_format.json_schema"
	for it := jsonx.Object(v); it.Next(); {
		v := it.Value()
		if jsonx.IsNull(v) {
			continue
		}
		switch name := string(jsonx.Unquoted(it.Key())); name {
		case "name":
			f.Name = in.text(v, path+".name")
		case "description":
			f.Description = in.text(v, path+".description")
		case "schema":
			f.Schema = v
		case "strict":
			in.bool(v, path+".strict")
			f.Strict = v
		default:
			in.o.Losses.Add(path+"."+name, canon.NotKnown)
		}
	}
	if jsonx.KindOf(f.Schema) != jsonx.KindObject {
		in.fail(path+".schema", "must be an object")
	}
}

// text is the inside of a string.
func (in *callReader) text(v []byte, path string) canon.Text {
	t, ok := jsonx.Interior(v)
	if !ok {
		in.fail(path, "must be a string")
	}
	return t
}

// word is a string to compare with, decoded.
func (in *callReader) word(v []byte, path string) []byte { return jsonx.Unquoted(in.text(v, path)) }

func (in *callReader) bool(v []byte, path string) bool {
	if jsonx.KindOf(v) != jsonx.KindBool {
		in.fail(path, "must be true or false")
	}
	return string(v) == "true"
}

func (in *callReader) number(v []byte, path string) []byte {
	if jsonx.KindOf(v) != jsonx.KindNumber {
		in.fail(path, "must be a number")
	}
	return v
}
