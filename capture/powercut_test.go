package capture

import (
	"bufio"
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

	"rolltap/internal/jsonx"
)

const cutRollouts = 12

// TestPowerCutChild is a writing process when another test starts it. It appends for ever, prints each call once it is
// acknowledged, and before that each size of a file that was synced: no power cut takes anything from in front of that.
func TestPowerCutChild(t *testing.T) {
	dir := os.Getenv("CAPTURE_POWERCUT_CHILD")
	if dir == "" {
		t.Skip("only started by another test")
	}
	var mu sync.Mutex
	tell := func(words ...any) { mu.Lock(); defer mu.Unlock(); fmt.Println(words...) }
	synced := func(path string, size int64) {
		id, _ := strings.CutSuffix(path[len(dir)+1:], dataSuffix)
		tell("synced", id, size)
	}
	s, err := open(Options{Dir: dir, Durability: DurabilityJournal}, toldFiles{synced: synced})
	if err != nil {
		t.Fatal(err)
	}
	s.journal.o.fs = toldJournal{synced: synced}
	s.journal.o.segmentAge = 40 * time.Millisecond // so that segments are retired meanwhile
	var wg sync.WaitGroup
	for w := range 3 * cutRollouts {
		wg.Go(func() {
			for i := 0; ; i++ {
				call, id := callID(), fmt.Sprint("r-", (w+i)%cutRollouts)
				text := strings.Repeat("x", (w*7919+i*104729)%3000)
				if i%100 == 99 {
					text = strings.Repeat("y", inlineMax+100) // a streamed line
				}
				if err := s.Append(context.Background(), record(id, call, `{"n":"`+text+`"}`)); err == nil {
					tell("acknowledged", id, call)
				}
			}
		})
	}
	wg.Wait()
}

type toldFiles struct {
	osFiles
	synced func(path string, size int64)
}

type toldFile struct {
	file
	path   string
	synced func(path string, size int64)
}

func (f toldFiles) data(path string) (file, error) {
	h, err := f.osFiles.data(path)
	if err != nil {
		return nil, err
	}
	return toldFile{h, path, f.synced}, nil
}

func (f toldFile) Sync() error {
	st, err := f.Stat()
	if err == nil {
		err = f.file.Sync()
	}
	if err == nil {
		f.synced(f.path, st.Size())
	}
	return err
}

type toldJournal struct {
	osJournalFiles
	synced func(path string, size int64)
}

func (f toldJournal) syncData(path string) error {
	st, err := os.Stat(path)
	if err == nil {
		err = f.osJournalFiles.syncData(path)
	}
	if err == nil {
		f.synced(path, st.Size())
	}
	return err
}

// cutChild is a running TestPowerCutChild.
type cutChild struct {
	cmd *exec.Cmd
	out chan []byte
}

func startCutChild(t *testing.T, dir string, test ...string) *cutChild {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test = append(test, "TestPowerCutChild")
	c := &cutChild{cmd: exec.Command(self, "-test.run=^"+test[0]+"$"), out: make(chan []byte, 1)}
	c.cmd.Env = append(os.Environ(), "CAPTURE_POWERCUT_CHILD="+dir)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		r := bufio.NewReader(out)
		first, _ := r.ReadBytes('\n')
		c.out <- nil // it writes
		rest, _ := io.ReadAll(r)
		c.out <- append(first, rest...)
	}()
	<-c.out
	return c
}

// cutStore is a store as its readers know it.
type cutStore struct {
	t      *testing.T
	dir    string
	rnd    *rand.Rand
	acked  map[string]string // call to rollout
	synced map[string]int64  // bytes of a rollout's file that are durable for certain
}

func newCutStore(t *testing.T) *cutStore {
	dir := t.TempDir()
	if _, err := identityOf(dirConn(t, dir)); err != nil {
		t.Skip(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &cutStore{t: t, dir: dir, rnd: rand.New(rand.NewPCG(seed, 0)), acked: map[string]string{}, synced: map[string]int64{}}
}

// kill ends a child in the middle of its work and takes down what it was told.
func (s *cutStore) kill(c *cutChild) {
	s.t.Helper()
	c.cmd.Process.Kill()
	out := <-c.out
	c.cmd.Wait()
	for _, line := range wholeLines(out) {
		switch f := strings.Fields(line); {
		case len(f) != 3:
			s.t.Errorf("the child says %q", line)
		case f[0] == "acknowledged":
			s.acked[f[2]] = f[1]
		default:
			n, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil {
				s.t.Errorf("the child says %q", line)
			}
			s.synced[f[1]] = max(s.synced[f[1]], n)
		}
	}
}

func (s *cutStore) sizes() map[string]int64 {
	s.t.Helper()
	ids, err := Rollouts(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, id := range ids {
		st, err := os.Stat(dataPath(s.dir, id))
		if err != nil {
			s.t.Fatal(err)
		}
		sizes[id] = st.Size()
	}
	return sizes
}

// cut takes from the files what nobody has synced: all of it, a part, or the bytes but not the size.
func (s *cutStore) cut() {
	s.t.Helper()
	for id, all := range s.sizes() {
		path, sure := dataPath(s.dir, id), s.synced[id]
		if all < sure {
			s.t.Fatalf("%s has %d bytes and %d were synced", id, all, sure)
		}
		keep := sure + s.rnd.Int64N(all-sure+1)
		switch s.rnd.IntN(4) {
		case 0:
			keep = sure
		case 1: // nothing was lost
			keep = all
		}
		end := keep
		if s.rnd.IntN(2) == 0 {
			end += s.rnd.Int64N(all - keep + 1)
		}
		for _, size := range []int64{keep, end} { // the second time it grows by NUL bytes
			if err := os.Truncate(path, size); err != nil {
				s.t.Fatal(err)
			}
		}
		if hole := s.rnd.Int64N(keep - sure + 1); hole > 0 && s.rnd.IntN(3) == 0 { // one in the middle
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				s.t.Fatal(err)
			}
			_, err = f.WriteAt(make([]byte, hole), sure+s.rnd.Int64N(keep-sure-hole+1))
			f.Close()
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// check wants every acknowledged call once, and none twice.
func (s *cutStore) check() {
	s.t.Helper()
	have := map[string]string{}
	ids, err := Rollouts(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range ids {
		lines, err := OpenLines(s.dir, id)
		if err != nil {
			s.t.Fatal(err)
		}
		for {
			l, err := lines.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				s.t.Fatal(err)
			}
			if l.Damage != nil {
				continue
			}
			call, _ := jsonx.Text(jsonx.Get(l.Raw, "model_call_id"))
			if have[call] != "" {
				s.t.Errorf("%s: call %s is there twice", id, call)
			}
			have[call] = id
		}
		lines.Close()
	}
	lost := 0
	for call, id := range s.acked {
		if have[call] != id {
			lost++
		}
	}
	if lost > 0 {
		s.t.Fatalf("%d of %d acknowledged calls are not there", lost, len(s.acked))
	}
}

// reopen opens the store as the next process does, which replays, and closes it. It returns how many lines came back.
func (s *cutStore) reopen() (restored int) {
	s.t.Helper()
	store, err := Open(Options{Dir: s.dir, Durability: DurabilityJournal, Observe: Observe{
		Replay: func(e ReplayEvent) {
			if e.Kind == ReplayRestored {
				restored += e.Lines
			}
			if e.Kind == ReplayFailed || e.Kind == ReplayDamaged || e.Kind == ReplayCleared {
				s.t.Errorf("replay: %+v", e)
			}
		},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := store.Close(s.t.Context()); err != nil {
		s.t.Error(err)
	}
	return restored
}

// clean wants a store with which nothing is wrong but what unacknowledged bytes left, and nothing at all behind a repair.
func (s *cutStore) clean() {
	s.t.Helper()
	report, err := Verify(s.dir, func(f Finding) {
		if f.Kind == FoundCallID || f.Kind == FoundSeq {
			s.t.Error(f)
		}
	})
	if err != nil {
		s.t.Error(err)
	}
	s.t.Logf("%d acknowledged, %+v", len(s.acked), report)
	if _, err := Repair(s.t.Context(), s.dir, nil); err != nil {
		s.t.Error(err)
	}
	// A batch that nobody was told of may have lost a line in its middle, which is a gap.
	if report, err := Verify(s.dir, nil); err != nil || !report.Clean(false) {
		s.t.Errorf("behind a repair: %+v, %v", report, err)
	}
	if !noJournal(s.dir) {
		s.t.Errorf("left are %v", segments(s.t, s.dir))
	}
	s.check()
}

// durable takes it that all of the files is.
func (s *cutStore) durable() {
	s.t.Helper()
	for id, n := range s.sizes() {
		s.synced[id] = n
	}
}

func cuts(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// TestPowerCut: writing processes, one or two at a time, are killed under load, and everything that was not synced may be lost
// from the files. Whoever opens the store next has every acknowledged record, once.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	s := newCutStore(t)
	restored := 0
	for round := range cuts(20) {
		children := []*cutChild{startCutChild(t, s.dir)}
		if round%2 == 1 {
			children = append(children, startCutChild(t, s.dir))
		}
		time.Sleep(20*time.Millisecond + rand.N(60*time.Millisecond))
		for _, c := range children {
			s.kill(c)
		}
		s.cut()
		restored += s.reopen()
		s.durable() // a power cut leaves what was, and the replay has synced what it wrote
		s.check()
	}
	if restored == 0 {
		t.Error("nothing ever had to come back")
	}
	t.Logf("%d lines came back", restored)
	s.clean()
}

// TestKilledBesideAnother: the journal of a killed process is replayed while another one goes on in the same files; in the
// end the power goes for that one, too.
func TestKilledBesideAnother(t *testing.T) {
	t.Parallel()
	s := newCutStore(t)
	survivor := startCutChild(t, s.dir)
	for range cuts(10) {
		c := startCutChild(t, s.dir)
		time.Sleep(20*time.Millisecond + rand.N(40*time.Millisecond))
		s.kill(c)
		s.durable() // what the dead one wrote is when the replay has removed its journal
		s.reopen()
	}
	time.Sleep(50 * time.Millisecond)
	s.kill(survivor)
	s.cut()
	s.reopen()
	s.clean()
}
