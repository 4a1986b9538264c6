package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crashed is a store as a crash may leave it, which can be made again and again on the same files.
type crashed struct {
	t        *testing.T
	dir      string
	whole    map[string]string // content of the rollouts' files before the crash
	segments map[string][]byte
	calls    map[string][]string
}

// crash lets write fill a store through journals, kills them and remembers what is there.
func crash(t *testing.T, writers int, write func(put func(writer int, rollout, call string, pad int))) *crashed {
	t.Helper()
	c := &crashed{t: t, dir: t.TempDir(), whole: map[string]string{}, segments: map[string][]byte{}, calls: map[string][]string{}}
	journals := make([]*journal, writers)
	for i := range journals {
		journals[i] = testJournal(t, journalOptions{dir: c.dir, writer: fmt.Sprint("w", i)})
	}
	write(func(w int, rollout, call string, pad int) {
		t.Helper()
		line := testLine(call, pad)
		if err := put(t, journals[w], rollout, line); err != nil {
			t.Fatal(err)
		}
		c.calls[rollout] = append(c.calls[rollout], call)
	})
	for rollout := range c.calls {
		c.whole[rollout] = c.content(rollout)
	}
	for _, j := range journals {
		abandon(t, j)
	}
	c.segments = segmentTexts(t, c.dir)
	return c
}

func (c *crashed) content(rollout string) string {
	b, err := os.ReadFile(dataPath(c.dir, rollout))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// set gives a file another content and the store its journals back.
func (c *crashed) set(rollout, content string) {
	f, err := os.OpenFile(dataPath(c.dir, rollout), os.O_WRONLY, 0) // the same inode
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(content); err != nil {
		c.t.Fatal(err)
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		c.t.Fatal(err)
	}
	for name, b := range c.segments {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o640); err != nil {
			c.t.Fatal(err)
		}
	}
}

// replay runs one, and returns what it told. It must leave no journal.
func (c *crashed) replay() (events []ReplayEvent) {
	c.t.Helper()
	if err := replayJournals(c.t.Context(), c.dir, func(e ReplayEvent) { events = append(events, e) }); err != nil {
		c.t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, journalDir)); !os.IsNotExist(err) {
		c.t.Errorf("the journal is still there: %v", err)
	}
	return events
}

// once fails unless the file holds each of these calls once, whole.
func (c *crashed) once(what, rollout string, calls ...string) {
	c.t.Helper()
	got := readBack(c.t, c.dir, rollout).calls()
	for _, call := range append(slices.Clone(c.calls[rollout]), calls...) {
		if got[call] != 1 {
			c.t.Errorf("%s: call %s is there %d times", what, call, got[call])
		}
		delete(got, call)
	}
	if len(got) > 0 {
		c.t.Errorf("%s: more calls %v", what, got)
	}
}

func kinds(events []ReplayEvent) (kinds []ReplayKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func threeLines(t *testing.T) *crashed {
	return crash(t, 1, func(put func(int, string, string, int)) {
		for i, call := range []string{"a", "b", "c"} {
			put(0, "r", call, 3+i)
		}
	})
}

// TestReplayAfterKill: the files have everything, and nothing is changed.
func TestReplayAfterKill(t *testing.T) {
	t.Parallel()
	c := threeLines(t)
	if events := c.replay(); len(events) > 0 {
		t.Errorf("told %v", events)
	}
	if got := c.content("r"); got != c.whole["r"] {
		t.Errorf("the file is %q", got)
	}
}

// TestReplayTwoWriters: what two writers wrote in turns comes back in its order.
func TestReplayTwoWriters(t *testing.T) {
	t.Parallel()
	c := crash(t, 2, func(put func(int, string, string, int)) {
		for i := range 12 {
			put(i%2, "r", fmt.Sprint("call-", i), i)
		}
	})
	whole := c.whole["r"]
	for cut := 0; cut <= len(whole); cut += 7 {
		c.set("r", whole[:cut])
		c.replay()
		if got := c.content("r"); got != whole {
			t.Fatalf("cut at %d: %q", cut, got)
		}
	}
	// One of them lives: its entries stay in its journal, the others' come back around the hole.
	c.set("r", "")
	lock, err := osFiles{}.open(filepath.Join(c.dir, journalDir, "w1", journalLock), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := replayJournals(t.Context(), c.dir, nil); err != nil {
		t.Fatal(err)
	}
	if got := segments(t, c.dir); len(got) != 1 || !strings.Contains(got[0], "w1") {
		t.Errorf("left are %v", got)
	}
	if n := len(readBack(t, c.dir, "r").records); n != 6 {
		t.Errorf("%d records, want 6", n)
	}
	lock.Close()
	c.replay()
	c.once("one after the other", "r")
}

// TestReplayNeverResurrects: what was cleared stays cleared, also when the next attempt has the inode of the one before.
func TestReplayNeverResurrects(t *testing.T) {
	t.Parallel()
	t.Run("cleared", func(t *testing.T) {
		c := threeLines(t)
		if err := Clear(t.Context(), c.dir, "r"); err != nil {
			t.Fatal(err)
		}
		if got := kinds(c.replay()); !slices.Equal(got, []ReplayKind{ReplayCleared}) {
			t.Errorf("told %v", got)
		}
		if _, err := os.Stat(dataPath(c.dir, "r")); !os.IsNotExist(err) {
			t.Errorf("it is there again: %v", err)
		}
	})
	t.Run("the next attempt", func(t *testing.T) {
		c := threeLines(t)
		if err := Clear(t.Context(), c.dir, "r"); err != nil {
			t.Fatal(err)
		}
		plant(t, c.dir, "r", testLine("next", 1))
		c.replay()
		if got := c.content("r"); got != testLine("next", 1) {
			t.Errorf("the file is %q", got)
		}
	})
	t.Run("the same inode", func(t *testing.T) {
		// The file is made and cleared at once, so that even the clock that stamps births may not have ticked.
		again := 0
		for range 50 {
			dir := t.TempDir()
			j := testJournal(t, journalOptions{dir: dir})
			e, f := prepare(t, j, "r", testLine("old", 1))
			if ref, err := j.commit(e); err != nil {
				t.Fatal(err)
			} else if err := os.Remove(dataPath(dir, "r")); err != nil {
				t.Fatal(err)
			} else {
				f.Close()
				ref.applied("r")
			}
			now, f := prepare(t, j, "r")
			f.Close()
			if now.file.ino == e.file.ino {
				again++
			}
			abandon(t, j)
			if err := replayJournals(t.Context(), dir, nil); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(dataPath(dir, "r")); err != nil || len(b) > 0 {
				t.Fatalf("it came back: %q, %v", b, err)
			}
		}
		if again == 0 {
			t.Skip("this file system never used an inode again")
		}
		t.Logf("the inode was used again %d times of 50", again)
	})
}

// TestReplayTornSegment cuts the journal at every byte: what it still holds comes back.
func TestReplayTornSegment(t *testing.T) {
	t.Parallel()
	c := threeLines(t)
	var name string
	var segment []byte
	for name, segment = range c.segments {
	}
	all, _, _ := readAll(segment)
	for cut := range len(segment) + 1 {
		if cut > 0 && cut < len(segment) && segment[cut-1] == 0 && segment[cut] == 0 && cut%100 != 0 {
			continue // inside of padding
		}
		c.segments[name] = segment[:cut]
		c.set("r", "")
		events := []ReplayEvent{}
		if err := replayJournals(t.Context(), c.dir, func(e ReplayEvent) { events = append(events, e) }); err != nil {
			t.Fatal(err)
		}
		want, end := "", min(cut, segmentHeader)
		for _, e := range all {
			if e.at+e.size <= int64(cut) {
				want = c.whole["r"][:e.offset+e.size]
				end = int(e.at + e.size)
			}
		}
		clean := cut == 0 || cut >= segmentHeader && len(bytes.Trim(segment[end:cut], "\x00")) == 0 // padding at most
		if got := c.content("r"); got != want {
			t.Fatalf("cut at %d: the file is %q", cut, got)
		}
		if !noJournal(c.dir) {
			t.Fatalf("cut at %d: left are %v", cut, segments(t, c.dir))
		}
		if clean == slices.Contains(kinds(events), ReplayTorn) {
			t.Fatalf("cut at %d: told %v", cut, events)
		}
	}
}

// TestReplayBlankSegment: a segment that was never synced may have lost its beginning alone; what is behind was never promised.
// One that begins as something else is kept for people.
func TestReplayBlankSegment(t *testing.T) {
	t.Parallel()
	for _, foreign := range []bool{false, true} {
		c := threeLines(t)
		for name, segment := range c.segments {
			b := bytes.Clone(segment)
			clear(b[:segmentHeader])
			if foreign {
				b[3] = 'x'
			}
			c.segments[name] = b
		}
		c.set("r", "")
		var events []ReplayEvent
		if err := replayJournals(t.Context(), c.dir, func(e ReplayEvent) { events = append(events, e) }); err != nil {
			t.Fatal(err)
		}
		want := ReplayTorn
		if foreign {
			want = ReplayDamaged
		}
		if got := kinds(events); !slices.Equal(got, []ReplayKind{want}) {
			t.Errorf("told %v, want %s", got, want)
		}
		_, err := os.Stat(filepath.Join(c.dir, journalDir, damagedPrefix+"w0-00000001.seg"))
		if kept := err == nil; kept != foreign {
			t.Errorf("kept aside: %t, want %t", kept, foreign)
		}
	}
}

// TestReplayDamagedInTheMiddle: entries behind the damage are not trusted, and the segment is kept aside.
func TestReplayDamagedInTheMiddle(t *testing.T) {
	t.Parallel()
	c := threeLines(t)
	for name, segment := range c.segments {
		b := bytes.Clone(segment)
		all, _, _ := readAll(b)
		b[all[1].at+5] ^= 1
		c.segments[name] = b
	}
	c.set("r", "")
	var events []ReplayEvent
	if err := replayJournals(t.Context(), c.dir, func(e ReplayEvent) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	if got := kinds(events); !slices.Equal(got, []ReplayKind{ReplayDamaged, ReplayRestored}) {
		t.Errorf("told %v", got)
	}
	if got := readBack(t, c.dir, "r").calls(); len(got) != 1 || got["a"] != 1 {
		t.Errorf("the file has %v", got)
	}
	names, _ := filepath.Glob(filepath.Join(c.dir, journalDir, "*"))
	if len(names) != 1 || filepath.Base(names[0]) != damagedPrefix+"w0-00000001.seg" {
		t.Errorf("left are %v", names)
	}
	if err := replayJournals(t.Context(), c.dir, nil); err != nil { // nor does it disturb the next one
		t.Error(err)
	}
}

// TestReplayLocked: a rollout that somebody holds keeps the journal, and nothing else.
func TestReplayLocked(t *testing.T) {
	t.Parallel()
	c := crash(t, 1, func(put func(int, string, string, int)) {
		put(0, "r", "a", 1)
		put(0, "s", "b", 1)
	})
	c.set("r", "")
	c.set("s", "")
	lock, err := osFiles{}.open(dataPath(c.dir, "r"), false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var events []ReplayEvent
	if err := replayJournals(ctx, c.dir, func(e ReplayEvent) { events = append(events, e) }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	lock.Close()
	if got := kinds(events); !slices.Contains(got, ReplayFailed) {
		t.Errorf("told %v", got)
	}
	c.once("not locked", "s")
	if len(segments(t, c.dir)) != 1 {
		t.Fatal("the journal is gone")
	}
	c.replay()
	c.once("afterwards", "r")
	c.once("afterwards", "s")
}

// TestReplayEmptyJournals: folders without anything to replay are removed, files are not ours.
func TestReplayEmptyJournals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := replayJournals(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "with-lock"} {
		if err := os.MkdirAll(filepath.Join(dir, journalDir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, journalDir, "with-lock", journalLock), nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := replayJournals(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, journalDir)); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestIdentityOf(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first, err := identityOf(f)
	if errors.Is(err, errNoBirthTime) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(time.Unix(0, first.birth)); age < -time.Minute || age > time.Minute {
		t.Errorf("born %v ago", age)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name, name+"2"); err != nil {
		t.Fatal(err)
	}
	g, err := os.Open(name + "2")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if again, err := identityOf(g); err != nil || again != first {
		t.Errorf("%+v, then %+v, %v", first, again, err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(name+"2", &st); err != nil || st.Ino != first.ino || uint64(st.Dev) != first.dev {
		t.Errorf("stat says %d %d, statx %+v", st.Dev, st.Ino, first)
	}
	f.Close()
	if _, err := identityOf(f); err == nil {
		t.Error("a closed file has an identity")
	}
}
