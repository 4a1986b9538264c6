package training

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"rolltap/internal/jsonx"
)

const (
	stateMax = 64 << 20 // bytes of a state file
	marksMax = 64       // marks whose words are kept; more are counted
)

// state is what <id>.tokens.state.json holds, with what the file of entries has beyond it (capture.md 5.6).
type state struct {
	frozen, retired, incomplete bool
	snapshot                    string
	version                     int64
	indexed                     int64 // bytes of the file of entries that digests cover
	digests                     map[string][sha256.Size]byte
	legacy                      bool // written before there was an index

	marks     []Marked
	more      int64            // marks beyond marksMax
	withdrawn map[string]int64 // intents that were taken back, by reason
	extra     []member         // members that we do not know, to be kept
}

// Marked is one reason why a rollout is incomplete.
type Marked struct {
	CallID string
	Reason string
	At     string // Unix seconds, as spelled
}

func newState() *state {
	return &state{digests: map[string][sha256.Size]byte{}, withdrawn: map[string]int64{}}
}

// readState reads the state of a rollout; without a file it is that of one nobody wrote to.
func readState(fsys files, path string) (*state, error) {
	f, err := fsys.open(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return newState(), nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > stateMax {
		return nil, fmt.Errorf("%w: the state has %d bytes", ErrDamaged, st.Size())
	}
	b := make([]byte, st.Size())
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return parseState(b)
}

func parseState(b []byte) (*state, error) {
	if !jsonx.ValidObject(b) {
		return nil, fmt.Errorf("%w: the state is no JSON object", ErrDamaged)
	}
	s := newState()
	indexed, digests := false, false
	bad := ""
	for it := jsonx.Object(b); it.Next(); {
		name, value, ok := string(jsonx.Unquoted(it.Key())), it.Value(), true
		switch name {
		case "frozen":
			s.frozen, ok = boolean(value)
		case "retired":
			s.retired, ok = boolean(value)
		case "incomplete":
			s.incomplete, ok = boolean(value)
		case "snapshot_id":
			s.snapshot, ok = jsonx.Text(value)
		case "version":
			s.version, ok = jsonx.Int(value)
		case "indexed_size":
			s.indexed, indexed = jsonx.Int(value)
		case "entry_digests":
			digests = jsonx.KindOf(value) == jsonx.KindObject
			ok = s.readDigests(value)
		case "rolltap":
			s.readOurs(value)
		default:
			s.extra = append(s.extra, member{key: slices.Clone(it.Key()), value: slices.Clone(value)})
		}
		if !ok {
			bad = name
		}
	}
	switch {
	case bad != "":
		return nil, fmt.Errorf("%w: the state's %s is none", ErrDamaged, bad)
	case s.frozen && s.snapshot == "":
		return nil, fmt.Errorf("%w: the state is frozen without a snapshot id", ErrDamaged)
	case !indexed || !digests:
		s.legacy, s.indexed = true, 0
		clear(s.digests)
	case s.indexed < 0:
		return nil, fmt.Errorf("%w: the state's indexed_size is negative", ErrDamaged)
	}
	return s, nil
}

func boolean(raw []byte) (value, ok bool) {
	return string(raw) == "true", jsonx.KindOf(raw) == jsonx.KindBool
}

func (s *state) readDigests(raw []byte) bool {
	for it := jsonx.Object(raw); it.Next(); {
		text, _ := jsonx.Text(it.Value())
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return false
		}
		s.digests[string(jsonx.Unquoted(it.Key()))] = [sha256.Size]byte(sum)
	}
	return true
}

// readOurs reads the member that only we write. What is wrong in it is no damage: nothing depends on it.
func (s *state) readOurs(raw []byte) {
	for it := jsonx.Array(jsonx.Get(raw, "marks")); it.Next(); {
		var m Marked
		m.CallID, _ = jsonx.Text(jsonx.Get(it.Value(), "call_id"))
		m.Reason, _ = jsonx.Text(jsonx.Get(it.Value(), "reason"))
		if at := jsonx.Get(it.Value(), "at"); jsonx.KindOf(at) == jsonx.KindNumber {
			m.At = string(at)
		}
		s.mark(m)
	}
	if n, ok := jsonx.Int(jsonx.Get(raw, "more")); ok && n > 0 {
		s.more += n
	}
	for it := jsonx.Object(jsonx.Get(raw, "withdrawn")); it.Next(); {
		if n, ok := jsonx.Int(it.Value()); ok {
			s.withdraw(string(jsonx.Unquoted(it.Key())), n)
		}
	}
}

func (s *state) mark(m Marked) {
	if len(s.marks) >= marksMax {
		s.more++
		return
	}
	s.marks = append(s.marks, m)
}

func (s *state) withdraw(why string, n int64) {
	words := len(s.withdrawn)
	if _, ok := s.withdrawn["other"]; ok {
		words--
	}
	if _, ok := s.withdrawn[why]; !ok && words >= marksMax {
		why = "other"
	}
	s.withdrawn[why] += n
}

// encode writes the state as the reference does: members sorted, compact, with a newline.
func (s *state) encode() []byte {
	b := make([]byte, 0, 512+len(s.digests)*112)
	b = append(b, '{')
	if !s.legacy {
		b = s.appendDigests(b)
	}
	b = strconv.AppendBool(append(b, `"frozen":`...), s.frozen)
	b = strconv.AppendBool(append(b, `,"incomplete":`...), s.incomplete)
	if !s.legacy {
		b = strconv.AppendInt(append(b, `,"indexed_size":`...), s.indexed, 10)
	}
	b = strconv.AppendBool(append(b, `,"retired":`...), s.retired)
	b = s.appendOurs(b)
	b = jsonx.AppendString(append(b, `,"snapshot_id":`...), s.snapshot)
	b = strconv.AppendInt(append(b, `,"version":`...), s.version, 10)
	for _, m := range s.extra {
		b = append(append(b, `,"`...), m.key...)
		b = append(append(b, `":`...), m.value...)
	}
	return append(b, "}\n"...)
}

func (s *state) appendDigests(b []byte) []byte {
	b = append(b, `"entry_digests":{`...)
	for i, call := range slices.Sorted(maps.Keys(s.digests)) {
		if i > 0 {
			b = append(b, ',')
		}
		sum := s.digests[call]
		b = append(jsonx.AppendString(b, call), `:"`...)
		b = append(hex.AppendEncode(b, sum[:]), '"')
	}
	return append(b, "},"...)
}

func (s *state) appendOurs(b []byte) []byte {
	if len(s.marks) == 0 && len(s.withdrawn) == 0 && s.more == 0 {
		return b
	}
	b = append(b, `,"rolltap":{"marks":[`...)
	for i, m := range s.marks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if m.At != "" {
			b = append(append(append(b, `"at":`...), m.At...), ',')
		}
		b = jsonx.AppendString(append(b, `"call_id":`...), m.CallID)
		b = append(jsonx.AppendString(append(b, `,"reason":`...), m.Reason), '}')
	}
	b = strconv.AppendInt(append(b, `],"more":`...), s.more, 10)
	b = append(b, `,"withdrawn":{`...)
	for i, why := range slices.Sorted(maps.Keys(s.withdrawn)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonx.AppendString(b, why), ':')
		b = strconv.AppendInt(b, s.withdrawn[why], 10)
	}
	return append(b, "}}"...)
}
