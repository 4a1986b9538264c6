package capture

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func startChild(t *testing.T, dir string, records int, ids ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "CAPTURE_CHILD_DIR="+dir, "CAPTURE_CHILD_ROLLOUTS="+strings.Join(ids, ","), "CAPTURE_CHILD_RECORDS="+strconv.Itoa(records))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// wholeLines returns the lines that end: a killed child may have been printing one.
func wholeLines(b []byte) (lines []string) {
	for line := range bytes.Lines(b) {
		if s, ok := strings.CutSuffix(string(line), "\n"); ok {
			lines = append(lines, s)
		}
	}
	return lines
}

// TestProcesses: several processes on the same rollouts, vector R15.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	type proc struct {
		cmd *exec.Cmd
		out io.Reader
	}
	var procs []proc
	for range 3 {
		cmd, out := startChild(t, dir, 30, "a", "b")
		procs = append(procs, proc{cmd, out})
	}
	acked := map[string]bool{}
	for _, p := range procs {
		for sc := bufio.NewScanner(p.out); sc.Scan(); {
			acked[sc.Text()] = true
		}
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if len(acked) != 3*8*30 {
		t.Errorf("%d calls were acknowledged", len(acked))
	}
	have := map[string]int{}
	for _, id := range []string{"a", "b"} {
		got := readBack(t, dir, id)
		got.uniqueSeqs(t)
		if got.damaged+got.torn > 0 {
			t.Errorf("%s: %d damaged, %d torn", id, got.damaged, got.torn)
		}
		for c, n := range got.calls() {
			have[c] += n
		}
	}
	for c := range acked {
		if have[c] != 1 {
			t.Errorf("call %s is there %d times", c, have[c])
		}
	}
	if report, err := Verify(dir, func(f Finding) { t.Error(f) }); err != nil || !report.Clean(true) {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestKill: a process under load is killed at random moments, many times on one store. Nothing that it saw acknowledged is
// lost or there twice, and a torn tail costs only itself.
func TestKill(t *testing.T) {
	kills := 50
	switch {
	case raceDetector:
		kills = 15
	case testing.Short():
		kills = 10
	}
	dir := t.TempDir()
	ids := []string{"a", "b", "c"}
	acked := map[string]bool{}
	torn := 0
	for round := range kills {
		cmd, out := startChild(t, dir, 0, ids...)
		all := make(chan []byte)
		go func() { b, _ := io.ReadAll(out); all <- b }()
		time.Sleep(40*time.Millisecond + rand.N(160*time.Millisecond))
		cmd.Process.Kill()
		for _, c := range wholeLines(<-all) {
			acked[c] = true
		}
		cmd.Wait()
		if round%3 == 0 { // a kill inside write is rarer than this test has time for
			plant(t, dir, ids[round%len(ids)], `{"model_call_id":"torn`)
			torn++
		}
	}
	have := map[string]int{}
	damaged := 0
	for _, id := range ids {
		got := readBack(t, dir, id)
		got.uniqueSeqs(t)
		damaged += got.damaged
		for c, n := range got.calls() {
			have[c] += n
		}
	}
	for c := range acked {
		if have[c] != 1 {
			t.Errorf("call %s was acknowledged and is there %d times", c, have[c])
		}
	}
	for c, n := range have {
		if n > 1 {
			t.Errorf("call %s is there %d times", c, n)
		}
	}
	if damaged > torn+kills*len(ids) { // one in each file, where a write is slow
		t.Errorf("%d damaged lines, %d torn tails were planted", damaged, torn)
	}
	if len(acked) < kills {
		t.Errorf("only %d calls were acknowledged in %d runs", len(acked), kills)
	}
	t.Logf("%d acknowledged, %d recorded, %d damaged lines, %d of them planted", len(acked), len(have), damaged, torn)
}
