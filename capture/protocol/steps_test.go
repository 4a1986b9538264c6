package protocol

import "fmt"

// What happens once.
const (
	onceClear uint8 = 1 << iota
	onceForeign
)

// fault takes one from the budget; nil when there is none.
func (w world) fault() *world {
	if w.faults == 0 {
		return nil
	}
	w.faults--
	return &w
}

// successors adds every state that can follow w.
func (e *explorer) successors(w world) {
	switch w.phase {
	case running:
		for x := range w.x {
			e.exchange(w, x)
		}
		for r := range w.c {
			e.commit(w, r)
			e.marker(w, r)
			if w.lazy&(1<<r) != 0 {
				e.lazy(w, r)
			}
		}
		e.write(w)
		e.retire(w)
	case down:
		n := w
		n.phase = replaying
		e.add("the next process starts", n)
	case replaying:
		e.replay(w)
	}
	e.others(w)
	if w.crashes > 0 && w.phase != down {
		e.crash(w)
	}
}

// exchange: a call is over, its deadline comes, its caller is told.
func (e *explorer) exchange(w world, x int) {
	r := rolloutOf(x)
	switch me := w.x[x]; {
	case me.at == idle && w.idle&(1<<x) == 0 && (x != 1 || w.x[0].at != idle): // 0 and 1 are alike
		n := w
		n.x[x].at = queued
		e.add(fmt.Sprintf("exchange %d wants its end", x), n)
	case me.tell == noTell && me.told == noTell && (me.at == queued || me.at == batched):
		if n := w.fault(); n != nil {
			var ours bool
			n.x[x].claim, ours = e.u.take(me.claim, Expired)
			if e.u.overdue(ours) {
				n.mark(r)
			}
			if ours {
				n.x[x].tell = tellLoss
			}
			e.add(fmt.Sprintf("exchange %d waits no longer", x), *n)
		}
	case me.tell == tellLoss:
		next := Forget
		if p := w.marks[r].pending; p > 0 {
			next = Mark(p - 1)
		}
		patient := e.u.tellLoss(next, false)
		n := &w
		if !patient && e.u.tellLoss(next, true) {
			if n = w.fault(); n == nil {
				return
			}
			n.unmarked |= 1 << x
		} else if !patient {
			return
		}
		n.x[x].told, n.x[x].tell = tellLoss, noTell
		e.add(fmt.Sprintf("exchange %d is told that it is not", x), *n)
	}
}

// marker does the next step of a rollout's mark.
func (e *explorer) marker(w world, r int) {
	p := w.marks[r].pending
	if p == 0 {
		return
	}
	do := Mark(p - 1)
	set := func(w *world, s Saw) {
		m := &w.marks[r]
		m.pending = 1 + uint8(e.u.mark(do, s, m.more))
		if do == WriteMark {
			m.more = false
		}
		if m.pending == 1+uint8(Forget) {
			m.pending, m.more = 0, false
		}
	}
	if n := w.fault(); n != nil {
		set(n, Failed)
		e.add("a mark cannot be made durable", *n)
	}
	saw := Done
	switch do {
	case WriteMark:
		w.marks[r].file = max(w.marks[r].file, 1)
	case SyncMark:
		if w.marks[r].file == 0 {
			saw = Gone
		}
	case SyncMarkFolder:
		w.syncFolder()
	}
	set(&w, saw)
	e.add(fmt.Sprintf("mark of %d: step %d", r, do), w)
}

// lazy syncs a file some time behind its batch.
func (e *explorer) lazy(w world, r int) {
	w.lazy &^= 1 << r
	f, ok := w.file(r)
	if !ok {
		e.add("a file that was to be synced has gone", w)
		return
	}
	if n := w.fault(); n != nil {
		n.syncFails(f)
		n.mark(r)
		e.add(fmt.Sprintf("the late sync of rollout %d fails", r), *n)
	}
	w.files[f].sync(true)
	e.add(fmt.Sprintf("rollout %d is synced late", r), w)
}

// others are processes that know the lock, and somebody who does not.
func (e *explorer) others(w world) {
	f, ok := w.file(0)
	if w.clearing {
		n := w
		n.clearing = false
		n.syncFolder()
		for x := range 2 {
			if n.files[0].count(record0+cell(x)) > 0 {
				n.gone |= 1 << x
			}
		}
		e.add("the clear is durable", n)
	}
	if w.faults == 0 || !ok {
		return
	}
	w.faults--
	if w.once&onceClear == 0 {
		n := w
		n.once |= onceClear
		n.names[0].now++
		n.marks[0].file, n.alien = 0, 0
		for x := range 2 {
			me, c := n.x[x], &n.c[0]
			looked := c.on && c.b.Do == Acknowledge && c.mask&(1<<x) != 0
			if me.told != noTell || me.at >= settled || me.claim == Expired || looked {
				n.excused |= 1 << x
			}
		}
		e.add("the file of rollout 0 is removed without its lock", n)
		if w.free(0) {
			n.clearing = true
			e.add("rollout 0 is cleared", n)
		}
	}
	if w.once&onceForeign == 0 && w.free(0) {
		w.once |= onceForeign
		size := w.files[f].size()
		for _, boundary := range [...]bool{true, false} {
			v := dirty
			if c := &w.files[f]; boundary && size > 0 || c.open(size) || size > 0 && c[size-1]&what == nul {
				v |= newline
			}
			n := w
			if !boundary {
				n.files[f].join(size)
			}
			m := n
			if !n.files[f].add(fragment | v) {
				return
			}
			e.add("a foreign writer dies inside a line", n)
			m.files[f].add(foreign | v)
			m.files[f].sync(true)
			m.syncFolder()
			m.alien = uint8(m.files[f].count(foreign))
			e.add("a foreign writer appends a record", m)
		}
	}
}
