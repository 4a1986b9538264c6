package protocol

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
)

// rules are the decisions as production calls them, so that a test can put a wrong one in place of each.
type rules struct {
	batch    func(Batch, Event) Batch
	entries  func(Entries, Saw) Entries
	retire   func(sealed bool, open, left int) RetireStep
	trust    func(synced bool, anew, failed int) bool
	restore  func(Restore, Finding) Restore
	line     func(there bool) LineStep
	finish   func(about int) Replayed
	remove   func(owed int) bool
	take     func(now, by Claim) (Claim, bool)
	settle   func(durable, ours bool) (Result, bool)
	overdue  func(ours bool) bool
	tellLoss func(Mark, bool) bool
	mark     func(Mark, Saw, bool) Mark
	release  func(Policy, bool) bool
}

func theRules() rules {
	return rules{
		batch: Batch.Next, entries: Entries.Next, retire: Retire, trust: Trust, restore: Restore.Next, line: Line,
		finish: Finish, remove: RemoveJournal, take: Take, settle: Settle, overdue: Overdue, tellLoss: TellLoss, mark: Mark.Next,
		release: Release,
	}
}

// bounds of a walk.
type bounds struct {
	mode            Mode
	faults, crashes uint8
	warm            bool  // the files of both rollouts are known to the store
	idle            uint8 // mask of exchanges that never come
}

// explorer walks, breadth first, every state that can be reached.
type explorer struct {
	u      rules
	b      bounds
	seed   maphash.Seed
	seen   map[uint64]struct{}
	from   []int32 // of each state, the one before it
	did    []string
	queue  []world // of this round and the next
	at     []int32
	next   []world
	nextAt []int32
	now    int32
	bad    string
	trace  []string
	steps  [Acknowledge]bool // of batches that were reached
}

func (e *explorer) add(did string, w world) {
	if e.bad != "" {
		return
	}
	h := maphash.Comparable(e.seed, w)
	if _, ok := e.seen[h]; ok {
		return
	}
	e.seen[h] = struct{}{}
	n := int32(len(e.from))
	e.from, e.did = append(e.from, e.now), append(e.did, did)
	if bad := w.wrong(&e.u); bad != "" {
		e.bad = bad
		for ; n > 0; n = e.from[n] {
			e.trace = append(e.trace, e.did[n])
		}
		return
	}
	for _, c := range w.c {
		if c.on {
			e.steps[c.b.Do] = true
		}
	}
	e.next, e.nextAt = append(e.next, w), append(e.nextAt, n)
}

func (e *explorer) run() (states int) {
	e.seed, e.seen = maphash.MakeSeed(), map[uint64]struct{}{}
	w := world{idle: e.b.idle, mode: e.b.mode, faults: e.b.faults, crashes: e.b.crashes}
	if e.b.warm {
		w.warm()
	}
	e.add("", w)
	for len(e.next) > 0 && e.bad == "" && len(e.seen) <= most {
		e.queue, e.at, e.next, e.nextAt = e.next, e.nextAt, e.queue[:0], e.at[:0]
		for i := range e.queue {
			e.now = e.at[i]
			e.successors(e.queue[i])
		}
	}
	return len(e.seen)
}

func (e *explorer) story() string {
	var b strings.Builder
	for i := len(e.trace) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "\n\t%s", e.trace[i])
	}
	return b.String()
}

// TestEveryOrder walks every order in which three exchanges of two rollouts can go, with a crash at every step, and again
// during the recovery, in every mode.
func TestEveryOrder(t *testing.T) {
	for _, b := range everything(testing.Short() || raceDetector) {
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			e := explorer{u: theRules(), b: b}
			n := e.run()
			t.Logf("%d states", n)
			if e.bad != "" {
				t.Fatalf("%s:%s", e.bad, e.story())
			}
			if n > most {
				t.Fatalf("more than %d states", most)
			}
			for step, reached := range e.steps {
				if reached == b.never(Step(step)) {
					t.Errorf("step %d reached: %t", step, reached)
				}
			}
		})
	}
}

// never reports whether no batch comes to a step.
func (b bounds) never(s Step) bool {
	switch s {
	case SyncFile:
		return b.mode == Async
	case SyncLater:
		return b.mode != Async
	case Enter:
		return b.mode != Journal
	case CutBack:
		return b.faults == 0
	}
	return false
}

func (b bounds) String() string {
	s := fmt.Sprintf("%s, %d faults, %d crashes", [...]string{"file", "journal", "async"}[b.mode], b.faults, b.crashes)
	if b.warm {
		s += ", warm"
	}
	if b.idle > 0 {
		s += fmt.Sprintf(", without %03b", b.idle)
	}
	return s
}

// everything is what is walked: more faults with fewer crashes, and the reverse. Cold, two of three exchanges are needed to
// make a file known to the store, so what the journal has between two of a rollout is walked warm.
func everything(short bool) []bounds {
	all := []bounds{
		{File, 1, 1, false, 0}, {Journal, 1, 1, false, 0}, {Async, 1, 1, false, 0},
		{File, 0, 2, false, 0}, {Journal, 0, 2, false, 0}, {Async, 0, 2, false, 0},
		{Journal, 1, 1, true, 0b100}, {Journal, 1, 1, true, 0b010},
	}
	if short {
		return all
	}
	return append(all, bounds{File, 3, 0, false, 0}, bounds{File, 1, 2, false, 0},
		bounds{Journal, 2, 0, false, 0}, bounds{Journal, 0, 2, true, 0}, bounds{Journal, 2, 0, true, 0b100}, bounds{Journal, 1, 2, true, 0b100},
		bounds{Journal, 1, 2, true, 0b010}, bounds{Async, 2, 0, false, 0})
}

// most is how many states a walk may have.
const most = 1 << 24
