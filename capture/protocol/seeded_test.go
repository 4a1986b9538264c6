package protocol

import (
	"strings"
	"testing"
)

// seeded is a rule with a fault in it, and what it breaks within the bounds.
type seeded struct {
	name  string
	seed  func(*rules)
	b     bounds
	wants string
}

// passing is a batch that does not do a step, and goes on as if it had gone well.
func passing(step Step) func(*rules) {
	return func(u *rules) {
		u.batch = func(b Batch, e Event) Batch {
			n := b.Next(e)
			if n.Do == step {
				n = n.Next(Event{Saw: Done})
			}
			return n
		}
	}
}

// passingEntries is the same of the journal.
func passingEntries(step EntryStep) func(*rules) {
	return func(u *rules) {
		u.entries = func(p Entries, s Saw) Entries {
			if p = p.Next(s); p.Do == step {
				p = p.Next(Done)
			}
			return p
		}
	}
}

const (
	notThere = "an acknowledged record is not there"
	twice    = "a record is there twice"
	unmarked = "there is no mark"
	cameBack = "what was cleared came back"
)

func faulty() []seeded {
	return []seeded{
		{"release before the sync", passing(SyncFile), bounds{File, 0, 1, false, 0}, notThere},
		{"release before the journal's sync", passingEntries(SyncEntries), bounds{Journal, 0, 1, true, 0}, notThere},
		{"release before the folder's sync", passing(SyncFolder), bounds{File, 0, 1, false, 0}, notThere},
		{"no look at the name", passing(LookName), bounds{File, 1, 0, false, 0}, notThere},
		{"no look at the end of the file", passing(Look), bounds{File, 1, 0, false, 0}, notThere},
		{"an acknowledgement behind a failed sync", func(u *rules) {
			u.batch = func(b Batch, e Event) Batch {
				if b.Do == SyncFile {
					e.Saw = Done
				}
				return b.Next(e)
			}
		}, bounds{File, 1, 1, false, 0}, notThere},
		{"a failed sync is tried again", func(u *rules) {
			u.batch = func(b Batch, e Event) Batch {
				if b.Do == SyncFile && e.Saw == Failed {
					return b
				}
				return b.Next(e)
			}
		}, bounds{File, 1, 1, false, 0}, notThere},
		{"a batch is written again behind a failed sync", func(u *rules) {
			u.batch = func(b Batch, e Event) Batch {
				if b.Do == SyncFile && e.Saw == Failed {
					return Begin(b.Mode)
				}
				return b.Next(e)
			}
		}, bounds{File, 1, 0, false, 0}, twice},
		{"nothing is taken back before it is written again", func(u *rules) {
			u.batch = func(b Batch, e Event) Batch {
				if b.Do == LookName && e.Saw == Failed {
					return Begin(b.Mode)
				}
				return b.Next(e)
			}
		}, bounds{File, 1, 0, false, 0}, twice},
		{"async waits for nothing and does not sync", passing(SyncLater), bounds{Async, 0, 0, false, 0}, "never synced"},
		{"the journal takes lines for a file whose name is not durable", func(u *rules) {
			u.batch = func(b Batch, e Event) Batch {
				if b.Do == Lock {
					e.Known = true
				}
				return b.Next(e)
			}
		}, bounds{Journal, 0, 1, false, 0}, notThere},
		{"a segment's name is not durable", passingEntries(SyncSegments), bounds{Journal, 0, 1, true, 0}, notThere},
		{"a segment is written on behind a failed sync", func(u *rules) {
			u.entries = func(p Entries, s Saw) Entries {
				p = p.Next(s)
				p.Seal = false
				return p
			}
		}, bounds{Journal, 1, 1, true, 0b100}, notThere},
		{"retire before the sync", func(u *rules) {
			u.retire = func(sealed bool, open, _ int) RetireStep { return Retire(sealed, open, 0) }
		}, bounds{Journal, 0, 1, true, 0}, notThere},
		{"retire beside open entries", func(u *rules) {
			u.retire = func(sealed bool, _, left int) RetireStep { return Retire(sealed, 0, left) }
		}, bounds{Journal, 0, 1, true, 0}, notThere},
		{"trust in any sync", func(u *rules) {
			u.trust = func(synced bool, _, _ int) bool { return synced }
		}, bounds{Journal, 2, 1, true, 0b100}, notThere},
		{"no doubt behind a failed sync", func(u *rules) {
			u.batch = func(b Batch, e Event) Batch {
				b = b.Next(e)
				b.Doubt = false
				return b
			}
		}, bounds{Journal, 1, 1, true, 0b100}, notThere},
		{"replay without a check of identity", func(u *rules) {
			u.restore = func(r Restore, f Finding) Restore {
				f.Same = f.Same || r.Do == Identify
				return r.Next(f)
			}
		}, bounds{Journal, 1, 1, true, 0b100}, cameBack},
		{"double replay: lines are appended that are there", func(u *rules) {
			u.line = func(bool) LineStep { return WriteBehind }
		}, bounds{Journal, 1, 1, true, 0b100}, twice},
		{"double replay: in place and at the end", func(u *rules) {
			u.restore = func(r Restore, f Finding) Restore {
				f.Elsewhere = false
				return r.Next(f)
			}
		}, bounds{Journal, 1, 2, true, 0b100}, twice},
		{"replay leaves what seems to be there", func(u *rules) {
			u.restore = func(r Restore, f Finding) Restore {
				if r.Do == Compare && f.Whole {
					return Restore{Skip}
				}
				return r.Next(f)
			}
		}, bounds{Journal, 1, 2, true, 0b100}, notThere},
		{"replay does not sync", func(u *rules) {
			u.finish = func(int) Replayed { return LeaveFile }
		}, bounds{Journal, 0, 2, true, 0}, notThere},
		{"a journal goes that is owed", func(u *rules) {
			u.remove = func(int) bool { return true }
		}, bounds{Journal, 1, 2, true, 0b100}, notThere},
		{"no mark on failure", func(u *rules) {
			u.settle = func(durable, ours bool) (Result, bool) {
				r, _ := Settle(durable, ours)
				return r, false
			}
		}, bounds{File, 1, 0, false, 0}, unmarked},
		{"no mark at the deadline", func(u *rules) {
			u.overdue = func(bool) bool { return false }
		}, bounds{File, 1, 0, false, 0}, unmarked},
		{"a loss is told before its mark", func(u *rules) {
			u.tellLoss = func(Mark, bool) bool { return true }
		}, bounds{File, 1, 0, false, 0}, unmarked},
		{"a mark that is not synced", func(u *rules) {
			u.tellLoss = func(m Mark, impatient bool) bool { return m != WriteMark || impatient }
		}, bounds{File, 1, 1, false, 0}, unmarked},
		{"a mark that was cleared is the mark of what came behind", func(u *rules) {
			u.mark = func(m Mark, s Saw, _ bool) Mark { return m.Next(s, false) }
		}, bounds{File, 3, 0, false, 0}, unmarked},
		{"both speak for a record", func(u *rules) {
			u.take = func(_, by Claim) (Claim, bool) { return by, true }
		}, bounds{File, 1, 0, false, 0}, "told two things"},
		{"required shows every end", func(u *rules) {
			u.release = func(Policy, bool) bool { return true }
		}, bounds{File, 1, 0, false, 0}, "required: an end was shown"},
	}
}

// TestSeededFaults: the walk sees each fault that a rule may have.
func TestSeededFaults(t *testing.T) {
	for _, s := range faulty() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			e := explorer{u: theRules(), b: s.b}
			s.seed(&e.u)
			n := e.run()
			switch {
			case e.bad == "":
				t.Errorf("not seen in %d states", n)
			case !strings.Contains(e.bad, s.wants) || s.wants == "":
				t.Errorf("seen as %q, want %q:%s", e.bad, s.wants, e.story())
			default:
				t.Logf("%d states: %s:%s", n, e.bad, e.story())
			}
		})
	}
}
