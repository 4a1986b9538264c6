package trajectory

// branches makes lines of the turns. A turn that the first turn behind another one continues its branch; every further one forks.
func (b *builder) branches() {
	r := b.r
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Role != RoleTurn {
			continue
		}
		r.Threads[c.Thread].Turns++
		p := b.turnBefore(c)
		c.Parent = p
		c.Turn = 1
		if p >= 0 && !c.opens {
			parent := &r.Calls[p]
			c.Turn = parent.Turn + 1
			if parent.kept++; parent.kept == 1 {
				c.Branch = parent.Branch
				r.Branches[c.Branch].Last = i
				r.Branches[c.Branch].Turns = c.Turn
				continue
			}
		}
		c.Branch = len(r.Branches)
		cause, from := b.cause(i, p)
		if cause == causeUnknown {
			b.gap(i, GapBranchCause, "")
		}
		r.Branches = append(r.Branches, Branch{Cause: string(cause), From: from, Thread: c.Thread, First: i, Last: i, Turns: c.Turn})
	}
	longest := func(sub bool) {
		for i := range r.Branches {
			if br := &r.Branches[i]; r.Threads[br.Thread].Sub == sub && (r.Main < 0 || br.Turns >= r.Branches[r.Main].Turns) {
				r.Main = i
			}
		}
	}
	if longest(false); r.Main < 0 {
		longest(true)
	}
}

// turnBefore is the parent of a turn. A parent that somebody went on from is a turn, so only calls aside are skipped.
func (b *builder) turnBefore(c *Call) int {
	p := c.Parent
	for p >= 0 && b.r.Calls[p].Role != RoleTurn {
		p = b.r.Calls[p].Parent
	}
	return p
}

// cause is why a branch begins with turn i, whose parent is p.
func (b *builder) cause(i, p int) (why cause, from int) {
	c := &b.r.Calls[i]
	if c.begins == causeCompaction || c.opens || p < 0 {
		if k := b.compacted(i); k >= 0 {
			return causeCompaction, k
		}
	}
	switch {
	case c.opens:
		return causeShortened, p
	case p >= 0:
		return causeFork, p
	}
	for k := range b.r.Branches {
		if br := &b.r.Branches[k]; br.Thread == c.Thread && b.labelled(c.Thread) && b.r.Calls[br.First].Turn == 1 && b.r.Calls[br.Last].History > 0 {
			return causeUnknown, br.Last
		}
	}
	return causeStart, -1
}

func (b *builder) labelled(thread int) bool {
	th := &b.r.Threads[thread]
	return th.Session != "" || th.Agent != ""
}

// compacted is the compaction whose summary a branch begins with: the one whose words it repeats, else the one that stands between
// the thread's turn before and this one.
func (b *builder) compacted(i int) int {
	c := &b.r.Calls[i]
	for k := i - 1; k >= 0; k-- {
		if s := b.r.Calls[k].summary; s == i || s >= 0 && b.r.Calls[s].full == c.full {
			return k
		}
	}
	for k := i - 1; k >= 0; k-- {
		o := &b.r.Calls[k]
		switch {
		case o.Thread != c.Thread:
		case o.Role == RoleCompaction && o.answered():
			return k
		case o.Role == RoleTurn:
			return -1
		}
	}
	return -1
}
