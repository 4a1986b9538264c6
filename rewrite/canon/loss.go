package canon

import "strconv"

// Reason says why something was lost.
type Reason string

// The reasons of losses.
const (
	NoEquivalent Reason = "no_equivalent" // the other dialect has no place for it
	ByPolicy     Reason = "policy"        // a rewrite key says so
	Foreign      Reason = "foreign"       // only who made it can read it: signatures, encrypted contents, references
	NotKnown     Reason = "unknown"       // a member, block or item that nobody here knows
)

// Loss is one thing that did not reach the other side. Path leads to it in the client's request, or in the upstream's answer, and ends
// in the name of what was lost: "metadata.user_id", "tools[1].web_search", "messages[3].content[0].cache_control".
type Loss struct {
	Path   string
	Reason Reason
}

// At is the path of element i of a list: "messages[3]".
func At(list string, i int) string {
	var buf [64]byte
	b := append(append(buf[:0], list...), '[')
	return string(append(strconv.AppendInt(b, int64(i), 10), ']'))
}

// maxLosses bounds the list of one exchange; the last entry then says that there were more.
const maxLosses = 1000

// Losses is what was lost in one exchange, in order and each once. The zero Losses is empty and ready; one goroutine at a time. A nil
// *Losses takes everything and keeps nothing.
type Losses struct {
	list []Loss
	seen map[Loss]struct{}
}

// Add notes a loss, unless it was noted before.
func (l *Losses) Add(path string, why Reason) {
	if l == nil || len(l.list) >= maxLosses {
		return
	}
	if len(l.list) == maxLosses-1 {
		path, why = "more", NotKnown
	}
	loss := Loss{path, why}
	if _, ok := l.seen[loss]; ok {
		return
	}
	if l.seen == nil {
		l.seen = map[Loss]struct{}{}
	}
	l.seen[loss] = struct{}{}
	l.list = append(l.list, loss)
}

// List is what was noted so far; it is not changed by later calls of Add.
func (l *Losses) List() []Loss {
	if l == nil {
		return nil
	}
	return l.list[:len(l.list):len(l.list)]
}
