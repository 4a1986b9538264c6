package capture

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rolltap/internal/storefs"
)

// appendTo appends to a token file of rollout r and says so, with a Sync that fails with err or syncs and counts.
func appendTo(t *testing.T, dir string, p Part, text string, isNew bool, syncs *int, err error) Appended {
	t.Helper()
	f, e := os.OpenFile(nameOf("r", p).path(dir), os.O_RDWR|os.O_CREATE, 0o640)
	if e != nil {
		t.Fatal(e)
	}
	t.Cleanup(func() { f.Close() })
	st, e := f.Stat()
	if e == nil {
		_, e = f.WriteAt([]byte(text), st.Size())
	}
	if e != nil {
		t.Fatal(e)
	}
	return Appended{
		Rollout: "r", Part: p, File: f, Offset: st.Size(), Data: []byte(text), Lines: strings.Count(text, "\n"), New: isNew,
		Sync: func() error {
			*syncs++
			if err != nil {
				return err
			}
			return f.Sync()
		},
	}
}

// TestSecure: what goes to the journal and what is synced.
func TestSecure(t *testing.T) {
	for _, row := range []struct {
		name      string
		mode      Durability
		change    func(*Appended)
		alone     bool
		journaled bool
	}{
		{name: "journal", mode: DurabilityJournal, journaled: true},
		{name: "alone", mode: DurabilityJournal, alone: true},
		{name: "new", mode: DurabilityJournal, change: func(a *Appended) { a.New = true }},
		{name: "not at hand", mode: DurabilityJournal, change: func(a *Appended) { a.Data = nil }},
		{name: "long", mode: DurabilityJournal, change: func(a *Appended) { a.Data = make([]byte, journalTo) }},
		{name: "as long as may be", mode: DurabilityJournal, change: func(a *Appended) { a.Data = slices.Repeat([]byte("x"), journalTo-1) }, journaled: true},
		{name: "file", mode: DurabilityFile},
		{name: "async", mode: DurabilityAsync},
	} {
		t.Run(row.name, func(t *testing.T) {
			fsys := &dirCounter{files: osFiles{}}
			s, err := open(Options{Dir: t.TempDir(), Durability: row.mode}, fsys)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			if !row.alone {
				s.count(journalFrom - 1)
				defer s.count(-(journalFrom - 1))
			}
			syncs, folders := 0, fsys.n
			a := appendTo(t, s.o.Dir, PartTokens, entryLine("a", ""), false, &syncs, nil)
			if row.change != nil {
				row.change(&a)
			}
			if err := s.Secure([]Appended{a}); err != nil {
				t.Fatal(err)
			}
			if journaled := len(segments(t, s.o.Dir)) > 0; journaled != row.journaled || (syncs == 0) != row.journaled || (fsys.n > folders) != a.New {
				t.Errorf("journaled %t, %d syncs, %d of the folder", journaled, syncs, fsys.n-folders)
			}
		})
	}
	s := newStore(t, Options{})
	syncs := 0
	for _, name := range []string{"", "../r", "r/tokens", strings.Repeat("r", storefs.MaxIDLen+1)} {
		a := appendTo(t, s.o.Dir, PartTokens, "x\n", true, &syncs, nil)
		a.Rollout = name
		if err := s.Secure([]Appended{a}); !errors.Is(err, ErrInvalidID) {
			t.Errorf("%q: %v", name, err)
		}
	}
	a := appendTo(t, s.o.Dir, PartTokens, "x\n", true, &syncs, nil)
	a.Part = partRecords
	if err := s.Secure([]Appended{a}); !errors.Is(err, ErrInvalidID) || syncs > 0 {
		t.Errorf("records: %v, %d syncs", err, syncs)
	}
}

type dirCounter struct {
	files
	n int
}

func (d *dirCounter) syncDir(dir string) error { d.n++; return d.files.syncDir(dir) }

// TestSecureTwoFiles: a batch of both files is one round for both, and a failure of the one is the batch's.
func TestSecureTwoFiles(t *testing.T) {
	s := newStore(t, Options{Durability: DurabilityJournal})
	s.count(journalFrom)
	defer s.count(-journalFrom)
	syncs := 0
	if err := s.Secure([]Appended{
		appendTo(t, s.o.Dir, PartIntents, "a\n", false, &syncs, nil), appendTo(t, s.o.Dir, PartTokens, entryLine("a", ""), false, &syncs, nil),
	}); err != nil || syncs > 0 {
		t.Fatal(err, syncs)
	}
	names := map[fileName]bool{}
	for _, path := range segments(t, s.o.Dir) {
		entries, _ := entriesOf(t, path)
		for _, e := range entries {
			names[e.name] = true
		}
	}
	if len(names) != 2 || !names["r/tokens"] || !names["r/intents"] {
		t.Errorf("entries of %v", names)
	}
	err := s.Secure([]Appended{
		appendTo(t, s.o.Dir, PartIntents, "b\n", false, &syncs, nil), appendTo(t, s.o.Dir, PartTokens, "x\n", true, &syncs, syscall.EIO),
	})
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
}

// TestSecureDoubt: a sync of a token file that failed makes the journal write anew what it holds of that file before a later sync
// is believed. The disk here has lost the line, as a disk does whose write failed.
func TestSecureDoubt(t *testing.T) {
	s := newStore(t, Options{Durability: DurabilityJournal})
	s.count(journalFrom)
	defer s.count(-journalFrom)
	syncs := 0
	line := entryLine("a", "")
	if err := s.Secure([]Appended{appendTo(t, s.o.Dir, PartTokens, line, false, &syncs, nil)}); err != nil || syncs > 0 {
		t.Fatal(err, syncs)
	}
	path := nameOf("r", PartTokens).path(s.o.Dir)
	if err := s.Secure([]Appended{appendTo(t, s.o.Dir, PartTokens, "", true, &syncs, syscall.EIO)}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !noJournal(s.o.Dir); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the segment was not retired")
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != line {
		t.Errorf("the file is %q, %v", b, err)
	}
}
