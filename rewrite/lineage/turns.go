package lineage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"rolltap/internal/jsonx"
)

// FingerprintVersion names the way in which fingerprints are made. Entries of another version are no candidates.
const FingerprintVersion = 2

const (
	fingerprintDomain = "nemo-gym-lineage"
	contextDomain     = "nemo-gym-lineage-context"
)

// envelopeRole is the role of the turn that stands for what shapes the prompt beside the turns.
const envelopeRole = "_ng_request_envelope"

// ErrUnsupported says that a request or an answer has a turn that no dialect allows, so that there is nothing to hash.
var ErrUnsupported = errors.New("unsupported turn")

// Turns are the turns of a request, hashed. They keep nothing of the body, do not change, and may be used by several goroutines.
type Turns struct {
	digests     [][sha256.Size]byte // digests[n] is the context digest of the first n turns
	fingerprint string
	prints      hash.Hash // the fingerprint's state behind the last turn; cloned, never written to
	authored    bool      // some turn is the model's
}

// Stamp is what a committed call says of itself, for its children to find it by.
type Stamp struct {
	Fingerprint   string // over the turns of the request and of the answer; "" if the model wrote none of them: nothing continues the call
	ContextLen    int    // turns of the request
	ContextDigest string // over the turns of the request
}

// Read hashes the turns of body, a valid JSON object in any dialect: the envelope, if there are instructions or tools,
// then the elements of messages, else of input, or where there is neither the contents of Gemini. An input that is a text has no turns, and null is none. Reading is one pass; body is not kept.
// Its only error is ErrUnsupported, wrapped.
func Read(body []byte) (*Turns, error) {
	if jsonx.KindOf(body) != jsonx.KindObject {
		return nil, fmt.Errorf("%w: the request is no object", ErrUnsupported)
	}
	keys := [...]string{"messages", "input", "instructions", "tools", "contents"}
	var found [len(keys)][]byte
	jsonx.GetAll(body, keys[:], found[:])
	turns, input, instructions, tools, contents := found[0], found[1], found[2], found[3], found[4]
	gemini := turns == nil && input == nil && instructions == nil && jsonx.KindOf(contents) == jsonx.KindArray
	switch {
	case gemini:
		instructions = either(body, "systemInstruction", "system_instruction")
	case jsonx.KindOf(turns) != jsonx.KindArray:
		turns = input
	}

	r := newReader()
	t := &Turns{digests: make([][sha256.Size]byte, 1, 16)}
	r.context.sum(&t.digests[0])
	done := func() {
		t.digests = append(t.digests, [sha256.Size]byte{})
		r.context.sum(&t.digests[len(t.digests)-1])
	}
	if jsonx.Truthy(instructions) || jsonx.Truthy(tools) {
		if err := r.envelope(instructions, tools); err != nil {
			return nil, err
		}
		done()
	}
	if gemini {
		if err := r.contents(contents, done); err != nil {
			return nil, fmt.Errorf("turn %d: %w", len(t.digests)-1, err)
		}
	}
	for it := jsonx.Array(turns); it.Next(); {
		if jsonx.IsNull(it.Value()) {
			continue
		}
		if err := r.turn(it.Value()); err != nil {
			return nil, fmt.Errorf("turn %d: %w", len(t.digests)-1, err)
		}
		done()
	}
	t.prints, t.authored = r.prints.h, r.wrote
	t.fingerprint = r.fingerprint()
	return t, nil
}

// Len is the number of turns, the envelope included.
func (t *Turns) Len() int { return len(t.digests) - 1 }

// Fingerprint is the key under which the parent is found; "" when the model wrote no turn.
func (t *Turns) Fingerprint() string { return t.fingerprint }

// Digest is the context digest of the first n turns, of which there must be as many; else "".
func (t *Turns) Digest(n int) string {
	if n < 0 || n >= len(t.digests) {
		return ""
	}
	return hex.EncodeToString(t.digests[n][:])
}

// Stamp returns what a call with these turns and this answer says of itself. answer is the whole answer in the client's dialect, a valid
// JSON object: the form in which the client sends it back later. Its turns are the elements of a Responses output, the one message of
// Messages, the messages of all choices of Chat, or the contents of all candidates of Gemini; those of several match no request. Its only error is ErrUnsupported, wrapped.
func (t *Turns) Stamp(answer []byte) (Stamp, error) {
	s := Stamp{ContextLen: t.Len(), ContextDigest: t.Digest(t.Len())}
	if jsonx.KindOf(answer) != jsonx.KindObject {
		return s, fmt.Errorf("%w: the answer is no object", ErrUnsupported)
	}
	r := newReader()
	state, err := t.prints.(hash.Cloner).Clone()
	if err != nil {
		return s, fmt.Errorf("clone the fingerprint: %w", err)
	}
	r.prints.h, r.wrote, r.answer = state, t.authored, true

	keys := [...]string{"output", "type", "role", "choices", "candidates"}
	var found [len(keys)][]byte
	jsonx.GetAll(answer, keys[:], found[:])
	output, kind, role, choices, candidates := found[0], found[1], found[2], found[3], found[4]
	switch {
	case jsonx.KindOf(output) == jsonx.KindArray && jsonx.Truthy(output):
		for it := jsonx.Array(output); it.Next() && err == nil; {
			if jsonx.KindOf(it.Value()) == jsonx.KindObject {
				err = r.turn(it.Value())
			}
		}
	case is(kind, "message") && is(role, "assistant"):
		err = r.turn(answer)
	case choices == nil && candidates != nil:
		for it := jsonx.Array(candidates); it.Next() && err == nil; {
			err = r.parts([][]byte{jsonx.Get(jsonx.Get(it.Value(), "content"), "parts")}, true)
		}
	default:
		r.role = []byte(`"assistant"`)
		for it := jsonx.Array(choices); it.Next() && err == nil; {
			message := jsonx.Get(it.Value(), "message")
			if !jsonx.Truthy(message) {
				message = []byte("{}")
			}
			err = r.turn(message)
		}
	}
	if err != nil {
		return s, fmt.Errorf("answer: %w", err)
	}
	s.Fingerprint = r.fingerprint()
	return s, nil
}
