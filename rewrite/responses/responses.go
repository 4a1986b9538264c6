package responses

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

type responses struct{}

// New is the dialect; it has no state.
func New() dialect.Dialect { return responses{} }

func (responses) Name() canon.Dialect { return canon.Responses }

func (responses) Path() string { return "/v1/responses" }
