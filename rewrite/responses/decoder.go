package responses

import (
	"io"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// decoder reads the stream of a Responses upstream (wire.md 3.2.4). An item becomes a part when it is added, one of a message when its content
// part is; items and parts that were only told whole, when they were done or in the final response, become parts then.
type decoder struct {
	o        dialect.Options
	begun    bool
	progress bool // the response.in_progress that belongs to the opening has come
	ended    bool
	cut      bool // the end says that the answer is not whole
	parts    int  // opened so far
	items    map[int64]*arriving
	named    map[string]*arriving // by id and call_id
	order    []*arriving
	last     *arriving
	next     int64 // index of an item that names none
	entries  []byte
	whole    []canon.Part
}

func (responses) NewDecoder(o dialect.Options) dialect.Decoder {
	return &decoder{o: o, items: map[int64]*arriving{}, named: map[string]*arriving{}}
}

func (d *decoder) Finish() error {
	if !d.ended {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (d *decoder) Frame(dst []canon.Event, name, data []byte) ([]canon.Event, error) {
	if d.ended { // [DONE], which some send behind any stream
		return dst, nil
	}
	s, ev := judge(name, data)
	if s.Invalid && s.Verdict != dialect.Failed {
		return dst, canon.Unreadable("the upstream sent an event that is no JSON object")
	}
	d.entries, d.whole = d.entries[:0], d.whole[:0]
	if s.Verdict != dialect.Failed { // a failure's members may stand in the event
		d.loseAside(&ev)
	}
	switch s.Verdict {
	case dialect.Complete:
		return d.end(dst, ev.response, "response.completed"), nil
	case dialect.Incomplete:
		return d.end(dst, ev.response, "response.incomplete"), nil
	case dialect.Failed:
		if jsonx.KindOf(ev.response) == jsonx.KindObject {
			return d.end(dst, ev.response, "response.failed"), nil
		}
		return d.fail(dst, dialect.ReadProblem(0, data)), nil // its members stand at the top, some nest them
	}
	if len(ev.kind) == 0 && !jsonx.IsNull(ev.errObj) { // an error frame as in Chat
		return d.fail(dst, dialect.ReadProblem(0, ev.errObj)), nil
	}
	return d.event(dst, ev)
}

func (d *decoder) event(dst []canon.Event, ev event) ([]canon.Event, error) {
	switch string(ev.kind) {
	case "response.output_text.delta":
		return d.text(dst, ev, canon.TextPart, false)
	case "response.refusal.delta":
		return d.text(dst, ev, canon.RefusalPart, false)
	case "response.reasoning_text.delta", "response.reasoning.delta": // the second: Open Responses (wire.md 3.4)
		return d.reasoning(dst, ev, ev.delta)
	case "response.reasoning_summary_text.delta":
		return d.summary(dst, ev, ev.delta)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return d.arguments(dst, ev, ev.delta)

	case "response.output_text.done":
		return d.text(dst, ev, canon.TextPart, true)
	case "response.refusal.done":
		return d.text(dst, ev, canon.RefusalPart, true)
	case "response.reasoning_text.done", "response.reasoning.done":
		return d.missed(dst, ev, "text", d.reasoning)
	case "response.reasoning_summary_text.done":
		return d.missed(dst, ev, "text", d.summary)
	case "response.function_call_arguments.done":
		return d.missed(dst, ev, "arguments", d.arguments)
	case "response.custom_tool_call_input.done":
		return d.missed(dst, ev, "input", d.arguments)

	case "response.output_item.added":
		return d.added(d.begin(dst, nil), ev)
	case "response.output_item.done":
		return d.itemDone(d.begin(dst, nil), ev)
	case "response.content_part.added":
		return d.partAdded(dst, ev)
	case "response.content_part.done":
		return d.partDone(dst, ev)
	case "response.output_text.annotation.added":
		return d.annotation(dst, ev)

	case "response.created", "response.queued":
		return d.begin(dst, ev.response), nil
	case "response.in_progress":
		if d.begun && d.progress {
			d.begin(nil, ev.response)
			return append(dst, canon.Event{Kind: canon.Ping}), nil
		}
		d.progress = true
		return d.begin(dst, ev.response), nil

	case "keepalive", "ping", "response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
		"response.reasoning_part.added", "response.reasoning_part.done": // the last two: older vLLM (wire.md 1.10)
		return dst, nil
	}
	if !toolEvent(ev.kind) {
		d.o.Losses.Add("events."+dialect.LossName(ev.kind), canon.NotKnown)
	}
	return dst, nil
}

// begin begins the answer, unless it has begun; a server may have left out response.created.
func (d *decoder) begin(dst []canon.Event, response []byte) []canon.Event {
	if d.begun && response == nil {
		return dst
	}
	r := readResponse(response)
	if d.begun {
		d.lose(&r)
		return dst
	}
	return d.start(dst, &r)
}

func (d *decoder) start(dst []canon.Event, r *response) []canon.Event {
	d.begun = true
	d.lose(r)
	e := canon.Event{Kind: canon.Start, Usage: readUsage(r.usage)}
	e.ID, e.Model, e.Created = r.head()
	return append(dst, e)
}

// fail ends the answer. Before its beginning nothing is begun: the failure may still become an ordinary error answer.
func (d *decoder) fail(dst []canon.Event, p *canon.Problem) []canon.Event {
	d.ended = true
	return append(dst, canon.Event{Kind: canon.Fail, Problem: p})
}

// end takes the terminal event, and from the response in it what no event told.
func (d *decoder) end(dst []canon.Event, response []byte, kind string) []canon.Event {
	r := readResponse(response)
	stop, problem := r.end(kind, d.o.Losses)
	if output := jsonx.KindOf(r.output); problem == nil && !jsonx.IsNull(r.output) && output != jsonx.KindArray {
		problem = canon.Unreadable("the upstream ended its answer with an output that is no array")
	}
	if problem != nil {
		return d.fail(dst, problem)
	}
	if !d.begun {
		dst = d.start(dst, &r)
	} else {
		d.lose(&r)
	}
	d.cut = stop.Reason != canon.StopEnd
	for _, f := range d.finals(r.output) {
		if f.it.done {
			d.whole = d.output(f.raw, f.it.index)
		} else {
			dst = d.finish(dst, f.it, f.raw)
		}
	}
	for _, it := range d.order {
		if !it.done {
			dst = d.finish(dst, it, nil)
		}
	}
	if d.ended { // a call that nobody can run
		return dst
	}
	d.ended = true
	if jsonx.KindOf(r.usage) == jsonx.KindObject {
		dst = append(dst, canon.Event{Kind: canon.Counted, Usage: readUsage(r.usage)})
	}
	if stop.Reason == 0 { // the status says that it goes on, the event that it does not
		stop = canon.Stop{Reason: canon.StopEnd, Native: canon.Text("completed")}
		if kind == "response.incomplete" {
			stop = canon.Stop{Reason: canon.StopLength, Native: canon.Text("incomplete")}
		}
	}
	return append(dst, canon.Event{Kind: canon.Ended, Stop: stop})
}

// entriesOf are logprobs as a canonical delta has them, nil none.
func (d *decoder) entriesOf(raw []byte) canon.Raw {
	if fold.Blank(raw) || raw[0] != '[' {
		return nil
	}
	from := len(d.entries)
	d.entries = append(d.entries, '[')
	d.entries = append(appendChatEntries(d.entries, raw), ']')
	return d.entries[from:len(d.entries):len(d.entries)]
}
