package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestJournalRotatesAndRetires(t *testing.T) {
	for _, c := range []struct {
		name string
		o    journalOptions
	}{
		{"size", journalOptions{segmentBytes: 1000}},
		{"rollouts", journalOptions{segmentFiles: 3}},
		{"age", journalOptions{segmentAge: 10 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &journalFaults{}
			c.o.fs = f
			j := testJournal(t, c.o)
			for i := range 12 {
				if err := put(t, j, fmt.Sprint("r", i%6), testLine(fmt.Sprint(i), 200)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			j.mu.Lock()
			number := j.number
			j.mu.Unlock()
			if number < 2 {
				t.Errorf("%d segments were made", number)
			}
			soon(t, "old segments are retired", func() bool { return len(segments(t, j.o.dir)) <= 1 })
			if f.datas.Load() == 0 {
				t.Error("no file was synced")
			}
			if c.name == "age" {
				soon(t, "an idle journal is empty", func() bool { return len(segments(t, j.o.dir)) == 0 })
			}
		})
	}
}

// TestJournalKeepsWhatIsNotApplied: an entry whose lines do not stand in their file is what the journal is for.
func TestJournalKeepsWhatIsNotApplied(t *testing.T) {
	j := testJournal(t, journalOptions{segmentBytes: 1})
	e, f := prepare(t, j, "r", testLine("a", 1))
	defer f.Close()
	ref, err := j.commit(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := put(t, j, "s", testLine("b", 1)); err != nil {
		t.Fatal(err)
	}
	soon(t, "the other segment is retired", func() bool { return len(segments(t, j.o.dir)) == 1 })
	if entries, _ := entriesOf(t, segments(t, j.o.dir)[0]); entries[0].name != "r" {
		t.Errorf("left is %v", entries)
	}
	ref.forsaken()
	soon(t, "it is retired", func() bool { return len(segments(t, j.o.dir)) == 0 })
}

// TestJournalFileThatCannotBeSynced: the segment stays, the failure is told, and before the next attempt the bytes are written
// anew, because the system may have dropped them.
func TestJournalFileThatCannotBeSynced(t *testing.T) {
	f := &journalFaults{}
	var told atomic.Int32
	j := testJournal(t, journalOptions{fs: f, segmentBytes: 1, pause: time.Millisecond, trouble: func(id string, err error) {
		if id != "r" || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", id, err)
		}
		told.Add(1)
	}})
	want := testLine("a", 5000)
	e, file := prepare(t, j, "r", want)
	ref, err := j.commit(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(make([]byte, len(e.data))); err != nil { // what the system read back after it dropped the pages
		t.Fatal(err)
	}
	file.Close()
	f.failData.Store(3)
	ref.applied("r")
	soon(t, "it is told", func() bool { return told.Load() >= 1 })
	soon(t, "the segment is retired", func() bool { return len(segments(t, j.o.dir)) == 0 })
	if n := told.Load(); n != 3 {
		t.Errorf("told %d times, want 3", n)
	}
	if got, err := os.ReadFile(dataPath(j.o.dir, "r")); err != nil || string(got) != want {
		t.Errorf("the file was not written anew: %d bytes, %v", len(got), err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.suspect) > 0 {
		t.Errorf("still suspected: %v", j.suspect)
	}
}

// TestJournalUnderLoad lets everything fail now and then, while segments come and go: what was acknowledged is in its file
// once, and nothing is left behind.
func TestJournalUnderLoad(t *testing.T) {
	f := &journalFaults{}
	j := testJournal(t, journalOptions{fs: f, segmentBytes: 2000, pause: time.Millisecond})
	var mu sync.Mutex
	acked := map[string][]string{}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 60 {
				switch (w*60 + i) % 40 {
				case 7:
					f.failSync.Store(1)
				case 17:
					f.failWrite.Store(1)
				case 27:
					f.failData.Store(2)
				case 37:
					f.failCreate.Store(1)
				}
				id, call := fmt.Sprint("r", (w+i)%5), callID()
				if put(t, j, id, testLine(call, i*7)) == nil {
					mu.Lock()
					acked[id] = append(acked[id], call)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for _, n := range []*atomic.Int32{&f.failSync, &f.failWrite, &f.failData, &f.failCreate} {
		n.Store(0)
	}
	if err := j.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for id, calls := range acked {
		got := readBack(t, j.o.dir, id).calls()
		for _, call := range calls {
			n++
			if got[call] != 1 {
				t.Errorf("%s has %s %d times", id, call, got[call])
			}
		}
	}
	if n < 240 {
		t.Errorf("only %d of 480 succeeded", n)
	}
	if _, err := os.Stat(filepath.Join(j.o.dir, journalDir)); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestJournalClose(t *testing.T) {
	t.Run("with time", func(t *testing.T) {
		j := testJournal(t, journalOptions{})
		if err := put(t, j, "r", testLine("a", 1)); err != nil {
			t.Fatal(err)
		}
		if err := j.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(j.o.dir, journalDir)); !os.IsNotExist(err) {
			t.Errorf("the folder is still there: %v", err)
		}
		if err := j.close(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("the second close: %v", err)
		}
	})
	t.Run("without time", func(t *testing.T) {
		j := testJournal(t, journalOptions{})
		if err := put(t, j, "r", testLine("a", 1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := j.close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if len(segments(t, j.o.dir)) != 1 {
			t.Error("the segment was not left")
		}
		if err := replayJournals(t.Context(), j.o.dir, nil); err != nil { // its lock is free
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(j.o.dir, journalDir)); !os.IsNotExist(err) {
			t.Errorf("the folder is still there: %v", err)
		}
	})
	t.Run("a file cannot be synced", func(t *testing.T) {
		f := &journalFaults{}
		f.failData.Store(1)
		j := testJournal(t, journalOptions{fs: f})
		if err := put(t, j, "r", testLine("a", 1)); err != nil {
			t.Fatal(err)
		}
		if err := j.close(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v", err)
		}
		if len(segments(t, j.o.dir)) != 1 {
			t.Error("the segment was not left")
		}
	})
	t.Run("others stay", func(t *testing.T) {
		j := testJournal(t, journalOptions{})
		other := testJournal(t, journalOptions{dir: j.o.dir})
		for _, j := range []*journal{j, other} {
			if err := put(t, j, "r", testLine(j.o.writer, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(segments(t, j.o.dir)) != 1 {
			t.Error("another writer's segment is gone")
		}
	})
}
