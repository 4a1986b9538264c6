package dialecttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/sse"
)

// Dialect is a dialect that translates.
type Dialect interface {
	dialect.Dialect
	dialect.Translator
}

// Asked is the request of a client that wants to see everything, as far as an encoder reads it.
func Asked(client Dialect) *canon.Request {
	return &canon.Request{
		From: client.Name(), Body: canon.Raw(`{"model":"asked"}`), Model: canon.Text("asked"), Stream: true,
		Show: canon.Show{Usage: true, Logprobs: true, Encrypted: true},
	}
}

// askedFor is Asked of a client that knows where the stream will stop.
func askedFor(up, client Dialect, stream []byte) *canon.Request {
	asked := Asked(client)
	if d, err := Decode(up, stream); err == nil && d.Answer.Stop.Sequence != nil {
		asked.Stop = []canon.Text{d.Answer.Stop.Sequence}
	}
	return asked
}

// options are what all translations of the kit are done with; they are the same each time.
func options(losses *canon.Losses) dialect.Options {
	policy := dialect.DefaultPolicy()
	return dialect.Options{Policy: &policy, Losses: losses, ID: "kit", Created: 1700000000}
}

// A reader decodes a stream as it comes in. It checks the decoder on the way: its events are of the grammar, and nothing borrows from a
// frame longer than it may.
type reader struct {
	decoder dialect.Decoder
	split   sse.Splitter
	frame   []byte
	events  []canon.Event
	folder  canon.Folder
	yield   func(*canon.Event) error // nil: nobody listens

	texts  int // bytes in deltas so far
	called int // of them in calls
	calls  map[int]bool
	last   int64 // where the last frame with events begins in the stream
	ended  bool
	failed bool
}

func (r *reader) push(p []byte) error {
	r.split.Push(p)
	var ev sse.Event
	for r.split.Next(&ev) {
		if err := r.event(&ev); err != nil {
			return err
		}
	}
	return nil
}

// finish tells that the stream is over and gives what the decoder's Finish says.
func (r *reader) finish() error {
	var ev sse.Event
	if r.split.Finish(&ev) {
		if err := r.event(&ev); err != nil {
			return err
		}
	}
	return r.decoder.Finish()
}

func (r *reader) event(ev *sse.Event) error {
	n := len(ev.Name)
	r.frame = append(append(r.frame[:0], ev.Name...), ev.Data...)
	var err error
	if r.events, err = r.decoder.Frame(r.events[:0], r.frame[:n:n], r.frame[n:]); err != nil {
		return err
	}
	for i := range r.events {
		e := &r.events[i]
		if err := r.folder.Event(e); err != nil {
			return &broken{fmt.Sprintf("a decoder's events are of the grammar: %v, in frame %q", err, ev.Data)}
		}
		switch e.Kind {
		case canon.Open:
			if e.Type == canon.CallPart {
				if r.calls == nil {
					r.calls = map[int]bool{}
				}
				r.calls[e.Part] = true
			}
		case canon.Delta:
			r.texts += len(e.Text)
			if r.calls[e.Part] {
				r.called += len(e.Text)
			}
		case canon.Ended:
			r.ended = true
		case canon.Fail:
			r.failed = true
		}
		if r.yield != nil {
			if err := r.yield(e); err != nil {
				return err
			}
		}
		r.last = ev.Start
	}
	for i := range r.frame {
		r.frame[i] = 'X' // nobody may look here any more
	}
	return nil
}

// broken is a rule that a dialect breaks; other errors may be the stream's own.
type broken struct{ rule string }

func (b *broken) Error() string { return b.rule }

func isBroken(err error) bool {
	var b *broken
	return errors.As(err, &b)
}

// pieces calls f with a stream in pieces; cuts are their lengths, what is left comes in one.
func pieces(stream []byte, cuts []int, f func([]byte) error) error {
	for len(stream) > 0 {
		n := len(stream)
		if len(cuts) > 0 {
			n, cuts = min(n, max(1, cuts[0])), cuts[1:]
		}
		if err := f(stream[:n:n]); err != nil {
			return err
		}
		stream = stream[n:]
	}
	return nil
}

// Decoded is what a stream says.
type Decoded struct {
	Answer *canon.Answer
	Events []string // a line each
	Ended  bool
	Failed bool
	Finish error // io.ErrUnexpectedEOF: the stream has no end of its own
	last   int64 // where the last frame that said something begins
}

// Decode decodes a stream that comes in pieces of these lengths. The error says that the stream cannot be understood, or that the decoder
// breaks a rule; what came until then is told all the same.
func Decode(d Dialect, stream []byte, cuts ...int) (*Decoded, error) {
	var out Decoded
	r := reader{decoder: d.NewDecoder(options(nil)), yield: func(e *canon.Event) error {
		out.Events = append(out.Events, describeEvent(e))
		return nil
	}}
	err := pieces(stream, cuts, r.push)
	if err == nil {
		if err = r.finish(); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			out.Finish, err = err, nil
		}
	}
	out.Answer, out.Ended, out.Failed, out.last = r.folder.Answer(), r.ended, r.failed, r.last
	if err == nil && (out.Finish == nil) != (r.ended || r.failed) {
		err = &broken{fmt.Sprintf("Finish tells the end that was seen: ended %v, failed %v, Finish %v", r.ended, r.failed, out.Finish)}
	}
	return &out, err
}

func describeEvent(e *canon.Event) string {
	problem := ""
	if e.Problem != nil {
		problem = fmt.Sprintf("%+v", *e.Problem)
	}
	return fmt.Sprintf("%v %d type %d summary %v %q signed %s raw %s logprobs %s id %q model %q created %s item %q call %s usage %d stop %d %q %q %s",
		e.Kind, e.Part, e.Type, e.Summary, e.Text, e.SignedBy, e.Raw, e.Logprobs, e.ID, e.Model, e.Created, e.ItemID, describeCall(&e.Call), e.Usage,
		e.Stop.Reason, e.Stop.Sequence, e.Stop.Native, problem)
}

// Translation is a stream's way from the upstream to the client.
type Translation struct {
	Said   *canon.Answer // by the upstream; in a stream without an end, what it said of parts whose turn had come
	Heard  *canon.Answer // by the client
	Wire   []byte        // what the client got
	Ended  bool          // the upstream came to its end
	Finish error         // what the upstream's decoder says of the end
	Losses []canon.Loss  // of the encoder
}

// A writer encodes events for a client that decodes them at once.
type writer struct {
	encoder dialect.Encoder
	seq     *canon.Sequencer // nil: the encoder can say overlap
	events  []canon.Event
	wire    []byte
	client  reader
	encoded canon.Folder
	texts   int // bytes in deltas that were encoded
	called  int // of them in calls
	calls   map[int]bool
	closed  int  // calls that are whole
	holds   bool // calls may wait for their end, nothing else
	waiting bool // keep-alives between the events
}

func newWriter(client Dialect, asked *canon.Request, losses *canon.Losses) *writer {
	w := &writer{encoder: client.NewEncoder(asked, options(losses)), client: reader{decoder: client.NewDecoder(options(nil))}}
	if !w.encoder.Overlap() {
		w.seq = new(canon.Sequencer)
	}
	w.calls = map[int]bool{}
	_, w.holds = w.encoder.(dialect.CallHolder)
	return w
}

func (w *writer) event(e *canon.Event) error {
	if w.seq == nil {
		return w.encode(e)
	}
	var err error
	if w.events, err = w.seq.Next(w.events[:0], e); err != nil {
		return err
	}
	for i := range w.events {
		if err := w.encode(&w.events[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) encode(e *canon.Event) error {
	if w.waiting {
		if err := w.append(w.encoder.AppendKeepAlive); err != nil {
			return err
		}
	}
	if err := w.encoded.Event(e); err != nil {
		return err
	}
	if e.Kind == canon.Open && e.Type == canon.CallPart {
		w.calls[e.Part] = true
	}
	if e.Kind == canon.Delta {
		if w.texts += len(e.Text); w.calls[e.Part] {
			w.called += len(e.Text)
		}
	}
	if err := w.append(func(dst []byte) []byte { return w.encoder.Append(dst, e) }); err != nil {
		return err
	}
	if ended := e.Kind == canon.Ended; ended != w.client.ended {
		return &broken{fmt.Sprintf("the client sees the end when it came, and only then: ended %v after %v", w.client.ended, e.Kind)}
	}
	if failed := e.Kind == canon.Fail; failed != w.client.failed {
		return &broken{fmt.Sprintf("the client sees a failure when it came, and only then: failed %v after %v", w.client.failed, e.Kind)}
	}
	in, out := w.texts, w.client.texts
	if w.holds {
		in, out = in-w.called, out-w.client.called
		if e.Kind == canon.Close && w.calls[e.Part] {
			w.closed++
		}
		if w.closed > len(w.client.calls) {
			return &broken{fmt.Sprintf("a call is written when it is whole: %d came, %d were written after %s", w.closed, len(w.client.calls), describeEvent(e))}
		}
	}
	if e.Kind == canon.Delta && out < in {
		return &broken{fmt.Sprintf("an event is written at once: %d bytes of text went in, %d came out after %s", in, out, describeEvent(e))}
	}
	return nil
}

// said is what was encoded so far, without a call that waits for its end.
func (w *writer) said() *canon.Answer {
	a := w.encoded.Answer()
	if n := len(a.Parts); w.holds && n > 0 && a.Parts[n-1].Type == canon.CallPart && w.closed < len(w.calls) {
		a.Parts = a.Parts[:n-1]
	}
	return a
}

func (w *writer) append(f func([]byte) []byte) error {
	n := len(w.wire)
	front := max(0, n-64)
	before := bytes.Clone(w.wire[front:])
	w.wire = f(w.wire)
	if len(w.wire) < n || !bytes.Equal(before, w.wire[front:n]) {
		return &broken{"an encoder appends, and touches nothing in front"}
	}
	if err := w.client.push(w.wire[n:]); err != nil {
		return &broken{fmt.Sprintf("the client's own decoder understands what it is sent: %v in %q", err, w.wire[n:])}
	}
	if safe := w.client.split.Safe(); safe != int64(len(w.wire)) {
		return &broken{fmt.Sprintf("an encoder writes whole frames: %q", w.wire[n:])}
	}
	return nil
}

// Translate translates a stream that comes in pieces of these lengths, frame by frame, and decodes what the client gets as it comes.
func Translate(up, client Dialect, stream []byte, cuts ...int) (*Translation, error) {
	return translate(up, client, stream, false, cuts...)
}

func translate(up, client Dialect, stream []byte, keepAlives bool, cuts ...int) (*Translation, error) {
	var losses canon.Losses
	w := newWriter(client, askedFor(up, client, stream), &losses)
	w.waiting = keepAlives
	r := reader{decoder: up.NewDecoder(options(nil)), yield: w.event}
	if err := pieces(stream, cuts, r.push); err != nil {
		return nil, err
	}
	t := Translation{Finish: r.finish(), Ended: r.ended, Said: r.folder.Answer()}
	if t.Finish != nil && !errors.Is(t.Finish, io.ErrUnexpectedEOF) {
		return nil, t.Finish
	}
	if !t.Ended {
		t.Said = w.said()
	}
	if t.Finish == nil {
		if err := w.client.finish(); err != nil {
			return nil, &broken{fmt.Sprintf("the client sees that a whole stream is whole: %v", err)}
		}
	}
	t.Heard, t.Wire, t.Losses = w.client.folder.Answer(), bytes.Clone(w.wire), losses.List()
	if t.Finish != nil {
		// The composition makes a failure of it.
		problem := &canon.Problem{Status: 502, Message: "cut"}
		if err := w.event(&canon.Event{Kind: canon.Fail, Problem: problem}); err != nil {
			return nil, err
		}
		if err := w.client.finish(); err != nil {
			return nil, &broken{fmt.Sprintf("a failure is an end: %v", err)}
		}
		if got := w.client.folder.Answer().Failed; got.Message != problem.Message {
			return nil, &broken{fmt.Sprintf("the client reads why it failed: %+v", *got)}
		}
	}
	return &t, nil
}
