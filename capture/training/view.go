package training

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"rolltap/internal/jsonx"
)

// View is an entry as it stands in a file: its small members, and where the large ones are.
type View struct {
	Line         int   // in the file, from 1
	Offset, Size int64 // of the line, without its newline
	Sum          [sha256.Size]byte

	Rollout, CallID, Model string
	ResponseID             string
	Parent                 Resolution
	ParentCallID           string
	ParentReason           string
	CumLen                 int64 // -1 when absent
	Digest                 string
	Fingerprint            string
	ContextLen             int64
	ContextDigest          string
	FingerprintVersion     int64 // 0 when absent
	PromptIsDelta          bool
	PrefixRequested        bool
	PrefixSupplied         bool
	TokenItem              int64 // NoItem when absent
	CreatedAt              string

	Prompt, Generation, LogProbs Span
	OutputItems, RoutedExperts   Span
	Rolltap                      Span

	schema    int64
	hasParent bool
	problem   string // the first member that is none of its kind
}

func newView() View { return View{CumLen: -1, TokenItem: NoItem, schema: SchemaVersion} }

// set takes over a member of the line.
func (v *View) set(m *member) {
	raw, null := m.value, m.span.Kind == jsonx.KindNull
	switch string(jsonx.Unquoted(m.key)) {
	case "schema_version":
		v.integer(m, raw, &v.schema)
	case "rollout_id":
		v.text(m, raw, &v.Rollout)
	case "model_call_id":
		v.text(m, raw, &v.CallID)
	case "model":
		v.text(m, raw, &v.Model)
	case "prompt_token_ids":
		v.array(m, &v.Prompt)
	case "generation_token_ids":
		v.array(m, &v.Generation)
	case "generation_log_probs":
		v.array(m, &v.LogProbs)
	case "output_items":
		v.array(m, &v.OutputItems)
	case "routed_experts":
		v.RoutedExperts = m.span
	case "rolltap":
		v.Rolltap = m.span
	case "token_item_index":
		if v.TokenItem = NoItem; !null {
			v.integer(m, raw, &v.TokenItem)
			if v.TokenItem < 0 {
				v.complain(m, "is negative")
			}
		}
	case "created_at":
		if v.CreatedAt = string(raw); m.span.Kind != jsonx.KindNumber {
			v.complain(m, "is no number")
		}
	case "response_id":
		if v.ResponseID = ""; !null {
			v.text(m, raw, &v.ResponseID)
		}
	case "parent_resolution":
		v.Parent = Undecided
		if !null {
			v.text(m, raw, (*string)(&v.Parent))
			if v.Parent == Undecided {
				v.complain(m, "is empty")
			}
		}
	case "parent_call_id":
		v.ParentCallID, v.hasParent = "", !null
		if !null {
			v.text(m, raw, &v.ParentCallID)
		}
	case "parent_resolution_reason":
		v.text(m, raw, &v.ParentReason)
	case "cum_len":
		if v.CumLen = -1; !null {
			v.integer(m, raw, &v.CumLen)
		}
	case "digest":
		if v.Digest = ""; !null {
			v.text(m, raw, &v.Digest)
		}
	case "continuation_fingerprint":
		v.text(m, raw, &v.Fingerprint)
	case "continuation_context_len":
		v.integer(m, raw, &v.ContextLen)
	case "continuation_context_digest":
		v.text(m, raw, &v.ContextDigest)
	case "fingerprint_version":
		if v.FingerprintVersion = 0; !null {
			v.integer(m, raw, &v.FingerprintVersion)
		}
	case "prompt_is_delta":
		v.flag(m, raw, &v.PromptIsDelta)
	case "prefix_requested":
		v.flag(m, raw, &v.PrefixRequested)
	case "prefix_supplied":
		v.flag(m, raw, &v.PrefixSupplied)
	}
}

func (v *View) complain(m *member, what string) {
	if v.problem == "" {
		v.problem = string(m.key) + " " + what
	}
}

func (v *View) text(m *member, raw []byte, to *string) {
	s, ok := jsonx.Text(raw)
	if !ok {
		v.complain(m, "is no text")
		return
	}
	*to = s
}

func (v *View) integer(m *member, raw []byte, to *int64) {
	n, ok := jsonx.Int(raw)
	if !ok {
		v.complain(m, "is no integer")
		return
	}
	*to = n
}

func (v *View) flag(m *member, raw []byte, to *bool) {
	if m.span.Kind != jsonx.KindBool {
		v.complain(m, "is no boolean")
		return
	}
	*to = string(raw) == "true"
}

func (v *View) array(m *member, to *Span) {
	if m.span.Kind != jsonx.KindArray {
		v.complain(m, "is no array")
		return
	}
	*to = m.span
}

// check holds the rules that a reader holds (capture.md 5.2), apart from what the arrays contain.
func (v *View) check() error {
	switch {
	case v.problem != "":
		return fmt.Errorf("%w: %s", ErrEntry, v.problem)
	case v.schema != SchemaVersion:
		return fmt.Errorf("%w: schema version %d", ErrEntry, v.schema)
	case v.Rollout == "" || v.CallID == "":
		return fmt.Errorf("%w: no rollout id or no call id", ErrEntry)
	case v.Prompt.Kind != jsonx.KindArray || v.Generation.Kind != jsonx.KindArray || v.LogProbs.Kind != jsonx.KindArray:
		return fmt.Errorf("%w: an array of tokens is missing", ErrEntry)
	case v.Generation.Count != v.LogProbs.Count:
		return fmt.Errorf("%w: %d generated ids and %d log probabilities", ErrEntry, v.Generation.Count, v.LogProbs.Count)
	case v.TokenItem >= max(v.OutputItems.Count, 0) && v.TokenItem != NoItem:
		return fmt.Errorf("%w: item %d of %d carries the ids", ErrEntry, v.TokenItem, v.OutputItems.Count)
	case v.Parent == Resolved && v.ParentCallID == "":
		return fmt.Errorf("%w: resolved without a parent", ErrEntry)
	}
	return parentRules(v.Parent, v.hasParent, v.PromptIsDelta)
}

// mayBeLookedUp reports whether an entry is one for the resolver. One without a version was written before there were several.
func mayBeLookedUp(fingerprint string, version int64) bool {
	return fingerprint != "" && (version == 0 || version == FingerprintVersion)
}

// candidate is what the resolver keeps of the entry; ok is false when it may not be looked up.
func (v *View) candidate() (c Candidate, ok bool) {
	if !mayBeLookedUp(v.Fingerprint, v.FingerprintVersion) {
		return c, false
	}
	c = Candidate{
		CallID: v.CallID, Fingerprint: v.Fingerprint, ContextLen: int(v.ContextLen), ContextDigest: v.ContextDigest,
		CumLen: int(v.CumLen), Digest: v.Digest,
	}
	if v.CumLen < 0 {
		c.CumLen = int(v.Prompt.Count + v.Generation.Count)
	}
	return c, true
}

func hexSum(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }
