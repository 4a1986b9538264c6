package trajectory

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// Left is something that an export of chat leaves out, or does not train on, and why.
type Left struct {
	Call   int // of Rollout.Calls; -1: of the rollout
	Reason string
	Detail string
}

// The reasons of Left besides the roles of calls and the kinds of side calls.
const (
	LeftSubAgent    = "subagent"          // a turn of an agent that another one started
	LeftBranch      = "other_branch"      // a turn of another line
	LeftChanged     = "history_changed"   // a turn of this line, whose answer the later history does not hold as it was
	LeftDamaged     = "damaged_line"      // a line that is no record
	LeftNoTurn      = "no_turn"           // the rollout has nothing to train on; no line is written
	LeftUnanswered  = "history_answer"    // an answer in the history that is not one of the turns: kept as context, with weight 0
	LeftCut         = "answer_cut"        // an answer that broke off and was gone on from: kept as context, with weight 0
	LeftAttachment  = "attachment"        // a file or an image that Chat has no place for: named in a text instead
	LeftHosted      = "hosted_call"       // a call that the provider ran itself, and its result
	LeftHidden      = "reasoning_hidden"  // reasoning that was encrypted or redacted
	LeftUnknown     = "unknown_item"      // an item that Chat has no word for
	LeftTool        = "tool_not_function" // a tool that is no function
	LeftTools       = "tools_changed"     // the tools are those of the last turn, and an earlier one had others
	LeftBilling     = "billing_line"      // a line of the client's own, not for the model
	LeftAlternative = "alternative"       // one of several answers to one request, which the history has not
)

// Chosen is the longest run of turns of which each holds all that the one before it was asked and said, unchanged: of a line that is no
// sub-agent's where there is one, and of runs of the same length the last. It is nil when there is no turn.
func (r *Rollout) Chosen() []int {
	run := make([]int, len(r.Calls))
	best := -1
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Role != RoleTurn {
			continue
		}
		run[i] = 1
		if c.Parent >= 0 && c.Exact && !c.opens && r.Calls[c.Parent].Role == RoleTurn {
			run[i] += run[c.Parent]
		}
		if best < 0 {
			best = i
			continue
		}
		sub, was := r.Threads[c.Thread].Sub, r.Threads[r.Calls[best].Thread].Sub
		if sub != was {
			if was {
				best = i
			}
		} else if run[i] >= run[best] {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	var chosen []int
	for at, n := best, run[best]; n > 0; at, n = r.Calls[at].Parent, n-1 {
		chosen = append(chosen, at)
	}
	slices.Reverse(chosen)
	return chosen
}

// WriteChat writes the chosen turns as one JSON line: messages and tools as Chat has them. Every answer that is not to be learned has
// the member weight with the value 0. left is told what is not in the line and why; nothing is written when there is no turn. It needs memory for one
// line of the store and for the conversation.
func (r *Rollout) WriteChat(w io.Writer, dir string, left func(Left)) (wrote bool, err error) {
	chosen := r.Chosen()
	reasons := map[string]int{}
	tell := func(l Left) {
		reasons[l.Reason]++
		if left != nil {
			left(l)
		}
	}
	r.leftOut(chosen, tell)
	if chosen == nil {
		tell(Left{-1, LeftNoTurn, ""})
		return false, nil
	}
	parts, learned := make([][]byte, len(chosen)), 0 // what each turn adds
	var tools, last []byte
	err = r.Again(dir, func(at int, c *derive.Call) error {
		k := slices.Index(chosen, at)
		if k < 0 {
			return nil
		}
		m := messages{front: k == 0, tell: func(reason, detail string) { tell(Left{at, reason, detail}) }}
		dialect, _ := jsonx.Text(c.Dialect)
		i := 0
		elements(dialect, c.Request, func(e element) {
			if i++; k == 0 || i > r.Calls[at].New {
				m.element(e)
			}
		})
		m.flush()
		if m.answer(r, chosen[k], dialect, c.Response) {
			learned++
		}
		parts[k] = m.out
		own := jsonx.Get(c.Request, "tools")
		if last != nil && string(own) != string(last) {
			tell(Left{at, LeftTools, ""})
		}
		last = append(last[:0], own...)
		if last == nil {
			last = []byte{}
		}
		if k == len(chosen)-1 {
			tools = appendTools(nil, dialect, own, func(detail string) { tell(Left{at, LeftTool, detail}) })
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if learned == 0 {
		tell(Left{-1, LeftNoTurn, ""})
		return false, nil
	}
	line := append([]byte(nil), `{"messages":[`...)
	for _, p := range parts {
		if len(p) > 0 && line[len(line)-1] != '[' {
			line = append(line, ',')
		}
		line = append(line, p...)
	}
	line = append(line, ']')
	if tools != nil {
		line = append(append(line, `,"tools":`...), tools...)
	}
	line = append(line, `,"rolltap":{"rollout_id":`...)
	line = jsonx.AppendString(line, r.ID)
	line = append(line, `,"model_call_ids":[`...)
	for i, at := range chosen {
		if i > 0 {
			line = append(line, ',')
		}
		line = jsonx.AppendString(line, r.Calls[at].ID)
	}
	line = append(line, `],"left_out":{`...)
	for i, reason := range slices.Sorted(maps.Keys(reasons)) {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(jsonx.AppendString(line, reason), ':')
		line = strconv.AppendInt(line, int64(reasons[reason]), 10)
	}
	_, err = w.Write(append(line, "}}}\n"...))
	return err == nil, err
}

// leftOut tells of every call that is not among the chosen.
func (r *Rollout) leftOut(chosen []int, tell func(Left)) {
	on := map[int]bool{} // all turns of the chosen ones' line
	if len(chosen) > 0 {
		for at := chosen[len(chosen)-1]; at >= 0; at = r.Calls[at].Parent {
			on[at] = true
		}
		b := r.Calls[chosen[len(chosen)-1]].Branch
		for i := range r.Calls {
			if r.Calls[i].Role == RoleTurn && r.Calls[i].Branch == b {
				on[i] = true
			}
		}
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		l := Left{Call: i, Reason: string(c.Role)}
		switch {
		case slices.Contains(chosen, i):
			continue
		case c.Role == RoleSide:
			l.Reason = string(c.Side)
		case c.Role != RoleTurn:
			if c.Same >= 0 {
				l.Detail = "call " + strconv.Itoa(r.Calls[c.Same].Index+1) + " counts"
			}
			if c.Outcome != "ok" {
				l.Detail = c.Outcome
			}
		case on[i]:
			l.Reason = LeftChanged
		case r.Threads[c.Thread].Sub:
			l.Reason, l.Detail = LeftSubAgent, r.Name(c.Thread)
		default:
			l.Reason = LeftBranch
		}
		tell(l)
	}
	for range r.Found.Damaged {
		tell(Left{-1, LeftDamaged, ""})
	}
}

// answer appends the answer of a turn, of several the one that a later history holds, and reports whether it is to be learned.
func (m *messages) answer(r *Rollout, at int, dialect string, response []byte) bool {
	c := &r.Calls[at]
	all := answers(dialect, response)
	if len(all) == 0 {
		return false
	}
	for range all[1:] {
		m.tell(LeftAlternative, "")
	}
	said := all[min(c.taken, len(all)-1)]
	if c.Outcome != "ok" {
		m.tell(LeftCut, c.Outcome)
		m.assistant(said, true)
		return false
	}
	return m.assistant(said, false)
}
