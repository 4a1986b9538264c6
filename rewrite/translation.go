package rewrite

import (
	"slices"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// Translation is one exchange between a client and an upstream that speak different dialects: the request is translated once, then the
// answer, whole or as a Stream. It belongs to one goroutine at a time.
type Translation struct {
	client, upstream dialect.Dialect
	policy           *Policy
	call             Call
	losses           canon.Losses
	asked            *canon.Request // what answers need of the client's request; nil until Request has succeeded
	names            *toolNames
	window           int64 // how many tokens the model holds, where policy had to ask; 0 unknown
}

// NewTranslation begins a translation. The policy is not changed as long as it lasts.
func NewTranslation(client, upstream dialect.Dialect, p *Policy, c Call) *Translation {
	return &Translation{client: client, upstream: upstream, policy: p, call: c}
}

// Request translates the client's request. The error is a *canon.Problem that names the field at fault; nothing may be sent upstream then.
// Nothing is kept of the body.
func (t *Translation) Request(body []byte) ([]byte, error) {
	if !t.call.Valid && !jsonx.ValidObject(body) {
		return nil, canon.Invalid("", "the body must be one JSON object")
	}
	if err := checkNames(body); err != nil {
		return nil, err
	}
	asked, err := t.client.ReadCall(body, t.options())
	if err != nil {
		return nil, err
	}
	metadata := asked.Params[canon.ParamMetadata]
	sent := *asked // what is sent is changed, not what was asked for
	if t.call.Served != nil {
		if model := t.call.Served(string(jsonx.Unquoted(asked.Model))); model != "" {
			quoted := jsonx.AppendString(nil, model)
			sent.Model = quoted[1 : len(quoted)-1]
		}
	}
	call := t.call
	if call.Window != nil {
		call.Window = func(model string) int64 {
			t.window = t.call.Window(model)
			return t.window
		}
	}
	names, err := t.policy.prepare(&sent, t.upstream.Name(), call, &t.losses)
	if err != nil {
		return nil, err
	}
	room := slices.Grow(t.call.Room[:0], RoomFor(len(body)))
	t.call.Room = nil // whoever gave it says how long it lasts
	up, err := t.upstream.AppendCall(room, &sent, t.options())
	if err != nil {
		return nil, err
	}
	written := up
	if up, err = t.policy.mergeExtras(up, metadata); err != nil {
		return nil, err
	}
	if t.upstream.Name() == canon.Messages && t.client.Name() != canon.Messages {
		if up, err = t.policy.forbid(up, written, t.client.Name(), &t.losses); err != nil {
			return nil, err
		}
	}
	t.asked, t.names = forAnswers(t.client, asked), names
	return up, nil
}

// RoomFor is how much memory the request that is made of one of n bytes mostly needs.
func RoomFor(n int) int { return n + n/8 + 512 }

// Asked is the model that the client asks for, and whether it wants an event stream; ok tells that its request was understood.
func (t *Translation) Asked() (model string, stream, ok bool) {
	if t.asked == nil {
		return "", false, false
	}
	return string(jsonx.Unquoted(t.asked.Model)), t.asked.Stream, true
}

// Streamed tells whether the client wants an event stream.
func (t *Translation) Streamed() bool { return t.asked != nil && t.asked.Stream }

// Losses is what did not reach the other side so far.
func (t *Translation) Losses() []canon.Loss { return t.losses.List() }

// Answer translates a whole answer that is no error, the client having asked for no stream.
func (t *Translation) Answer(body []byte) ([]byte, error) {
	a, err := t.read(body)
	if err != nil {
		return nil, err
	}
	if a, err = t.filtered(a); err != nil {
		return nil, err
	}
	return t.append(a)
}

// read decodes a whole answer of the upstream; an error in disguise is a *canon.Problem with its own status.
func (t *Translation) read(body []byte) (*canon.Answer, error) {
	if !jsonx.ValidObject(body) || checkNames(body) != nil {
		return nil, noAnswer("it is no JSON object")
	}
	if t.upstream.IsError(body) {
		return nil, t.upstream.ReadError(0, body)
	}
	a, err := t.upstream.ReadAnswer(body, t.options())
	if err != nil {
		return nil, noAnswer(err.Error())
	}
	t.strangers(a)
	return a, nil
}

// strangers tells as lost what nobody knows in a whole answer, as a decoder tells it of a stream: no event says it.
func (t *Translation) strangers(a *canon.Answer) {
	lose := func(m *canon.Member, holder string) {
		t.losses.Add(lostAt(m.In(holder), dialect.LossName(jsonx.Unquoted(m.Name))), canon.NotKnown)
	}
	for i := range a.Extra {
		lose(&a.Extra[i], "")
	}
	list := "output"
	if t.upstream.Name() == canon.Messages {
		list = "content"
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		holder := p.Path
		if holder == "" {
			holder = canon.At(list, i)
		}
		for j := range p.Extra {
			lose(&p.Extra[j], holder)
		}
	}
}

// filtered gives a whole answer the names that the client knows, and its seals.
func (t *Translation) filtered(a *canon.Answer) (*canon.Answer, error) {
	var fold canon.Folder
	chain := t.chain()
	var events []canon.Event
	err := a.Replay(func(e *canon.Event) error {
		var err error
		if events, err = chain.run(events[:0], e); err != nil {
			return err
		}
		for i := range events {
			if err := fold.Event(&events[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fold.Answer(), nil
}

func (t *Translation) append(a *canon.Answer) ([]byte, error) {
	if a.Failed != nil {
		return nil, a.Failed
	}
	return t.client.AppendAnswer(nil, a, t.asked, t.options())
}

// Problem reads an answer of the upstream with an error status.
func (t *Translation) Problem(status int, body []byte) *canon.Problem {
	return t.upstream.ReadError(status, body)
}

// Overflows tells whether policy answers the problem with an empty turn, cut by length.
func (t *Translation) Overflows(p *canon.Problem) bool {
	return p.Code == canon.CodeOverflow && t.policy.ContextOverflow == "length" && t.asked != nil
}

// EmptyTurn is that turn, for a client that wants no stream.
func (t *Translation) EmptyTurn() ([]byte, error) { return t.append(emptyTurn()) }

func emptyTurn() *canon.Answer {
	return &canon.Answer{Usage: canon.NoUsage(), Stop: canon.Stop{Reason: canon.StopLength, Native: canon.Text("length")}}
}

// AppendProblem appends the body of an error in the client's dialect. An error without a code gets the one that clients steer by, where its
// status has one (dialects.md 1.15.2).
func (t *Translation) AppendProblem(dst []byte, p *canon.Problem) []byte {
	q := *p
	q.Request = t.call.Record
	if q.Code == "" {
		q.Code = dialect.StatusCode(&q)
	}
	return t.client.AppendError(dst, q)
}

func (t *Translation) options() dialect.Options {
	return dialect.Options{
		Policy: &t.policy.Policy, Losses: &t.losses, ID: t.call.ID, Created: t.call.Created, Codex: t.call.Codex, Target: t.call.Target,
	}
}

// noAnswer says that the upstream's answer is none that can be translated.
func noAnswer(why string) *canon.Problem {
	return canon.Unreadable("the upstream's answer is no answer of its dialect: " + why)
}

// checkNames refuses an object that has two members of one name. Readers take the first or the last, so the client could mean another than the
// upstream was sent.
func checkNames(body []byte) error {
	var few [24][]byte
	seen := few[:0]
	var many map[string]struct{}
	for it := jsonx.Object(body); it.Next(); {
		name := jsonx.Unquoted(it.Key())
		if many == nil {
			for _, s := range seen {
				if string(s) == string(name) {
					return canon.Invalid(string(name), "the member is there twice")
				}
			}
			if seen = append(seen, name); len(seen) == cap(few[:]) {
				many = map[string]struct{}{}
				for _, s := range seen {
					many[string(s)] = struct{}{}
				}
			}
			continue
		}
		if _, ok := many[string(name)]; ok {
			return canon.Invalid(string(name), "the member is there twice")
		}
		many[string(name)] = struct{}{}
	}
	return nil
}
