package training

import (
	"bufio"
	"errors"
	"io"
	"strconv"

	"rolltap/internal/jsonx"
)

// WriteJSON writes the snapshot as one JSON object, its entries with whole prompts, a line each, as a trainer wants them and the file may not
// have them. Arrays are copied from the file; memory does not grow with them.
//
//	{"rollout_id":…,"incomplete":false,"frozen":true,"snapshot_id":"…","version":4,"marks":[{"model_call_id":…,"reason":…}],"damaged":0,"calls":[
//	{"model_call_id":…,"model":…,"response_id":…,"created_at":…,"parent_resolution":…,"parent_call_id":…,"parent_resolution_reason":…,
//	 "prompt_token_ids":[…],"generation_token_ids":[…],"generation_log_probs":[…],"routed_experts":…,"output_items":[…],
//	 "token_item_index":…,"rolltap":{…}},…]}
//
// An entry whose delta cannot be put together has null for its prompt; damaged counts lines that are no entries.
func (p *Snapshot) WriteJSON(to io.Writer) error {
	chains, err := p.Chains()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(to, 64<<10)
	b := jsonx.AppendString([]byte(`{"rollout_id":`), p.Rollout)
	b = strconv.AppendBool(append(b, `,"incomplete":`...), p.Incomplete)
	b = strconv.AppendBool(append(b, `,"frozen":`...), p.ID != "")
	b = jsonx.AppendString(append(b, `,"snapshot_id":`...), p.ID)
	b = strconv.AppendInt(append(b, `,"version":`...), p.Version, 10)
	b = append(b, `,"marks":[`...)
	for i, m := range p.Marks {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonx.AppendString(append(b, `{"model_call_id":`...), m.CallID)
		b = append(jsonx.AppendString(append(b, `,"reason":`...), m.Reason), '}')
	}
	b = append(b, `],"calls":[`...)
	damaged, first := 0, true
	for entries := p.Entries(); ; {
		v, err := entries.Next()
		if err == io.EOF {
			break
		}
		if d := (*Damage)(nil); errors.As(err, &d) {
			damaged++
			continue
		}
		if err != nil {
			return err
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = v.appendHead(append(b, '\n'))
		if _, err := w.Write(b); err != nil {
			return err
		}
		b = b[:0]
		if err := p.writeArrays(w, chains, v); err != nil {
			return err
		}
	}
	b = append(strconv.AppendInt(append(b, `],"damaged":`...), int64(damaged), 10), "}\n"...)
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.Flush()
}

func (v *View) appendHead(b []byte) []byte {
	text := func(name, s string) {
		b = append(b, name...)
		if s == "" {
			b = append(b, "null"...)
		} else {
			b = jsonx.AppendString(b, s)
		}
	}
	text(`{"model_call_id":`, v.CallID)
	text(`,"model":`, v.Model)
	text(`,"response_id":`, v.ResponseID)
	b = append(append(b, `,"created_at":`...), v.CreatedAt...)
	if v.CreatedAt == "" {
		b = append(b, "null"...)
	}
	text(`,"parent_resolution":`, string(v.Parent))
	text(`,"parent_call_id":`, v.ParentCallID)
	text(`,"parent_resolution_reason":`, v.ParentReason)
	return b
}

// writeArrays writes the rest of an entry.
func (p *Snapshot) writeArrays(w *bufio.Writer, chains *Chains, v *View) error {
	f := p.File()
	w.WriteString(`,"prompt_token_ids":`)
	err := chains.Check(v)
	if err == nil {
		err = chains.WritePrompt(w, v)
	}
	if errors.Is(err, ErrChain) || errors.Is(err, ErrEntry) {
		w.WriteString("null")
	} else if err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		span Span
	}{
		{"generation_token_ids", v.Generation}, {"generation_log_probs", v.LogProbs}, {"routed_experts", v.RoutedExperts},
		{"output_items", v.OutputItems}, {"rolltap", v.Rolltap},
	} {
		w.WriteString(`,"` + m.name + `":`)
		if m.span.Size == 0 {
			w.WriteString("null")
			continue
		}
		if _, err := io.Copy(w, m.span.Open(f)); err != nil {
			return err
		}
	}
	w.WriteString(`,"token_item_index":`)
	if v.TokenItem == NoItem {
		w.WriteString("null")
	} else {
		w.Write(strconv.AppendInt(w.AvailableBuffer(), v.TokenItem, 10))
	}
	return w.WriteByte('}')
}
