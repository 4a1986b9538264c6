package chat

import (
	"bytes"
	"strconv"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// encoder writes chunks of one choice (dialects.md 2.3.2):
//
//	{"role":"assistant","content":""}, what is said, {} with the finish reason, usage if it was asked for, [DONE]
//
// Reasoning is reasoning_content, the name that clients of all ages read. Texts of one kind are one text to a Chat client, whatever parts
// they were. A failure is an error frame, and no [DONE] follows. Who offered functions gets one call, in the form that went with them.
type encoder struct {
	asked *canon.Request
	o     dialect.Options
	head  []byte // of every chunk, up to choices
	tail  []byte // of every chunk but the one with usage, from behind the choices
	begun bool
	parts []wrote
	calls int
	usage canon.Usage
}

// wrote is what the encoder knows of a part.
type wrote struct {
	kind    canon.PartType
	custom  bool
	call    int // number among the calls
	summary wroteReasoning
}

// wroteReasoning says which of its two texts a reasoning part shows: the one that came first.
type wroteReasoning uint8

const (
	wroteNothing wroteReasoning = iota
	wroteText
	wroteSummary
)

func (chat) NewEncoder(asked *canon.Request, o dialect.Options) dialect.Encoder {
	return &encoder{asked: asked, o: o, usage: canon.NoUsage()}
}

// Overlap: a chunk tells calls apart by their index, but texts not at all.
func (*encoder) Overlap() bool { return false }

// AppendKeepAlive: a comment needs nothing before it.
func (*encoder) AppendKeepAlive(dst []byte) []byte { return append(dst, ": keepalive\n\n"...) }

func (w *encoder) Append(dst []byte, e *canon.Event) []byte {
	switch e.Kind {
	case canon.Ping: // the upstream keeps us waiting, and we the client
		return w.AppendKeepAlive(dst)
	case canon.Start:
		w.usage = e.Usage
		return w.start(dst, e)
	case canon.Open:
		return w.open(dst, e)
	case canon.Delta:
		return w.delta(dst, e)
	case canon.Seal:
		if e.SignedBy != "" {
			w.o.Losses.Add(reasoningPath(e.SignedBy.Called("encrypted_content")), canon.Foreign)
		}
	case canon.Cite:
		if !isAnnotation(e.Raw) {
			w.o.Losses.Add(answerPath(citeName(e.Raw)), canon.NoEquivalent)
			break
		}
		dst = append(w.begin(dst), `{"annotations":[`...)
		return w.end(append(jsonx.AppendCompact(dst, e.Raw), ']', '}'), nil)
	case canon.Counted:
		w.usage = e.Usage
	case canon.Ended:
		return w.finish(dst, e)
	case canon.Fail:
		return append(append(appendFailure(append(dst, "data: "...), e.Problem), '\n'), '\n')
	}
	return dst
}

// appendFailure: a stream has no status of its own, and what came without one is the server's fault.
func appendFailure(dst []byte, p *canon.Problem) []byte {
	told := *p
	if told.Status == 0 {
		told.Status = 500
	}
	return dialect.AppendOpenAIError(dst, told)
}

func (w *encoder) start(dst []byte, e *canon.Event) []byte {
	w.head = append(w.head[:0], "data: {"...)
	w.head = appendIdentity(w.head, "chat.completion.chunk", e.ID, e.Model, e.Created, w.asked, w.o)
	w.head = append(w.head, `,"choices":[`...)
	w.tail = append(w.tail[:0], ']')
	if w.asked.Show.Usage {
		w.tail = append(w.tail, `,"usage":null`...)
	}
	w.tail = append(w.tail, "}\n\n"...)
	w.begun = true
	return w.end(append(w.begin(dst), `{"role":"assistant","content":""}`...), nil)
}

// begin appends a chunk up to its delta, end what is behind it.
func (w *encoder) begin(dst []byte) []byte {
	if !w.begun {
		dst = w.start(dst, &canon.Event{})
	}
	return append(append(dst, w.head...), `{"index":0,"delta":`...)
}

func (w *encoder) end(dst []byte, logprobs canon.Raw) []byte {
	dst = append(dst, `,"logprobs":`...)
	dst = appendLogprobs(dst, logprobs, w.asked)
	dst = append(dst, `,"finish_reason":null}`...)
	return append(dst, w.tail...)
}

func (w *encoder) open(dst []byte, e *canon.Event) []byte {
	for len(w.parts) <= e.Part {
		w.parts = append(w.parts, wrote{})
	}
	p := &w.parts[e.Part]
	p.kind = e.Type
	switch e.Type {
	case canon.TextPart, canon.RefusalPart, canon.ReasoningPart:
	case canon.CallPart:
		p.custom, p.call = e.Call.Custom, w.calls
		w.calls++
		if loseCall(&e.Call, p.call, w.asked, w.o.Losses) {
			p.kind = canon.UnknownPart
			return dst
		}
		if w.asked.Show.Legacy {
			return w.end(append(appendCallee(append(w.begin(dst), `{"function_call":`...), &e.Call, "arguments", nil), '}'), nil)
		}
		dst = append(w.begin(dst), `{"tool_calls":[{"index":`...)
		dst = strconv.AppendInt(dst, int64(p.call), 10)
		dst = appendCall(append(dst, ','), &e.Call, nil)
		return w.end(append(dst, ']', '}'), nil)
	default:
		w.o.Losses.Add(answerPath(partName(e.Type, e.Raw)), e.Type.LostWhy())
	}
	return dst
}

func (w *encoder) delta(dst []byte, e *canon.Event) []byte {
	if e.Part >= len(w.parts) {
		return dst
	}
	p := &w.parts[e.Part]
	switch p.kind {
	case canon.TextPart:
		dst = append(w.begin(dst), `{"content":"`...)
	case canon.RefusalPart:
		dst = append(w.begin(dst), `{"refusal":"`...)
	case canon.ReasoningPart:
		shown := wroteText
		if e.Summary {
			shown = wroteSummary
		}
		if p.summary == wroteNothing {
			p.summary = shown
		}
		if p.summary != shown {
			w.o.Losses.Add(reasoningPath(reasoningName(e.Summary)), canon.NoEquivalent)
			return dst
		}
		dst = append(w.begin(dst), `{"reasoning_content":"`...)
	case canon.CallPart:
		if w.asked.Show.Legacy {
			dst = append(append(w.begin(dst), `{"function_call":{"arguments":"`...), e.Text...)
			return w.end(append(dst, `"}}`...), e.Logprobs)
		}
		dst = append(w.begin(dst), `{"tool_calls":[{"index":`...)
		dst = strconv.AppendInt(dst, int64(p.call), 10)
		if p.custom {
			dst = append(dst, `,"custom":{"input":"`...)
		} else {
			dst = append(dst, `,"function":{"arguments":"`...)
		}
		dst = append(dst, e.Text...)
		return w.end(append(dst, `"}}]}`...), e.Logprobs)
	default:
		return dst
	}
	dst = append(dst, e.Text...)
	return w.end(append(dst, '"', '}'), e.Logprobs)
}

func (w *encoder) finish(dst []byte, e *canon.Event) []byte {
	dst = append(w.begin(dst), `{},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, toldFinish(e.Stop, w.calls > 0, w.asked)...)
	dst = append(append(dst, '"', '}'), w.tail...)
	if w.asked.Show.Usage {
		dst = append(append(dst, w.head...), `],"usage":`...)
		dst = append(appendUsage(dst, w.usage), "}\n\n"...)
	}
	return append(dst, "data: [DONE]\n\n"...)
}

// answerPath leads to where something would be in the client's answer, if there were a place for it. In a stream as well: a delta is a part of
// the message.
func answerPath(what string) string { return "choices[0].message." + what }

func reasoningPath(what string) string { return answerPath("reasoning_content." + what) }

// loseCall notes what has no place in an answer of the n-th call of it, and tells whether that is the whole call.
func loseCall(c *canon.Call, n int, asked *canon.Request, losses *canon.Losses) bool {
	path := canon.At(answerPath("tool_calls"), n)
	switch {
	case asked.Show.Legacy && n > 0:
		losses.Add(path, canon.NoEquivalent)
		return true
	case c.Namespace != nil:
		losses.Add(path+".namespace", canon.NoEquivalent)
	}
	return false
}

// partName is what a part that nobody can show is called where it came from.
func partName(kind canon.PartType, raw canon.Raw) string {
	if name, ok := jsonx.Text(jsonx.Get(raw, "type")); ok && name != "" {
		return name
	}
	switch kind {
	case canon.RedactedPart:
		return "redacted_thinking"
	case canon.HostedPart:
		return "hosted_tool"
	case canon.ImagePart:
		return "image"
	case canon.AudioPart:
		return "audio"
	}
	return "part"
}

func reasoningName(summary bool) string {
	if summary {
		return "summary"
	}
	return "content"
}

// isAnnotation tells Chat's annotations, which have a member named after their type: {"type":"url_citation","url_citation":{…}}.
func isAnnotation(raw canon.Raw) bool {
	kind, ok := jsonx.Text(jsonx.Get(raw, "type"))
	return ok && jsonx.KindOf(jsonx.Get(raw, kind)) == jsonx.KindObject
}

// citeName: annotations is Responses' word, citations that of Messages.
func citeName(raw canon.Raw) string {
	switch string(readText(jsonx.Get(raw, "type"))) {
	case "url_citation", "file_citation", "container_file_citation", "file_path":
		return "annotations"
	}
	return "citations"
}

// appendIdentity appends the members in front of choices. The client sees the model by the name that it asked for.
func appendIdentity(dst []byte, object string, id, model canon.Text, created canon.Raw, asked *canon.Request, o dialect.Options) []byte {
	dst = append(dst, `"id":"`...)
	if o.ID != "" {
		dst = append(append(dst, "chatcmpl-"...), o.ID...)
	} else {
		dst = append(dst, id...)
	}
	dst = append(append(dst, `","object":"`...), object...)
	dst = append(dst, `","created":`...)
	if o.Created != 0 || created == nil {
		dst = strconv.AppendInt(dst, o.Created, 10)
	} else {
		dst = append(dst, created...)
	}
	dst = append(dst, `,"model":"`...)
	if len(asked.Model) > 0 {
		model = asked.Model
	}
	return append(append(dst, model...), '"')
}

// appendCall appends the members of a call without an opening brace, and its closing one.
func appendCall(dst []byte, c *canon.Call, arguments canon.Text) []byte {
	dst = append(append(dst, `"id":"`...), c.ID...)
	if c.Custom {
		dst = appendCallee(append(dst, `","type":"custom","custom":`...), c, "input", arguments)
	} else {
		dst = appendCallee(append(dst, `","type":"function","function":`...), c, "arguments", arguments)
	}
	return append(dst, '}')
}

// appendCallee appends {"name", member}.
func appendCallee(dst []byte, c *canon.Call, member string, arguments canon.Text) []byte {
	dst = append(append(dst, `{"name":"`...), c.Name...)
	dst = append(append(append(dst, `","`...), member...), `":"`...)
	return append(append(dst, arguments...), '"', '}')
}

// appendLogprobs: only who asked for logprobs gets any.
func appendLogprobs(dst []byte, entries canon.Raw, asked *canon.Request) []byte {
	if entries == nil || !asked.Show.Logprobs || bytes.Equal(entries, []byte("[]")) {
		return append(dst, "null"...)
	}
	dst = append(append(dst, `{"content":`...), entries...)
	return append(dst, `,"refusal":null}`...)
}

// appendUsage: on the wire an unknown count is 0 (dialects.md 1.11).
func appendUsage(dst []byte, u canon.Usage) []byte {
	prompt, completion := max(u.Prompt, 0), max(u.Completion, 0)
	dst = strconv.AppendInt(append(dst, `{"prompt_tokens":`...), prompt, 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), completion, 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), u.InAll(), 10)
	dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), max(u.Cached, 0), 10)
	if u.CacheWrite != canon.Unknown {
		dst = strconv.AppendInt(append(dst, `,"cache_write_tokens":`...), u.CacheWrite, 10)
	}
	dst = strconv.AppendInt(append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...), max(u.Reasoning, 0), 10)
	return append(dst, '}', '}')
}
