package training

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/internal/tokendigest"
)

// ErrEntry says that an entry breaks the rules of its format. It never quotes what the entry holds.
var ErrEntry = errors.New("invalid token entry")

// SchemaVersion is the only version of entries that is written and read, FingerprintVersion the only one that is resolved.
const (
	SchemaVersion      = 1
	FingerprintVersion = 2
)

// Resolution is the decision about a call's parent that was made before it was sent.
type Resolution string

const (
	Undecided  Resolution = "" // null in the file
	Root       Resolution = "root"
	Resolved   Resolution = "resolved"
	Unresolved Resolution = "unresolved"
)

// NoItem is the TokenItem of an entry whose output items carried no ids.
const NoItem = -1

// Entry is what is kept of one call (capture.md 5.2). Arrays are JSON texts as the engine spelled them; they are never decoded, and not
// copied when they are large: from Put on they must not be changed any more, for a Put that returned early may still be writing. Absent
// means nil, "" or 0 and is written as the format's default.
type Entry struct {
	Rollout, CallID string
	Model           string

	PromptTokenIDs     []byte // array of integers; only those behind the parent's when PromptIsDelta
	GenerationTokenIDs []byte // array of integers
	GenerationLogProbs []byte // array of numbers, as many as GenerationTokenIDs
	RoutedExperts      []byte // any JSON value
	// RoutedExpertsFrom writes the value when it is too large for memory. It is called twice, must write the same bytes both
	// times, and what it writes must be a string without escapes or arrays of integers, strings and null.
	RoutedExpertsFrom func(io.Writer) error
	OutputItems       []byte // array of objects, token fields removed
	TokenItem         int    // index in OutputItems of the item that carried the ids, or NoItem

	ResponseID string  // as the client got it
	CreatedAt  float64 // Unix seconds

	Parent       Resolution
	ParentCallID string // exactly when Resolved
	ParentReason string // why not

	CumLen int    // of prompt and generation, always of the full sequence
	Digest string // of the same, made by package tokendigest; "" writes null for both

	Fingerprint        string // of the conversation up to this call's output, the key to look up
	ContextLen         int    // request items
	ContextDigest      string // of these
	FingerprintVersion int    // 0 writes null

	PromptIsDelta   bool
	PrefixRequested bool
	PrefixSupplied  bool

	Rolltap []byte // an object for what only we know; written as the member rolltap, which the reference carries along
}

// Stamp sets CumLen and Digest of an entry that has its whole prompt.
func (e *Entry) Stamp() error {
	if e.PromptIsDelta {
		return fmt.Errorf("%w: the digest of a delta is that of its whole sequence", ErrEntry)
	}
	digest, n, err := tokendigest.Sum(e.PromptTokenIDs, e.GenerationTokenIDs)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEntry, err)
	}
	e.CumLen, e.Digest = n, digest
	return nil
}

// check holds an entry's rules that concern neither arrays nor texts.
func (e *Entry) check() error {
	switch {
	case !ValidID(e.Rollout):
		return fmt.Errorf("%w: rollout %q", ErrInvalidID, e.Rollout)
	case !ValidCall(e.CallID):
		return fmt.Errorf("%w: call %q", ErrInvalidID, e.CallID)
	case e.CumLen < 0 || e.ContextLen < 0 || e.TokenItem < NoItem || e.FingerprintVersion < 0:
		return fmt.Errorf("%w: a negative number", ErrEntry)
	case math.IsNaN(e.CreatedAt) || math.IsInf(e.CreatedAt, 0):
		return fmt.Errorf("%w: created_at is no number", ErrEntry)
	case len(e.RoutedExperts) > 0 && e.RoutedExpertsFrom != nil:
		return fmt.Errorf("%w: routed experts twice", ErrEntry)
	}
	return parentRules(e.Parent, e.ParentCallID != "", e.PromptIsDelta)
}

func parentRules(r Resolution, parent, delta bool) error {
	switch r {
	case Resolved:
		if !parent {
			return fmt.Errorf("%w: resolved without a parent", ErrEntry)
		}
	case Root, Unresolved:
		if parent {
			return fmt.Errorf("%w: %s with a parent", ErrEntry, r)
		}
	case Undecided:
	default:
		return fmt.Errorf("%w: unknown parent resolution", ErrEntry)
	}
	if delta && r != Resolved {
		return fmt.Errorf("%w: a delta without a resolved parent", ErrEntry)
	}
	return nil
}

// encode makes the canonical line of e.
func encode(e *Entry) (*line, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	prompt, before, err := canonIDs(e.PromptTokenIDs)
	if err != nil {
		return nil, err
	}
	generation, n, err := canonIDs(e.GenerationTokenIDs)
	if err != nil {
		return nil, err
	}
	probs, p, err := canonNumbers(e.GenerationLogProbs)
	if err != nil {
		return nil, err
	}
	if n != p {
		return nil, fmt.Errorf("%w: %d generated ids and %d log probabilities", ErrEntry, n, p)
	}
	items, err := canonItems(e.OutputItems, e.TokenItem)
	if err != nil {
		return nil, err
	}
	experts, err := canonAny(e.RoutedExperts)
	if err != nil {
		return nil, err
	}
	l := &line{rollout: e.Rollout, call: e.CallID, indexed: mayBeLookedUp(e.Fingerprint, int64(e.FingerprintVersion))}
	if l.indexed {
		l.cand = Candidate{
			CallID: e.CallID, Fingerprint: e.Fingerprint, ContextLen: e.ContextLen, ContextDigest: e.ContextDigest,
			CumLen: e.CumLen, Digest: e.Digest,
		}
		if e.Digest == "" {
			l.cand.CumLen = before + n
		}
	}
	l.buf = make([]byte, 0, 1<<10)
	l.members(e, prompt, generation, probs, items)
	if len(e.Rolltap) > 0 {
		l.buf = append(l.buf, `,"rolltap":`...)
		rolltap, err := canonAny(e.Rolltap)
		if err != nil || jsonx.KindOf(rolltap) != jsonx.KindObject {
			return nil, fmt.Errorf("%w: rolltap is no object", ErrEntry)
		}
		l.value(rolltap)
	}
	l.buf = append(l.buf, `,"routed_experts":`...)
	if e.RoutedExpertsFrom != nil {
		l.cuts = append(l.cuts, cut{at: len(l.buf), from: e.RoutedExpertsFrom})
	} else {
		l.value(experts)
	}
	l.buf = append(l.buf, `,"schema_version":1,"token_item_index":`...)
	l.buf = appendInt(l.buf, e.TokenItem, e.TokenItem == NoItem)
	l.buf = append(l.buf, '}')
	return l, l.measure()
}

// members writes everything up to rollout_id, in the order of the names.
func (l *line) members(e *Entry, prompt, generation, probs, items []byte) {
	text := func(name, s string, null bool) {
		l.buf = append(l.buf, name...)
		if null && s == "" {
			l.buf = append(l.buf, "null"...)
			return
		}
		l.buf = jsonx.AppendString(l.buf, s)
	}
	value := func(name string, raw []byte) {
		l.buf = append(l.buf, name...)
		l.value(raw)
	}
	number := func(name string, n int, null bool) { l.buf = appendInt(append(l.buf, name...), n, null) }
	flag := func(name string, f bool) { l.buf = strconv.AppendBool(append(l.buf, name...), f) }

	text(`{"continuation_context_digest":`, e.ContextDigest, false)
	number(`,"continuation_context_len":`, e.ContextLen, false)
	text(`,"continuation_fingerprint":`, e.Fingerprint, false)
	l.buf = appendFloat(append(l.buf, `,"created_at":`...), e.CreatedAt)
	number(`,"cum_len":`, e.CumLen, e.Digest == "")
	text(`,"digest":`, e.Digest, true)
	number(`,"fingerprint_version":`, e.FingerprintVersion, e.FingerprintVersion == 0)
	value(`,"generation_log_probs":`, probs)
	value(`,"generation_token_ids":`, generation)
	text(`,"model":`, e.Model, false)
	text(`,"model_call_id":`, e.CallID, false)
	value(`,"output_items":`, items)
	text(`,"parent_call_id":`, e.ParentCallID, true)
	text(`,"parent_resolution":`, string(e.Parent), true)
	text(`,"parent_resolution_reason":`, e.ParentReason, false)
	flag(`,"prefix_requested":`, e.PrefixRequested)
	flag(`,"prefix_supplied":`, e.PrefixSupplied)
	flag(`,"prompt_is_delta":`, e.PromptIsDelta)
	value(`,"prompt_token_ids":`, prompt)
	text(`,"response_id":`, e.ResponseID, true)
	text(`,"rollout_id":`, e.Rollout, false)
}

func appendInt(dst []byte, n int, null bool) []byte {
	if null {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

func canonItems(raw []byte, carrier int) ([]byte, error) {
	if len(raw) == 0 {
		raw = []byte("[]")
	}
	items, err := canonAny(raw)
	if err != nil {
		return nil, err
	}
	if jsonx.KindOf(items) != jsonx.KindArray {
		return nil, fmt.Errorf("%w: output items are no array", ErrEntry)
	}
	n := 0
	for it := jsonx.Array(items); it.Next(); n++ {
		if jsonx.KindOf(it.Value()) != jsonx.KindObject {
			return nil, fmt.Errorf("%w: output item %d is no object", ErrEntry, n)
		}
	}
	if carrier >= n {
		return nil, fmt.Errorf("%w: item %d of %d carries the ids", ErrEntry, carrier, n)
	}
	return items, nil
}

func canonAny(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return []byte("null"), nil
	}
	if !jsonx.Valid(raw) {
		return nil, fmt.Errorf("%w: a member is no JSON", ErrEntry)
	}
	return appendCanon(make([]byte, 0, len(raw)), raw, 1)
}
