package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rolltap/capture"
)

const writers = 16

// TestWritingChild is a writing process when deadStore starts it: it appends for ever and prints a line for each record.
func TestWritingChild(t *testing.T) {
	dir := os.Getenv("CLI_CHILD_STORE")
	if dir == "" {
		t.Skip("only started by another test")
	}
	s, err := capture.Open(capture.Options{Dir: dir, Durability: capture.DurabilityJournal})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				body := capture.NewCopy(capture.CopyOptions{})
				fmt.Fprintf(body, `{"n":%d}`, i)
				r := &capture.Record{Rollout: fmt.Sprint("r-", w), CallID: fmt.Sprintf("%016x%016x", w, i), Dialect: "chat", Outcome: "ok", Request: body}
				if err := s.Append(context.Background(), r); err != nil {
					t.Error(err)
					return
				}
				os.Stdout.WriteString("acknowledged\n")
			}
		})
	}
	wg.Wait()
}

// deadStore is a store whose writer was killed and whose files a power cut has cut back behind their first records. There is a
// journal, which holds at least some of what is missing.
func deadStore(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "store")
	cmd := exec.Command(self, "-test.run=^TestWritingChild$")
	cmd.Env = append(os.Environ(), "CLI_CHILD_STORE="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n++; n == 20*writers {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if n < 20*writers {
		t.Fatalf("the writer ended after %d records", n)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".journal", "*", "*.seg")); len(left) == 0 {
		t.Skip("no journal on this file system")
	}
	for w := range writers {
		path := dataFile(dir, fmt.Sprint("r-", w))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(bytes.IndexByte(b, '\n')+1)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestReadersReplay: who reads a store, or repairs it, first brings back what the journals of dead writers hold.
func TestReadersReplay(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(ctx context.Context, dir string, c *Console) error
	}{
		{"the list", func(ctx context.Context, dir string, c *Console) error { return (&Show{Store: dir}).Run(ctx, c) }},
		{"a transcript", func(ctx context.Context, dir string, c *Console) error {
			return (&Show{Store: dir, Rollout: "r-0"}).Run(ctx, c)
		}},
		{"verify", func(ctx context.Context, dir string, c *Console) error { return (&Verify{Store: dir}).Run(ctx, c) }},
		{"repair", func(ctx context.Context, dir string, c *Console) error {
			return (&Verify{Store: dir, Repair: true}).Run(ctx, c)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := deadStore(t)
			var out bytes.Buffer
			var notes []string
			if err := c.run(t.Context(), dir, &Console{Out: &out, Note: func(s string) { notes = append(notes, s) }}); err != nil {
				t.Errorf("%v:\n%s", err, out.String())
			}
			if len(notes) != 1 || !strings.HasPrefix(notes[0], "brought back from the journal: ") || !strings.HasSuffix(notes[0], " rollouts") {
				t.Errorf("notes: %q", notes)
			}
			if _, err := os.Stat(filepath.Join(dir, ".journal")); !os.IsNotExist(err) {
				t.Errorf("the journal is still there: %v", err)
			}
			report, err := capture.Verify(dir, nil)
			if err != nil || report.Records <= 2*writers {
				t.Errorf("only %d records, %v", report.Records, err)
			}
		})
	}
}

// TestReadersReplay_whatCannotBeReplayed is no error, and said.
func TestReadersReplay_whatCannotBeReplayed(t *testing.T) {
	dir := t.TempDir()
	copyStore(t, dir)
	journal := filepath.Join(dir, ".journal", "abcdef")
	if err := os.MkdirAll(filepath.Join(journal, "lock"), 0o750); err != nil { // no file, so nobody can lock it
		t.Fatal(err)
	}
	var out bytes.Buffer
	var notes []string
	c := &Console{Out: &out, Zone: time.UTC, Note: func(s string) { notes = append(notes, s) }}
	if err := (&Show{Store: dir}).Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "not all of the journal could be replayed") || strings.Contains(notes[0], "\n") {
		t.Errorf("notes: %q", notes)
	}
	if !strings.Contains(out.String(), "agent") {
		t.Errorf("printed:\n%s", out.String())
	}
}

func copyStore(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
}
