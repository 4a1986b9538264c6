package training

import (
	"bufio"
	"bytes"
	"context"
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

// child is a process that makes calls, and says which of its steps were acknowledged.
func child(dir string) {
	s, err := Open(Options{Dir: dir, Lazy: 5000})
	if err != nil {
		panic(err)
	}
	calls, _ := strconv.Atoi(os.Getenv("TRAINING_CHILD_CALLS")) // 0: until it is killed
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, rollout := range strings.Split(os.Getenv("TRAINING_CHILD_ROLLOUTS"), ",") {
		for w := range 3 {
			wg.Go(func() {
				for n := 0; calls == 0 || n < calls; n++ {
					call := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, n)
					if err := s.Begin(ctx, rollout, call); err != nil {
						panic(err)
					}
					fmt.Printf("began %s %s\n", rollout, call)
					if err := s.Put(ctx, newEntry(rollout, call, "[1,2,3]", "[4,5]")); err != nil {
						panic(err)
					}
					fmt.Printf("put %s %s\n", rollout, call)
				}
			})
		}
	}
	wg.Wait()
	if err := s.Close(ctx); err != nil {
		panic(err)
	}
}

func startChild(t *testing.T, dir string, calls int, rollouts ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "TRAINING_CHILD_DIR="+dir, "TRAINING_CHILD_ROLLOUTS="+strings.Join(rollouts, ","), "TRAINING_CHILD_CALLS="+strconv.Itoa(calls))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// told is what children have said, by rollout and call.
type told struct{ began, put map[string]bool }

func (h told) add(line string) {
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "began":
		h.began[rest] = true
	case "put":
		h.put[rest] = true
	}
}

// check holds the files against what was said: no acknowledged entry is missing or there twice, and a call that began and has no entry masks.
func (h told) check(t *testing.T, dir string, rollouts ...string) {
	t.Helper()
	s := newStore(t, dir)
	for _, rollout := range rollouts {
		f := freeze(t, s, rollout)
		have := map[string]int{}
		for _, c := range f.calls {
			have[rollout+" "+c]++
		}
		for c, n := range have {
			if n > 1 {
				t.Errorf("%s is there %d times", c, n)
			}
		}
		lost := false
		for c := range h.put {
			if strings.HasPrefix(c, rollout+" ") && have[c] != 1 {
				t.Errorf("%s was acknowledged and is there %d times", c, have[c])
			}
		}
		for c := range h.began {
			lost = lost || strings.HasPrefix(c, rollout+" ") && have[c] == 0
		}
		if lost && !f.Incomplete {
			t.Errorf("%s has calls without tokens and is complete", rollout)
		}
		v, err := Verify(dir, rollout)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range v.Problems {
			if !strings.Contains(p.Text, "has no entry") {
				t.Error(p)
			}
		}
	}
}

func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	h := told{map[string]bool{}, map[string]bool{}}
	type proc struct {
		cmd *exec.Cmd
		out io.Reader
	}
	var procs []proc
	for range 3 {
		cmd, out := startChild(t, dir, 8, "a", "b")
		procs = append(procs, proc{cmd, out})
	}
	for _, p := range procs {
		for sc := bufio.NewScanner(p.out); sc.Scan(); {
			h.add(sc.Text())
		}
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if len(h.put) != 3*3*8*2 {
		t.Errorf("%d calls were acknowledged", len(h.put))
	}
	h.check(t, dir, "a", "b")
	for _, rollout := range []string{"a", "b"} {
		noProblems(t, dir, rollout)
	}
}

// TestKill: processes that write are killed at random moments, many times on one folder.
func TestKill(t *testing.T) {
	kills := 15
	if testing.Short() || raceDetector {
		kills = 4
	}
	dir := t.TempDir()
	h := told{map[string]bool{}, map[string]bool{}}
	for range kills {
		cmd, out := startChild(t, dir, 0, "a", "b")
		all, first := make(chan []byte), make(chan struct{})
		go func() {
			var b bytes.Buffer
			io.CopyN(&b, out, 1)
			close(first)
			io.Copy(&b, out)
			all <- b.Bytes()
		}()
		<-first // it works
		time.Sleep(rand.N(100 * time.Millisecond))
		cmd.Process.Kill()
		for line := range strings.Lines(string(<-all)) {
			if whole, ok := strings.CutSuffix(line, "\n"); ok {
				h.add(whole)
			}
		}
		cmd.Wait()
	}
	if len(h.put) < kills && !raceDetector {
		t.Errorf("only %d calls were acknowledged", len(h.put))
	}
	h.check(t, dir, "a", "b")
	t.Logf("%d calls began, %d were put", len(h.began), len(h.put))
}
