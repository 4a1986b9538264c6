package lineage

import (
	"fmt"

	"rolltap/internal/jsonx"
)

// reader hashes turns, one after the other.
type reader struct {
	context, prints hasher
	wrote           bool // a turn of the model was read
	answer          bool // the turns are an answer: only prints counts
	authored        bool // the turn at hand is the model's

	role []byte // the role of turns that name none, as JSON

	text, id       []byte // what is hashed next, decoded
	canon          canonical
	calls, results [][]byte // the tool_use and tool_result blocks of the turn at hand
}

func newReader() *reader {
	return &reader{context: newHasher(contextDomain), prints: newHasher(fingerprintDomain)}
}

// no is the tag of a field that the fingerprint leaves out.
const no = 0xff

// both writes a field to the context and, in a turn of the model, to the fingerprint. The two number their fields differently.
func (r *reader) both(context, prints byte, s []byte) {
	if !r.answer {
		r.context.field(context, s)
	}
	if r.authored && prints != no {
		r.prints.field(prints, s)
	}
}

func (r *reader) fingerprint() string {
	if !r.wrote {
		return ""
	}
	return r.prints.hex()
}

// envelope hashes the turn that stands for instructions and tools: their JSON as a text, as Python's json.dumps writes it by default.
func (r *reader) envelope(instructions, tools []byte) error {
	r.authored = false
	r.text = append(r.text[:0], `{"instructions": `...)
	for i, v := range [][]byte{instructions, tools} {
		if i == 1 {
			r.text = append(r.text, `, "tools": `...)
		}
		if v == nil {
			v = []byte("null")
		}
		var ok bool
		if r.text, ok = r.canon.append(r.text, v, spaced, i == 1); !ok {
			return fmt.Errorf("%w: instructions or tools", ErrUnsupported)
		}
	}
	r.text = append(r.text, '}')
	r.both(0, no, []byte(envelopeRole))
	r.part([]byte("text"), r.text)
	return nil
}

// turn hashes one turn: what it is, its content, its tool calls and its tool results.
func (r *reader) turn(raw []byte) error {
	if jsonx.KindOf(raw) != jsonx.KindObject {
		return fmt.Errorf("%w: no object", ErrUnsupported)
	}
	keys := [...]string{"role", "type", "content", "tool_calls", "call_id", "id", "name", "namespace", "arguments", "output", "tool_call_id"}
	var found [len(keys)][]byte
	jsonx.GetAll(raw, keys[:], found[:])
	role, kind, content, toolCalls := found[0], found[1], found[2], found[3]
	if role == nil {
		role = r.role
	}
	call := is(kind, "function_call")
	r.authored = call || is(role, "assistant")
	r.wrote = r.wrote || r.authored

	var err error
	if r.id, err = appendTruthy(r.id[:0], role, kind); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	r.both(0, no, r.id)
	if err := r.content(content, is(role, "assistant")); err != nil {
		return err
	}
	if call {
		if err := r.call([2][]byte{found[4], found[5]}, found[6], found[7], found[8]); err != nil {
			return err
		}
	}
	for _, use := range r.calls {
		keys := [...]string{"id", "name", "input"}
		var found [len(keys)][]byte
		jsonx.GetAll(use, keys[:], found[:])
		if err := r.call([2][]byte{found[0]}, found[1], nil, found[2]); err != nil {
			return err
		}
	}
	if err := r.toolCalls(toolCalls); err != nil {
		return err
	}
	switch {
	case is(kind, "function_call_output"):
		err = r.result([2][]byte{found[4], found[5]}, found[9])
	case is(role, "tool"):
		err = r.result([2][]byte{found[10]}, content)
	}
	for i := 0; i < len(r.results) && err == nil; i++ {
		keys := [...]string{"tool_use_id", "id", "content"}
		var found [len(keys)][]byte
		jsonx.GetAll(r.results[i], keys[:], found[:])
		err = r.result([2][]byte{found[0], found[1]}, found[2])
	}
	return err
}

// content hashes the parts of a content and notes its tool blocks. assistant says that blocks of reasoning may be among them.
func (r *reader) content(content []byte, assistant bool) error {
	r.calls, r.results = r.calls[:0], r.results[:0]
	switch jsonx.KindOf(content) {
	case jsonx.KindInvalid, jsonx.KindNull:
		return nil
	case jsonx.KindString:
		r.textPart(content)
		return nil
	case jsonx.KindArray:
	default:
		return fmt.Errorf("%w: content is neither text nor list", ErrUnsupported)
	}
	for it := jsonx.Array(content); it.Next(); {
		block := it.Value()
		switch jsonx.KindOf(block) {
		case jsonx.KindString:
			r.textPart(block)
			continue
		case jsonx.KindObject:
		default:
			return fmt.Errorf("%w: a block of content is no object", ErrUnsupported)
		}
		keys := [...]string{"type", "text"}
		var found [len(keys)][]byte
		jsonx.GetAll(block, keys[:], found[:])
		var err error
		if r.id, err = appendTruthy(r.id[:0], found[0]); err != nil {
			return fmt.Errorf("type of a block: %w", err)
		}
		text := jsonx.KindOf(found[1]) == jsonx.KindString
		switch string(r.id) {
		case "tool_use":
			r.calls = append(r.calls, block)
			continue
		case "tool_result":
			r.results = append(r.results, block)
			continue
		case "thinking", "redacted_thinking":
			if assistant {
				continue
			}
		case "", "text", "input_text", "output_text":
			if text {
				r.textPart(found[1])
				continue
			}
		}
		if len(r.id) == 0 {
			return fmt.Errorf("%w: a block of content has no type", ErrUnsupported)
		}
		if err := r.canonical(block); err != nil {
			return err
		}
		r.part(r.id, r.text)
	}
	return nil
}

// textPart hashes a string as a part; an empty one is none.
func (r *reader) textPart(raw []byte) {
	if r.text = appendText(r.text[:0], raw); len(r.text) > 0 {
		r.part([]byte("text"), r.text)
	}
}

func (r *reader) part(kind, payload []byte) {
	r.both(1, 0, kind)
	r.both(2, 1, payload)
}

// toolCalls hashes the calls of a Chat message.
func (r *reader) toolCalls(raw []byte) error {
	if !jsonx.Truthy(raw) {
		return nil
	}
	if jsonx.KindOf(raw) != jsonx.KindArray {
		return fmt.Errorf("%w: tool_calls is no list", ErrUnsupported)
	}
	for it := jsonx.Array(raw); it.Next(); {
		call, function := it.Value(), jsonx.Get(it.Value(), "function")
		for _, v := range [][]byte{call, function} {
			if jsonx.Truthy(v) && jsonx.KindOf(v) != jsonx.KindObject {
				return fmt.Errorf("%w: a tool call is no object", ErrUnsupported)
			}
		}
		keys := [...]string{"name", "arguments"}
		var found [len(keys)][]byte
		jsonx.GetAll(function, keys[:], found[:])
		if err := r.call([2][]byte{jsonx.Get(call, "id")}, found[0], nil, found[1]); err != nil {
			return err
		}
	}
	return nil
}

// call hashes a tool call. Its id is the first that is there.
func (r *reader) call(ids [2][]byte, name, namespace, arguments []byte) (err error) {
	if r.text, err = appendTruthy(r.text[:0], ids[:]...); err != nil {
		return fmt.Errorf("id of a tool call: %w", err)
	}
	r.both(3, 2, r.text)
	r.text = r.text[:0]
	if jsonx.Truthy(namespace) {
		if r.text, err = appendStr(r.text, namespace); err != nil {
			return fmt.Errorf("namespace of a tool call: %w", err)
		}
		r.text = append(r.text, "__"...)
	}
	if name != nil {
		if r.text, err = appendStr(r.text, name); err != nil {
			return fmt.Errorf("name of a tool call: %w", err)
		}
	}
	r.both(4, 3, r.text)
	if err := r.arguments(arguments); err != nil {
		return err
	}
	r.both(5, 4, r.text)
	return nil
}

// arguments makes r.text the normal form of a tool call's arguments: clients write them anew.
func (r *reader) arguments(raw []byte) error {
	switch {
	case jsonx.IsNull(raw):
		r.text = r.text[:0]
	case jsonx.KindOf(raw) == jsonx.KindString:
		r.id = appendText(r.id[:0], raw)
		var ok bool
		if r.text, ok = r.canon.append(r.text[:0], r.id, compact, false); !ok {
			r.text = append(r.text[:0], strip(r.id)...)
		}
	default:
		var ok bool
		if r.text, ok = r.canon.append(r.text[:0], raw, compact, false); !ok {
			return fmt.Errorf("%w: arguments of a tool call", ErrUnsupported)
		}
	}
	return nil
}

// result hashes what a tool said: a text as it is, anything else as JSON.
func (r *reader) result(ids [2][]byte, payload []byte) (err error) {
	if r.text, err = appendTruthy(r.text[:0], ids[:]...); err != nil {
		return fmt.Errorf("id of a tool result: %w", err)
	}
	r.both(6, no, r.text)
	if jsonx.KindOf(payload) == jsonx.KindString {
		r.text = appendText(r.text[:0], payload)
	} else if err := r.canonical(payload); err != nil {
		return err
	}
	r.both(7, no, r.text)
	return nil
}

// canonical makes r.text the canonical JSON of a block or of a list of blocks; of what is absent, null.
func (r *reader) canonical(raw []byte) error {
	if raw == nil {
		raw = []byte("null")
	}
	var ok bool
	if r.text, ok = r.canon.append(r.text[:0], raw, compact, true); !ok {
		return fmt.Errorf("%w: a block of content", ErrUnsupported)
	}
	return nil
}
