package responses

import (
	"bytes"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// lose tells as lost what a response says and nobody knows.
func (d *decoder) lose(r *response) {
	r.loseRest(d.o.Losses)
	loseMembers(d.o.Losses, r.extra, "")
}

// output appends the parts of an item to the whole ones, without paths, and tells as lost what of it nobody knows.
func (d *decoder) output(item []byte, index int64) []canon.Part {
	from := len(d.whole)
	all := appendOutput(d.whole, item, "")
	strange := from == len(all)
	for i := range all[from:] {
		strange = strange || len(all[from+i].Extra) > 0
	}
	if strange { // seldom: paths cost more than all else
		path := canon.At("output", int(index))
		parts := appendOutput(nil, item, path)
		for i := range parts {
			loseMembers(d.o.Losses, parts[i].Extra, parts[i].Path)
		}
		if len(parts) == 0 {
			loseMembers(d.o.Losses, messageExtras(nil, item), path)
		}
	}
	return all
}

// loseAside tells as lost what an event holds besides what is read of it: in itself, and in a part that it brings.
func (d *decoder) loseAside(ev *event) {
	if ev.other != nil && !toolEvent(ev.kind) {
		d.o.Losses.Add("events."+dialect.LossName(ev.other), canon.NotKnown)
	}
	if ev.part == nil {
		return
	}
	if strange := extras(nil, ev.part, "type", "text", "refusal", "annotations", "logprobs"); strange != nil {
		item, _ := jsonx.Int(ev.outputIndex)
		list, index := ".content", ev.contentIndex
		if bytes.HasPrefix(ev.kind, []byte("response.reasoning_summary_part.")) {
			list, index = ".summary", ev.summaryIndex
		}
		n, _ := jsonx.Int(index)
		loseMembers(d.o.Losses, strange, canon.At(canon.At("output", int(item))+list, int(n)))
	}
}

// toolEvent tells the events of how a tool of the provider gets on. Nothing is read of them: its item says it all in the end (wire.md 3.2.4).
func toolEvent(kind []byte) bool {
	tool, _, ok := bytes.Cut(bytes.TrimPrefix(kind, []byte("response.")), []byte{'.'})
	if !ok {
		return false
	}
	switch string(tool) {
	case "code_interpreter_call_code", "mcp_call_arguments", "shell_call_command", "shell_call_output_content":
		return true
	}
	return hostedOutput(string(tool))
}
