package dialect

import (
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// A Place tells what becomes of a member of the object at a path, whose name has no escapes: why it is lost, "" if it is not; or the path of
// an object that is read member by member, "" otherwise.
type Place func(at string, name []byte) (why canon.Reason, inside string)

// LoseRest tells as lost what the object at a path says besides what is read of it: usage, its details and the like. Zeros, false and what is
// empty say nothing.
func LoseRest(object []byte, at string, place Place, losses *canon.Losses) {
	if jsonx.KindOf(object) != jsonx.KindObject {
		if jsonx.Truthy(object) {
			losses.Add(at, canon.NotKnown)
		}
		return
	}
	for it := jsonx.Object(object); it.Next(); {
		name := jsonx.Unquoted(it.Key())
		switch why, inside := place(at, name); {
		case inside != "":
			LoseRest(it.Value(), inside, place, losses)
		case why != "" && jsonx.Truthy(it.Value()):
			losses.Add(at+"."+LossName(name), why)
		}
	}
}

// LossName is a name that the other side chose, bounded, as the path of a loss ends in it.
func LossName(name []byte) string {
	const most = 64
	switch {
	case len(name) == 0:
		return "unknown"
	case len(name) > most:
		return strings.ToValidUTF8(string(name[:most]), "")
	}
	return string(name)
}
