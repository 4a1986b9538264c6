package responses

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// event is what a stream event holds, raw; nil is absent.
type event struct {
	kind                                    []byte // by the JSON type, else by the event name
	object, response, item, part            []byte
	outputIndex, contentIndex, summaryIndex []byte
	itemID, delta, logprobs, annotation     []byte
	errObj, code, sequence                  []byte
	other                                   []byte // name of a member that nobody knows; nil none
}

func (responses) Judge(name, data []byte) dialect.Signal {
	s, _ := judge(name, data)
	return s
}

func judge(name, data []byte) (s dialect.Signal, ev event) {
	ev.object, s.Invalid = fold.Open(data)
	for it := jsonx.Object(ev.object); it.Next(); {
		switch value := it.Value(); string(fold.Name(it.Key())) {
		case "type":
			ev.kind, _ = jsonx.Interior(value)
		case "response":
			ev.response = value
		case "item":
			ev.item = value
		case "part":
			ev.part = value
		case "output_index":
			ev.outputIndex = value
		case "content_index":
			ev.contentIndex = value
		case "summary_index":
			ev.summaryIndex = value
		case "item_id":
			ev.itemID = value
		case "sequence_number":
			ev.sequence = value
		case "delta":
			ev.delta = value
		case "logprobs":
			ev.logprobs = value
		case "annotation":
			ev.annotation = value
		case "error":
			ev.errObj = value
		case "code":
			ev.code = value
		case "obfuscation", "text", "refusal", "arguments", "input", "name", "call_id", "annotation_index", "status",
			"message", "param":
		default:
			if !jsonx.IsNull(value) {
				ev.other = it.Key()
			}
		}
	}
	name = bytes.TrimSpace(name)
	if s.Verdict = verdict(name); s.Verdict == dialect.None {
		s.Verdict = verdict(ev.kind)
	}
	if len(ev.kind) == 0 {
		ev.kind = name
	}
	switch {
	case bytes.HasSuffix(ev.kind, []byte(".delta")):
		s.Content = jsonx.Truthy(ev.delta)
	case string(ev.kind) == "response.output_item.added":
		itemType, _ := jsonx.Interior(jsonx.Get(ev.item, "type"))
		s.Content = bytes.HasSuffix(itemType, []byte("_call"))
	case string(ev.kind) == "response.output_item.done":
		// Servers that answer in one piece send no deltas: their first content is a whole item.
		s.Content = jsonx.Truthy(ev.item)
	}
	return s, ev
}

// verdict: vLLM ends an answer cut by length with response.completed as well; the response in it tells (vllm.md 5).
func verdict(kind []byte) dialect.Verdict {
	switch string(kind) {
	case "response.completed":
		return dialect.Complete
	case "response.incomplete":
		return dialect.Incomplete
	case "response.failed", "error":
		return dialect.Failed
	}
	return dialect.None
}

// folder is a Responses stream folded into a response: the one that the terminal event carries, or, where the stream was cut before it, the
// last snapshot with its output put together from items and deltas.
type folder struct {
	final    []byte // of the last terminal event that had one
	snapshot []byte // of the last other event that had one
	items    fold.List[item]
	again    fold.Again
	signal   dialect.Signal // of the event that again may recognise
	full     bool           // more indices than anybody keeps: the fold would be short
	failed   bool
	status   int
}

func (responses) NewFolder() dialect.Folder { return new(folder) }

func (f *folder) Event(name, data []byte) dialect.Signal {
	if f.again.Fold(name, data) {
		return f.signal
	}
	f.again.Forget()
	s, ev := judge(name, data)
	if s.Verdict == dialect.Failed {
		f.fail(ev)
	}
	switch {
	case jsonx.KindOf(ev.response) == jsonx.KindObject:
		if s.Verdict != dialect.None {
			f.final = append(f.final[:0], ev.response...)
		} else {
			f.snapshot = append(f.snapshot[:0], ev.response...)
		}
	case s.Verdict == dialect.None:
		f.output(ev)
		f.again.Counts(ev.sequence)
		f.again.Learn(name, data)
		f.signal = s
	}
	return s
}

// fail reads the error of an error event, which has its members at the top (some nest them), or of a failed response.
func (f *folder) fail(ev event) {
	f.failed = true
	if f.status = dialect.StatusOf(ev.errObj); f.status == 0 {
		f.status = dialect.StatusOf(jsonx.Get(ev.response, "error"))
	}
	if f.status == 0 {
		f.status = dialect.ErrorStatus(ev.code, nil)
	}
}

func (f *folder) AppendResponse(dst []byte) []byte {
	if f.full {
		return dst
	}
	start := len(dst)
	if dst = f.append(dst); len(dst) == start {
		return dst
	}
	return fold.Finish(dst, start)
}

func (f *folder) append(dst []byte) []byte {
	switch {
	case f.final != nil:
		return append(dst, f.final...)
	case f.items.Len() == 0:
		return append(dst, f.snapshot...)
	case f.snapshot == nil:
		dst = append(dst, `{"object":"response","output":`...)
		return append(f.items.Append(dst, (*item).append), '}')
	}
	var o fold.Object
	o.Merge(f.snapshot)
	o.Default("output", "[]")
	return o.AppendWith(dst, func(dst []byte, name string) ([]byte, bool) {
		if name != "output" {
			return dst, false
		}
		return f.items.Append(dst, (*item).append), true
	})
}

func (f *folder) Size() int { return cap(f.final) + cap(f.snapshot) + f.items.Size((*item).size) }

func (f *folder) Summary() dialect.Summary {
	said := f.final
	if said == nil {
		said = f.snapshot // what was put together behind it has no status, and so no finish reason
	}
	s := summary(said)
	s.HasError = s.HasError || f.failed
	if f.status != 0 {
		s.ErrorStatus = f.status
	}
	return s
}
