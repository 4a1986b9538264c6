package responses

import (
	"bytes"
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// callWriter writes one request. Its members have the order in which AppendCall writes them.
type callWriter struct {
	jsonWriter
	req    *canon.Request
	losses *canon.Losses
	id     string
	own    bool // the request came in this dialect: what only it knows goes on
	hosted bool // tools that a provider runs go on
	minted int  // ids that were made
	err    error

	offered bool            // there are tools
	asides  map[string]bool // paths of the items that aside kept; nil until somebody asks
}

// AppendCall writes a request (dialects.md 1.6). What the client's dialect leaves to a default that is another one here is said: what store
// and strict are.
func (responses) AppendCall(dst []byte, req *canon.Request, o dialect.Options) ([]byte, error) {
	w := callWriter{req: req, losses: o.Losses, id: o.ID, own: req.From == canon.Responses}
	w.hosted = w.own || o.Policy.HostedTools == "pass"
	w.dst = append(slices.Grow(dst, len(req.Body)+len(req.Body)/8), '{')
	w.text("model", req.Model)
	w.conversation()
	w.tools()
	w.choice()
	w.textOptions()
	w.reasoning()
	w.include()
	if req.Stream {
		w.word("stream", "true")
	}
	w.params()
	w.others()
	w.dst = append(w.dst, '}')
	if w.err != nil {
		return nil, w.err
	}
	return w.dst, nil
}

// fail keeps the first problem.
func (w *callWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *callWriter) lose(path string, why canon.Reason) { w.losses.Add(path, why) }

// extra writes members that nobody knows where they came from this dialect; else they are lost.
func (w *callWriter) extra(list []canon.Member, path string) {
	for _, e := range list {
		if w.own {
			w.member(e.Name, e.Value)
		} else {
			w.lose(inside(e.In(path), string(jsonx.Unquoted(e.Name))), canon.NotKnown)
		}
	}
}

// textOptions writes {"format":…,"verbosity":…}.
func (w *callWriter) textOptions() {
	f, verbosity := &w.req.Format, w.req.Params[canon.ParamVerbosity]
	other := w.hasInner("text.")
	if f.Kind == 0 && verbosity == nil && !other {
		return
	}
	w.open("text", '{')
	switch f.Kind {
	case canon.FormatJSON:
		w.raw("format", canon.Raw(`{"type":"json_object"}`))
	case canon.FormatSchema:
		w.open("format", '{')
		w.word("type", `"json_schema"`)
		name := f.Name
		if len(name) == 0 {
			name = canon.Text("response") // Messages has none, and here it must be
		}
		w.text("name", name)
		w.text("description", f.Description)
		w.raw("schema", f.Schema)
		w.raw("strict", f.Strict)
		if f.Strict == nil && w.req.From == canon.Messages {
			w.word("strict", "true") // there every schema is kept to
		}
		w.shut('}')
	}
	w.raw("verbosity", verbosity)
	w.inner("text.")
	w.shut('}')
}

// reasoning writes {"effort":…,"summary":…}. Who asks Messages for thinking gets to see it, which a summary is for here.
func (w *callWriter) reasoning() {
	t := &w.req.Thinking
	effort, summary := t.Effort, t.Summary
	thinks := t.Mode == canon.ThinkingOn || t.Mode == canon.ThinkingAdaptive
	if t.Mode == canon.ThinkingOff { // an effort beside it does not switch it on again
		if effort != nil && string(jsonx.Unquoted(effort)) != "none" {
			path := inside(t.Path, w.req.From.Called("effort"))
			if w.req.From == canon.Messages {
				path = "output_config.effort"
			}
			w.lose(path, canon.NoEquivalent)
		}
		effort = canon.Text("none")
	}
	if summary == nil && thinks && string(jsonx.Unquoted(t.Display)) != "omitted" {
		summary = canon.Text("auto")
	}
	if t.Budget != nil {
		w.lose(inside(t.Path, w.req.From.Called("budget_tokens")), canon.NoEquivalent)
	}
	if effort == nil && summary == nil && !w.hasInner("reasoning.") {
		return
	}
	w.open("reasoning", '{')
	w.text("effort", effort)
	w.text("summary", summary)
	w.inner("reasoning.")
	w.shut('}')
}

// hasInner and inner are about the members of text and reasoning that nobody knows, which the reader keeps as "reasoning.context".
func (w *callWriter) hasInner(prefix string) bool {
	return w.own && slices.ContainsFunc(w.req.Extra, func(e canon.Member) bool { return bytes.HasPrefix(e.Name, []byte(prefix)) })
}

func (w *callWriter) inner(prefix string) {
	for _, e := range w.req.Extra {
		if name, ok := bytes.CutPrefix(e.Name, []byte(prefix)); ok && w.own {
			w.member(name, e.Value)
		}
	}
}

func (w *callWriter) include() {
	var words [][]byte
	if w.req.Show.Encrypted {
		words = append(words, []byte("reasoning.encrypted_content"))
	}
	if w.req.Show.Logprobs {
		words = append(words, []byte("message.output_text.logprobs"))
	}
	if w.own { // the results of hosted tools
		for it := jsonx.Array(jsonx.Get(w.req.Body, "include")); it.Next(); {
			word, _ := jsonx.Interior(it.Value())
			if plain := string(jsonx.Unquoted(word)); plain != "reasoning.encrypted_content" && plain != "message.output_text.logprobs" {
				words = append(words, word)
			}
		}
	}
	if words == nil {
		return
	}
	w.open("include", '[')
	for _, word := range words {
		w.comma()
		w.quote(word)
	}
	w.shut(']')
}

// params writes the parameters that there are here, by the names they have here.
func (w *callWriter) params() {
	p := &w.req.Params
	if stop := w.req.Stop; len(stop) > 0 {
		w.fail(canon.Unsupported(w.req.From.Called("stop"), "the Responses API has no stop sequences"))
	}
	if n, ok := jsonx.Int(p[canon.ParamN]); p[canon.ParamN] != nil && (!ok || n != 1) {
		w.fail(canon.Unsupported("n", "the Responses API gives one answer"))
	}
	for it := jsonx.Array(p[canon.ParamModalities]); it.Next(); {
		if word, _ := jsonx.Text(it.Value()); word != "text" {
			w.fail(canon.Unsupported("modalities", "the Responses API answers with text"))
		}
	}
	for param := range canon.NumParams {
		if p[param] == nil {
			continue
		}
		name, _ := paramName(param)
		switch {
		case w.req.From == canon.Messages && param == canon.ParamMetadata:
			for it := jsonx.Object(p[param]); it.Next(); {
				w.lose("metadata."+string(jsonx.Unquoted(it.Key())), canon.NoEquivalent)
			}
		case w.req.From == canon.Messages && param == canon.ParamServiceTier && string(p[param]) != `"auto"`:
			w.lose("service_tier", canon.NoEquivalent)
		case name != "":
			w.raw(name, p[param])
		case foreign(param):
			w.lose(w.req.From.Called(param.String()), canon.NoEquivalent)
		}
	}
	if !w.own && p[canon.ParamStore] == nil {
		w.word("store", "false")
	}
}

// foreign tells the parameters that there are not here; of the rest params or textOptions looks after those without a name of their own.
func foreign(p canon.Param) bool {
	switch p {
	case canon.ParamTopK, canon.ParamMinP, canon.ParamSeed, canon.ParamFrequencyPenalty, canon.ParamPresencePenalty, canon.ParamRepetitionPenalty,
		canon.ParamLogitBias, canon.ParamAudio, canon.ParamPrediction, canon.ParamWebSearchOptions, canon.ParamContextManagement,
		canon.ParamContainer, canon.ParamMCPServers, canon.ParamCacheControl:
		return true
	}
	return false
}

// others writes the members that only this dialect has. Those that mean nothing to others are not in the canonical request.
func (w *callWriter) others() {
	if w.own {
		names := []string{"background", "truncation", "max_tool_calls", "stream_options", "client_metadata"}
		found := make([][]byte, len(names))
		jsonx.GetAll(w.req.Body, names, found)
		for i, name := range names {
			if !jsonx.IsNull(found[i]) {
				w.raw(name, found[i])
			}
		}
	}
	for _, e := range w.req.Extra {
		if w.own && (bytes.HasPrefix(e.Name, []byte("text.")) || bytes.HasPrefix(e.Name, []byte("reasoning."))) {
			continue // written where they were
		}
		w.extra([]canon.Member{e}, "")
	}
}
