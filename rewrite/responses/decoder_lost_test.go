package responses

import (
	"fmt"
	"testing"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

func TestEventsThatAreLost(t *testing.T) {
	for _, c := range []struct{ event, want string }{
		{`{"type":"keepalive","sequence_number":3}`, "[]"},
		{`{"type":"ping"}`, "[]"},
		{`{"type":"response.reasoning_summary_part.done","item_id":"i","output_index":0,"summary_index":0,"status":"incomplete","part":{"type":"summary_text","text":""}}`, "[]"},
		{`{"type":"response.reasoning_summary_part.added","output_index":2,"summary_index":1,"part":{"type":"summary_text","text":"","x":1}}`,
			"[{output[2].summary[1].x unknown}]"},
		{`{"type":"response.image_generation_call.partial_image","item_id":"i","output_index":0,"partial_image_index":0,"partial_image_b64":"AA=="}`, "[]"},
		{`{"type":"response.web_search_call.searching","item_id":"i","output_index":0}`, "[]"},
		{`{"type":"response.code_interpreter_call_code.delta","item_id":"i","output_index":0,"delta":"1"}`, "[]"},
		{`{"type":"response.in_progress","response":{"id":"r","status":"in_progress","x":1,"usage":{"x":1}}}`, "[{usage.x unknown} {x unknown}]"},
		{`{"type":"response.output_item.added","output_index":3,"item":{"type":"message","id":"m","role":"assistant","content":[],"x":1}}`, "[{output[3].x unknown}]"},
		{`{"type":"response.news","x":1}`, "[{events.x unknown} {events.response.news unknown}]"},
		{`{"x":null}`, "[{events.unknown unknown}]"},
	} {
		var losses canon.Losses
		policy := dialect.DefaultPolicy()
		d := New().NewDecoder(dialect.Options{Policy: &policy, Losses: &losses})
		if _, err := d.Frame(nil, nil, []byte(c.event)); err != nil {
			t.Errorf("%s: %v", c.event, err)
		}
		if got := fmt.Sprint(losses.List()); got != c.want {
			t.Errorf("%s: lost %s, want %s", c.event, got, c.want)
		}
	}
}
