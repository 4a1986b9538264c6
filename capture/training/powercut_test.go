package training

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// disk is what of a folder would survive a power cut now: a second folder, into which goes what was made durable. What was only written is not in
// it; what was only renamed or removed is, or is not.
type disk struct {
	osFiles
	t   *testing.T
	dir string

	mu      sync.Mutex // guards the rest, and what is in dir
	rand    *rand.Rand
	gone    []string        // removed, and nobody has made that durable
	journal []logged        // durable in place of their files
	torn    map[string]bool // files with bytes of dead writers that may be there again when they were cut off
}

// logged is an entry of a journal.
type logged struct {
	path string // in the second folder
	at   int64
	data []byte
}

func (d *disk) shadow(path string) string { return filepath.Join(d.dir, filepath.Base(path)) }

// secure is the Secure of a disk. It also proves that the store knows what is durable already.
func (d *disk) secure(ws []Appended) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range ws {
		now, shadow := read(d.t, w.Path), d.shadow(w.Path)
		if !w.New && w.Data != nil {
			if !bytes.HasPrefix(now[w.Offset:], w.Data) || len(now) != int(w.Offset)+len(w.Data) {
				d.t.Errorf("%s: %q at %d is not what was written", filepath.Base(w.Path), w.Data, w.Offset)
			}
			// What a journal has must stand behind what is durable, or in the journal, too.
			if had := replayed(read(d.t, shadow), d.of(shadow)); len(had) != int(w.Offset) {
				d.t.Errorf("%s: not new at %d, and %d bytes in front are durable", filepath.Base(w.Path), w.Offset, len(had))
			}
			if d.torn[w.Path] {
				d.t.Errorf("%s: not new, and a torn tail may be there again", filepath.Base(w.Path))
			}
			if d.rand.IntN(4) > 0 {
				d.journal = append(d.journal, logged{shadow, w.Offset, bytes.Clone(w.Data)})
				continue
			}
		}
		d.journal = slices.DeleteFunc(d.journal, func(l logged) bool { return l.path == shadow })
		delete(d.torn, w.Path)
		if had := read(d.t, d.shadow(w.Path)); !w.New && w.Data != nil && had == nil {
			d.t.Errorf("%s: not new, and its name is not durable", filepath.Base(w.Path))
		}
		write(d.t, d.shadow(w.Path), string(now))
	}
	return nil
}

// of are the entries of the journal for a file.
func (d *disk) of(shadow string) (l []logged) {
	for _, e := range d.journal {
		if e.path == shadow {
			l = append(l, e)
		}
	}
	return l
}

// replayed is a file with what a journal has for it.
func replayed(b []byte, journal []logged) []byte {
	b = bytes.Clone(b)
	for _, e := range journal {
		b = append(b, make([]byte, max(0, int(e.at)+len(e.data)-len(b)))...)
		if strings.TrimSpace(string(b[e.at:int(e.at)+len(e.data)])) != "" || b[e.at] != ' ' { // an intent that was withdrawn
			copy(b[e.at:], e.data)
		}
	}
	return b
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
	rested := 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round), 1))
		dir := t.TempDir()
		d := &disk{t: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(uint64(round), 2)), torn: map[string]bool{}}
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
			what := []string{"put", "put", "put", "begin", "again", "conflict", "mark", "withdraw", "killed", "torn", "intent", "idle", "freeze"}[r.IntN(13)]
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
				if len(began) > 0 && r.IntN(2) == 0 {
					n := r.IntN(len(began))
					call = began[n]
					began = slices.Delete(began, n, n+1)
				}
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
					d.torn[dataPath(dir, "r")] = true
					err = s.Withdraw(t.Context(), "r", call, "x") // somebody heals it
				}
			case "intent": // of a process that dies behind its write, or inside
				if snapshot == "" {
					appendFile(t, intentsPath(dir, "r"), []byte("killed-"+call+"\n"[:r.IntN(2)]))
					d.torn[intentsPath(dir, "r")] = true
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
		// Whoever comes without a replay finds a store as if the last calls had not been made: no state is ahead of its file.
		if early, err := newStore(t, cut).Freeze(t.Context(), "r"); err != nil {
			t.Errorf("round %d, %v: without a replay: %v", round, trace, err)
		} else {
			early.Close()
		}
		if err := errors.Join(os.RemoveAll(cut), os.CopyFS(cut, os.DirFS(d.dir))); err != nil {
			t.Fatal(err)
		}
		rested += len(d.journal)
		for _, e := range d.journal {
			path := filepath.Join(cut, filepath.Base(e.path))
			write(t, path, string(replayed(read(t, path), []logged{e})))
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
	if rested == 0 {
		t.Error("nothing rested on the journal when the power went")
	}
}
