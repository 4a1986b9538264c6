package proxy

import (
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/lineage"
	"rolltap/rewrite/tokens"
)

// appendTokenFacts appends what a trainer has to know of the tokens beside them. What nobody told is named in unknown, never guessed.
//
//	{"result":"ok","source":"inline","prompt":4,"generated":3,"parent":"resolved","parent_call_id":"…","logprobs_mode":"raw",
//	 "sampling":{…},"override":["temperature"],"weights":{"start":"v1","end":"v1","straddled":false},"unknown":["top_k"]}
func (x *exchange) appendTokenFacts(dst []byte) []byte {
	t := x.taught
	unknown := []string{}
	result := t.result
	if result == "" {
		result = tokensOK
	}
	dst = jsonx.AppendString(append(dst, `{"result":`...), result)
	dst = jsonx.AppendString(append(dst, `,"source":`...), sourceWord(t.found.Source))
	dst = strconv.AppendInt(append(dst, `,"prompt":`...), int64(t.found.PromptLen), 10)
	dst = strconv.AppendInt(append(dst, `,"generated":`...), int64(t.found.GeneratedLen), 10)
	dst = jsonx.AppendString(append(dst, `,"parent":`...), t.parent.Resolution)
	if t.parent.Resolution == lineage.Resolved {
		dst = jsonx.AppendString(append(dst, `,"parent_call_id":`...), t.parent.Parent.CallID)
	}
	if t.parent.Reason != "" {
		dst = jsonx.AppendString(append(dst, `,"parent_reason":`...), t.parent.Reason)
	}
	mode := x.h.cfg.LogprobsMode
	if mode == "" {
		mode = "unknown"
		unknown = append(unknown, "logprobs_mode")
	}
	dst = jsonx.AppendString(append(dst, `,"logprobs_mode":`...), mode)
	if t.sampling != nil {
		dst = append(append(dst, `,"sampling":`...), t.sampling...)
		for it := jsonx.Object(t.sampling); it.Next(); {
			if jsonx.IsNull(it.Value()) {
				unknown = append(unknown, string(it.Key()))
			}
		}
	}
	dst = jsonx.AppendStrings(append(dst, `,"override":`...), x.h.cfg.Rewrite.Overrides())
	dst = append(dst, `,"weights":`...)
	if versions := t.found.WeightVersions; versions != nil {
		dst = append(append(append(dst, `{"spans":`...), jsonx.AppendCompact(nil, versions)...), '}')
	} else if t.before == "" || t.after == "" {
		dst = append(dst, "null"...)
		unknown = append(unknown, "weights")
	} else {
		dst = jsonx.AppendString(append(dst, `{"start":`...), t.before)
		dst = jsonx.AppendString(append(dst, `,"end":`...), t.after)
		dst = append(dst, `,"straddled":`...)
		if t.before == t.after {
			dst = append(dst, "false}"...)
		} else {
			dst = append(dst, "true}"...)
		}
	}
	return append(jsonx.AppendStrings(append(dst, `,"unknown":`...), unknown), '}')
}

func sourceWord(s tokens.Source) string {
	switch s {
	case tokens.Bundle:
		return "message"
	case tokens.Inline:
		return "inline"
	case tokens.Named:
		return "logprobs"
	}
	return "none"
}
