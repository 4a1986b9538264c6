package protocol

import "fmt"

// The steps that production does with files, in the model.

// commit does the next step of a rollout's batch.
func (e *explorer) commit(w world, r int) {
	c := &w.c[r]
	if !c.on {
		for x := range w.x {
			if rolloutOf(x) == r && w.x[x].at == queued {
				w.x[x].at = batched
				c.mask |= 1 << x
			}
		}
		if c.mask != 0 {
			c.on, c.b = true, Begin(w.mode)
			e.add(fmt.Sprintf("rollout %d takes a batch", r), w)
		}
		return
	}
	// step adds what follows when the step brings ev.
	step := func(did string, w world, ev Event) {
		c := &w.c[r]
		c.b = e.u.batch(c.b, ev)
		if c.b.Do == Lock || c.b.Ended() {
			w.settle(r, e)
		}
		e.add(fmt.Sprintf("rollout %d: %s", r, did), w)
	}
	bad := func(did string, do func(*world)) {
		if n := w.fault(); n != nil {
			do(n)
			step(did, *n, Event{Saw: Failed})
		}
	}
	nothing := func(*world) {}
	file := &w.files[c.file]
	switch c.b.Do {
	case Lock:
		if !w.free(r) {
			return
		}
		bad("no lock", nothing)
		if w.names[r].now%2 == 0 {
			w.names[r].now++
			f, _ := w.file(r)
			w.files[f] = content{}
		}
		c.file, _ = w.file(r)
		c.old = uint8(w.files[c.file].size())
		same := c.seen == 1+c.file && c.size > 0
		ev := Event{Saw: Done, Sure: true, Known: same && c.size <= c.old, AsLeft: same && c.size == c.old}
		step("locks", w, ev)
		if c.boundary, ev.Boundary = true, true; c.old > 0 {
			step("locks, at the end of a sector", w, ev)
		}
	case Look:
		n := int(c.old)
		step("looks", w, Event{Saw: Done, Torn: n > 0 && (file.open(n) || file[n-1]&what == nul)})
	case Write:
		if !c.boundary {
			file.join(int(c.old))
		}
		half := w
		v := dirty
		if c.b.Heal {
			v |= newline
		}
		first := true
		for x := range w.x {
			if c.mask&(1<<x) == 0 {
				continue
			}
			if first && half.files[c.file].add(half0+cell(x)|v) {
				bad("writes a part", func(w *world) { w.files[c.file] = half.files[c.file] })
			}
			if !file.add(record0 + cell(x) | v) {
				return // no place in the model
			}
			first, v = false, dirty
		}
		step("writes", w, Event{Saw: Done, Whole: true})
		if w.mode == Journal && w.roomInJournal() {
			step("writes, in a crowd", w, Event{Saw: Done, Whole: true, Crowded: true})
		}
	case SyncFile:
		if c.warned {
			step("is told of a failed sync", w, Event{Saw: Failed})
			return
		}
		bad("cannot be synced", func(w *world) { w.files[c.file].sync(false) })
		file.sync(true)
		step("is synced", w, Event{Saw: Done})
	case SyncLater:
		w.lazy |= 1 << r
		step("will be synced", w, Event{Saw: Done})
	case SyncFolder:
		bad("its folder cannot be synced", nothing)
		w.syncFolder()
		step("its folder is synced", w, Event{Saw: Done})
	case LookName:
		bad("its name cannot be looked at", nothing)
		if f, ok := w.file(r); !ok || f != c.file {
			step("has lost its name", w, Event{Saw: Gone})
		} else {
			step("still has its name", w, Event{Saw: Done})
		}
	case CutBack:
		step("is not cut back", w, Event{Saw: Failed})
		file.cutTo(int(c.old))
		step("is cut back", w, Event{Saw: Done})
	}
}

// settle ends an attempt of a batch, see writing.leave, and tells, see Store.acknowledge.
func (w *world) settle(r int, e *explorer) {
	c := &w.c[r]
	durable := c.b.Do == Acknowledge
	if c.entry > 0 {
		w.log[c.entry-1].state = closed
		if durable {
			w.segs[w.log[c.entry-1].seg].left |= 1 << r
		}
		c.entry = 0
	}
	if c.b.Doubt {
		for _, s := range w.segs {
			if (s.at == current || s.at == sealed) && s.left&(1<<r) != 0 {
				w.suspect[r]++
				break
			}
		}
	}
	c.boundary, c.warned = false, false
	if c.b.Do == Lock {
		return
	}
	if durable {
		c.seen, c.size = 1+c.file, uint8(w.files[c.file].size())
	}
	for x := range w.x {
		if c.mask&(1<<x) == 0 {
			continue
		}
		me := &w.x[x]
		told := me.told != noTell || me.tell != noTell
		claim, ours := e.u.take(me.claim, Acknowledged)
		me.claim, me.at = claim, settled
		result, mark := e.u.settle(durable, ours)
		if me.result = 1 + uint8(result); mark {
			w.mark(r)
		}
		w.contradicted = w.contradicted || ours && told
		switch {
		case !ours: // its caller has gone
		case durable:
			me.told = tellDurable // at once: nobody can see it sooner
		default:
			me.tell = tellLoss
		}
	}
	*c = committer{seen: c.seen, size: c.size}
}

func (w *world) roomInJournal() bool {
	used, segs := 0, 0
	for _, e := range w.log {
		if e.used {
			used++
		}
	}
	for _, s := range w.segs {
		if s.at == noSegment || s.at == current {
			segs++
		}
	}
	entering := 0
	for _, c := range w.c {
		if c.on && c.b.Do == Enter && c.entry == 0 {
			entering++
		}
	}
	return used+entering < entryMax && segs > 0
}

// write does the next step of the journal's writing goroutine, and seals.
func (e *explorer) write(w world) {
	p := &w.writer
	if !p.on {
		have := false
		for i, s := range w.segs {
			if s.at == current {
				have, p.seg = true, uint8(i)
				n := w
				n.segs[i].at = sealed
				e.add("the segment is sealed", n)
			}
		}
		for r, c := range w.c {
			if c.on && c.b.Do == Enter {
				p.mask |= 1 << r
			}
		}
		if p.mask != 0 {
			p.on, p.e = true, BeginEntries(have)
			e.add("the journal takes a batch", w)
		}
		return
	}
	step := func(did string, w world, s Saw) {
		w.writer.e = e.u.entries(w.writer.e, s)
		if w.writer.e.Ended() {
			w.wrote(e)
		}
		e.add("journal: "+did, w)
	}
	seg := &w.segs[p.seg]
	bad := w.fault()
	switch p.e.Do {
	case MakeSegment:
		if bad != nil {
			step("no segment", *bad, Failed)
		}
		for i, s := range w.segs {
			if s.at == noSegment {
				w.segs[i], p.seg = segment{at: unnamed, unsure: true}, uint8(i)
				step("makes a segment", w, Done)
				return
			}
		}
		step("no room in the model", w, Failed)
	case SyncSegments:
		if bad != nil {
			bad.segs[p.seg] = segment{}
			step("the segment has no durable name", *bad, Failed)
		}
		seg.at, seg.unsure = current, false
		step("the segment has a name", w, Done)
	case WriteEntries:
		for r := range w.c {
			if p.mask&(1<<r) != 0 && !w.enter(r, p.seg) {
				step("no room in the model", w, Failed)
				return
			}
		}
		if bad != nil {
			b := w
			b.faults--
			step("cannot be written to", b, Failed)
		}
		step("writes", w, Done)
	case SyncEntries:
		if bad != nil {
			bad.syncSegment(p.seg, lost)
			step("cannot be synced", *bad, Failed)
		}
		w.syncSegment(p.seg, durable)
		step("is synced", w, Done)
	case LookSegment:
		if bad != nil {
			step("cannot be looked at", *bad, Failed)
		}
		step("is where it was", w, Done)
	}
}

func (w *world) enter(r int, seg uint8) bool {
	c := &w.c[r]
	for i := range w.log {
		if l := &w.log[i]; !l.used {
			*l = entry{used: true, file: c.file, place: c.old, mask: c.mask, heal: c.b.Heal, seg: seg}
			c.entry = 1 + uint8(i)
			return true
		}
	}
	return false
}

func (w *world) syncSegment(seg, at uint8) {
	for i := range w.log {
		if l := &w.log[i]; l.used && l.seg == seg && l.at == cached {
			l.at = at
		}
	}
}

// wrote tells those who wait for the journal.
func (w *world) wrote(e *explorer) {
	p := w.writer
	ok := p.e.Do == Commit
	for r := range w.c {
		if p.mask&(1<<r) == 0 {
			continue
		}
		c := &w.c[r]
		saw := Failed
		if ok {
			saw = Done
		}
		if c.entry > 0 {
			l := &w.log[c.entry-1]
			if l.state = opened; !ok {
				l.state, c.entry = closed, 0
			}
		}
		if c.b = e.u.batch(c.b, Event{Saw: saw}); c.b.Ended() {
			w.settle(r, e)
		}
	}
	if s := &w.segs[p.seg]; p.e.Seal && s.at == current {
		s.at = sealed
	}
	w.writer.on, w.writer.mask, w.writer.seg, w.writer.e = false, 0, 0, Entries{}
}

// retire does the next step of the retiring goroutine.
func (e *explorer) retire(w world) {
	p := &w.retire
	if p.on == 0 {
		for i, s := range w.segs {
			do := Keep
			if s.at == sealed {
				do = e.u.retire(true, w.opened(uint8(i)), bits(s.left))
			}
			if do == RemoveSegment {
				w.segs[i].at = removed
				e.add("the segment is removed at once", w)
				return
			}
			if do == SyncRollouts {
				p.on, p.r, p.step, p.anew = 1+uint8(i), 0, 0, 0
				e.add("a segment is being retired", w)
				return
			}
		}
		return
	}
	s := &w.segs[p.on-1]
	for p.r < rollouts && s.left&(1<<p.r) == 0 {
		p.r++
	}
	r := int(p.r)
	if r == rollouts {
		did := "the segment stays"
		if e.u.retire(true, w.opened(p.on-1), bits(s.left)) == RemoveSegment {
			did, s.at = "the segment is removed", removed
		}
		p.on, p.r, p.step, p.anew = 0, 0, 0, 0
		e.add(did, w)
		return
	}
	f, named := w.file(r)
	if p.step == 0 {
		p.step = 1
		if w.suspect[r] > 0 {
			if !w.free(r) {
				return
			}
			p.anew = w.suspect[r]
			for named && e.restoreNext(&w, r, true) {
			}
			w.replay.k, w.replay.line, w.replay.about = 0, 0, 0
		}
		e.add(fmt.Sprintf("retire: rollout %d is next", r), w)
		return
	}
	ended := func(w *world, ok bool) {
		p := &w.retire
		switch {
		case e.u.trust(ok, int(p.anew), int(w.suspect[r])):
			w.segs[p.on-1].left &^= 1 << r
			w.suspect[r] = 0
		case !ok:
			w.suspect[r]++
		}
		p.r, p.step, p.anew = p.r+1, 0, 0
	}
	if n := w.fault(); n != nil && named {
		n.syncFails(f)
		ended(n, false)
		e.add(fmt.Sprintf("retire: rollout %d cannot be synced", r), *n)
	}
	if named {
		w.files[f].sync(true)
	}
	ended(&w, true)
	e.add(fmt.Sprintf("retire: rollout %d is synced", r), w)
}
