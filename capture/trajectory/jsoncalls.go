package trajectory

import (
	"rolltap/capture"
	"rolltap/capture/derive"
)

// appendCall appends an element of model_calls.
func (r *Rollout) appendCall(o *out, at int, c *derive.Call, payloads bool) {
	o.buf = append(o.buf, '{')
	o.raw("model_call_id", c.ID)
	o.raw("started_at", c.Started)
	o.raw("completed_at", c.Completed)
	o.raw("duration_ms", c.Latency)
	request, response := c.Request, c.Response
	if request == nil {
		request = c.RequestRaw
	}
	if response == nil {
		response = c.ResponseRaw
	}
	if !payloads {
		request, response = nil, nil
	}
	o.raw("request", request)
	o.raw("response", response)
	o.name("response_metadata")
	o.buf = append(o.buf, '{')
	o.raw("response_id", c.ResponseID)
	o.name("model_ref")
	if c.ModelRef.Type == nil {
		o.buf = append(o.buf, "null"...)
	} else {
		o.buf = append(o.buf, '{')
		o.raw("type", c.ModelRef.Type)
		o.raw("name", c.ModelRef.Name)
		o.buf = append(o.buf, '}')
	}
	for _, m := range []struct {
		name string
		raw  []byte
	}{
		{"model", c.Model}, {"dialect", c.Dialect}, {"status_code", c.Status}, {"response_status", c.ResponseStatus}, {"finish_reason", c.Finish},
		{"upstream_attempted", c.UpstreamAttempted}, {"response_source", c.Source}, {"upstream_status_code", c.UpstreamStatus},
		{"local_response_reason", c.LocalReason}, {"error_category", c.Category}, {"latency_ttft_ms", c.TTFT},
	} {
		o.raw(m.name, m.raw)
	}
	o.buf = append(o.buf, '}')
	o.name("token_stats")
	o.buf = append(o.buf, '{')
	for _, m := range []struct {
		name string
		n    int64
	}{
		{"prompt_tokens", c.Tokens.In}, {"completion_tokens", c.Tokens.Out}, {"reasoning_tokens", c.Tokens.Reasoning},
		{"total_tokens", c.Tokens.Total}, {"cached_tokens", c.Tokens.Cached},
	} {
		if m.n < 0 {
			o.raw(m.name, nil)
		} else {
			o.int(m.name, int(m.n))
		}
	}
	o.buf = append(o.buf, '}')
	p := &r.Calls[at]
	o.name("rolltap")
	o.buf = append(o.buf, '{')
	o.int("call_index", p.Index)
	o.member("role", string(p.Role))
	o.member("side", string(p.Side))
	o.member("outcome", p.Outcome)
	o.member("parent_call_id", r.id(p.Parent))
	o.member("counts_instead", r.id(p.Same))
	o.name("exact")
	o.buf = appendBool(o.buf, p.Exact)
	if p.Role == RoleTurn {
		o.int("branch", p.Branch)
		o.int("turn", p.Turn)
	} else {
		o.raw("branch", nil)
		o.raw("turn", nil)
	}
	o.buf = append(o.buf, "}}"...)
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

// Waited is how long a tool call took as calls tell it: from the end of the answer with the call to the beginning of the request with
// the result. A client that starts tools before the answer ends takes longer than that.
func (r *Rollout) Waited(at int, t *Tool) (ms float64, known bool) {
	if t.Result < 0 || r.Calls[at].Completed == 0 || r.Calls[t.Result].Started == 0 {
		return 0, false
	}
	ms = (r.Calls[t.Result].Started - r.Calls[at].Completed) * 1000
	return max(ms, 0), true
}

// writeTools writes the tool calls of turns, each where its result comes, and at last those without one.
func (r *Rollout) writeTools(o *out, dir string) error {
	n := 0
	one := func(at int, t *Tool, output string, found bool) {
		o.comma(&n)
		o.buf = append(o.buf, '{')
		o.member("invocation_id", r.Name(r.Calls[at].Thread))
		o.member("tool_call_id", t.ID)
		o.member("tool_name", t.Name)
		ms, known := r.Waited(at, t)
		var from, to float64
		if known {
			from, to = r.Calls[at].Completed, r.Calls[t.Result].Started
		}
		o.time("started_at", from)
		o.time("completed_at", max(from, to))
		o.millis("duration_ms", ms, known)
		o.member("timing_source", "calls")
		status := "unknown"
		if t.Bad {
			status = "failed"
		}
		o.member("status", status)
		o.name("output")
		if found {
			o.buf = capture.AppendText(o.buf, output)
		} else {
			o.buf = append(o.buf, "null"...)
		}
		o.member("model_call_id", r.id(at))
		o.member("result_call_id", r.id(t.Result))
		o.buf = append(o.buf, '}')
	}
	wanted := map[int][]toolRef{} // by the call that brings the result
	for i := range r.Calls {
		if r.Calls[i].Role != RoleTurn {
			continue
		}
		for k := range r.Calls[i].Tools {
			if t := &r.Calls[i].Tools[k]; t.Result >= 0 {
				wanted[t.Result] = append(wanted[t.Result], toolRef{i, k})
			}
		}
	}
	err := r.Again(dir, func(at int, c *derive.Call) error {
		if wanted[at] == nil {
			return nil
		}
		o.rests = c.Rests
		asked, _ := r.News(at, c)
		for _, ref := range wanted[at] {
			t := &r.Calls[ref.call].Tools[ref.tool]
			output, found := "", false
			for _, it := range asked {
				if it.Kind == Returned && sameID(capture.Brief(it.ID), t.ID) {
					output, found = it.Text, true
				}
			}
			one(ref.call, t, output, found)
		}
		return o.flush()
	})
	for i := range r.Calls {
		for k := range r.Calls[i].Tools {
			if t := &r.Calls[i].Tools[k]; r.Calls[i].Role == RoleTurn && t.Result < 0 {
				one(i, t, "", false)
			}
		}
	}
	return err
}

// appendOwn appends what ng_trajectory has no member for.
func (r *Rollout) appendOwn(o *out) {
	o.buf = append(o.buf, '{')
	o.name("calls")
	o.buf = append(o.buf, '{')
	for _, role := range []Role{RoleTurn, RoleRetry, RoleFailed, RoleDropped, RoleCompaction, RoleSide} {
		o.int(string(role), r.Count(role))
	}
	o.buf = append(o.buf, '}')
	o.int("damaged_lines", r.Found.Damaged)
	o.name("incomplete")
	o.buf = appendBool(o.buf, r.Found.Marked)
	if r.Main < 0 {
		o.raw("main_branch", nil)
	} else {
		o.int("main_branch", r.Main)
	}
	o.name("branches")
	o.buf = append(o.buf, '[')
	for i := range r.Branches {
		b := &r.Branches[i]
		if i > 0 {
			o.buf = append(o.buf, ',')
		}
		o.buf = append(o.buf, '{')
		o.int("branch", i)
		o.member("invocation_id", r.Name(b.Thread))
		o.member("cause", b.Cause)
		o.member("from_call_id", r.id(b.From))
		o.int("turns", b.Turns)
		o.member("first_call_id", r.id(b.First))
		o.member("last_call_id", r.id(b.Last))
		o.buf = append(o.buf, '}')
	}
	o.buf = append(o.buf, "]}"...)
}
