package messages

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// event is what a stream event holds, raw. Members that belong to no kind of event stay in the object.
type event struct {
	object                      []byte
	index, block, delta, errObj []byte
	message, usage              []byte
	other                       []byte // name of another member; nil none
}

// read takes the members apart and returns the word in type.
func (ev *event) read(data []byte) (typ []byte, invalid bool) {
	ev.object, invalid = fold.Open(data)
	for it := jsonx.Object(ev.object); it.Next(); {
		switch value := it.Value(); string(fold.Name(it.Key())) {
		case "type":
			typ, _ = jsonx.Interior(value)
		case "index":
			ev.index = value
		case "content_block":
			ev.block = value
		case "delta":
			ev.delta = value
		case "message":
			ev.message = value
		case "usage":
			ev.usage = value
		case "error":
			ev.errObj = value
		default:
			if !jsonx.IsNull(value) {
				ev.other = it.Key()
			}
		}
	}
	return typ, invalid
}

// eventType is what an event is. Those behind pingEvent need a message_start in front.
type eventType uint8

const (
	unknownEvent eventType = iota
	errorEvent
	messageStart
	pingEvent
	blockStarts
	blockDeltas
	blockStops
	messageDelta
	messageStop
)

func eventTypeOf(word []byte) eventType {
	switch string(word) {
	case "content_block_delta":
		return blockDeltas
	case "content_block_start":
		return blockStarts
	case "content_block_stop":
		return blockStops
	case "message_start":
		return messageStart
	case "message_delta":
		return messageDelta
	case "message_stop":
		return messageStop
	case "ping":
		return pingEvent
	case "error":
		return errorEvent
	}
	return unknownEvent
}

func (messages) Judge(name, data []byte) dialect.Signal {
	s, _, _ := judge(name, data)
	return s
}

// judge says what an event means, and what it is for the fold: that goes by the JSON type, else by the event name.
func judge(name, data []byte) (s dialect.Signal, ev event, kind eventType) {
	var typ []byte
	typ, s.Invalid = ev.read(data)
	// The name is looked at first: clients of this dialect go by it.
	name = bytes.TrimSpace(name)
	if s.Verdict = verdict(eventTypeOf(name)); s.Verdict == dialect.None {
		s.Verdict = verdict(eventTypeOf(typ))
	}
	if len(typ) == 0 {
		typ = name
	}
	kind = eventTypeOf(typ)
	switch kind {
	case blockDeltas:
		for it := jsonx.Object(ev.delta); it.Next() && !s.Content; {
			s.Content = string(fold.Name(it.Key())) != "type" && jsonx.Truthy(it.Value())
		}
	case blockStarts:
		s.Content = opensWithContent(ev.block)
	}
	return s, ev, kind
}

func verdict(kind eventType) dialect.Verdict {
	switch kind {
	case messageStop:
		return dialect.Complete
	case errorEvent:
		return dialect.Failed
	}
	return dialect.None
}

// opensWithContent: a tool call says its name at once, result and redacted blocks arrive whole; text and thinking open empty.
func opensWithContent(block []byte) bool {
	kind, _ := jsonx.Interior(jsonx.Get(block, "type"))
	if bytes.HasSuffix(kind, []byte("tool_use")) {
		return true
	}
	for _, member := range []string{"text", "thinking", "data", "content"} {
		if jsonx.Truthy(jsonx.Get(block, member)) {
			return true
		}
	}
	return false
}

// folder is a Messages stream folded into a message.
type folder struct {
	message fold.Object // content and usage are places only
	usage   fold.Object
	started bool
	blocks  fold.List[block]
	again   fold.Again
	signal  dialect.Signal // of the event that again may recognise
	full    bool           // more indices than anybody keeps: the fold would be short
	failed  bool
	status  int
}

// block is one content block.
type block struct {
	fold.Object
	input fold.Object // partial_json alone, when there were input deltas
}

func (messages) NewFolder() dialect.Folder { return new(folder) }

func (f *folder) Event(name, data []byte) dialect.Signal {
	if f.again.Fold(name, data) {
		return f.signal
	}
	f.again.Forget()
	s, ev, kind := judge(name, data)
	if s.Verdict == dialect.Failed {
		f.failed = true
		if f.status = dialect.StatusOf(ev.errObj); f.status == 0 { // some have its members at the top
			f.status = dialect.StatusOf(ev.object)
		}
	}
	switch kind {
	case messageStart:
		f.start(ev.message)
	case blockStarts:
		f.open(ev)
	case blockDeltas:
		f.delta(ev)
		if s.Verdict == dialect.None {
			f.again.Learn(name, data)
			f.signal = s
		}
	case messageDelta:
		f.finish(ev)
	}
	return s
}

func (f *folder) start(message []byte) {
	if jsonx.KindOf(message) != jsonx.KindObject {
		return
	}
	f.started = true
	for it := jsonx.Object(message); it.Next(); {
		switch name := fold.Name(it.Key()); string(name) {
		case "content":
			f.message.Default("content", "[]")
			for blocks := jsonx.Array(it.Value()); blocks.Next(); {
				f.openAt(f.blocks.Next(), blocks.Value())
			}
		case "usage":
			f.message.Default("usage", "null")
			f.usage.Merge(it.Value())
		default:
			f.message.Set(name, it.Value())
		}
	}
	f.shape()
}

// shape makes what is there, maybe without a message_start, a message.
func (f *folder) shape() {
	f.message.Default("type", `"message"`)
	f.message.Default("role", `"assistant"`)
	f.message.Default("content", "[]")
}

func (f *folder) open(ev event) {
	if jsonx.KindOf(ev.block) != jsonx.KindObject {
		return
	}
	index, ok := jsonx.Int(ev.index)
	if !ok {
		index = f.blocks.Next()
	}
	f.openAt(index, ev.block)
}

func (f *folder) openAt(index int64, raw []byte) {
	b := f.blocks.At(index)
	if b == nil {
		f.full = true
		return
	}
	f.shape()
	*b = block{}
	for it := jsonx.Object(raw); it.Next(); {
		switch name := fold.Name(it.Key()); string(name) {
		case "text", "thinking", "signature", "citations":
			b.Grow(name, it.Value())
		default:
			b.Set(name, it.Value())
		}
	}
}

func (f *folder) delta(ev event) {
	if jsonx.KindOf(ev.delta) != jsonx.KindObject {
		return
	}
	index, ok := jsonx.Int(ev.index)
	if !ok {
		index = f.blocks.Last()
	}
	b := f.blocks.At(index)
	if b == nil {
		f.full = true
		return
	}
	if !f.started {
		f.shape()
	}
	kind, _ := jsonx.Interior(jsonx.Get(ev.delta, "type"))
	var member string // what the delta brings, as the delta calls it
	switch string(kind) {
	case "text_delta":
		member = "text"
		b.Default("type", `"text"`)
	case "thinking_delta":
		member = "thinking"
		b.Default("type", `"thinking"`)
	case "signature_delta":
		member = "signature"
		b.Default("type", `"thinking"`)
	case "input_json_delta":
		member = "partial_json"
		b.Default("type", `"tool_use"`)
		b.Default("input", "{}")
	case "citations_delta":
		member = "citation"
		b.Default("type", `"text"`)
	case "compaction_delta":
		member = "content"
		b.Default("type", `"compaction"`)
	default:
		b.Add([]byte("extra_deltas"), ev.delta)
		return
	}
	for it := jsonx.Object(ev.delta); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		switch {
		case string(name) == "type":
		case string(name) != member:
			b.Set(name, value)
		case member == "partial_json":
			b.input.Grow(name, value)
			f.again.Grew(&b.input, name, value)
		case member == "citation":
			b.Add([]byte("citations"), value)
		default:
			b.Grow(name, value)
			f.again.Grew(&b.Object, name, value)
		}
	}
}

// finish merges a message_delta: members of its delta and those beside it belong to the message. A second usage corrects the first member by
// member; what it leaves out or calls null stays.
func (f *folder) finish(ev event) {
	f.message.Merge(ev.delta)
	for it := jsonx.Object(ev.object); it.Next(); {
		switch name := fold.Name(it.Key()); string(name) {
		case "type", "delta":
		case "usage":
			f.message.Default("usage", "null")
			f.usage.Merge(ev.usage)
		default:
			f.message.Set(name, it.Value())
		}
	}
}

func (f *folder) AppendResponse(dst []byte) []byte {
	if !f.started && f.blocks.Len() == 0 || f.full {
		return dst
	}
	start := len(dst)
	return fold.Finish(f.append(dst), start)
}

func (f *folder) append(dst []byte) []byte {
	return f.message.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		switch {
		case name == "content":
			return f.blocks.Append(dst, (*block).append), true
		case name == "usage" && f.usage.Len() > 0:
			return f.usage.Append(dst), true
		}
		return dst, false
	})
}

// append writes a block. A block that had input deltas gets their text as its input, unless it opened with one: parsed where it is JSON, {}
// where it is empty, else {"_raw": text}, as a call that was cut must stay a record that reads.
func (b *block) append(dst []byte) []byte {
	if b.input.Len() == 0 {
		return b.Append(dst)
	}
	return b.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		if name != "input" || b.Has("input") {
			return dst, false
		}
		partial := b.input.Text("partial_json")
		input := jsonx.AppendUnquoted(nil, partial)
		switch {
		case len(bytes.TrimSpace(input)) == 0:
			return append(dst, "{}"...), true
		case jsonx.Valid(input):
			return append(dst, input...), true
		}
		dst = append(dst, `{"_raw":"`...)
		dst = append(dst, partial...)
		return append(dst, '"', '}'), true
	})
}

func (f *folder) Size() int { return f.message.Size() + f.usage.Size() + f.blocks.Size((*block).size) }

func (b *block) size() int { return b.Object.Size() + b.input.Size() }

func (f *folder) Summary() dialect.Summary {
	s := summary(f.message.Value("model"), f.message.Value("stop_reason"), f.usage.Append(nil))
	s.HasError, s.ErrorStatus = f.failed, f.status
	return s
}
