package training

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// disk is what of a folder would survive a power cut now: a second folder, into which goes what was made durable. What was only written is not in
// it; what was only renamed or removed is, or is not.
type disk struct {
	osFiles
	t   *testing.T
	dir string

	mu   sync.Mutex // guards the rest, and what is in dir
	rand *rand.Rand
	gone []string // removed, and nobody has made that durable
}

func (d *disk) shadow(path string) string { return filepath.Join(d.dir, filepath.Base(path)) }

// secure is the Secure of a disk. It also proves that the store knows what is durable already.
func (d *disk) secure(ws []Appended) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range ws {
		now := read(d.t, w.Path)
		if had := read(d.t, d.shadow(w.Path)); !w.New && (had == nil || !bytes.HasPrefix(had, now[:w.Offset])) {
			d.t.Errorf("%s: not new, and %d of %d bytes in front are durable", filepath.Base(w.Path), len(had), w.Offset)
		}
		write(d.t, d.shadow(w.Path), string(now))
	}
	return nil
}

func (d *disk) replace(path string, content []byte, durable bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if durable || d.rand.IntN(2) == 0 {
		write(d.t, d.shadow(path), string(content))
	}
	return d.osFiles.replace(path, content, false)
}

func (d *disk) remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone = append(d.gone, d.shadow(path)); d.rand.IntN(2) == 0 {
		os.Remove(d.shadow(path))
	}
	return d.osFiles.remove(path)
}

func (d *disk) syncDir(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, path := range d.gone {
		os.Remove(path)
	}
	d.gone = nil
	return nil
}

// TestPowerCut: two stores write to one folder, others die beside them, and then the power goes. What was acknowledged is there, what was not costs
// nothing else, and no state vouches for what is lost.
func TestPowerCut(t *testing.T) {
	rounds := 100
	if testing.Short() || raceDetector {
		rounds = 30
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round), 1))
		dir := t.TempDir()
		d := &disk{t: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(uint64(round), 2))}
		var stores []*Store
		for range 2 {
			s, err := open(Options{Dir: dir, Secure: d.secure, Lazy: int64(1 + r.IntN(3000)), Idle: 1}, d)
			if err != nil {
				t.Fatal(err)
			}
			stores = append(stores, s)
		}
		var acked, began []string
		marked, snapshot, trace := false, "", []string{}
		for n := range 4 + r.IntN(16) {
			s, call := stores[r.IntN(2)], fmt.Sprint("c", n)
			var err error
			what := []string{"put", "put", "put", "begin", "again", "conflict", "mark", "withdraw", "killed", "torn", "idle", "freeze"}[r.IntN(12)]
			switch what {
			case "put":
				if err = s.Put(t.Context(), newEntry("r", call, "[1]", "[2]")); err == nil {
					acked = append(acked, call)
				}
			case "begin":
				if err = s.Begin(t.Context(), "r", call); err == nil {
					began = append(began, call)
				}
			case "again":
				if len(acked) > 0 {
					err = s.Put(t.Context(), newEntry("r", acked[r.IntN(len(acked))], "[1]", "[2]"))
				}
			case "conflict":
				if len(acked) > 0 {
					if err = s.Put(t.Context(), newEntry("r", acked[0], "[1]", "[9]")); errors.Is(err, ErrConflict) {
						marked, err = true, nil
					}
				}
			case "mark":
				if err = s.Mark(t.Context(), "r", call, "x"); err == nil {
					marked = true
				}
			case "withdraw":
				err = s.Withdraw(t.Context(), "r", call, "x")
			case "killed": // a process that dies behind its write
				if snapshot == "" {
					appendFile(t, dataPath(dir, "r"), []byte(encodeLine(t, newEntry("r", "killed-"+call, "[1]", "[2]"))))
				}
				if snapshot == "" && r.IntN(2) == 0 { // and whose caller asks another one
					if err = s.Put(t.Context(), newEntry("r", "killed-"+call, "[1]", "[2]")); err == nil {
						acked = append(acked, "killed-"+call)
					}
				}
			case "torn":
				if snapshot == "" {
					appendFile(t, dataPath(dir, "r"), []byte(encodeLine(t, newEntry("r", "killed-"+call, "[1]", "[2]")))[:99])
					err = s.Withdraw(t.Context(), "r", call, "x") // somebody heals it
				}
			case "idle": // another rollout makes this one be forgotten, and its state written
				err = s.Begin(t.Context(), fmt.Sprint("other-", n), call)
			case "freeze":
				if r.IntN(3) > 0 {
					continue
				}
				var snap *Snapshot
				if snap, err = s.Freeze(t.Context(), "r"); err == nil {
					snapshot = snap.ID
					snap.Close()
				}
			}
			trace = append(trace, what)
			if err != nil && !(snapshot != "" && errors.Is(err, ErrFrozen)) {
				t.Fatalf("round %d, %v: %v", round, trace, err)
			}
		}
		cut := t.TempDir()
		d.mu.Lock()
		err := os.CopyFS(cut, os.DirFS(d.dir))
		d.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		after := newStore(t, cut)
		snap, err := after.Freeze(t.Context(), "r")
		if err != nil {
			t.Fatalf("round %d, %v: %v", round, trace, err)
		}
		var have []string
		for entries := snap.Entries(); ; {
			v, err := entries.Next()
			if err != nil {
				break
			}
			have = append(have, v.CallID)
		}
		for _, call := range acked {
			if !slices.Contains(have, call) {
				t.Errorf("round %d, %v: %s was acknowledged and is lost", round, trace, call)
			}
		}
		if (marked || len(began) > 0) && !snap.Incomplete || snapshot != "" && snap.ID != snapshot {
			t.Errorf("round %d, %v: %+v; marked %t, began %q, snapshot %q", round, trace, snap, marked, began, snapshot)
		}
		snap.Close()
		for _, s := range stores {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
