package capture

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestJournalChild is a writing process when TestJournalKilled starts it: it appends through a journal for ever and prints
// each call once it is acknowledged.
func TestJournalChild(t *testing.T) {
	dir := os.Getenv("CAPTURE_JOURNAL_CHILD")
	if dir == "" {
		t.Skip("only started by another test")
	}
	j := newJournal(journalOptions{dir: dir, writer: newWriter(), segmentBytes: 1 << 30, segmentAge: time.Hour})
	var wg sync.WaitGroup
	var out sync.Mutex
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				call := callID()
				if err := put(t, j, fmt.Sprint("r-", (w+i)%5), testLine(call, i*31%3000)); err != nil {
					t.Error(err)
					return
				}
				out.Lock()
				fmt.Println("acknowledged", call, (w+i)%5)
				out.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestJournalKilled kills writing processes and then takes from the files what a power cut would: none of it was synced.
// Every call that was acknowledged is there once.
func TestJournalKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	acked := map[string]map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		cmd := exec.Command(self, "-test.run=^TestJournalChild$")
		cmd.Env = append(os.Environ(), "CAPTURE_JOURNAL_CHILD="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			r := bufio.NewReader(out)
			for n := 0; ; n++ {
				line, err := r.ReadString('\n')
				if err == io.EOF {
					break // its last line may be cut
				}
				if f := strings.Fields(line); len(f) == 3 && f[0] == "acknowledged" {
					mu.Lock()
					if acked["r-"+f[2]] == nil {
						acked["r-"+f[2]] = map[string]bool{}
					}
					acked["r-"+f[2]][f[1]] = true
					mu.Unlock()
				}
				if n == 300 {
					cmd.Process.Kill()
				}
			}
			cmd.Wait()
		})
	}
	wg.Wait()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed " + strconv.FormatUint(seed, 10))
	rnd := rand.New(rand.NewPCG(seed, 0))
	for id := range acked {
		st, err := os.Stat(dataPath(dir, id))
		if err != nil {
			t.Fatal(err)
		}
		keep, holes := rnd.Int64N(st.Size()+1), rnd.IntN(2) == 0
		if err := os.Truncate(dataPath(dir, id), keep); err != nil {
			t.Fatal(err)
		}
		if holes { // the size was durable, the bytes were not
			if err := os.Truncate(dataPath(dir, id), keep+rnd.Int64N(st.Size()-keep+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := replayJournals(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	for id, calls := range acked {
		r := readBack(t, dir, id)
		got := r.calls()
		for call := range calls {
			n++
			if got[call] == 0 {
				t.Errorf("%s lost %s", id, call)
			}
		}
		for call, times := range got {
			if times > 1 {
				t.Errorf("%s has %s %d times", id, call, times)
			}
		}
		// A killed writer's last entry may have the place of the one that came after it, whose torn rest then is no line.
		if r.damaged > 1 {
			t.Errorf("%s: %d damaged lines", id, r.damaged)
		}
	}
	if n < 400 {
		t.Errorf("only %d calls were acknowledged", n)
	}
	if got := segments(t, dir); len(got) > 0 {
		t.Errorf("left are %v", got)
	}
}
