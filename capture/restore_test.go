package capture

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestReplayAnyLoss takes away every end that a power cut can take, replaces it by NUL bytes, in whole or in part, and lets
// somebody append behind it.
func TestReplayAnyLoss(t *testing.T) {
	t.Parallel()
	type damage struct {
		content string
		foreign []string // calls of others in it
	}
	for name, damages := range map[string]func(whole string, cut int) []damage{
		"cut": func(whole string, cut int) []damage { return []damage{{content: whole[:cut]}} },
		"holes": func(whole string, cut int) []damage {
			nul := func(n int) string { return strings.Repeat("\x00", n) }
			return []damage{
				{content: whole[:cut] + nul(len(whole)-cut)},            // the end
				{content: whole[:cut/2] + nul(cut-cut/2) + whole[cut:]}, // something inside, or the beginning
				{content: whole[:cut/2] + nul((len(whole)-cut/2)/2)},    // the end, and shorter
				{content: nul(cut) + whole[cut:(cut+len(whole))/2]},     // both
				{content: nul(cut)}, // everything
			}
		},
		"foreign": func(whole string, cut int) []damage {
			d := []damage{
				{whole[:cut] + "\n" + testLine("f", 200) + testLine("g", 1), []string{"f", "g"}}, // as by one that met a torn tail
				{whole[:cut] + "\n" + testLine("f", 1) + `{"model_call_id":"tor`, []string{"f"}},
			}
			if cut == 0 || whole[cut-1] == '\n' {
				d = append(d, damage{whole[:cut] + testLine("f", 1), []string{"f"}})
			}
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := threeLines(t)
			whole := c.whole["r"]
			first := strings.Index(whole, "\n") + 1
			for cut := first - 2; cut <= len(whole); cut++ { // every byte of the last two lines, and a few in front
				for i, d := range damages(whole, max(cut, 0)) {
					c.set("r", d.content)
					c.replay()
					got := c.content("r")
					if d.foreign == nil && got != whole {
						t.Fatalf("cut at %d, damage %d: the file is %q", cut, i, got)
					}
					c.once(fmt.Sprintf("cut at %d, damage %d", cut, i), "r", d.foreign...)
					if i > 0 || d.foreign == nil {
						continue
					}
					c.set("r", got)
					c.replay()
					if again := c.content("r"); got != again {
						t.Fatalf("cut at %d, damage %d: a second replay made %q of %q", cut, i, again, got)
					}
				}
			}
		})
	}
	t.Run("zeros behind everything", func(t *testing.T) {
		c := threeLines(t)
		c.set("r", c.whole["r"]+strings.Repeat("\x00", 50))
		c.replay()
		c.once("they are not ours", "r")
	})
	t.Run("nothing left", func(t *testing.T) {
		c := threeLines(t)
		c.set("r", "")
		if got := kinds(c.replay()); !slices.Equal(got, []ReplayKind{ReplayRestored}) {
			t.Errorf("told %v", got)
		}
		if got := c.content("r"); got != c.whole["r"] {
			t.Errorf("the file is %q", got)
		}
	})
}

// TestReplayKilled ends a replay before every single change, tears what it wrote last, and runs it again.
func TestReplayKilled(t *testing.T) {
	t.Parallel()
	c := crash(t, 2, func(put func(int, string, string, int)) {
		for i := range 6 {
			put(i%2, "r", fmt.Sprint("call-", i), 10*i)
			put(i%2, "s", fmt.Sprint("other-", i), i)
		}
	})
	whole := c.whole["r"]
	killed := errors.New("killed")
	for _, start := range []string{
		"", whole[:len(whole)/2], whole[:len(whole)-1], whole[:len(whole)/3] + strings.Repeat("\x00", len(whole)/3),
		whole[:len(whole)/2] + "\n" + testLine("f", 3), testLine("f", 3), whole[:40] + "\n" + testLine("f", 300),
	} {
		for kill := 0; ; kill++ {
			c.set("r", start)
			n := 0
			r := replayer{dir: c.dir, step: func() error {
				if n++; n > kill {
					return killed
				}
				return nil
			}}
			// One file at a time, or two count the steps at once.
			c.set("s", c.whole["s"])
			for name, b := range c.segments {
				os.WriteFile(name, without(t, b, "s"), 0o640)
			}
			err := r.run(t.Context())
			if err != nil && !errors.Is(err, killed) {
				t.Fatal(err)
			}
			if err == nil {
				break
			}
			// What was not synced may be torn; once a segment is gone it was.
			if now := c.content("r"); len(now) > len(start) && len(segments(t, c.dir)) == 2 {
				os.Truncate(dataPath(c.dir, "r"), int64(len(now)-(len(now)-len(start))/2))
			}
			c.replay()
			if strings.Contains(start, `"f"`) {
				c.once(fmt.Sprintf("%q killed at %d", start, kill), "r", "f")
			} else if got := c.content("r"); got != whole {
				t.Fatalf("%q killed at %d: the file is %q", start, kill, got)
			}
			if kill > 1000 {
				t.Fatal("it never ends")
			}
		}
	}
}

// TestReplayKilledWithHoles: the journal of one writer alone, whose lines, all of the same length, are appended up to just
// where the next one belongs. Nothing may be there twice, whenever a replay is killed.
func TestReplayKilledWithHoles(t *testing.T) {
	t.Parallel()
	c := crash(t, 2, func(put func(int, string, string, int)) {
		for i := range 6 {
			put(i%2, "r", fmt.Sprint("call-", i), 3)
		}
	})
	for name := range c.segments {
		if strings.Contains(name, "w0") {
			os.Remove(name)
			delete(c.segments, name)
		}
	}
	c.calls["r"] = []string{"call-1", "call-3", "call-5"}
	line := int64(len(testLine("call-0", 3)))
	killed := errors.New("killed")
	for kill := 0; kill < 6; kill++ {
		for _, lost := range []int64{0, 1, 17, line - 1, line} {
			c.set("r", "")
			n := 0
			r := replayer{dir: c.dir, step: func() error {
				if n++; n > kill {
					return killed
				}
				return nil
			}}
			if err := r.run(t.Context()); err != nil && !errors.Is(err, killed) {
				t.Fatal(err)
			}
			if size := int64(len(c.content("r"))); size >= lost && len(segments(t, c.dir)) > 0 {
				os.Truncate(dataPath(c.dir, "r"), size-lost)
			}
			c.replay()
			c.once(fmt.Sprintf("killed at %d, %d bytes lost", kill, lost), "r")
		}
	}
}

// without is the segment without the entries of a rollout.
func without(t *testing.T, segment []byte, rollout string) []byte {
	out := appendPadding(bytes.Clone(segment[:segmentHeader]))
	s, err := newSegmentReader(bytes.NewReader(segment), int64(len(segment)))
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := s.next()
		if err != nil {
			return out
		}
		if e.name != fileName(rollout) {
			head := entryPrefix + entryFixed + len(e.name) + 4
			out = appendPadding(append(out, segment[e.at-int64(head):s.off]...))
		}
	}
}

// TestReplayHealedLine: an entry that begins with the newline for a torn tail in front of it.
func TestReplayHealedLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, "r", `{"model_call_id":"dead`)
	j := testJournal(t, journalOptions{dir: dir})
	if err := put(t, j, "r", testLine("a", 1), testLine("b", 1)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(dataPath(dir, "r"))
	if err != nil {
		t.Fatal(err)
	}
	abandon(t, j)
	if err := os.Truncate(dataPath(dir, "r"), 22); err != nil {
		t.Fatal(err)
	}
	if err := replayJournals(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(dataPath(dir, "r")); !bytes.Equal(got, whole) {
		t.Errorf("the file is %q, was %q", got, whole)
	}
}

// TestReplayBehindARest: the line in front of an entry was never acknowledged, so nothing brings it back. Whatever a power cut
// leaves of it, the entry's first line does not become a part of that.
func TestReplayBehindARest(t *testing.T) {
	t.Parallel()
	unacknowledged := testLine("u", 5)
	c := &crashed{t: t, dir: t.TempDir(), whole: map[string]string{}}
	plant(t, c.dir, "r", unacknowledged)
	j := testJournal(t, journalOptions{dir: c.dir})
	if err := put(t, j, "r", testLine("a", 1), testLine("b", 1)); err != nil {
		t.Fatal(err)
	}
	c.calls = map[string][]string{"r": {"a", "b"}}
	whole := c.content("r")
	abandon(t, j)
	c.segments = segmentTexts(t, c.dir)
	for _, from := range []int{0, 1, len(unacknowledged) / 2, len(unacknowledged) - 1} {
		for to := from + 1; to <= len(whole); to++ {
			hole := whole[:from] + strings.Repeat("\x00", to-from)
			for _, content := range []string{hole, hole + whole[to:]} {
				c.set("r", content)
				c.replay()
				c.once(fmt.Sprintf("NUL bytes from %d to %d of %d", from, to, len(content)), "r")
			}
		}
	}
}

// TestReplayLargeLines: entries are moved piece by piece.
func TestReplayLargeLines(t *testing.T) {
	t.Parallel()
	c := crash(t, 1, func(put func(int, string, string, int)) {
		put(0, "r", "a", 300<<10)
		put(0, "r", "b", 1<<20+100)
	})
	whole := c.whole["r"]
	for _, cut := range []int{0, 100_000, 300 << 10, len(whole) - 1} {
		c.set("r", whole[:cut])
		c.replay()
		if got := c.content("r"); got != whole {
			t.Fatalf("cut at %d: %d bytes", cut, len(got))
		}
		c.set("r", whole[:cut]+"\n"+testLine("f", 10))
		c.replay()
		c.once(fmt.Sprint("cut at ", cut), "r", "f")
	}
}
