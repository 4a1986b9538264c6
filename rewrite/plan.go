package rewrite

import (
	"net/http"
	"slices"

	"rolltap/rewrite/canon"
)

// Plan is what is to be done with the body bytes of an exchange.
type Plan uint8

const (
	// Opaque is no model call: every byte passes, nothing is watched, nothing is recorded.
	Opaque Plan = iota
	// PassThrough is a model call in a dialect of the upstream: every byte passes, a copy is watched and recorded.
	PassThrough
	// Translate is a call in a dialect that the upstream does not speak. Nothing passes as it is.
	Translate
)

func (p Plan) String() string {
	switch p {
	case Opaque:
		return "opaque"
	case PassThrough:
		return "pass-through"
	case Translate:
		return "translate"
	}
	return "invalid"
}

// NewPlan decides from the method, the route and what the upstream speaks, best first. Only a POST is a model call or a token count; a count
// that the upstream can answer is Opaque, as it never leaves a record.
func NewPlan(method string, r Route, upstream []canon.Dialect) Plan {
	if method != http.MethodPost || r.Endpoint != Model && r.Endpoint != CountTokens {
		return Opaque
	}
	switch spoken := slices.Contains(upstream, r.Dialect); {
	case !spoken:
		return Translate
	case r.Endpoint == CountTokens:
		return Opaque
	}
	return PassThrough
}
