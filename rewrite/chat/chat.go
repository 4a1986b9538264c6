package chat

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

type chat struct{}

// New is the dialect; it has no state.
func New() dialect.Dialect { return chat{} }

func (chat) Name() canon.Dialect { return canon.Chat }

func (chat) Path() string { return "/v1/chat/completions" }
