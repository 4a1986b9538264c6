package trajectory

import (
	"rolltap/capture/derive"
)

// Role says what became of a call.
type Role string

// The roles of calls. Only turns are part of what the agent went on with.
const (
	RoleTurn       Role = "turn"       // a later history holds the answer, or it is the last word of a conversation
	RoleRetry      Role = "retry"      // the same was asked again, and that answer counts
	RoleFailed     Role = "failed"     // no answer, or the beginning of one that nobody went on with
	RoleDropped    Role = "dropped"    // answered, and the client went on without the answer
	RoleCompaction Role = "compaction" // its answer stands in for the history
	RoleSide       Role = "side"       // a title, a search, a count, a probe
)

// The codes of gaps. Those of the capture are derive's.
const (
	GapHistoryUnrecorded = "history_unrecorded"             // a conversation begins with answers that no record has
	GapAnswerUnrecorded  = "answer_unrecorded"              // a history holds an answer behind the parent's that no record has
	GapHistoryChanged    = "history_changed"                // what stands before the parent's answer is not what the parent was asked
	GapAnswerChanged     = "answer_changed"                 // the parent's answer is known by the id of a tool call and says something else
	GapParentAmbiguous   = "parent_ambiguous"               // several calls may be the parent; the last of the likeliest is taken
	GapTurnUnproven      = "turn_unproven"                  // nothing says whether the client took the answer; it is no turn
	GapRetryUndecided    = "retry_undecided"                // the same was asked several times at once and nothing says which answer counts
	GapBranchCause       = "branch_cause_unknown"           // a session begins anew and nothing says why
	GapHierarchy         = "subagent_hierarchy_unavailable" // an agent was started by another one, and no tool call is seen to have done so
	GapResult            = "tool_result_missing"            // no later request brings the result of a tool call
	GapTiming            = "tool_timing_unavailable"        // a record lacks its times
	GapUnreadable        = "request_unreadable"             // a request that is no JSON object, or that was cut
	GapLong              = "line_too_long"                  // the lists of a line are too long to be held and compared; see Call.Long
)

// Gap is something about a call that cannot be known.
type Gap struct {
	derive.Gap
	Call int // of Rollout.Calls; -1: of the rollout
}

// Call is a record in its place.
type Call struct {
	Index     int // call_index of the record
	ID        string
	Role      Role
	Side      derive.Side
	Parent    int  // of Rollout.Calls: whose answer the history ends with; -1: it begins a conversation
	Exact     bool // the history up to there is what the parent was asked and said, nothing more and nothing less
	Thread    int  // of Rollout.Threads
	Branch    int  // of Rollout.Branches; -1: no turn
	Turn      int  // number of the turn in its branch, from 1, shared turns included; 0: no turn
	History   int  // answers in the history
	New       int  // elements of the request that are no news: those up to the parent's answer
	Outcome   string
	Started   float64 // Unix seconds; 0 is unknown
	Completed float64
	Tools     []Tool // that the answer calls
	Same      int    // the call that counts where the same was asked several times; -1: none
	Long      bool   // what it was asked is not compared with anything, and what it says is not exported: GapLong

	full     uint64 // of all that the request says
	answers  []gist
	taken    int    // which of several answers a later history holds
	text     string // an answer that is nothing but text, its white space squeezed, until somebody goes on from it
	children int
	kept     int  // how many of the children are turns
	opens    bool // the history is shorter than the parent's: it was cut
	begins   cause
	reports  int // the call whose request brings the text as the result of a tool; -1
	summary  int // the call whose request begins with the text; -1
	unread   bool
	doubtful bool // its last message has a long text behind results of tools, as compactions do
}

// Tool is a tool call of an answer.
type Tool struct {
	ID, Name string
	Result   int // of Rollout.Calls: whose request brings the result first; -1: none does
	Bad      bool
	Spawned  int // of Rollout.Calls: the first call of the agent that it started; -1: none is known

	id uint64
}

// Thread is who makes calls: an agent of a session, as far as the client tells.
type Thread struct {
	Session, Agent, Parent string // "" is unknown
	Sub                    bool   // another agent started it
	Calls, Turns           int
	Spawn                  Spawn
}

// Spawn is the tool call that started an agent.
type Spawn struct{ Call, Tool int } // Call is -1 when none is known

// cause says why a branch begins.
type cause string

const (
	causeStart      cause = "start"      // of a conversation
	causeFork       cause = "fork"       // from the middle of another one
	causeCompaction cause = "compaction" // a summary stands in for the history
	causeShortened  cause = "shortened"  // the history lacks turns that were there
	causeUnknown    cause = "unknown"    // a session begins anew
)

// Branch is a line of turns, each in the history of the next one.
type Branch struct {
	Cause  string // start, fork, compaction, shortened, unknown
	From   int    // of Rollout.Calls: the turn that it leaves, or the compaction; -1: none
	Thread int
	First  int // its own first turn
	Last   int
	Turns  int // all of the line, those that it shares with the branch that it forks from included
}

// Rollout is what became of the calls of a rollout. Calls are in the order of the file, damaged lines left out.
type Rollout struct {
	ID       string
	Found    derive.Found
	Calls    []Call
	Threads  []Thread
	Branches []Branch
	Gaps     []Gap
	Progress func(bytes int64) error // told of each line that is read again; an error ends the reading. May be nil
	Main     int                     // the longest branch that is no sub-agent's, of those the last; -1: there is no turn
}

// Count is how many calls have a role.
func (r *Rollout) Count(role Role) (n int) {
	for i := range r.Calls {
		if r.Calls[i].Role == role {
			n++
		}
	}
	return n
}

// At is the place in Calls of the record with a call_index; -1: it is damaged, or not there.
func (r *Rollout) At(index int) int {
	lo, hi := 0, len(r.Calls)
	for lo < hi {
		mid := (lo + hi) / 2
		if r.Calls[mid].Index < index {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(r.Calls) && r.Calls[lo].Index == index {
		return lo
	}
	return -1
}

// Line is the calls of a branch from its root on, in their order: the turns of the branches that it forks from included.
func (r *Rollout) Line(branch int) []int {
	var line []int
	for at := r.Branches[branch].Last; at >= 0; at = r.Calls[at].Parent {
		line = append(line, at)
		if r.Calls[at].opens {
			break // what is before it is not in the history any more
		}
	}
	for i, j := 0, len(line)-1; i < j; i, j = i+1, j-1 {
		line[i], line[j] = line[j], line[i]
	}
	return line
}
