package responses

import (
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// item reads one element of input (wire.md 3.2.2). An item of a type that nobody here knows is carried as it is.
func (r *callReader) item(raw canon.Raw, path string) error {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return canon.Invalid(path, "must be an object")
	}
	m := r.levels.item.read(raw)
	kind, err := m.text(path, "type")
	if err != nil {
		return err
	}
	word := string(jsonx.Unquoted(kind))
	if word == "" {
		if word = guessType(m); word == "" {
			return canon.Invalid(path+".type", "is missing")
		}
	}
	switch word {
	case "message":
		return r.message(m, path)
	case "reasoning":
		return r.thought(m, raw, path)
	case "function_call":
		return r.call(m, raw, path, "arguments")
	case "custom_tool_call":
		return r.call(m, raw, path, "input")
	case "function_call_output":
		return r.result(m, raw, path, false)
	case "custom_tool_call_output":
		return r.result(m, raw, path, true)
	case "item_reference":
		id, err := m.needed(path, "id")
		if err != nil {
			return err
		}
		p := r.add(raw, path)
		p.Type, p.Text, p.ItemID = canon.ReferencePart, id, id
		return nil
	case "additional_tools":
		if err := r.tools(m.take("tools"), path+".tools", extraTools); err != nil {
			return err
		}
		m.take("id")
		m.take("role") // developer
		r.lose(m, path)
		return nil
	case "tool_search_output":
		if err := r.tools(m.take("tools"), path+".tools", foundTools); err != nil {
			return err
		}
	}
	id, err := m.text(path, "id")
	if err != nil {
		return err
	}
	hosted, clients := sideOf(word)
	n := len(r.req.Messages)
	var p *canon.Part
	if clients || !hosted && (n == 0 || r.req.Messages[n-1].Role != canon.Assistant) {
		p = r.aside(raw, path)
	} else {
		p = r.add(raw, path)
	}
	p.Type, p.ItemID = canon.UnknownPart, id
	if hosted {
		p.Type = canon.HostedPart
	}
	return nil
}

// lose notes what nobody took.
func (r *callReader) lose(m *members, path string) {
	for _, e := range m.rest() {
		r.losses.Add(inside(path, string(jsonx.Unquoted(e.Name))), canon.NotKnown)
	}
}

// guessType is the type of an item without one (dialects.md 1.14).
func guessType(m *members) string {
	switch {
	case m.has("role"):
		return "message"
	case m.has("call_id") && m.has("output"):
		return "function_call_output"
	case m.has("name") && m.has("arguments"):
		return "function_call"
	case m.has("id") && m.has("summary"):
		return "reasoning"
	case m.has("id") && len(m.list) <= 2: // at most a null type beside
		return "item_reference"
	}
	return ""
}

// sideOf tells whether an item is of a hosted tool, and whether the client's side has said it. Codex's compaction_trigger is the
// client's too: it comes last, where it must not look like a turn of the model that was begun.
func sideOf(kind string) (hosted, clients bool) {
	switch kind {
	case "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "web_search_call", "file_search_call",
		"code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools", "mcp_approval_request", "tool_search_call", "program":
		return true, false
	case "local_shell_call_output", "shell_call_output", "apply_patch_call_output", "computer_call_output", "mcp_approval_response",
		"tool_search_output", "program_output":
		return true, true
	case "compaction_trigger":
		return false, true
	}
	return false, false
}

// assistant is the message that what the model said belongs to: all of it up to what somebody else said is one.
func (r *callReader) assistant(path string) *canon.Message {
	n := len(r.req.Messages)
	if n == 0 || r.req.Messages[n-1].Role != canon.Assistant {
		r.req.Messages = append(r.req.Messages, canon.Message{Role: canon.Assistant, Path: path})
		n++
	}
	return &r.req.Messages[n-1]
}

// add puts an item to what the model said.
func (r *callReader) add(raw canon.Raw, path string) *canon.Part {
	m := r.assistant(path)
	m.Parts = r.parts.add(m.Parts)
	p := &m.Parts[len(m.Parts)-1]
	p.Raw, p.Path = raw, path
	return p
}

// aside puts an item that is no message and no result into a message of its own: one of the client's, or an unknown one that does not stand
// behind what the model said, as nobody knows whose it is.
func (r *callReader) aside(raw canon.Raw, path string) *canon.Part {
	parts := r.parts.add(nil)
	parts[0].Raw, parts[0].Path = raw, path
	r.req.Messages = append(r.req.Messages, canon.Message{Role: canon.User, Path: path, Parts: parts})
	return &parts[0]
}

// isAside tells whether a message is one that aside made.
func isAside(m *canon.Message) bool {
	return len(m.Parts) == 1 && m.Parts[0].Path == m.Path &&
		(m.Parts[0].Type == canon.HostedPart || m.Parts[0].Type == canon.UnknownPart)
}

// answer adds a result. Those of one turn follow the calls directly, in front of what hosted tools answered to calls of the same turn.
func (r *callReader) answer(raw canon.Raw, path string) *canon.Part {
	const far = 64 // so that no input makes this slow
	all := r.req.Messages
	i := len(all)
	for i > max(0, len(all)-far) && isAside(&all[i-1]) {
		i--
	}
	if i == 0 || all[i-1].Role != canon.Assistant && all[i-1].Role != canon.ToolRole {
		i = len(all)
	}
	parts := r.parts.add(nil)
	p := &parts[0]
	p.Type, p.Raw, p.Path = canon.ResultPart, raw, path
	r.req.Messages = slices.Insert(all, i, canon.Message{Role: canon.ToolRole, Path: path, Parts: parts})
	return p
}

// call reads a function_call or a custom_tool_call; text is the member that holds what the tool is called with.
func (r *callReader) call(m *members, raw canon.Raw, path, text string) (err error) {
	p := r.add(raw, path)
	p.Type, p.Call.Custom = canon.CallPart, text == "input"
	if p.Call.ID, err = m.needed(path, "call_id"); err != nil {
		return err
	}
	if p.Call.Name, err = m.needed(path, "name"); err != nil {
		return err
	}
	if p.Call.Namespace, err = m.text(path, "namespace"); err != nil {
		return err
	}
	if p.Call.Arguments, err = m.text(path, text); err != nil {
		return err
	}
	if p.Call.Arguments == nil {
		p.Call.Arguments = canon.Text{}
	}
	if p.ItemID, err = m.text(path, "id"); err != nil {
		return err
	}
	p.Extra = m.rest()
	return nil
}

// result reads {"call_id":…,"output":"text" or [parts]}. Without an output it is an empty one, as in every dialect: history is read leniently.
func (r *callReader) result(m *members, raw canon.Raw, path string, custom bool) (err error) {
	p := r.answer(raw, path)
	p.Result.Custom = custom
	if p.Result.CallID, err = m.needed(path, "call_id"); err != nil {
		return err
	}
	if p.ItemID, err = m.text(path, "id"); err != nil {
		return err
	}
	return r.answered(p, m, path, "output")
}

// answered reads what a result says: a string or a list of parts, nothing being an empty string.
func (r *callReader) answered(p *canon.Part, m *members, path, member string) (err error) {
	content := m.take(member)
	if content == nil {
		content = canon.Raw(`""`)
	}
	if p.Result.Parts, p.Result.Plain, err = r.content(nil, content, inside(path, member), nil); err != nil {
		return err
	}
	p.Extra = m.rest()
	return nil
}

// thought reads {"summary":[{"type":"summary_text","text":…}],"content":[{"type":"reasoning_text","text":…}],"encrypted_content":…}.
func (r *callReader) thought(m *members, raw canon.Raw, path string) (err error) {
	p := r.add(raw, path)
	p.Type = canon.ReasoningPart
	if p.ItemID, err = m.text(path, "id"); err != nil {
		return err
	}
	if p.Summary, err = r.texts(p, m, "summary", summaryGap); err != nil {
		return err
	}
	if p.Text, err = r.texts(p, m, "content", ""); err != nil {
		return err
	}
	if p.Signature, err = m.text(path, "encrypted_content"); err != nil {
		return err
	}
	if len(p.Signature) > 0 {
		p.SignedBy = canon.Responses
	} else {
		p.Signature = nil
	}
	p.Extra = append(p.Extra, m.rest()...)
	return nil
}

// summaryGap is between the parts of a summary that became one text: an empty line, as in a JSON string.
const summaryGap = `\n\n`

// texts joins the texts of a list of parts; nil when there is none. What else these parts have is Extra of p, under their path.
func (r *callReader) texts(p *canon.Part, m *members, name, gap string) (canon.Text, error) {
	list, err := m.takeOf(jsonx.KindArray, p.Path, name)
	if list == nil || err != nil {
		return nil, err
	}
	for i, it := 0, jsonx.Array(list); it.Next(); i++ {
		at := canon.At(inside(p.Path, name), i)
		one := r.levels.part.read(it.Value())
		if text, err := one.text(at, "text"); err != nil || text == nil {
			return nil, canon.Invalid(at+".text", "must be a string")
		}
		one.take("type")
		for _, e := range one.rest() {
			e.Path = at
			p.Extra = append(p.Extra, e)
		}
	}
	return joinTexts(list, gap), nil
}
