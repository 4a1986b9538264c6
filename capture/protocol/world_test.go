package protocol

// The model that the explorer walks: three exchanges of two rollouts, the files of these, a journal, markers, and what is in
// the memory of the process. Everything is small numbers, so that a state of the world can be compared and counted.

const (
	exchanges = 3 // 0 and 1 belong to rollout 0, 2 to rollout 1
	rollouts  = 2
	inodes    = 3 // 0 and 1 are rollout 0's, one after the other, 2 is rollout 1's
	places    = 8 // lines of a file
	entryMax  = 4
	segMax    = 3
)

func rolloutOf(x int) int { return x / 2 }

// cell is a line's place in a file: what stands there, and how durable it is.
type cell uint8

const (
	nothing  cell = 0
	record0  cell = 1 // record x is record0+x
	half0    cell = 4 // the beginning of record x, without its end
	nul      cell = 7
	fragment cell = 8 // somebody else's unfinished line
	foreign  cell = 9 // somebody else's record
	what     cell = 0x0f

	newline cell = 0x10 // in front of it
	dirty   cell = 0x20 // in memory alone
	dropped cell = 0x40 // a sync failed: in memory alone, and the system believes the opposite
	unsafe  cell = dirty | dropped
	joined  cell = 0x80 // its end is in one sector with the next one: never durable without
)

func (c cell) is(x int) bool { return c&what == record0+cell(x) }

type content [places]cell

func (c *content) size() int {
	n := places
	for n > 0 && c[n-1] == nothing {
		n--
	}
	return n
}

// open reports whether a line that begins at place n would be part of what stands in front.
func (c *content) open(n int) bool {
	for n--; n >= 0; n-- {
		switch v := c[n] & what; {
		case v == nul:
			continue
		case v >= half0 && v < half0+exchanges || v == fragment:
			return true
		}
		return false
	}
	return false
}

// found reports whether a reader finds a record at place n.
func (c *content) found(n int) bool {
	v := c[n] & what
	whole := v >= record0 && v < record0+exchanges || v == foreign
	return whole && (c[n]&newline != 0 || !c.open(n))
}

// count is how often a reader finds a record.
func (c *content) count(v cell) (n int) {
	for i := range c {
		if c[i]&what == v && c.found(i) {
			n++
		}
	}
	return n
}

func (c *content) add(v cell) bool {
	n := c.size()
	if n == places {
		return false
	}
	c[n] = v
	return true
}

// join says that what is written behind place n-1 begins in its last sector.
func (c *content) join(n int) {
	if n > 0 {
		c[n-1] |= joined
	}
}

func (c *content) cutTo(n int) {
	for i := n; i < places; i++ {
		c[i] = nothing
	}
}

// sync makes it durable, or drops what was not.
func (c *content) sync(ok bool) {
	for i := range c {
		if c[i]&dirty != 0 {
			c[i] &^= dirty
			if !ok {
				c[i] |= dropped
			}
		}
	}
}

// Of an exchange.
const (
	idle uint8 = iota
	queued
	batched
	settled
	never // its process died, or it has
)

const (
	noTell uint8 = iota
	tellDurable
	tellLoss
)

type exchange struct {
	at, tell, told uint8
	claim          Claim
	result         uint8 // 1 + Result, 0 for none
}

// Of a segment.
const (
	noSegment uint8 = iota
	unnamed
	current
	sealed
	removed // its name may come back with a power cut
	dead    // its owner died
)

type segment struct {
	at     uint8
	left   uint8 // mask of rollouts
	unsure bool  // its name may not be durable
}

// Of an entry.
const (
	cached uint8 = iota
	durable
	lost // its sync failed
)

const (
	unsettled uint8 = iota // the journal has not said yet whether it is durable
	opened
	closed
)

type entry struct {
	used      bool
	file      uint8 // inode; inodes for one that is gone
	place     uint8
	mask      uint8 // of exchanges
	heal      bool
	seg       uint8
	at, state uint8
}

func (e entry) has(x int) bool { return e.mask&(1<<x) != 0 }

// n is how many lines it has.
func (e entry) n() int {
	n := 0
	for x := range exchanges {
		if e.has(x) {
			n++
		}
	}
	return n
}

type committer struct {
	on    bool
	b     Batch
	mask  uint8 // of exchanges
	file  uint8
	old   uint8 // size of the file in front of the batch
	entry uint8 // 1 + its number, 0 for none

	seen, size uint8 // 1 + the inode that was written to, and how it was left
	boundary   bool  // the file ended with a sector
	warned     bool  // somebody else's sync of the file failed while it was open: ours tells
}

type name struct{ now, durable uint8 } // odd: a file's, counted; even: nobody's

type marker struct {
	pending uint8 // 1 + what is done next, 0 for none
	more    bool  // a record was lost since the marker was written
	file    uint8 // 0 none, 1 in memory, 2 durable
}

// Of the process.
const (
	running uint8 = iota
	down
	replaying
)

// world is one state of everything. It is compared as a whole.
type world struct {
	mode  Mode
	phase uint8
	idle  uint8 // mask of exchanges that never come

	x     [exchanges]exchange
	files [inodes]content
	names [rollouts]name
	marks [rollouts]marker
	segs  [segMax]segment
	log   [entryMax]entry

	// Of the process; a crash takes it.
	c      [rollouts]committer
	writer struct {
		on   bool
		e    Entries
		mask uint8 // of rollouts
		seg  uint8
	}
	retire struct {
		on, anew uint8 // on: 1 + the segment
		r, step  uint8
	}
	suspect [rollouts]uint8
	lazy    uint8 // mask of rollouts

	replay struct {
		r, k, line, about, owed uint8
		begun                   bool
	}

	clearing bool
	cut      bool  // a power cut was not made good yet
	once     uint8 // what happened that happens once
	faults   uint8 // that may still happen
	crashes  uint8

	// What is promised no more, and why.
	excused  uint8 // exchanges whose rollout was cleared, or that async has lost
	unmarked uint8 // exchanges whose mark nobody could wait for
	gone     uint8 // exchanges that a clear has removed for good
	alien    uint8 // foreign records of rollout 0 that were acknowledged

	contradicted bool // a caller was told two things
}

// file is the inode that the name of a rollout stands for.
func (w *world) file(r int) (uint8, bool) { return inode(r, w.names[r].now) }

func inode(r int, n uint8) (uint8, bool) {
	if n%2 == 0 {
		return 0, false
	}
	if r == 1 {
		return 2, true
	}
	return n / 2, true
}

// free reports whether nobody holds the lock of the file that a rollout's name stands for.
func (w *world) free(r int) bool {
	f, ok := w.file(r)
	c := &w.c[r]
	held := c.on && c.b.Do != Lock && ok && c.file == f
	return !held && !(w.phase == replaying && int(w.replay.r) == r && w.replay.begun)
}

// syncFolder makes the names durable.
func (w *world) syncFolder() {
	for r := range w.names {
		w.names[r].durable = w.names[r].now
		if w.marks[r].file > 0 {
			w.marks[r].file = 2
		}
	}
}

func (w *world) mark(r int) {
	m := &w.marks[r]
	if m.pending == 0 {
		m.pending = 1 + uint8(WriteMark)
	}
	m.more = m.pending != 1+uint8(WriteMark)
}

// syncFails is a sync that fails of a file that is not open for it. Whoever has it open is told by the next sync.
func (w *world) syncFails(f uint8) {
	w.files[f].sync(false)
	for r := range w.c {
		if c := &w.c[r]; c.on && c.b.Do != Lock && c.file == f {
			c.warned = true
		}
	}
}

func (w *world) opened(seg uint8) (n int) {
	for _, e := range w.log {
		if e.used && e.seg == seg && e.state == opened {
			n++
		}
	}
	return n
}

func bits(mask uint8) (n int) {
	for ; mask != 0; mask &= mask - 1 {
		n++
	}
	return n
}

// warm is a store that has written to the files of both rollouts before.
func (w *world) warm() {
	for r := range w.names {
		w.names[r] = name{1, 1}
		f, _ := w.file(r)
		w.files[f][0] = foreign
		w.c[r].seen, w.c[r].size = 1+f, 1
	}
	w.alien = 1
}

// wrong says which promise is broken, "" for none.
func (w *world) wrong(u *rules) string {
	if w.contradicted {
		return "a caller is told two things"
	}
	for x := range w.x {
		e, r := w.x[x], rolloutOf(x)
		n := 0
		f, named := w.file(r)
		if named {
			n = w.files[f].count(record0 + cell(x))
			if f == 1 && w.gone&(1<<x) != 0 && n > 0 {
				return "what was cleared came back"
			}
		}
		switch ok := e.result == 1+uint8(OK); {
		case n > 1:
			return "a record is there twice"
		case e.result != 0 && ok != (e.told == tellDurable):
			return "the result is not what the caller is told"
		case e.told == noTell || w.cut || w.excused&(1<<x) != 0:
			continue
		}
		there := n == 1
		if late := w.lazy&(1<<r) != 0 || w.c[r].on; there && e.at == settled && w.mode == Async && w.phase == running && !late {
			for _, c := range w.files[f] {
				if c.is(x) && c&dirty != 0 {
					return "an acknowledged record is never synced"
				}
			}
		}
		if !u.release(BestEffort, e.told == tellDurable) || !u.release(Required, true) {
			return "an end is withheld for nothing"
		}
		shown := u.release(Required, e.told == tellDurable)
		marked := w.marks[r].file > 0 || w.unmarked&(1<<x) != 0
		switch {
		case e.told == tellDurable && !there:
			return "an acknowledged record is not there"
		case shown && !there:
			return "required: an end was shown and its record is not there"
		case !there && !marked:
			return "best-effort: an end was shown, its record is not there, and there is no mark"
		}
	}
	if f, ok := w.file(0); w.alien > 0 && !w.cut && (!ok || w.files[f].count(foreign) != int(w.alien)) {
		return "somebody else's record is not there"
	}
	return ""
}
