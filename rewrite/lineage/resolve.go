package lineage

// What a decision says of the parent.
const (
	Root       = "root"       // the model wrote none of the turns: there is no parent
	Resolved   = "resolved"   // the parent is known
	Unresolved = "unresolved" // there is a parent, but which one is not proven
)

// Why a parent is unresolved.
const (
	NoMatch             = "no_match"             // no committed call has these turns
	Ambiguous           = "ambiguous"            // several have, and their tokens differ
	LookupError         = "lookup_error"         // the turns could not be read, or the calls not searched
	ResolverUnavailable = "resolver_unavailable" // nobody keeps the calls
	NotAttempted        = "not_attempted"        // nobody asked
)

// Candidate is a committed call that may be the parent.
type Candidate struct {
	CallID string
	Stamp
	CumLen int    // token ids of prompt and generation
	Digest string // their token digest
}

// Decision is who the parent of a call is. It is made once, before the call goes out, and recorded with its tokens.
type Decision struct {
	Resolution string    // Root, Resolved or Unresolved
	Parent     Candidate // of Resolved only
	Reason     string    // of Unresolved only: one of the reasons above
}

// Resolve finds the parent of the call with these turns. lookup returns the committed calls of the rollout that have a fingerprint and were
// stamped with FingerprintVersion; it is asked once at most, and nil means that there is none to ask. Without turns (nil: they could not
// be read) the reason is LookupError. Calls that differ in their id alone can stand for each other: of those the smallest id is the parent.
func Resolve(t *Turns, lookup func(fingerprint string) ([]Candidate, error)) Decision {
	if t == nil {
		return Decision{Resolution: Unresolved, Reason: LookupError}
	}
	if t.fingerprint == "" {
		return Decision{Resolution: Root}
	}
	if lookup == nil {
		return Decision{Resolution: Unresolved, Reason: ResolverUnavailable}
	}
	found, err := lookup(t.fingerprint)
	if err != nil {
		return Decision{Resolution: Unresolved, Reason: LookupError}
	}

	var parent Candidate
	matches, same := 0, true
	calls := map[string]Candidate{}
	for _, c := range found {
		if known, ok := calls[c.CallID]; ok {
			if known != c {
				return Decision{Resolution: Unresolved, Reason: LookupError} // two records of one call contradict each other
			}
			continue
		}
		calls[c.CallID] = c
		if !t.continues(c) {
			continue
		}
		if matches++; matches == 1 {
			parent = c
			continue
		}
		if c.Digest != parent.Digest || c.CumLen != parent.CumLen || c.Digest == "" {
			same = false
		}
		if c.CallID < parent.CallID {
			parent = c
		}
	}
	switch {
	case matches == 0:
		return Decision{Resolution: Unresolved, Reason: NoMatch}
	case !same:
		return Decision{Resolution: Unresolved, Reason: Ambiguous}
	}
	return Decision{Resolution: Resolved, Parent: parent}
}

// continues reports whether the turns are those of c and more.
func (t *Turns) continues(c Candidate) bool {
	return c.Fingerprint == t.fingerprint && c.ContextDigest != "" && c.ContextDigest == t.Digest(c.ContextLen)
}
