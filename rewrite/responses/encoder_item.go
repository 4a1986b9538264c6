package responses

import (
	"strconv"

	"rolltap/internal/grow"
	"rolltap/rewrite/canon"
)

// add begins an item. The parts of reasoning are added when something is said in them: only then is it known where.
func (e *encoder) add(dst []byte, ev *canon.Event) []byte {
	s, ok := e.object.open(ev.Part, ev.Type, &ev.Call, ev.Raw)
	if !ok {
		return dst
	}
	if s.kind != canon.HostedPart && s.kind != canon.ReasoningPart {
		s.text = make([]byte, 0, textRoom)
	}
	dst = e.itemAdded(dst, s)
	switch s.kind {
	case canon.TextPart, canon.RefusalPart:
		return e.partAdded(dst, s)
	}
	return dst
}

func (e *encoder) itemAdded(dst []byte, s *spoken) []byte {
	return e.item(dst, "response.output_item.added", s, "in_progress")
}

func (e *encoder) item(dst []byte, kind string, s *spoken, status string) []byte {
	dst = append(e.frame(dst, kind), `,"output_index":`...)
	dst = strconv.AppendInt(dst, int64(s.place), 10)
	dst = append(dst, `,"item":`...)
	return closeFrame(s.append(dst, status))
}

// partAdded adds the part of a message.
func (e *encoder) partAdded(dst []byte, s *spoken) []byte {
	dst = append(append(e.frame(dst, "response.content_part.added"), s.at...), `,"content_index":0,"part":`...)
	if s.kind == canon.RefusalPart {
		return closeFrame(append(dst, `{"type":"refusal","refusal":""}`...))
	}
	return closeFrame(append(dst, `{"type":"output_text","text":"","annotations":[],"logprobs":[]}`...))
}

// said writes what an event adds to an open item.
func (e *encoder) said(dst []byte, s *spoken, ev *canon.Event) []byte {
	switch ev.Kind {
	case canon.Delta:
		return e.delta(dst, s, ev)
	case canon.Seal:
		e.sign(s, ev.Text, ev.SignedBy)
	case canon.Cite:
		index := s.nCites
		if cite := e.cite(ev.Part, s, ev.Raw); cite != nil {
			dst = append(append(e.frame(dst, "response.output_text.annotation.added"), s.at...), `,"content_index":0,"annotation_index":`...)
			dst = append(strconv.AppendInt(dst, int64(index), 10), `,"annotation":`...)
			dst = closeFrame(append(dst, cite...))
		}
	case canon.Close:
		if s.foreign {
			e.lose(ev.Part, "signature", canon.Foreign)
		}
		dst = e.done(dst, s)
	}
	return dst
}

func (e *encoder) delta(dst []byte, s *spoken, ev *canon.Event) []byte {
	logprobs := ev.Logprobs
	if !e.asked.Show.Logprobs {
		logprobs = nil
	}
	if logprobs != nil && s.kind != canon.TextPart {
		e.lose(ev.Part, "logprobs", canon.NoEquivalent)
		logprobs = nil
	}
	if len(ev.Text) == 0 && logprobs == nil {
		return dst
	}
	if s.kind == canon.ReasoningPart {
		return e.reasoningDelta(dst, s, ev)
	}
	s.text = grow.Append(s.text, ev.Text)
	switch {
	case s.kind == canon.TextPart:
		dst = e.piece(dst, "response.output_text.delta", s, `,"content_index":0,"delta":"`, ev.Text)
		dst = append(dst, `,"logprobs":[`...)
		if logprobs != nil {
			e.entries = appendItemEntries(e.entries[:0], logprobs)
			if len(s.logprobs) > 0 && len(e.entries) > 0 {
				s.logprobs = append(s.logprobs, ',')
			}
			s.logprobs = grow.Append(s.logprobs, e.entries)
			dst = appendEventEntries(dst, logprobs)
		}
		dst = append(dst, ']')
	case s.kind == canon.RefusalPart:
		dst = e.piece(dst, "response.refusal.delta", s, `,"content_index":0,"delta":"`, ev.Text)
	case s.kind != canon.CallPart:
		return dst
	case s.call.Custom:
		dst = e.piece(dst, "response.custom_tool_call_input.delta", s, `,"delta":"`, ev.Text)
	default:
		dst = e.piece(dst, "response.function_call_arguments.delta", s, `,"delta":"`, ev.Text)
	}
	return closeFrame(dst)
}

// piece begins an event of an item up to the end of a string member that the text is put in.
func (e *encoder) piece(dst []byte, kind string, s *spoken, before string, text []byte) []byte {
	dst = append(append(e.frame(dst, kind), s.at...), before...)
	dst = append(dst, text...)
	return append(dst, '"')
}

func (e *encoder) reasoningDelta(dst []byte, s *spoken, ev *canon.Event) []byte {
	summary, content := e.shows()
	from := reasoning
	if ev.Summary {
		summary, content, from = true, false, summarised
	}
	if summary {
		if s.last == nothing {
			dst = append(append(e.frame(dst, "response.reasoning_summary_part.added"), s.at...), `,"summary_index":0,"part":`...)
			dst = closeFrame(appendSimple(dst, "summary_text", nil))
			s.summary = make([]byte, 0, textRoom)
		}
		const before = `,"summary_index":0,"delta":"`
		if gap := s.gap(from); gap != "" {
			s.summary = append(s.summary, gap...)
			dst = closeFrame(e.piece(dst, "response.reasoning_summary_text.delta", s, before, []byte(gap)))
		}
		s.summary = grow.Append(s.summary, ev.Text)
		dst = closeFrame(e.piece(dst, "response.reasoning_summary_text.delta", s, before, ev.Text))
	}
	if content {
		if !s.hasContent {
			s.hasContent, s.text = true, make([]byte, 0, textRoom)
			dst = append(append(e.frame(dst, "response.content_part.added"), s.at...), `,"content_index":0,"part":`...)
			dst = closeFrame(appendSimple(dst, "reasoning_text", nil))
		}
		s.text = grow.Append(s.text, ev.Text)
		dst = closeFrame(e.piece(dst, "response.reasoning_text.delta", s, `,"content_index":0,"delta":"`, ev.Text))
	}
	return dst
}

// done ends an item: each of its parts with the whole of what was said in it, then the item, which is what Codex acts on.
func (e *encoder) done(dst []byte, s *spoken) []byte {
	s.closed = true
	dst = grow.Room(dst, 3*s.size()+e.size()) // the end of the stream mostly follows at once
	switch {
	case s.kind == canon.TextPart:
		dst = e.piece(dst, "response.output_text.done", s, `,"content_index":0,"text":"`, s.text)
		dst = append(dst, `,"logprobs":[`...)
		if len(s.logprobs) > 0 {
			e.entries = append(append(append(e.entries[:0], '['), s.logprobs...), ']')
			dst = appendEventEntries(dst, e.entries)
		}
		dst = closeFrame(append(dst, ']'))
		dst = e.partDone(dst, s)
	case s.kind == canon.RefusalPart:
		dst = closeFrame(e.piece(dst, "response.refusal.done", s, `,"content_index":0,"refusal":"`, s.text))
		dst = e.partDone(dst, s)
	case s.kind == canon.ReasoningPart:
		dst = e.reasoningDone(dst, s)
	case s.kind != canon.CallPart:
	case s.call.Custom:
		dst = closeFrame(e.piece(dst, "response.custom_tool_call_input.done", s, `,"input":"`, s.text))
	default:
		dst = e.piece(dst, "response.function_call_arguments.done", s, `,"name":"`, s.call.Name)
		dst = append(append(append(dst, `,"arguments":"`...), s.text...), '"')
		dst = closeFrame(dst)
	}
	return e.item(dst, "response.output_item.done", s, "completed")
}

func (e *encoder) partDone(dst []byte, s *spoken) []byte {
	dst = append(append(e.frame(dst, "response.content_part.done"), s.at...), `,"content_index":0,"part":`...)
	return closeFrame(s.appendPart(dst))
}

func (e *encoder) reasoningDone(dst []byte, s *spoken) []byte {
	if s.last != nothing {
		dst = closeFrame(e.piece(dst, "response.reasoning_summary_text.done", s, `,"summary_index":0,"text":"`, s.summary))
		dst = append(append(e.frame(dst, "response.reasoning_summary_part.done"), s.at...), `,"summary_index":0,"part":`...)
		dst = closeFrame(appendSimple(dst, "summary_text", s.summary))
	}
	if s.hasContent {
		dst = closeFrame(e.piece(dst, "response.reasoning_text.done", s, `,"content_index":0,"text":"`, s.text))
		dst = append(append(e.frame(dst, "response.content_part.done"), s.at...), `,"content_index":0,"part":`...)
		dst = closeFrame(appendSimple(dst, "reasoning_text", s.text))
	}
	return dst
}
