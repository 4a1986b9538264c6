package training

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"rolltap/internal/tokendigest"
)

// conversation is a rollout of many turns: each prompt is the sequence so far with something behind it.
type conversation struct {
	rollout string
	ids     []byte // of the sequence so far, without brackets
	n       int    // how many those are
	parent  *Entry
	turn    int
	seed    uint32
}

// next is an entry of the next turn, a delta when it can be one.
func (c *conversation) next(t testing.TB, prompt, generation int, delta bool) *Entry {
	t.Helper()
	add := func(dst []byte, n int) []byte {
		for range n {
			if len(dst) > 0 {
				dst = append(dst, ',')
			}
			c.seed = c.seed*1664525 + 1013904223
			dst = strconv.AppendUint(dst, uint64(c.seed>>8)%151_936, 10)
		}
		return dst
	}
	list := func(ids []byte) []byte { return append(append([]byte("["), ids...), ']') }
	fresh, generated := add(nil, prompt), add(nil, generation)
	if c.n > 0 {
		c.ids = append(c.ids, ',')
	}
	c.ids = append(c.ids, fresh...)
	probs := []byte{'['}
	for i := range generation {
		if i > 0 {
			probs = append(probs, ',')
		}
		c.seed = c.seed*1664525 + 1013904223
		probs = strconv.AppendFloat(probs, -float64(c.seed)/(1<<30), 'g', 17, 64)
	}
	e := &Entry{
		Rollout: c.rollout, CallID: fmt.Sprintf("call-%04d", c.turn), Model: "m", PromptTokenIDs: list(c.ids), GenerationTokenIDs: list(generated),
		GenerationLogProbs: append(probs, ']'), OutputItems: []byte(`[{"type":"message","role":"assistant","content":"turn"}]`), TokenItem: 0,
		ResponseID: fmt.Sprintf("resp_%d", c.turn), CreatedAt: float64(c.turn), Parent: Root,
		Fingerprint: "f" + strconv.Itoa(c.turn), ContextLen: c.turn, ContextDigest: "d", FingerprintVersion: FingerprintVersion,
	}
	if err := e.Stamp(); err != nil {
		t.Fatal(err)
	}
	if c.parent != nil {
		e.Parent, e.ParentCallID = Resolved, c.parent.CallID
		if e.PromptIsDelta = delta; delta {
			rest, err := tokendigest.Suffix(e.PromptTokenIDs, c.parent.CumLen)
			if err != nil {
				t.Fatal(err)
			}
			e.PromptTokenIDs = rest
		}
	}
	c.ids = append(append(c.ids, ','), generated...)
	c.n += prompt + generation
	c.parent = e
	c.turn++
	return e
}

func sizeOf(t testing.TB, dir string) (total int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		st, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += st.Size()
	}
	return total
}

// TestDeltasCostTheirSequence: a hundred turns cost at most three times what the final sequence takes, all files together, and a prompt
// that was stored in pieces comes back as it was.
func TestDeltasCostTheirSequence(t *testing.T) {
	const turns = 100
	cost := map[bool]int64{}
	for _, delta := range []bool{true, false} {
		if raceDetector && !delta {
			return
		}
		dir := t.TempDir()
		s := newStore(t, dir)
		c := &conversation{rollout: "r", seed: 1}
		var prompts [][]byte
		for range turns {
			had := append([]byte(nil), c.ids...)
			e := c.next(t, 220, 80, delta)
			generated := len(e.GenerationTokenIDs) - 1 // with the comma in front
			prompts = append(prompts, c.ids[:len(c.ids)-generated])
			if !bytes.HasPrefix(c.ids, had) {
				t.Fatal("the test does not append")
			}
			begin(t, s, "r", e.CallID)
			put(t, s, e)
		}
		f := freeze(t, s, "r")
		cost[delta] = sizeOf(t, dir)
		if f.Incomplete || len(f.views) != turns {
			t.Fatalf("%+v of %d", f.Snapshot, len(f.views))
		}
		chains, err := NewChains(f.File(), f.Entries())
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range f.views {
			if v.PromptIsDelta != (delta && i > 0) || v.CumLen != int64((i+1)*300) {
				t.Errorf("turn %d: delta %t, %d tokens", i, v.PromptIsDelta, v.CumLen)
			}
			if err := chains.Check(v); err != nil {
				t.Errorf("turn %d: %v", i, err)
			}
			var b bytes.Buffer
			if err := chains.WritePrompt(&b, v); err != nil || b.String() != "["+string(prompts[i])+"]" {
				t.Errorf("turn %d: another prompt, %v", i, err)
			}
		}
		if v := noProblems(t, dir, "r"); v.Entries != turns || delta && v.Deltas != turns-1 {
			t.Errorf("%+v", v)
		}
		sequence := int64(len(c.ids))
		t.Logf("delta %t: %d bytes, %.2f times the sequence", delta, cost[delta], float64(cost[delta])/float64(sequence))
		if delta && cost[delta] > 3*sequence {
			t.Errorf("%d bytes for a sequence of %d", cost[delta], sequence)
		}
	}
	if cost[false] < 10*cost[true] {
		t.Errorf("whole prompts cost %d, deltas %d: what is compared?", cost[false], cost[true])
	}
}

// TestBrokenChains: a delta whose prompt cannot be put together, or is not the one that was sent, is never handed out.
func TestBrokenChains(t *testing.T) {
	whole := func(call, prompt, generation string) *Entry { return newEntry("r", call, prompt, generation) }
	delta := func(call, parent, rest, generation, prompt string) *Entry {
		e := whole(call, prompt, generation) // stamped with all of it
		e.PromptTokenIDs, e.PromptIsDelta, e.Parent, e.ParentCallID = []byte(rest), true, Resolved, parent
		return e
	}
	undigested := func(e *Entry) *Entry { e.Digest = ""; return e }
	long := []*Entry{whole("c0", "[1]", "[2]")}
	for i := range chainDepth + 2 {
		long = append(long, undigested(delta(fmt.Sprint("c", i+1), fmt.Sprint("c", i), "[]", "[3]", "[1]")))
	}
	for _, c := range []struct {
		name    string
		entries []*Entry
		want    string // part of the error for the last one; empty: its prompt is prompt
		prompt  string
	}{
		{"a delta", []*Entry{whole("a", "[1,2]", "[3]"), delta("b", "a", "[4]", "[5]", "[1,2,3,4]")}, "", "[1,2,3,4]"},
		{"a delta of a delta, in the wrong order", []*Entry{delta("b", "a", "[4]", "[5]", "[1,2,3,4]"), whole("a", "[1,2]", "[3]"), delta("c", "b", "[]", "[]", "[1,2,3,4,5]")}, "", "[1,2,3,4,5]"},
		{"of nothing", []*Entry{whole("a", "[]", "[]"), delta("b", "a", "[]", "[5]", "[]")}, "", "[]"},
		{"without its parent", []*Entry{delta("b", "a", "[4]", "[5]", "[1,2,3,4]")}, "needs a, which is not there", ""},
		{"its own parent", []*Entry{undigested(delta("b", "b", "[4]", "[5]", "[1]"))}, "go round", ""},
		{"a ring", []*Entry{undigested(delta("a", "b", "[4]", "[5]", "[1]")), undigested(delta("b", "a", "[4]", "[5]", "[1]"))}, "go round", ""},
		{"of another parent", []*Entry{whole("a", "[1,9]", "[3]"), delta("b", "a", "[4]", "[5]", "[1,2,3,4]")}, "the digest is not", ""},
		{"of a longer parent", []*Entry{whole("a", "[1,2,2]", "[3]"), delta("b", "a", "[4]", "[5]", "[1,2,3,4]")}, "cum_len is 5, the sequence has 6", ""},
		{"with too many parents", long, "or are more than", ""},
		{"with as many parents as may be", long[:chainDepth+1], "", "[1,2" + strings.Repeat(",3", chainDepth-1) + "]"},
	} {
		var file []byte
		for _, e := range c.entries {
			l, err := encode(e)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			file = l.appendTo(file)
		}
		f := bytes.NewReader(file)
		chains, err := NewChains(f, NewReader(f, 0, f.Size()))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		v := chains.Entry(c.entries[len(c.entries)-1].CallID)
		var b bytes.Buffer
		err = chains.WritePrompt(&b, v)
		if c.want == "" {
			if err != nil || b.String() != c.prompt {
				t.Errorf("%s: %.60s, %v", c.name, b.String(), err)
			}
			continue
		}
		wantErr(t, c.name, err, ErrChain)
		if err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
			t.Errorf("%s: %q, %v; want %q", c.name, b.String(), err, c.want)
		}
		dir := t.TempDir()
		write(t, dataPath(dir, "r"), string(file))
		if c.name != "with too many parents" {
			wantProblem(t, dir, "r", c.want)
		}
	}
	if chains, err := NewChains(bytes.NewReader(nil), NewReader(bytes.NewReader(nil), 0, 0)); err != nil || chains.Entry("a") != nil {
		t.Error(err)
	}
	twice := encodeLine(t, whole("a", "[1]", "[2]")) + encodeLine(t, whole("a", "[1]", "[3]"))
	_, err := NewChains(strings.NewReader(twice), NewReader(strings.NewReader(twice), 0, int64(len(twice))))
	wantErr(t, "a call twice", err, ErrConflict)
}
