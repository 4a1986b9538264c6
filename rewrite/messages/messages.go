package messages

import "rolltap/rewrite/dialect"

type messages struct{}

// New is the dialect; it has no state.
func New() dialect.Dialect { return messages{} }

func (messages) Name() dialect.Name { return dialect.Messages }

func (messages) Path() string { return "/v1/messages" }
