package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tokenCrash is a store with token files of rollout r that rest on the journal of a dead writer. It can be laid again and again
// on the same files.
type tokenCrash struct {
	t        *testing.T
	dir      string
	name     fileName
	whole    string
	segments map[string][]byte
}

// crashTokens appends lines to a token file, each text of them an entry of the journal.
func crashTokens(t *testing.T, p Part, texts ...string) *tokenCrash {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "capture-tokens-") // a thousand replays, each with its syncs
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &tokenCrash{t: t, dir: dir, name: nameOf("r", p)}
	j := testJournal(t, journalOptions{dir: c.dir, writer: "w0"})
	f, err := os.Create(c.name.path(c.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := identityOf(f)
	if errors.Is(err, errNoBirthTime) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		ref, err := j.commit(&journalEntry{name: c.name, file: id, offset: int64(len(c.whole)), lines: strings.Count(text, "\n"), data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		ref.applied(c.name)
		c.whole += text
	}
	abandon(t, j)
	c.segments = segmentTexts(t, c.dir)
	return c
}

// lay gives the same file another content, and the store its journal and this state; "" is none.
func (c *tokenCrash) lay(content, state string) {
	c.t.Helper()
	f, err := os.OpenFile(c.name.path(c.dir), os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.WriteString(content)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for name, b := range c.segments {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, b, 0o640)); err != nil {
			c.t.Fatal(err)
		}
	}
	os.Remove(tokenStatePath(c.dir, "r"))
	if state != "" {
		if err := os.WriteFile(tokenStatePath(c.dir, "r"), []byte(state), 0o640); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *tokenCrash) content() string {
	c.t.Helper()
	b, err := os.ReadFile(c.name.path(c.dir))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// want replays what was laid, whole and once killed behind each step, and wants this content and no journal.
func (c *tokenCrash) want(what, content, state, want string) {
	c.t.Helper()
	for kill := 0; ; kill++ {
		c.lay(content, state)
		steps, killed := 0, errors.New("killed")
		r := replayer{dir: c.dir, step: func() error {
			if steps++; steps == kill {
				return killed
			}
			return nil
		}}
		err := r.run(c.t.Context())
		if kill > 0 && err == nil {
			return // there are not so many steps
		}
		if err != nil && !errors.Is(err, killed) {
			c.t.Fatalf("%s: %v", what, err)
		}
		if err != nil {
			if err := replayJournals(c.t.Context(), c.dir, nil); err != nil {
				c.t.Fatalf("%s: behind a kill at step %d: %v", what, kill, err)
			}
		}
		if got := c.content(); got != want {
			c.t.Fatalf("%s, killed at step %d: the file is\n%q, want\n%q", what, kill, got, want)
		}
		if !noJournal(c.dir) {
			c.t.Fatalf("%s: left are %v", what, segments(c.t, c.dir))
		}
	}
}

func entryLine(call, text string) string {
	return fmt.Sprintf(`{"created_at":1,"model_call_id":"%s","model":"%s"}`+"\n", call, text)
}

// TestReplayTokens: entries of a token file come back where they belong, or behind what others have written meanwhile, and never into what
// takes none.
func TestReplayTokens(t *testing.T) {
	t.Parallel()
	a, b, d := entryLine("a", "1"), entryLine("b", "22"), entryLine("d", "333")
	c := crashTokens(t, PartTokens, a, b+d)
	x := entryLine("x", strings.Repeat("y", 20))
	for cut := range len(c.whole) + 1 {
		nul := strings.Repeat("\x00", len(c.whole)-cut)
		c.want(fmt.Sprint("cut at ", cut), c.whole[:cut], "", c.whole)
		c.want(fmt.Sprint("cut at ", cut, " but for the size"), c.whole[:cut]+nul, "", c.whole)
		c.want(fmt.Sprint("lost up to ", cut), strings.Repeat("\x00", cut)+c.whole[cut:], "", c.whole)
	}
	state := func(frozen, retired bool, indexed int) string {
		return fmt.Sprintf(`{"entry_digests":{},"frozen":%t,"incomplete":false,"indexed_size":%d,"retired":%t,"snapshot_id":"s","version":1}`+"\n", frozen, indexed, retired)
	}
	for _, row := range []struct{ name, content, state, want string }{
		{"somebody went on", a + x, "", a + x + b + d},
		{"somebody went on, and has one of them", a + x + b, "", a + x + b + d},
		{"somebody went on, and has another payload", a + entryLine("b", "another, and longer"), "", a + entryLine("b", "another, and longer") + d},
		{"somebody went on and was cut", a + x[:30], "", a + b + d},
		{"somebody went on and lacks the newline", a + x[:len(x)-1], "", a + x + b + d},
		{"live", a, state(false, false, len(a)), c.whole},
		{"frozen", a, state(true, false, len(c.whole)), c.whole},
		{"frozen before the last were acknowledged", a, state(true, false, len(a)), a},
		{"frozen, and something else stands there", a + x + x, state(true, false, len(c.whole)), a + x + x},
		{"frozen without an index", a, `{"frozen":true,"snapshot_id":"s"}`, c.whole},
		{"retired", a, state(true, true, 0), a},
		{"a damaged state", a, `{"frozen":tr`, c.whole},
	} {
		c.want(row.name, row.content, row.state, row.want)
	}
}

// TestReplayIntents: intents come back, those that were withdrawn do not.
func TestReplayIntents(t *testing.T) {
	t.Parallel()
	c := crashTokens(t, PartIntents, "call-a\ncall-b\n", "call-d\n")
	gone := strings.Repeat(" ", 6) + "\n"
	for cut := range len(c.whole) + 1 {
		nul := strings.Repeat("\x00", len(c.whole)-cut)
		c.want(fmt.Sprint("cut at ", cut), c.whole[:cut], "", c.whole)
		c.want(fmt.Sprint("cut at ", cut, " but for the size"), c.whole[:cut]+nul, "", c.whole)
		c.want(fmt.Sprint("lost up to ", cut), strings.Repeat("\x00", cut)+c.whole[cut:], "", c.whole)
	}
	for n := 1; n <= 6; n++ {
		c.want(fmt.Sprint(n, " bytes were withdrawn"), "call-a\n"+strings.Repeat(" ", n)+"call-b"[n:]+"\ncall-d\n", "", "call-a\n"+gone+"call-d\n")
		c.want(fmt.Sprint(n, " bytes were withdrawn, and the rest is lost"), "call-a\n"+strings.Repeat(" ", n), "", "call-a\n"+gone+"call-d\n")
	}
	for _, row := range []struct{ name, content, state, want string }{
		{"all were withdrawn", gone + gone + gone, "", gone + gone + gone},
		{"somebody went on", "call-a\nx\n", "", "call-a\nx\ncall-b\ncall-d\n"},
		{"somebody went on and has one", "call-a\nx\ncall-d\n", "", "call-a\nx\ncall-d\ncall-b\n"},
		{"somebody went on and was cut", "call-a\nx", "", "call-a\ncall-b\ncall-d\n"},
		{"frozen", "call-a\n", `{"frozen":true,"snapshot_id":"s","indexed_size":0}`, c.whole},
		{"frozen, and something else stands there", "call-a\nanother\n", `{"frozen":true,"snapshot_id":"s","indexed_size":0}`, "call-a\nanother\n"},
		{"retired", "call-a\n", `{"frozen":true,"retired":true,"snapshot_id":"s","indexed_size":0}`, "call-a\n"},
	} {
		c.want(row.name, row.content, row.state, row.want)
	}
}

// TestReplayTokensElsewhere: what was cleared stays cleared, also where the next attempt has begun, and no lock is made for nothing.
func TestReplayTokensElsewhere(t *testing.T) {
	t.Parallel()
	for _, p := range []Part{PartTokens, PartIntents} {
		c := crashTokens(t, p, entryLine("a", ""))
		if err := os.Remove(c.name.path(c.dir)); err != nil {
			t.Fatal(err)
		}
		var events []ReplayEvent
		if err := replayJournals(t.Context(), c.dir, func(e ReplayEvent) { events = append(events, e) }); err != nil {
			t.Fatal(err)
		}
		if len(events) != 1 || events[0].Kind != ReplayCleared || events[0].Rollout != "r" || events[0].File != c.name.base() || !noJournal(c.dir) {
			t.Errorf("told %+v", events)
		}
		if left, err := filepath.Glob(filepath.Join(c.dir, "*")); err != nil || len(left) > 0 {
			t.Errorf("left are %q, %v", left, err)
		}

		c = crashTokens(t, p, entryLine("a", ""))
		path := c.name.path(c.dir)
		if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("another\n"), 0o640)); err != nil {
			t.Fatal(err)
		}
		if err := replayJournals(t.Context(), c.dir, nil); err != nil {
			t.Fatal(err)
		}
		if got := c.content(); got != "another\n" {
			t.Errorf("the next attempt is %q", got)
		}
	}
}

// TestReplayTokensLocked: a rollout whose token lock somebody holds keeps the journal; the lock has the mode of the file.
func TestReplayTokensLocked(t *testing.T) {
	t.Parallel()
	c := crashTokens(t, PartTokens, entryLine("a", ""))
	c.lay("", "")
	lock, err := osFiles{}.open(tokenLockPath(c.dir, "r"), true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := replayJournals(ctx, c.dir, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	lock.Close()
	if got := c.content(); got != "" || noJournal(c.dir) {
		t.Errorf("the file is %q", got)
	}
	if err := os.Remove(tokenLockPath(c.dir, "r")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.name.path(c.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replayJournals(t.Context(), c.dir, nil); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(tokenLockPath(c.dir, "r")); err != nil || st.Mode() != 0o600 || c.content() != c.whole {
		t.Errorf("lock %v, %v; file %q", st, err, c.content())
	}
}
