package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

func (responses) ReadAnswer(body []byte, o dialect.Options) (*canon.Answer, error) {
	r := readResponse(body)
	stop, problem := r.end("", o.Losses)
	if problem == nil && jsonx.KindOf(r.output) != jsonx.KindArray {
		return nil, canon.Unreadable("the upstream's answer is no response: it has no output")
	}
	if problem == nil && stop.Reason == 0 {
		return nil, canon.Unreadable("the upstream's answer is a response that has not ended")
	}
	a := &canon.Answer{Stop: stop, Failed: problem, Usage: readUsage(r.usage)}
	a.ID, a.Model, a.Created = r.head()
	r.loseRest(o.Losses)
	n := 0
	for items := jsonx.Array(r.output); items.Next(); n++ {
		path := canon.At("output", n)
		from := len(a.Parts)
		a.Parts = appendOutput(a.Parts, items.Value(), path)
		if from < len(a.Parts) && nameless(&a.Parts[from]) {
			if stop.Reason == canon.StopEnd && !unended(items.Value()) {
				return nil, dialect.Nameless()
			}
			o.Losses.Add(path, canon.NotKnown)
			a.Parts = a.Parts[:from]
			continue
		}
		if from == len(a.Parts) {
			loseMembers(o.Losses, messageExtras(nil, items.Value()), path)
		}
		for i := from; i < len(a.Parts); i++ {
			p := &a.Parts[i]
			a.Logprobs = joinEntries(a.Logprobs, partLogprobs(p))
			if p.Type == canon.CallPart && len(p.Call.ID) == 0 {
				p.Call.ID = dialect.AppendCallID(nil, o.ID, i)
			}
		}
	}
	a.Extra = r.extra
	return a, nil
}

// nameless tells a call that nobody can run.
func nameless(p *canon.Part) bool { return p.Type == canon.CallPart && len(p.Call.Name) == 0 }

// unended tells an item that was cut before it was whole.
func unended(item []byte) bool {
	status, _ := jsonx.Text(jsonx.Get(item, "status"))
	return status == "incomplete" || status == "in_progress"
}

// joinEntries appends the entries to an array of entries in Chat's shape.
func joinEntries(all canon.Raw, entries []byte) canon.Raw {
	if jsonx.KindOf(entries) != jsonx.KindArray || !jsonx.Truthy(entries) {
		return all
	}
	if all == nil {
		all = canon.Raw{'['}
	} else {
		all[len(all)-1] = ','
	}
	return append(appendChatEntries(all, entries), ']')
}

func partLogprobs(p *canon.Part) []byte {
	if p.Type != canon.TextPart {
		return nil
	}
	return jsonx.Get(p.Raw, "logprobs")
}

// response is what a response object says, raw; nil is absent.
type response struct {
	id, model, created, status, details, failure, output, usage []byte
	extra                                                       []canon.Member // that nobody knows
}

func readResponse(raw []byte) (r response) {
	for it := jsonx.Object(raw); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch string(name) {
		case "id":
			r.id = value
		case "model":
			r.model = value
		case "created_at":
			r.created = value
		case "status":
			r.status = value
		case "incomplete_details":
			r.details = value
		case "error":
			r.failure = value
		case "output":
			r.output = value
		case "usage":
			r.usage = value
		default:
			if !idleMember(string(name)) && !jsonx.IsNull(value) {
				r.extra = append(r.extra, canon.Member{Name: name, Value: value})
			}
		}
	}
	return r
}

func (r *response) head() (id, model canon.Text, created canon.Raw) {
	id, _ = jsonx.Interior(r.id)
	model, _ = jsonx.Interior(r.model)
	if jsonx.KindOf(r.created) == jsonx.KindNumber {
		created = r.created
	}
	return id, model, created
}

func readUsage(usage []byte) canon.Usage {
	input, output := jsonx.Get(usage, "input_tokens_details"), jsonx.Get(usage, "output_tokens_details")
	u := canon.Usage{
		Prompt:     dialect.Count(jsonx.Get(usage, "input_tokens")),
		Completion: dialect.Count(jsonx.Get(usage, "output_tokens")),
		Cached:     dialect.Count(jsonx.Get(input, "cached_tokens")),
		CacheWrite: dialect.Count(jsonx.Get(input, "cache_write_tokens")),
		Reasoning:  dialect.Count(jsonx.Get(output, "reasoning_tokens")),
	}
	return u.WithTotal(dialect.Count(jsonx.Get(usage, "total_tokens")))
}

// end is how a response ended: by its status, which vLLM says to be incomplete in a response.completed too (vllm.md 5); without one by
// its details and by the event that it came in. Of two that do not agree the worse one counts. A stop without a reason: it has not ended.
func (r *response) end(event string, losses *canon.Losses) (canon.Stop, *canon.Problem) {
	word, _ := jsonx.Text(r.status)
	reason, _ := jsonx.Interior(jsonx.Get(r.details, "reason"))
	if jsonx.IsNull(r.status) {
		switch {
		case !jsonx.IsNull(r.failure) || event == "response.failed":
			word = "failed"
		case reason != nil || event == "response.incomplete":
			word = "incomplete"
		default:
			word = "completed"
		}
	}
	switch {
	case event == "response.failed" || word != "cancelled" && jsonx.Truthy(r.failure):
		word = "failed"
	case event == "response.incomplete" && word == "completed":
		word = "incomplete"
	}
	switch word {
	case "completed":
		return canon.Stop{Reason: canon.StopEnd, Native: canon.Text("completed")}, nil
	case "incomplete":
		stop := canon.Stop{Reason: canon.StopLength, Native: reason}
		switch string(reason) {
		case "max_output_tokens":
		case "content_filter":
			stop.Reason = canon.StopFilter
		case "":
			stop.Native = canon.Text("incomplete")
		default:
			losses.Add("incomplete_details.reason", canon.NotKnown)
		}
		return stop, nil
	case "failed":
		if jsonx.IsNull(r.failure) {
			return canon.Stop{}, &canon.Problem{Message: "the upstream says that the response failed, and not why"}
		}
		return canon.Stop{}, dialect.ReadProblem(0, r.failure)
	case "cancelled":
		return canon.Stop{}, &canon.Problem{Code: "server_error", Message: "the response was cancelled at the upstream"}
	case "error":
		return canon.Stop{}, dialect.Broke()
	case "in_progress", "queued":
	default:
		losses.Add("status", canon.NotKnown)
	}
	return canon.Stop{}, nil
}

// appendOutput appends the parts that an output item is: one for each content part of a message, else one (wire.md 3.2.2). Without a path for
// the item they have none.
func appendOutput(dst []canon.Part, item []byte, path string) []canon.Part {
	names := [...]string{"type", "id", "content", "summary", "encrypted_content", "call_id", "name", "namespace", "arguments", "input"}
	var f [len(names)][]byte
	jsonx.GetAll(item, names[:], f[:])
	word, _ := jsonx.Text(f[0])
	p := canon.Part{Type: canon.UnknownPart, Raw: item, Path: path}
	p.ItemID, _ = jsonx.Interior(f[1])
	switch word {
	case "message":
		n := 0
		for parts := jsonx.Array(f[2]); parts.Next(); n++ {
			part := outputPart(parts.Value())
			if part.ItemID = p.ItemID; path != "" {
				part.Path = canon.At(path+".content", n)
			}
			dst = append(dst, part)
		}
		if n > 0 {
			last := &dst[len(dst)-1]
			own := len(last.Extra)
			last.Extra = messageExtras(last.Extra, item)
			for i := range last.Extra[own:] {
				last.Extra[own+i].Path = path
			}
		}
		return dst
	case "reasoning":
		p.Type = canon.ReasoningPart
		p.Text, p.Summary = joinTexts(f[2], ""), joinTexts(f[3], `\n\n`)
		if p.Signature, _ = jsonx.Interior(f[4]); p.Signature != nil {
			p.SignedBy = canon.Responses
		}
		p.Extra = extras(nil, item, "id", "type", "status", "content", "summary", "encrypted_content")
		p.Extra = elementExtras(p.Extra, f[2], path, "content")
		p.Extra = elementExtras(p.Extra, f[3], path, "summary")
	case "function_call", "custom_tool_call":
		p.Type = canon.CallPart
		p.Call.Custom = word == "custom_tool_call"
		arguments, member := f[8], "arguments"
		if p.Call.Custom {
			arguments, member = f[9], "input"
		}
		p.Call.ID, _ = jsonx.Interior(f[5])
		p.Call.Name, _ = jsonx.Interior(f[6])
		p.Call.Namespace, _ = jsonx.Interior(f[7])
		p.Call.Arguments, _ = jsonx.Interior(arguments)
		p.Extra = extras(nil, item, "id", "type", "status", "call_id", "name", "namespace", member)
	default:
		if hostedOutput(word) {
			p.Type = canon.HostedPart
		}
	}
	return append(dst, p)
}

// outputPart is a content part of a message.
func outputPart(raw []byte) canon.Part {
	p := canon.Part{Type: canon.UnknownPart, Raw: raw}
	switch word, _ := jsonx.Text(jsonx.Get(raw, "type")); word {
	case "output_text", "text":
		p.Type = canon.TextPart
		p.Text, _ = jsonx.Interior(jsonx.Get(raw, "text"))
		for it := jsonx.Array(jsonx.Get(raw, "annotations")); it.Next(); {
			p.Cites = append(p.Cites, it.Value())
		}
		p.Extra = extras(nil, raw, "type", "text", "annotations", "logprobs")
	case "refusal":
		p.Type = canon.RefusalPart
		p.Text, _ = jsonx.Interior(jsonx.Get(raw, "refusal"))
		p.Extra = extras(nil, raw, "type", "refusal")
	}
	return p
}

// joinTexts joins the texts of an array of {"text"}, but for empty ones, with what is to stand between them; nil when there are none. One
// text is borrowed.
func joinTexts(raw []byte, between string) canon.Text {
	var all canon.Text
	n := 0
	for it := jsonx.Array(raw); it.Next(); {
		text, ok := jsonx.Interior(jsonx.Get(it.Value(), "text"))
		if !ok || len(text) == 0 {
			continue
		}
		if n++; n == 1 {
			all = text[:len(text):len(text)]
			continue
		}
		all = append(append(all, between...), text...)
	}
	return all
}

// hostedOutput tells the output items of tools that the provider runs, or that clients run without having described them (wire.md 3.2.2).
func hostedOutput(word string) bool {
	switch word {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools",
		"mcp_approval_request", "computer_call", "computer_call_output", "local_shell_call", "local_shell_call_output", "shell_call",
		"shell_call_output", "apply_patch_call", "apply_patch_call_output", "tool_search_call", "tool_search_output", "program",
		"program_output", "compaction":
		return true
	}
	return false
}
