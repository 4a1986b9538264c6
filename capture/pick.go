package capture

import "rolltap/internal/jsonx"

// Picks says of which members an outline has lists and objects, by name and as deep as the names go; a list has those that its object would
// have. Of a member that is named with nil everything inside is kept. What is not named is null where it is a list or an object.
type Picks map[string]Picks

// Pick is Refer for readers that want little of a line: what is not picked takes no room. Texts outside of bodies that are cut have rests, too.
func (l *Lines) Pick(beyond int, picks Picks) { l.beyond, l.refer, l.picks = beyond, true, picks }

// bodySpan is where a body lies in the file.
type bodySpan struct {
	from, size int64
	kind       jsonx.Kind
}

// bodies is how many members of a line are bodies.
const bodies = 4

func bodyOf(key []byte) int {
	switch string(key) {
	case "request":
		return 0
	case "response":
		return 1
	case "request_raw":
		return 2
	case "response_raw":
		return 3
	}
	return -1
}

// Body is a rest for all of a body, as it stands in the file, of a line that is cut: white space included, and also what was not picked. kind is
// invalid when the line has no such list, object or text.
func (l Line) Body(name string) (value []byte, kind jsonx.Kind) {
	i := bodyOf([]byte(name))
	if i < 0 || l.outline == nil {
		return nil, jsonx.KindInvalid
	}
	s := l.outline.spans[i]
	if s.kind == jsonx.KindInvalid {
		return nil, s.kind
	}
	return appendRest(nil, textRest{restRaw, s.from, s.size}), s.kind
}

// picked is what is picked of a container that begins now, and whether it is picked itself.
func (o *outline) picked() (Picks, bool) {
	if len(o.open) == 0 {
		return o.picks, true
	}
	if in := &o.open[len(o.open)-1]; in.close == ']' || in.picks == nil {
		return in.picks, true
	}
	return o.pick, !o.drop
}

// begins and ends are told of values, and keep where bodies are.
func (o *outline) begins(b byte, at int64) {
	if o.body >= 0 && len(o.open) == 1 {
		s := bodySpan{from: at, kind: jsonx.KindOf([]byte{b})}
		switch s.kind {
		case jsonx.KindObject, jsonx.KindArray, jsonx.KindString:
		default:
			s = bodySpan{}
		}
		o.spans[o.body] = s
	}
}

func (o *outline) ends(at int64) {
	if o.body >= 0 && len(o.open) == 1 {
		o.spans[o.body].size = at - o.spans[o.body].from
	}
}
