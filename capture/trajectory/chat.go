package trajectory

import (
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strconv"

	"rolltap/capture"
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
	LeftLong        = "line_too_long"     // a turn with GapLong
	LeftUnreadable  = "unreadable"        // a rollout whose file could not be read, or not to its end; no line is written
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
		if c.Role != RoleTurn || c.Long {
			continue
		}
		run[i] = 1
		if c.Parent >= 0 && c.Exact && !c.opens && run[c.Parent] > 0 {
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
// the member weight with the value 0. left is told what is not in the line and why; nothing is written when there is no turn. The line is written as
// the file is read, in small memory: what was written before an error is no line.
func (r *Rollout) WriteChat(w io.Writer, dir string, left func(Left)) (wrote bool, err error) {
	chosen := r.Chosen()
	reasons := map[string]int{}
	tell := func(l Left) {
		l.Detail = capture.Brief(l.Detail)
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
	learned := slices.ContainsFunc(chosen, func(at int) bool { return r.Calls[at].learned() })
	if !learned {
		w = io.Discard // what else is left out is told all the same
	}
	line := &out{w: w}
	if err := r.writeMessages(line, dir, chosen, tell); err != nil {
		return false, err
	}
	if !learned {
		tell(Left{-1, LeftNoTurn, ""})
		return false, nil
	}
	line.buf = append(line.buf, `,"rolltap":{"rollout_id":`...)
	line.buf = jsonx.AppendString(line.buf, r.ID)
	line.buf = append(line.buf, `,"model_call_ids":[`...)
	for i, at := range chosen {
		if i > 0 {
			line.buf = append(line.buf, ',')
		}
		line.buf = jsonx.AppendString(line.buf, r.Calls[at].ID)
	}
	line.buf = append(line.buf, `],"left_out":{`...)
	for i, reason := range slices.Sorted(maps.Keys(reasons)) {
		if i > 0 {
			line.buf = append(line.buf, ',')
		}
		line.buf = append(jsonx.AppendString(line.buf, reason), ':')
		line.buf = strconv.AppendInt(line.buf, int64(reasons[reason]), 10)
	}
	line.buf = append(line.buf, "}}}\n"...)
	err = line.flush()
	return err == nil, err
}

// writeMessages writes what the chosen turns add, each for itself, and behind the last one the tools that it had.
func (r *Rollout) writeMessages(line *out, dir string, chosen []int, tell func(Left)) error {
	line.buf = append(line.buf, `{"messages":[`...)
	var tools toolsSeen
	m, k := messages{out: line}, 0
	err := r.Again(dir, func(at int, c *derive.Call) error {
		if k == len(chosen) || at != chosen[k] { // a turn stands behind those that it goes on from
			return nil
		}
		line.rests = c.Rests
		m.front, m.tell = k == 0, func(reason, detail string) { tell(Left{at, reason, detail}) }
		dialect, _ := jsonx.Text(c.Dialect)
		i := 0
		elements(dialect, c.Request, func(e element) {
			if i++; k == 0 || i > r.Calls[at].New {
				m.element(e)
			}
		})
		m.flush()
		m.answer(r, at, dialect, c.Response)
		own := jsonx.Get(c.Request, "tools")
		if tools.changed(c.Rests, own) {
			tell(Left{at, LeftTools, ""})
		}
		if k++; k == len(chosen) {
			line.buf = append(line.buf, ']')
			if list := appendTools(nil, dialect, own, func(detail string) { tell(Left{at, LeftTool, detail}) }); list != nil {
				line.buf = append(append(line.buf, `,"tools":`...), list...)
			}
		}
		return line.flush()
	})
	if err == nil && k < len(chosen) {
		err = errChanged
	}
	return err
}

// toolsSeen is what the tools of the turn before are known by.
type toolsSeen struct {
	h    maphash.Hash
	last uint64
	some bool // there was a turn
}

// changed reports whether the tools of a turn are others than those of the one before.
func (s *toolsSeen) changed(rests *capture.Rests, tools []byte) bool {
	s.h.Reset()
	rests.Write(&s.h, tools) // an error ends the reading
	sum := s.h.Sum64()
	other := s.some && sum != s.last
	s.last, s.some = sum, true
	return other
}

// learned reports whether the answer of a turn is to be learned: it is whole, and a message of Chat has a place for it.
func (c *Call) learned() bool {
	return c.Outcome == "ok" && len(c.answers) > 0 && c.answers[min(c.taken, len(c.answers)-1)].inChat
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
		case c.Long:
			l.Reason = LeftLong
		case on[i]:
			l.Reason = LeftChanged
		case r.Threads[c.Thread].Sub:
			l.Reason, l.Detail = LeftSubAgent, r.Name(c.Thread)
		default:
			l.Reason = LeftBranch
		}
		tell(l)
	}
	if r.Found.Err != nil {
		tell(Left{-1, LeftUnreadable, ""})
	}
	for range r.Found.Damaged {
		tell(Left{-1, LeftDamaged, ""})
	}
}

// answer appends the answer of a turn, of several the one that a later history holds.
func (m *messages) answer(r *Rollout, at int, dialect string, response []byte) {
	c := &r.Calls[at]
	all := answers(dialect, response)
	if len(all) == 0 {
		return
	}
	for range all[1:] {
		m.tell(LeftAlternative, "")
	}
	said := all[min(c.taken, len(all)-1)]
	if c.Outcome != "ok" {
		m.tell(LeftCut, c.Outcome)
	}
	m.assistant(said, !c.learned())
}
