package rewrite

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/chat"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/gemini"
	"rolltap/rewrite/messages"
	"rolltap/rewrite/responses"
)

// Dialects lists every dialect; a new one joins by a line here.
func Dialects() []dialect.Dialect {
	return []dialect.Dialect{chat.New(), messages.New(), responses.New(), gemini.New()}
}

// DialectOf is the dialect of that name, nil when there is none.
func DialectOf(n canon.Dialect) dialect.Dialect {
	for _, d := range Dialects() {
		if d.Name() == n {
			return d
		}
	}
	return nil
}
