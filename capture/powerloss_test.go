package capture

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// cutsMost is how many things a cut at one moment may leave. A history that has more is too long.
const cutsMost = 1 << 13

// leftover is what a power cut leaves.
type leftover struct {
	names map[string]uint64
	files map[uint64][]byte
}

// cuts calls each with everything that a cut at this moment may leave, until that says no.
func (s *diskState) cuts(t testing.TB, each func(leftover) bool) {
	t.Helper()
	type choice struct {
		name   string
		number uint64 // of a file, when there is no name
		of     int
	}
	var choices []choice
	contents := map[uint64][][]byte{}
	for name, may := range s.names {
		choices = append(choices, choice{name, 0, len(may)})
	}
	for number, f := range s.files {
		contents[number] = f.outcomes()
		choices = append(choices, choice{"", number, len(contents[number])})
	}
	total := 1
	for _, c := range choices {
		if total *= c.of; total > cutsMost {
			t.Fatalf("more than %d things may be left", cutsMost)
		}
	}
	for n := range total {
		l := leftover{map[string]uint64{}, map[uint64][]byte{}}
		for _, c := range choices {
			if pick := n % c.of; c.name != "" {
				l.names[c.name] = s.names[c.name][pick]
			} else {
				l.files[c.number] = contents[c.number][pick]
			}
			n /= c.of
		}
		if !each(l) {
			return
		}
	}
}

// lay makes the store what a cut left of it.
func (d *powerDisk) lay(l leftover) error {
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir, 0o750); err != nil {
		return err
	}
	for name, number := range l.names {
		if number == 0 {
			continue
		}
		path := filepath.Join(d.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		f, err := os.OpenFile(d.kept(number), os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(l.files[number])
		if err = errors.Join(err, f.Close(), os.Link(d.kept(number), path)); err != nil {
			return err
		}
	}
	return nil
}

// power is a store whose history is cut at every moment.
type power struct {
	*powerDisk
	s     *Store
	mode  Durability
	calls map[string]string // to rollout
}

func newPower(t testing.TB, mode Durability) *power {
	t.Helper()
	p := &power{powerDisk: newPowerDisk(t), mode: mode, calls: map[string]string{}}
	s, err := open(Options{Dir: p.dir, Durability: mode}, powerFiles{d: p.powerDisk})
	if err != nil {
		t.Fatal(err)
	}
	if s.journal != nil {
		s.journal.o.fs = powerJournal{d: p.powerDisk}
	}
	if s.lazy != nil {
		s.lazy.sync = func(rollout string) error {
			path := dataPath(p.dir, rollout)
			return p.syncFile(path, true, func() error { return syncFile(path) })
		}
	}
	p.s = s
	return p
}

// append appends a record and notes what its caller was told.
func (p *power) append(rollout string) {
	call := callID()
	p.calls[call] = rollout
	err := p.s.Append(context.Background(), record(rollout, call, `{}`))
	p.do(func() error {
		if err == nil {
			p.now.acked[call] = rollout
		} else {
			p.now.lost[call] = rollout
		}
		return nil
	})
}

func (p *power) close() {
	p.t.Helper()
	if err := p.s.Close(context.Background()); err != nil {
		p.t.Fatal(err)
	}
	p.do(func() error { return nil })
}

// sure reports whether a call stood in its rollout's file, durably, at some moment until the one.
func (p *power) sure(call string, moment int) bool {
	for _, s := range p.past[:moment+1] {
		may := s.names[p.calls[call]+dataSuffix]
		if len(may) == 1 && may[0] != 0 && strings.Contains(string(s.files[may[0]].durable), call) {
			return true
		}
	}
	return false
}

// found is what was seen in all that cuts have left.
type found struct {
	cuts     int
	broken   []string // promises
	missing  int      // acknowledged records that nothing promises
	restored int      // lines that a replay brought back
	nul      int      // lines with NUL bytes in front
}

// cutEverywhere cuts at every moment of the history and opens what is left. enough broken promises end it.
func (p *power) cutEverywhere(enough int) (f found) {
	p.t.Helper()
	last := map[string]bool{}
	for moment, s := range p.past {
		s.cuts(p.t, func(l leftover) bool {
			key := l.key(s)
			if last[key] {
				return true
			}
			last[key] = true
			f.cuts++
			if err := p.lay(l); err != nil {
				p.t.Fatal(err)
			}
			p.recover(moment, s, &f)
			return len(f.broken) < enough
		})
		if len(f.broken) >= enough {
			return f
		}
	}
	return f
}

// key tells leftovers apart, together with what was promised then.
func (l leftover) key(s *diskState) string {
	var b strings.Builder
	var names []string
	for name, number := range l.names {
		if number != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b.WriteString(name + "\x00" + string(l.files[l.names[name]]) + "\x00")
	}
	var told []string
	for call := range s.acked {
		told = append(told, call)
	}
	for call := range s.lost {
		told = append(told, call)
	}
	slices.Sort(told)
	b.WriteString(strings.Join(told, " "))
	return b.String()
}

// recover opens the store as the next process does and holds what is there against what was promised.
func (p *power) recover(moment int, s *diskState, f *found) {
	broken := func(what string) { f.broken = append(f.broken, what) }
	store, err := Open(Options{Dir: p.dir, Durability: p.mode, Observe: Observe{Replay: func(e ReplayEvent) {
		switch e.Kind {
		case ReplayRestored:
			f.restored += e.Lines
		case ReplayFailed, ReplayDamaged:
			broken("replay: " + e.Err.Error())
		}
	}}})
	if err != nil {
		broken("open: " + err.Error())
		return
	}
	p.check(moment, s, f)
	// The store can be used: whatever is at the end of a file costs no record, neither what is in front nor the next.
	next := map[string]string{}
	for _, id := range p.calls {
		if next[id] == "" {
			next[id] = callID()
			if err := store.Append(context.Background(), record(id, next[id], `{}`)); err != nil {
				broken("append: " + err.Error())
			}
		}
	}
	if err := store.Close(context.Background()); err != nil {
		broken("close: " + err.Error())
	}
	have := p.check(moment, s, f)
	for _, call := range next {
		if have[call] != 1 {
			broken("what is appended behind the cut is not there once")
		}
	}
	_, err = Verify(p.dir, func(x Finding) {
		if x.Kind == FoundCallID || x.Kind == FoundSeq {
			broken("verify: " + x.String())
		}
	})
	if err != nil {
		broken("verify: " + err.Error())
	}
}

// check reads everything and returns how often each call is there.
func (p *power) check(moment int, s *diskState, f *found) map[string]int {
	have := map[string]int{}
	ids, err := Rollouts(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, id := range ids {
		lines, err := OpenLines(p.dir, id)
		if err != nil {
			p.t.Fatal(err)
		}
		for {
			l, err := lines.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				p.t.Fatal(err)
			}
			if l.Damage != nil {
				f.nul++
				continue
			}
			call, _ := jsonx.Text(jsonx.Get(l.Raw, "model_call_id"))
			if have[call]++; have[call] > 1 {
				f.broken = append(f.broken, "a record is there twice")
			}
		}
		lines.Close()
	}
	for call := range s.acked {
		switch {
		case have[call] == 1:
		case p.mode == DurabilityAsync && !p.sure(call, moment):
			f.missing++
		default:
			f.broken = append(f.broken, "an acknowledged record is not there")
		}
	}
	for call := range s.cleared {
		if have[call] > 0 {
			f.broken = append(f.broken, "what was cleared came back")
		}
	}
	for call, id := range s.lost {
		if _, err := os.Stat(markerPath(p.dir, id)); have[call] != 1 && errors.Is(err, fs.ErrNotExist) {
			f.broken = append(f.broken, "a record is lost and its rollout is not marked")
		}
	}
	return have
}
