package rewrite

import (
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Call is what the exchange around one translation knows.
type Call struct {
	ID          string         // as dialect.Options.ID
	Created     int64          // when the exchange began, in Unix seconds
	Codex       bool           // the client is Codex
	Target      dialect.Target // what the target of the client's request says of the call
	Model       string         // what the upstream calls the model; empty: as the client does
	MaxModelLen int64          // what the upstream says of that model; 0 unknown
	// Remembered gives a part that an earlier answer of the same rollout held, by the id of its item; nil: nothing is remembered.
	Remembered func(id string) (canon.Part, bool)
}
