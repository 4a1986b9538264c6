package responses

import "rolltap/rewrite/dialect"

type responses struct{}

// New is the dialect; it has no state.
func New() dialect.Dialect { return responses{} }

func (responses) Name() dialect.Name { return dialect.Responses }

func (responses) Path() string { return "/v1/responses" }
