package protocol

import "fmt"

// crash ends the process, or the power, in every way that leaves something else.
func (e *explorer) crash(w world) {
	w.crashes--
	n := w
	n.die()
	e.add("killed", n)

	w.cut = true
	w.clearing = false
	w.die()
	w.suspectLoss()
	e.cutNames(w, 0)
}

// die takes what is in memory.
func (w *world) die() {
	w.phase = down
	w.c, w.suspect, w.lazy = [rollouts]committer{}, [rollouts]uint8{}, 0
	w.writer.on, w.writer.e, w.writer.mask, w.writer.seg = false, Entries{}, 0, 0
	w.retire.on, w.retire.r, w.retire.step, w.retire.anew = 0, 0, 0, 0
	w.replay.r, w.replay.k, w.replay.line, w.replay.about, w.replay.owed, w.replay.begun = 0, 0, 0, 0, 0, false
	for r := range w.marks {
		w.marks[r].pending, w.marks[r].more = 0, false
	}
	for i := range w.x {
		if me := &w.x[i]; me.at != idle {
			me.at, me.tell, me.claim = never, noTell, Waiting
			if me.told == noTell {
				me.result = 0 // nobody is left to compare it with
			}
		}
	}
	for i := range w.segs {
		if s := &w.segs[i]; s.at == unnamed || s.at == current || s.at == sealed {
			*s = segment{at: dead, unsure: s.unsure}
		}
	}
	for i := range w.log {
		w.log[i].state = closed
	}
}

// suspectLoss notes what async does not promise behind a power cut.
func (w *world) suspectLoss() {
	if w.mode != Async {
		return
	}
	for x := range w.x {
		r := rolloutOf(x)
		f, ok := w.file(r)
		for i := 0; ok && i < places; i++ {
			// Where a late sync has failed nobody knows what is there, and the mark says so as soon as it can.
			if c := w.files[f][i]; c.is(x) && c&dirty != 0 || c&dropped != 0 {
				w.excused |= 1 << x
			}
		}
	}
}

// cutNames lets each name be one of those that it had since the folder was synced.
func (e *explorer) cutNames(w world, r int) {
	if r == rollouts {
		e.cutMarks(w, 0)
		return
	}
	was := w.names[r]
	for v := was.durable; v <= was.now; v++ {
		n := w
		n.names[r] = name{v, v}
		// A file whose name was lost is another one when it is made again.
		for lost := v + 1; lost <= was.now; lost++ {
			f, ok := inode(r, lost)
			for i := range n.log {
				if ok && n.log[i].file == f {
					n.log[i].file = inodes
				}
			}
			if ok {
				n.files[f] = content{}
			}
		}
		e.cutNames(n, r+1)
	}
}

func (e *explorer) cutMarks(w world, r int) {
	if r == rollouts {
		e.cutSegments(w, 0)
		return
	}
	if w.marks[r].file == 1 {
		n := w
		n.marks[r].file = 0
		e.cutMarks(n, r+1)
		w.marks[r].file = 2
	}
	e.cutMarks(w, r+1)
}

// cutSegments: those without a durable name may go, those that were removed may come back, and of what was not synced any
// beginning may be there.
func (e *explorer) cutSegments(w world, i int) {
	if i == segMax {
		e.cutFiles(w, 0, 0)
		return
	}
	s := &w.segs[i]
	if s.at == dead && s.unsure || s.at == removed {
		n := w
		n.dropSegment(i)
		e.cutSegments(n, i+1)
		s.at, s.unsure = dead, false
	}
	if s.at != dead {
		e.cutSegments(w, i+1)
		return
	}
	e.cutEntries(w, i, 0)
}

func (w *world) dropSegment(i int) {
	w.segs[i] = segment{}
	for k := range w.log {
		if w.log[k].seg == uint8(i) {
			w.log[k] = entry{}
		}
	}
}

func (e *explorer) cutEntries(w world, seg, i int) {
	for ; i < entryMax; i++ {
		l := &w.log[i]
		if !l.used || int(l.seg) != seg || l.at == durable {
			continue
		}
		n := w
		for k := i; k < entryMax; k++ { // nothing is read behind it
			if n.log[k].seg == uint8(seg) {
				n.log[k] = entry{}
			}
		}
		e.cutSegments(n, seg+1)
		l.at = durable
	}
	e.cutSegments(w, seg+1)
}

// cutFiles lets each place that is in memory alone be there, be NUL bytes, be there in part, or not be there at the end.
func (e *explorer) cutFiles(w world, f, i int) {
	if f == inodes {
		e.add("the power goes", w)
		return
	}
	if i == places || w.files[f][i] == nothing {
		e.cutFiles(w, f+1, 0)
		return
	}
	c := &w.files[f][i]
	if *c&unsafe == 0 {
		e.cutFiles(w, f, i+1)
		return
	}
	last := true
	for k := i; k < places; k++ {
		last = last && (w.files[f][k] == nothing || w.files[f][k]&unsafe != 0)
	}
	if last {
		n := w
		n.files[f].cutTo(i)
		e.cutFiles(n, f+1, 0)
	}
	v := *c &^ unsafe
	for i, v := range [...]cell{v, nul, half(v)} {
		if i == 2 && (v == *c || v&joined != 0) {
			continue // what is missing of it, its end is not
		}
		*c = v &^ joined
		e.cutFiles(w, f, i+1)
	}
}

func half(c cell) cell {
	if v := c & what; v >= record0 && v < half0 {
		return c + half0 - record0
	}
	return c
}

// replay does the next step of the next process, before it takes records.
func (e *explorer) replay(w world) {
	p := &w.replay
	if r := int(p.r); r < rollouts {
		if !p.begun && !w.free(r) {
			return
		}
		p.begun = true
		f, named := w.file(r)
		if named && e.restoreNext(&w, r, false) {
			e.add(fmt.Sprintf("replay: rollout %d", r), w)
			return
		}
		end := func(w world) {
			w.replay.r, w.replay.k, w.replay.line, w.replay.about, w.replay.begun = uint8(r+1), 0, 0, 0, false
			e.add(fmt.Sprintf("replay: rollout %d is done", r), w)
		}
		if named && e.u.finish(int(p.about)) == SyncReplayed {
			if n := w.fault(); n != nil {
				n.files[f].sync(false)
				n.replay.owed++
				end(*n)
			}
			w.files[f].sync(true)
		}
		end(w)
		return
	}
	if e.u.remove(int(p.owed)) {
		for i := range w.segs {
			if s := &w.segs[i]; s.at == dead {
				s.at = removed
				e.add("replay: a segment is removed", w)
				return
			}
		}
		w.cut = false
	}
	w.phase = running
	p.r, p.owed = 0, 0
	e.add("the store takes records", w)
}

// restoreNext does one thing for the entries of a rollout and reports whether there may be more. live: of our own journal.
func (e *explorer) restoreNext(w *world, r int, live bool) bool {
	p := &w.replay
	var order [entryMax]int
	n := 0
	for place := range uint8(places) {
		for i, l := range w.log {
			at := w.segs[l.seg].at
			mine := live && (at == current || at == sealed) || !live && at == dead
			if l.used && l.place == place && mine && l.about(r) {
				order[n] = i
				n++
			}
		}
	}
	if int(p.k) >= n {
		return false
	}
	f, _ := w.file(r)
	l, c := w.log[order[p.k]], &w.files[f]
	var m Restore
	for !m.Ended() {
		switch m.Do {
		case Identify:
			m = e.u.restore(m, Finding{Same: l.file == f})
		case Compare:
			whole, fits := c.compare(l)
			m = e.u.restore(m, Finding{Whole: whole, Fits: fits})
		case Search:
			m = e.u.restore(m, Finding{Elsewhere: c.elsewhere(l)})
		}
	}
	next := func() {
		p.k, p.line = p.k+1, 0
		if m.Do != Skip {
			p.about++
		}
	}
	switch m.Do {
	case InPlace:
		at := int(l.place)
		v := dirty
		if l.heal {
			v |= newline
		}
		for x := range exchanges {
			if l.has(x) && at < places {
				// The same bytes over durable ones change nothing that a power cut could leave.
				if want := record0 + cell(x) | v&newline; c[at]&(what|newline) != want || c[at]&unsafe != 0 {
					c[at] = want | dirty
				}
				at, v = at+1, dirty
			}
		}
	case Append:
		for x := int(p.line); x < exchanges; x++ {
			p.line = uint8(x + 1)
			if !l.has(x) {
				continue
			}
			if e.u.line(c.count(record0+cell(x)) > 0) == WriteAgain {
				for i := range c {
					if c[i].is(x) && c.found(i) && c[i]&dropped != 0 {
						c[i] = c[i]&^dropped | dirty
					}
				}
				return true
			}
			v := record0 + cell(x) | dirty
			if k := c.size(); c.open(k) || k > 0 && c[k-1]&what == nul {
				v |= newline
			}
			c.add(v)
			return true
		}
	}
	next()
	return true
}

// about reports whether an entry is one of a rollout.
func (e entry) about(r int) bool { return e.mask != 0 && (e.mask&4 != 0) == (r == 1) }

// compare is fileReplay.compare.
func (c *content) compare(l entry) (whole, fits bool) {
	at := int(l.place)
	if c.size() < at {
		return false, false
	}
	whole = true
	begins := l.heal || !c.open(at)
	heal := l.heal
	for x := range exchanges {
		if !l.has(x) {
			continue
		}
		if at == places {
			return false, false
		}
		switch v := c[at] & what; {
		case v == record0+cell(x) && (c[at]&newline != 0) == heal:
		case v == nothing, v == nul, v == half0+cell(x) && (c[at]&newline != 0) == heal:
			whole = false
		default:
			return false, false
		}
		at, heal = at+1, false
	}
	return whole && begins, begins
}

// elsewhere is fileReplay.elsewhere.
func (c *content) elsewhere(l entry) bool {
	for i := range c {
		if i >= int(l.place) && i < int(l.place)+l.n() || !c.found(i) {
			continue
		}
		for x := range exchanges {
			if l.has(x) && c[i].is(x) {
				return true
			}
		}
	}
	return false
}
