package chat

import "rolltap/rewrite/dialect"

type chat struct{}

// New is the dialect; it has no state.
func New() dialect.Dialect { return chat{} }

func (chat) Name() dialect.Name { return dialect.Chat }

func (chat) Path() string { return "/v1/chat/completions" }
