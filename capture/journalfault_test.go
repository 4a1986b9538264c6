package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
)

// TestJournalsComeAndGo: who gives back the last folder of journals must not take it from under one who is just making his.
func TestJournalsComeAndGo(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				j := newJournal(journalOptions{dir: dir, writer: fmt.Sprint("w-", w, "-", i)})
				if err := put(t, j, fmt.Sprint("r-", w), testLine(callID(), 10)); err != nil {
					t.Errorf("writer %d, round %d: %v", w, i, err)
				}
				j.close(context.Background())
			}
		})
	}
	wg.Wait()
}

// TestOwnSyncFails: after a failed sync the system may have dropped every page of the file that was not on the disk, those of
// records that rest on the journal among them, and say yes the next time. So the journal has to write them anew before it
// lets them go.
func TestOwnSyncFails(t *testing.T) {
	f := &faults{}
	dir := t.TempDir()
	s, err := open(Options{Dir: dir, Durability: DurabilityJournal}, f)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, "r")
	path := dataPath(dir, "r")
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int) { s.mu.Lock(); s.records += n; s.mu.Unlock() }
	many(journalFrom)
	journaled := add(t, s, "r")
	many(-journalFrom)
	if len(segments(t, dir)) == 0 {
		t.Fatal("no journal")
	}
	f.onSync = func() { // the pages are dropped
		now, _ := os.Stat(path)
		h, _ := os.OpenFile(path, os.O_WRONLY, 0)
		h.WriteAt(make([]byte, now.Size()-first.Size()), first.Size())
		h.Close()
	}
	f.failSync.Store(1)
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	f.onSync = nil
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n := readBack(t, dir, "r").calls()[journaled]; n != 1 {
		t.Errorf("the record that rested on the journal is there %d times, and the journal is gone: %t", n, noJournal(dir))
	}
}

// TestSameNumberAgain: a file that another process made anew under the number of the one that was cleared, and whose name
// that process did not live to sync, is a new file to us: its name has to be durable before anything rests on it.
func TestSameNumberAgain(t *testing.T) {
	f := &faults{}
	dir := t.TempDir()
	s := newStoreOn(t, Options{Dir: dir, Durability: DurabilityJournal}, f)
	crowd(t, s)
	add(t, s, "r")
	soon(t, "nothing is kept open", func() bool { return f.files.Load() == 0 })
	other := newStore(t, Options{Dir: t.TempDir()})
	add(t, other, "r")
	line, _ := os.ReadFile(dataPath(other.o.Dir, "r"))
	path := dataPath(dir, "r")
	before, _ := os.Stat(path)
	if err := Clear(t.Context(), dir, "r"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(line, line...), 0o640); err != nil { // and dies
		t.Fatal(err)
	}
	now, _ := os.Stat(path)
	if !os.SameFile(before, now) {
		t.Skip("another number")
	}
	f.dirSyncs.Store(0)
	add(t, s, "r")
	if f.dirSyncs.Load() == 0 {
		t.Error("the name is not durable")
	}
}
