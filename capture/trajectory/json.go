package trajectory

import (
	"io"
	"strconv"
	"strings"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// WriteJSON writes the trajectory as one object: the members of ng_trajectory (schema 1.0) as far as a proxy knows them, and under
// rolltap the roles of all calls, branches and the like. Requests and answers of calls are in it with payloads only; what is new in
// each turn always is, but of those with GapLong. It reads the file up to three times, in small memory.
func (r *Rollout) WriteJSON(w io.Writer, dir string, payloads bool) error {
	o := &out{w: w}
	o.buf = append(o.buf, `{"schema_version":"1.0","task_id":null,"rollout_id":`...)
	o.buf = jsonx.AppendString(o.buf, r.ID)
	o.buf = append(o.buf, `,"invocations":[`...)
	r.appendInvocations(o)
	o.buf = append(o.buf, `],"turns":[`...)
	if err := r.writeTurns(o, dir); err != nil {
		return err
	}
	o.buf = append(o.buf, `],"model_calls":[`...)
	n := 0
	err := r.Again(dir, func(at int, c *derive.Call) error {
		o.rests = c.Rests
		o.comma(&n)
		r.appendCall(o, at, c, payloads && !r.Calls[at].Long)
		return o.flush()
	})
	if err != nil {
		return err
	}
	o.buf = append(o.buf, `],"tool_calls":[`...)
	if err := r.writeTools(o, dir); err != nil {
		return err
	}
	o.buf = append(o.buf, `],"gaps":[`...)
	for i, g := range r.Gaps {
		if i > 0 {
			o.buf = append(o.buf, ",\n"...)
		}
		o.buf = append(o.buf, `{"code":`...)
		o.buf = jsonx.AppendString(o.buf, g.Code)
		o.member("invocation_id", r.Name(r.threadOf(g.Call)))
		o.member("detail", g.Detail)
		if g.Call >= 0 {
			o.member("model_call_id", r.Calls[g.Call].ID)
		}
		o.buf = append(o.buf, '}')
	}
	o.buf = append(o.buf, `],"rolltap":`...)
	r.appendOwn(o)
	o.buf = append(o.buf, '}')
	return o.flush()
}

func (o *out) comma(n *int) {
	if *n++; *n > 1 {
		o.buf = append(o.buf, ",\n"...)
	}
}

// member appends a further member: a string, null when it is empty.
func (o *out) member(name, value string) {
	o.name(name)
	if value == "" {
		o.buf = append(o.buf, "null"...)
		return
	}
	o.buf = capture.AppendText(o.buf, value)
}

func (o *out) name(name string) {
	if last := o.buf[len(o.buf)-1]; last != '{' {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(append(append(o.buf, '"'), name...), `":`...)
}

func (o *out) raw(name string, value []byte) {
	o.name(name)
	if len(value) == 0 {
		value = []byte("null")
	}
	o.buf = append(o.buf, value...)
}

func (o *out) int(name string, n int) {
	o.name(name)
	o.buf = strconv.AppendInt(o.buf, int64(n), 10)
}

// millis appends a duration, null when it is unknown.
func (o *out) millis(name string, ms float64, known bool) {
	o.name(name)
	if !known {
		o.buf = append(o.buf, "null"...)
		return
	}
	o.buf = strconv.AppendFloat(o.buf, ms, 'f', 2, 64)
}

// time appends Unix seconds, null when they are unknown.
func (o *out) time(name string, at float64) {
	o.name(name)
	if at == 0 {
		o.buf = append(o.buf, "null"...)
		return
	}
	o.buf = strconv.AppendFloat(o.buf, at, 'f', 6, 64)
}

// id is the model_call_id of a call, "" for none.
func (r *Rollout) id(at int) string {
	if at < 0 {
		return ""
	}
	return r.Calls[at].ID
}

func (r *Rollout) threadOf(call int) int {
	if call < 0 {
		return -1
	}
	return r.Calls[call].Thread
}

// Name is what a thread is called: by its agent, else its session, else the rollout.
func (r *Rollout) Name(thread int) string {
	if thread < 0 {
		return ""
	}
	switch th := &r.Threads[thread]; {
	case th.Agent != "":
		return th.Agent
	case th.Sub:
		return th.Session + "#subagent"
	case th.Session != "":
		return th.Session
	}
	return r.ID
}

// parentOf is the invocation that started a thread, as far as it is told.
func (r *Rollout) parentOf(thread int) string {
	th := &r.Threads[thread]
	switch {
	case th.Parent != "":
		return th.Parent
	case th.Spawn.Call >= 0:
		return r.Name(r.Calls[th.Spawn.Call].Thread)
	case th.Sub && th.Session != r.Name(thread):
		return th.Session
	}
	return ""
}

func (r *Rollout) appendInvocations(o *out) {
	for i := range r.Threads {
		if i > 0 {
			o.buf = append(o.buf, ",\n"...)
		}
		o.buf = append(o.buf, '{')
		o.member("invocation_id", r.Name(i))
		o.member("parent_invocation_id", r.parentOf(i))
		spawned := ""
		if s := r.Threads[i].Spawn; s.Call >= 0 {
			spawned = r.Calls[s.Call].Tools[s.Tool].ID
		}
		o.member("spawned_by_tool_call_id", spawned)
		o.member("status", "unknown")
		var from, to float64
		o.name("model_calls")
		o.buf = append(o.buf, '[')
		n := 0
		for k := range r.Calls {
			c := &r.Calls[k]
			if c.Thread != i {
				continue
			}
			if from == 0 || c.Started > 0 && c.Started < from {
				from = c.Started
			}
			to = max(to, c.Completed)
			if n++; n > 1 {
				o.buf = append(o.buf, ',')
			}
			o.buf = append(o.buf, '{')
			o.member("model_call_id", c.ID)
			o.buf = append(o.buf, '}')
		}
		o.buf = append(o.buf, ']')
		o.millis("duration_ms", (to-from)*1000, from > 0 && to >= from)
		o.buf = append(o.buf, '}')
	}
}

func (r *Rollout) writeTurns(o *out, dir string) error {
	no := make([]int, len(r.Threads))
	steps := make([]int, len(r.Threads))
	n := 0
	return r.Again(dir, func(at int, c *derive.Call) error {
		p := &r.Calls[at]
		if p.Role != RoleTurn {
			return nil
		}
		o.rests = c.Rests
		o.comma(&n)
		no[p.Thread]++
		o.buf = append(o.buf, '{')
		o.member("invocation_id", r.Name(p.Thread))
		o.member("task_id", "")
		o.member("rollout_id", r.ID)
		o.int("turn_no", no[p.Thread])
		o.time("timestamp", p.Started)
		dialect, _ := jsonx.Text(c.Dialect)
		if p.Long {
			c.Request, c.Response = nil, nil
		}
		o.name("question")
		if p.Long {
			o.buf = append(o.buf, "null"...)
		} else {
			o.buf = append(o.buf, '[')
		}
		i, m := 0, 0
		elements(dialect, c.Request, func(e element) {
			if i++; i <= p.New {
				return
			}
			if m++; m > 1 {
				o.buf = append(o.buf, ',')
			}
			if e.role == "" {
				o.buf = append(o.buf, e.raw...)
				return
			}
			o.buf = append(o.buf, '{')
			o.member("role", e.role)
			o.raw("content", e.raw)
			o.buf = append(o.buf, '}')
		})
		if !p.Long {
			o.buf = append(o.buf, ']')
		}
		o.raw("answer", answerOf(dialect, c.Response))
		var thoughts []string
		for _, it := range ResponseItems(dialect, c.Response) {
			if it.Kind == Thought {
				thoughts = append(thoughts, it.Text)
			}
		}
		o.member("reasoning_content", strings.Join(thoughts, "\n"))
		o.raw("resolved", nil)
		o.int("step_count", steps[p.Thread])
		steps[p.Thread] += len(p.Tools)
		o.name("model_calls")
		o.buf = append(o.buf, `[{"model_call_id":`...)
		o.buf = jsonx.AppendString(o.buf, p.ID)
		o.buf = append(o.buf, "}]}"...)
		return o.flush()
	})
}

// answerOf is what an answer says, in its dialect's own form.
func answerOf(dialect string, response []byte) []byte {
	switch dialect {
	case "gemini":
		if it := jsonx.Array(jsonx.Get(response, "candidates")); it.Next() {
			return jsonx.Get(it.Value(), "content")
		}
		return nil
	case "messages":
		return jsonx.Get(response, "content")
	case "responses":
		return jsonx.Get(response, "output")
	}
	if it := jsonx.Array(jsonx.Get(response, "choices")); it.Next() {
		return jsonx.Get(it.Value(), "message")
	}
	return nil
}
