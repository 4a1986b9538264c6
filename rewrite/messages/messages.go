package messages

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

type messages struct{}

// New is the dialect; it has no state.
func New() dialect.Dialect { return messages{} }

func (messages) Name() canon.Dialect { return canon.Messages }

func (messages) Path() string { return "/v1/messages" }
