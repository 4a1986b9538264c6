package trajectory

import (
	"cmp"
	"slices"

	"rolltap/capture/derive"
)

// finish gives every call its role and the turns their branches.
func (b *builder) finish(found derive.Found) *Rollout {
	r := b.r
	r.Found, r.Main = found, -1
	for i := range r.Calls {
		b.decide(i)
	}
	b.retries()
	b.leavesLeft()
	b.branches()
	b.hierarchy()
	for i := range r.Calls {
		c := &r.Calls[i]
		c.text = ""
		if c.unread {
			b.gap(i, GapUnreadable, "")
		}
		if c.Long {
			b.gap(i, GapLong, "the lists in it are too long")
		}
		if c.Role != RoleTurn {
			continue
		}
		for k := range c.Tools {
			if c.Tools[k].Result < 0 && c.kept > 0 {
				b.gap(i, GapResult, c.Tools[k].Name)
			}
		}
		if len(c.Tools) > 0 && (c.Completed == 0 || c.kept > 0 && c.Started == 0) {
			b.gap(i, GapTiming, "")
		}
	}
	slices.SortStableFunc(r.Gaps, func(a, b Gap) int { return cmp.Compare(a.Call, b.Call) })
	return r
}

// answered reports whether anything was said that a client could go on from.
func (c *Call) answered() bool {
	return slices.ContainsFunc(c.answers, func(g gist) bool { return !g.empty() })
}

// decide gives the roles that follow from the call alone, and from whoever went on from it.
func (b *builder) decide(i int) {
	c := &b.r.Calls[i]
	switch {
	case c.Side == derive.SideCompaction:
		c.Role = RoleCompaction
	case c.Side.Aside():
		c.Role = RoleSide
	case c.Parent >= 0 && !c.opens && b.r.Calls[c.Parent].Role == RoleCompaction:
		c.Role = RoleCompaction // asked again for a summary that was none
	case c.children > 0:
		c.Role = RoleTurn
	case !c.answered():
		c.Role = RoleFailed
	case c.summary >= 0:
		c.Role = RoleCompaction
	}
}

// retries decides between calls that asked the same: who was gone on from is a turn, else the last that was answered whole. Calls
// whose times overlap were asked at once, and nothing tells which of them counts.
func (b *builder) retries() {
	groups := map[int][]int{}
	var order []int
	for i := range b.r.Calls {
		c := &b.r.Calls[i]
		if c.Side.Aside() || c.Role == RoleCompaction {
			continue
		}
		first := i
		if c.Same >= 0 {
			first = c.Same
		}
		if groups[first] == nil {
			order = append(order, first)
		}
		groups[first] = append(groups[first], i)
	}
	for _, first := range order {
		g := groups[first]
		counts := -1 // the call that counts
		for _, i := range g {
			if b.r.Calls[i].Role == RoleTurn {
				counts = i
			}
		}
		if len(g) > 1 && counts < 0 {
			counts = b.lastWhole(g)
		}
		for _, i := range g {
			c := &b.r.Calls[i]
			c.Same = -1
			if i != counts && counts >= 0 {
				c.Same = counts
				if c.Role == "" {
					c.Role = RoleRetry
				}
			}
		}
	}
}

// lastWhole is the call of a group that counts when nobody went on from any: the last one with a whole answer.
func (b *builder) lastWhole(g []int) int {
	counts := -1
	for _, i := range g {
		if c := &b.r.Calls[i]; c.Role == "" && c.Outcome == "ok" && (counts < 0 || c.Started >= b.r.Calls[counts].Started) {
			counts = i
		}
	}
	if counts < 0 {
		return -1
	}
	last := &b.r.Calls[counts]
	for _, i := range g {
		if c := &b.r.Calls[i]; i != counts && c.Role == "" && c.Outcome == "ok" && (c.Completed == 0 || last.Started == 0 || c.Completed > last.Started) {
			b.gap(counts, GapRetryUndecided, c.ID)
		}
	}
	return counts
}

// leavesLeft decides about answers that nobody went on from.
func (b *builder) leavesLeft() {
	latest := make([]int, len(b.r.Threads)) // the call of a thread that began last; of those, a beginning or a cut
	begun := make([]float64, len(b.r.Threads))
	forked := map[int]float64{} // when a call was last gone on from
	lastAnew := make([]float64, len(b.r.Threads))
	for i := range b.r.Calls {
		c := &b.r.Calls[i]
		if c.Role == RoleSide || c.Role == RoleCompaction {
			continue
		}
		if c.Started >= begun[c.Thread] {
			begun[c.Thread], latest[c.Thread] = c.Started, i
		}
		if c.Parent >= 0 {
			forked[c.Parent] = max(forked[c.Parent], c.Started)
		}
		if (c.Parent < 0 && c.History == 0) || c.opens {
			lastAnew[c.Thread] = max(lastAnew[c.Thread], c.Started)
		}
	}
	for i := range b.r.Calls {
		c := &b.r.Calls[i]
		if c.Role != "" {
			continue
		}
		th := &b.r.Threads[c.Thread]
		labelled := th.Session != "" || th.Agent != ""
		switch {
		case c.reports >= 0:
			c.Role = RoleTurn // an agent's last word
		case c.Outcome != "ok":
			c.Role = RoleFailed
			b.gap(i, GapTurnUnproven, "the answer broke off")
		case c.Parent >= 0 && forked[c.Parent] > c.Started && forked[c.Parent] >= c.Completed:
			c.Role = RoleDropped
			b.gap(i, GapTurnUnproven, "the client went on from the turn before")
		case labelled && c.History > 0 && lastAnew[c.Thread] > c.Started:
			c.Role = RoleDropped
			b.gap(i, GapTurnUnproven, "the session began anew")
		case c.doubtful:
			c.Role = RoleDropped
			b.gap(i, GapTurnUnproven, "what asks for it may be a compaction")
		default:
			c.Role = RoleTurn
		}
	}
}

// hierarchy names the agents of which nothing tells who started them.
func (b *builder) hierarchy() {
	for i := range b.r.Threads {
		if th := &b.r.Threads[i]; th.Sub && th.Spawn.Call < 0 {
			name := th.Agent
			if name == "" {
				name = "of session " + th.Session
			}
			b.gap(-1, GapHierarchy, name)
		}
	}
}
