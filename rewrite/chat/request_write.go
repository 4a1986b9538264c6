package chat

import (
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// AppendCall encodes a request for a Chat upstream, vLLM first. The same request gives the same bytes.
//
// A request that came from Chat is written as it came, policies aside that name members (reasoning_replay, max_tokens_name): equal up to
// the order of members, and what is deprecated or says nothing is in its modern form or gone. What follows is about the others.
//
//   - The leading system and developer messages become one, in which an empty line is between messages; between the text blocks of one
//     message of Messages there is a line end, of Responses nothing (dialects.md 1.3.5, 1.7.1, vectors 2 and 25).
//   - A message of one text is a string, which every chat template takes; several parts stay a list.
//   - Tool results come first in what is between two turns of the assistant (vector 28). A failed one begins with "Error: ".
//   - Arguments that are no JSON object become {"_raw": "<text>"}; none at all become {}.
//   - metadata is forwarded from Responses, as are user, store, service_tier, moderation, prompt_cache_* and safety_identifier
//     (dialects.md 1.3.1). That of Messages identifies a user towards Anthropic and is a loss; so is service_tier standard_only.
func (chat) AppendCall(dst []byte, r *canon.Request, o dialect.Options) ([]byte, error) {
	w := callWriter{r: r, o: o, same: r.From == canon.Chat}
	w.dst = slices.Grow(dst, len(r.Body)+len(r.Body)/8+256)
	w.request()
	if w.problem != nil {
		return nil, w.problem
	}
	return w.dst, nil
}

// callWriter writes one request. The first problem is kept; what is written after it is of no use.
type callWriter struct {
	dst     []byte
	r       *canon.Request
	o       dialect.Options
	same    bool // the request came from Chat
	problem *canon.Problem

	pieces  []piece
	moved   []*canon.Part // media of tool results that go into a user message
	scratch []byte
}

func (w *callWriter) fail(p *canon.Problem) {
	if w.problem == nil {
		w.problem = p
	}
}

func (w *callWriter) lose(path, what string, why canon.Reason) {
	if path != "" {
		what = path + "." + what
	}
	w.o.Losses.Add(what, why)
}

// member begins a member of the object that is being written.
func (w *callWriter) member(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(append(append(w.dst, '"'), name...), '"', ':')
}

// element begins an element of the array that is being written.
func (w *callWriter) element() {
	if w.dst[len(w.dst)-1] != '[' {
		w.dst = append(w.dst, ',')
	}
}

func (w *callWriter) write(s string) { w.dst = append(w.dst, s...) }

func (w *callWriter) text(t canon.Text) {
	w.dst = append(append(append(w.dst, '"'), t...), '"')
}

// textMember writes a member unless it is absent.
func (w *callWriter) textMember(name string, t canon.Text) {
	if t != nil {
		w.member(name)
		w.text(t)
	}
}

func (w *callWriter) rawMember(name string, v canon.Raw) {
	if v != nil {
		w.member(name)
		w.dst = append(w.dst, v...)
	}
}

// extra writes the members that nobody knows for the family that they came from, and says that they are lost for others.
func (w *callWriter) extra(list []canon.Member, path string) {
	for _, m := range list {
		if !w.same {
			w.lose(m.In(path), string(jsonx.Unquoted(m.Name)), canon.NotKnown)
			continue
		}
		w.member(string(m.Name))
		w.dst = append(w.dst, m.Value...)
	}
}

func (w *callWriter) request() {
	r := w.r
	w.write("{")
	w.textMember("model", r.Model)
	w.member("messages")
	w.write("[")
	if w.same {
		for i := range r.Messages {
			w.message(&r.Messages[i])
		}
	} else {
		w.conversation(w.leading(r.Messages))
	}
	w.write("]")
	if !w.same {
		w.prefill()
	}
	w.tools()
	w.params()
	if len(r.Stop) > 0 {
		w.member("stop")
		w.write("[")
		for _, s := range r.Stop {
			w.element()
			w.text(s)
		}
		w.write("]")
	}
	w.format()
	w.thinking()
	if r.Stream {
		w.write(`,"stream":true,"stream_options":{"include_usage":true}`)
	}
	w.extra(r.Extra, "")
	w.write("}")
}

// prefill makes the model go on with a last message of the assistant instead of beginning a new one.
func (w *callWriter) prefill() {
	m := w.r.Prefill()
	if m != nil && w.o.Policy.Prefill == "continue" && w.extension(m.Path, "continue_final_message") {
		w.write(`,"continue_final_message":true,"add_generation_prompt":false`)
	}
}

// extension reports whether a member that vLLM knows and the official API does not may be sent; else what asked for it is lost.
func (w *callWriter) extension(path, what string) bool {
	if !w.same && !w.o.Policy.ChatExtensions {
		w.lose(path, what, canon.ByPolicy)
		return false
	}
	return true
}

func (w *callWriter) params() {
	r := w.r
	w.rawMember(w.o.Policy.MaxTokensName, r.Params[canon.ParamMaxTokens])
	if r.Show.Logprobs || jsonx.Truthy(r.Params[canon.ParamTopLogprobs]) {
		w.member("logprobs")
		w.write("true")
	}
	for p := canon.ParamMaxTokens + 1; p < canon.NumParams; p++ {
		if v := r.Params[p]; v != nil {
			w.param(p, v)
		}
	}
}

func (w *callWriter) param(p canon.Param, v canon.Raw) {
	name := p.String()
	switch p {
	case canon.ParamTopK, canon.ParamMinP, canon.ParamRepetitionPenalty:
		if !w.extension("", w.r.From.Called(name)) {
			return
		}
	case canon.ParamContextManagement, canon.ParamContainer, canon.ParamMCPServers, canon.ParamCacheControl:
		if !w.same {
			if jsonx.Truthy(v) {
				w.lose("", name, canon.NoEquivalent)
			}
			return
		}
	case canon.ParamMetadata:
		if w.r.From == canon.Messages {
			for it := jsonx.Object(v); it.Next(); {
				w.lose("metadata", string(jsonx.Unquoted(it.Key())), canon.NoEquivalent)
			}
			return
		}
	case canon.ParamServiceTier:
		if w.r.From == canon.Messages { // auto is what Chat does when nothing is said
			if string(v) != `"auto"` {
				w.lose("", name, canon.NoEquivalent)
			}
			return
		}
	case canon.ParamTopLogprobs:
		// Without logprobs even a zero is refused (wire.md 1.3).
		if !w.r.Show.Logprobs && !jsonx.Truthy(v) {
			return
		}
	}
	w.rawMember(name, v)
}

func (w *callWriter) format() {
	f := &w.r.Format
	switch f.Kind {
	case canon.FormatJSON:
		w.member("response_format")
		w.write(`{"type":"json_object"}`)
	case canon.FormatSchema:
		w.member("response_format")
		w.write(`{"type":"json_schema","json_schema":{`)
		if f.Name != nil {
			w.textMember("name", f.Name)
		} else if !w.same { // the official API requires one
			w.textMember("name", canon.Text("response"))
		}
		w.textMember("description", f.Description)
		w.rawMember("schema", f.Schema)
		w.rawMember("strict", f.Strict)
		w.write("}}")
	}
}

// thinking: vLLM's template has its switch set by reasoning_effort, unless the keyword arguments say otherwise (wire.md 1.3).
func (w *callWriter) thinking() {
	t := &w.r.Thinking
	w.textMember("reasoning_effort", t.Effort)
	if t.Budget != nil && w.extension(t.Path, w.r.From.Called("budget_tokens")) {
		w.rawMember("thinking_token_budget", t.Budget)
	}
	if t.Mode == canon.ThinkingOff && !w.has("chat_template_kwargs") && w.extension("", t.Path) {
		w.member("chat_template_kwargs")
		w.write(`{"enable_thinking":false}`)
	}
	if w.r.From == canon.Responses && t.Summary != nil && string(t.Summary) != "auto" {
		w.lose("reasoning", "summary", canon.NoEquivalent)
	}
}

// has reports whether a member of this name is written as it came.
func (w *callWriter) has(name string) bool {
	if w.same {
		for _, m := range w.r.Extra {
			if string(jsonx.Unquoted(m.Name)) == name {
				return true
			}
		}
	}
	return false
}
