package messages

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// thinking writes the switch. A budget alone switches it on, as the other dialects have no switch; on without a budget is adaptive.
func (w *callWriter) thinking() {
	t := &w.r.Thinking
	mode := t.Mode
	effort := string(fold.Name(t.Effort))
	if !w.own {
		n, ok := jsonx.Int(t.Budget)
		switch {
		case mode == 0 && ok && n > 0:
			mode = canon.ThinkingOn
		case mode == 0 && (ok || effort == "none"):
			mode = canon.ThinkingOff
		case mode == canon.ThinkingOn && t.Budget == nil:
			mode = canon.ThinkingAdaptive
		}
	}
	on := mode == canon.ThinkingOn || mode == canon.ThinkingAdaptive
	summary := t.Summary
	switch mode {
	case 0:
	case canon.ThinkingOff:
		w.key("thinking")
		w.dst = append(w.dst, `{"type":"disabled"`...)
	case canon.ThinkingAdaptive:
		w.key("thinking")
		w.dst = append(w.dst, `{"type":"adaptive"`...)
	default:
		w.key("thinking")
		w.dst = append(w.dst, `{"type":"enabled"`...)
	}
	if mode != 0 {
		if on || w.own {
			w.raw("budget_tokens", t.Budget)
		}
		switch {
		case t.Display != nil:
			w.text("display", t.Display)
		case on && summary != nil: // auto, concise, detailed: there is one kind of summary here
			w.text("display", canon.Text("summarized"))
			summary = nil
		}
		w.inside("thinking.")
		w.dst = append(w.dst, '}')
	}
	if summary != nil {
		w.lose(t.Path+".summary", canon.NoEquivalent)
	}
}

// outputConfig writes effort and format. Efforts are an open list, but two of OpenAI's words are none here: none, which has switched thinking
// off, and minimal.
func (w *callWriter) outputConfig() {
	effort := w.r.Thinking.Effort
	if !w.own {
		switch string(fold.Name(effort)) {
		case "none":
			effort = nil
		case "minimal":
			effort = canon.Text("low")
			path := w.r.Thinking.Path
			if w.r.From == canon.Responses || w.r.From == canon.Gemini {
				path += "." + w.r.From.Called("effort")
			}
			w.lose(path, canon.NoEquivalent)
		}
	}
	f := &w.r.Format
	start := len(w.dst)
	w.key("output_config")
	w.dst = append(w.dst, '{')
	empty := len(w.dst)
	if effort != nil {
		w.text("effort", effort)
	}
	switch f.Kind {
	case canon.FormatJSON:
		w.unsupported(f.Path, "the Messages API has no JSON mode; a JSON schema can be asked for")
	case canon.FormatSchema:
		w.key("format")
		w.dst = append(w.dst, `{"type":"json_schema"`...)
		w.raw("schema", f.Schema)
		w.dst = append(w.dst, '}')
		w.formatLosses(f)
	}
	w.inside("output_config.")
	if len(w.dst) == empty {
		w.dst = w.dst[:start]
		return
	}
	w.dst = append(w.dst, '}')
}

// formatLosses: the schema is always held to strictly here, and it has no name.
func (w *callWriter) formatLosses(f *canon.Format) {
	if f.Name != nil {
		w.lose(f.Path+".name", canon.NoEquivalent)
	}
	if f.Description != nil {
		w.lose(f.Path+".description", canon.NoEquivalent)
	}
	if string(f.Strict) == "false" {
		w.lose(f.Path+".strict", canon.NoEquivalent)
	}
}

// params writes the parameters that are this dialect's own, and metadata.user_id, which others call user or safety_identifier.
func (w *callWriter) params() {
	p := &w.r.Params
	if w.own {
		w.raw("metadata", p[canon.ParamMetadata])
		w.raw("service_tier", p[canon.ParamServiceTier])
		w.raw("container", p[canon.ParamContainer])
		w.raw("mcp_servers", p[canon.ParamMCPServers])
		w.raw("context_management", p[canon.ParamContextManagement])
		w.raw("cache_control", p[canon.ParamCacheControl])
		return
	}
	var user []byte
	for it := jsonx.Object(p[canon.ParamMetadata]); it.Next(); {
		name := fold.Name(it.Key())
		if string(name) == "user_id" && jsonx.KindOf(it.Value()) == jsonx.KindString {
			user = it.Value()
		} else {
			w.lose("metadata."+string(name), canon.NoEquivalent)
		}
	}
	for _, param := range []canon.Param{canon.ParamSafetyIdentifier, canon.ParamUser} {
		switch value := p[param]; {
		case jsonx.IsNull(value), bytes.Equal(value, user):
		case user == nil && jsonx.KindOf(value) == jsonx.KindString:
			user = value
		default:
			w.lose(w.r.From.Called(param.String()), canon.NoEquivalent)
		}
	}
	if user != nil {
		w.key("metadata")
		w.dst = append(w.dst, '{')
		w.raw("user_id", user)
		w.dst = append(w.dst, '}')
	}
	if tier := p[canon.ParamServiceTier]; string(tier) == `"auto"` {
		w.raw("service_tier", tier)
	} else if tier != nil {
		w.lose("service_tier", canon.NoEquivalent)
	}
	w.raw("cache_control", p[canon.ParamCacheControl])
}

// unsaid looks at the parameters that have no place here. Those that change what is answered are refused, unless their value changes nothing.
func (w *callWriter) unsaid() {
	p := &w.r.Params
	if n, ok := jsonx.Int(p[canon.ParamN]); ok && n > 1 {
		w.unsupported("n", "the Messages API gives one answer")
	}
	if raw := p[canon.ParamModalities]; raw != nil && !onlyText(raw) {
		w.unsupported("modalities", "the Messages API answers with text only")
	}
	for param := range canon.NumParams {
		value := p[param]
		if jsonx.IsNull(value) || idle(param, value) || w.own && !lost(param) {
			continue
		}
		if lost(param) || foreign(param) {
			w.lose(w.r.From.Called(param.String()), canon.NoEquivalent)
		}
	}
	if w.r.Show.Logprobs {
		w.lose(w.r.From.Called("logprobs"), canon.NoEquivalent)
	}
}

// lost tells the parameters that this dialect does not have.
func lost(param canon.Param) bool {
	switch param {
	case canon.ParamMinP, canon.ParamSeed, canon.ParamFrequencyPenalty, canon.ParamPresencePenalty, canon.ParamRepetitionPenalty,
		canon.ParamLogitBias, canon.ParamTopLogprobs, canon.ParamVerbosity, canon.ParamPromptCacheKey, canon.ParamPromptCacheRetention,
		canon.ParamAudio, canon.ParamPrediction, canon.ParamWebSearchOptions, canon.ParamModeration:
		return true
	}
	return false
}

// foreign tells those that mean something else elsewhere.
func foreign(param canon.Param) bool {
	return param == canon.ParamContextManagement || param == canon.ParamContainer || param == canon.ParamMCPServers
}

// idle tells values that ask for what happens anyway.
func idle(param canon.Param, value []byte) bool {
	switch param {
	case canon.ParamRepetitionPenalty:
		return string(value) == "1" || string(value) == "1.0"
	case canon.ParamVerbosity:
		return string(value) == `"medium"`
	case canon.ParamSeed, canon.ParamWebSearchOptions:
		return false
	}
	return !jsonx.Truthy(value)
}

func onlyText(modalities []byte) bool {
	for it := jsonx.Array(modalities); it.Next(); {
		if string(it.Value()) != `"text"` {
			return false
		}
	}
	return true
}
