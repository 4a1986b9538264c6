package capture

import (
	"path/filepath"
	"strings"
	"testing"
)

// powerHistory is a short life of a store.
type powerHistory struct {
	name  string
	mode  Durability
	live  func(*power)
	wants func(found) string // what must have been seen as well; "" when it was
}

// once makes a sync fail, the one of the n-th call for a path that is.
func once(n int, is func(path string) bool) func(string) bool {
	return func(path string) bool {
		if !is(path) {
			return false
		}
		n--
		return n == 0
	}
}

func aFew(p *power) {
	for _, id := range []string{"a", "a", "b"} {
		p.append(id)
	}
}

func nothingMore(found) string { return "" }

func powerHistories() []powerHistory {
	return []powerHistory{
		{"new files", DurabilityFile, aFew, nothingMore},
		{"a sync fails", DurabilityFile, func(p *power) {
			p.fail = once(2, isData)
			aFew(p)
			p.append("a")
		}, nothingMore},
		{"a clear", DurabilityFile, func(p *power) {
			aFew(p)
			p.clear("a")
			p.append("a")
		}, nothingMore},
		{"journal", DurabilityJournal, func(p *power) {
			crowd(p.t, p.s)
			aFew(p)
			p.append("b")
			p.append("a")
		}, func(f found) string {
			if f.restored == 0 {
				return "nothing ever had to come back from the journal"
			}
			return ""
		}},
		{"journal, a clear", DurabilityJournal, func(p *power) {
			crowd(p.t, p.s)
			aFew(p)
			p.clear("a")
			p.append("a")
			p.append("a")
		}, nothingMore},
		{"async", DurabilityAsync, aFew, func(f found) string {
			if f.missing == 0 {
				return "no cut took a record that async does not promise"
			}
			return ""
		}},
		{"async, a late sync fails", DurabilityAsync, func(p *power) {
			p.fail = once(1, isData)
			aFew(p)
		}, nothingMore},
	}
}

// clear clears a rollout. What was acknowledged of it is promised no more, and once the clear is durable it must not be there.
func (p *power) clear(id string) {
	p.t.Helper()
	err := p.do(func() error {
		for call, of := range p.calls {
			if of == id {
				delete(p.now.acked, call)
				delete(p.now.lost, call)
			}
		}
		return Clear(p.t.Context(), p.dir, id)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.do(func() error { // it has synced the folder
		p.durableNames(p.dir)
		for call, of := range p.calls {
			if of == id {
				p.now.cleared[call] = true
			}
		}
		return nil
	})
}

// TestPowerLoss: what the crash table says of a power cut, for short histories in every mode, cut at every moment in every way.
func TestPowerLoss(t *testing.T) {
	for _, h := range powerHistories() {
		t.Run(h.name, func(t *testing.T) {
			p := newPower(t, h.mode)
			h.live(p)
			p.close()
			f := p.cutEverywhere(1)
			t.Logf("%d moments, %d cuts, %d lines restored, %d unpromised records missing, %d damaged lines",
				len(p.past), f.cuts, f.restored, f.missing, f.nul)
			for _, b := range f.broken {
				t.Error(b)
			}
			if b := h.wants(f); b != "" {
				t.Error(b)
			}
		})
	}
}

// TestPowerLoss_lies: a sync that does nothing is seen.
func TestPowerLoss_lies(t *testing.T) {
	journal := func(p *power) {
		crowd(p.t, p.s)
		aFew(p)
		p.append("a")
	}
	for _, l := range []struct {
		name string
		mode Durability
		live func(*power)
		lie  func(p *power, path string, late bool) bool
	}{
		{"of a file", DurabilityFile, aFew, func(_ *power, path string, _ bool) bool { return isData(path) }},
		{"of the folder", DurabilityFile, aFew, func(p *power, path string, _ bool) bool { return path == p.dir }},
		{"of a file that the journal takes for known", DurabilityJournal, journal, func(_ *power, path string, _ bool) bool { return isData(path) }},
		{"before a segment is removed", DurabilityJournal, journal, func(_ *power, _ string, late bool) bool { return late }},
		{"of a segment", DurabilityJournal, journal, func(_ *power, path string, _ bool) bool { return strings.HasSuffix(path, segmentSuffix) }},
		{"of the journal's folder", DurabilityJournal, journal, func(_ *power, path string, _ bool) bool {
			return strings.HasPrefix(path, filepath.Join(filepath.Dir(filepath.Dir(path)), journalDir)) && !strings.HasSuffix(path, segmentSuffix)
		}},
	} {
		t.Run(l.name, func(t *testing.T) {
			p := newPower(t, l.mode)
			p.lie = func(path string, late bool) bool { return l.lie(p, path, late) }
			l.live(p)
			p.close()
			f := p.cutEverywhere(1)
			if len(f.broken) == 0 {
				t.Errorf("not seen in %d cuts", f.cuts)
			}
			t.Log(f.cuts, f.broken)
		})
	}
}
