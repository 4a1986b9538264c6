package rewrite

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Call is what the exchange around one translation knows.
type Call struct {
	ID      string         // as dialect.Options.ID
	Record  string         // the id under which the call is recorded, which errors name; "" none
	Created int64          // when the exchange began, in Unix seconds
	Codex   bool           // the client is Codex
	Target  dialect.Target // what the target of the client's request says of the call
	Valid   bool           // the client's request is known to be one valid JSON object, so that nobody has to look
	Room    []byte         // memory that the upstream's request may be in; what does not fit gets memory of its own
	// Served says what the upstream calls the model that the client asks for, empty: as the client does; nil says that of all.
	Served func(asked string) (model string)
	// Window is how many tokens a model of the upstream holds, 0 unknown; nil says that of all. It is asked when policy needs it.
	Window func(model string) int64
	// Remembered gives a part that an earlier answer of the same rollout held, by the id of its item; nil: nothing is remembered.
	Remembered func(id string) (canon.Part, bool)
}
