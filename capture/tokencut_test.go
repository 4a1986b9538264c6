package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rolltap/capture/training"
)

// tokensIn opens the token store of a folder on the journal of a record store. synced is told how much of a file is durable; nil: nobody asks.
func tokensIn(t testing.TB, s *Store, o training.Options, synced func(path string, size int64)) *training.Store {
	t.Helper()
	o.Dir = s.o.Dir
	o.Secure = func(appended []training.Appended) error {
		files := make([]Appended, len(appended))
		for i, a := range appended {
			part, sync := PartTokens, a.Sync
			if a.Intents {
				part = PartIntents
			}
			if synced != nil {
				sync = func() error {
					st, err := os.Stat(a.Path)
					if err == nil {
						err = a.Sync()
					}
					if err == nil {
						synced(a.Path, st.Size())
					}
					return err
				}
			}
			files[i] = Appended{a.Rollout, part, a.File, a.Offset, a.Data, a.Lines, a.New, sync}
		}
		return s.Secure(files)
	}
	tokens, err := training.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func tokenEntry(t testing.TB, rollout, call string, n int) *training.Entry {
	ids := bytes.TrimSuffix(bytes.Repeat([]byte("7,"), n+1), []byte(","))
	e := &training.Entry{
		Rollout: rollout, CallID: call, Model: "m", PromptTokenIDs: fmt.Appendf(nil, "[%s]", ids), GenerationTokenIDs: []byte("[1]"),
		GenerationLogProbs: []byte("[-0.5]"), OutputItems: []byte("[]"), TokenItem: training.NoItem, CreatedAt: 1, Parent: training.Root,
	}
	if err := e.Stamp(); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTokenCutChild is a process under token capture when TestTokenCut starts it.
func TestTokenCutChild(t *testing.T) {
	dir := os.Getenv("CAPTURE_POWERCUT_CHILD")
	if dir == "" {
		t.Skip("only started by another test")
	}
	var mu sync.Mutex
	tell := func(words ...any) { mu.Lock(); defer mu.Unlock(); fmt.Println(words...) }
	synced := func(path string, size int64) { tell("synced", filepath.Base(path), size) }
	s, err := open(Options{Dir: dir, Durability: DurabilityJournal}, toldFiles{synced: synced})
	if err != nil {
		t.Fatal(err)
	}
	s.journal.o.fs = toldJournal{synced: synced}
	s.journal.o.segmentAge = 40 * time.Millisecond
	tokens := tokensIn(t, s, training.Options{Idle: 4, Lazy: 3000}, synced)
	ctx := context.Background()
	var wg sync.WaitGroup
	for w := range cutRollouts {
		id := fmt.Sprint("r-", os.Getpid(), "-", w)
		wg.Go(func() {
			for i := 1; ; i++ {
				call := callID()
				if err := tokens.Begin(ctx, id, call); err != nil {
					t.Error(err)
					return
				}
				tell("began", id, call)
				switch {
				case i%10 == 9:
					tell("withdraws", id, call)
					if err := tokens.Withdraw(ctx, id, call, "refused"); err != nil {
						t.Error(err)
					}
					continue
				case w == 0 && i%30 == 29:
					tell("clears", id, call)
					if err := errors.Join(tokens.Delete(ctx, id), Clear(ctx, dir, id)); err != nil {
						t.Error(err)
					}
					continue
				}
				var both sync.WaitGroup
				both.Go(func() {
					if s.Append(ctx, record(id, call, `{}`)) == nil {
						tell("recorded", id, call)
					}
				})
				if err := tokens.Put(ctx, tokenEntry(t, id, call, i*37%400)); err != nil {
					t.Error(err)
					return
				}
				tell("put", id, call)
				both.Wait()
			}
		})
	}
	wg.Wait()
}

// tokenCut is a store with token files, and what its writers were told of it.
type tokenCut struct {
	t      *testing.T
	dir    string
	rnd    *rand.Rand
	synced map[string]int64                      // of a file, by its name
	told   map[string]map[string]map[string]bool // word to rollout to calls
	gone   map[string]bool                       // calls that were cleared
}

func (c *tokenCut) kill(p *cutChild) {
	p.cmd.Process.Kill()
	out := <-p.out
	p.cmd.Wait()
	for _, line := range wholeLines(out) {
		f := strings.Fields(line)
		if len(f) != 3 {
			c.t.Fatalf("the child says %q", line)
		}
		switch word, id := f[0], f[1]; word {
		case "synced":
			n, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			c.synced[id] = max(c.synced[id], n)
		case "withdraws":
			delete(c.told["began"][id], f[2])
		case "clears":
			for _, p := range []Part{partRecords, PartTokens, PartIntents} {
				c.synced[nameOf(id, p).base()] = 0
			}
			for word := range c.told {
				for call := range c.told[word][id] {
					c.gone[call] = true
				}
				delete(c.told[word], id)
			}
		default:
			if c.told[word] == nil {
				c.told[word] = map[string]map[string]bool{}
			}
			if c.told[word][id] == nil {
				c.told[word][id] = map[string]bool{}
			}
			c.told[word][id][f[2]] = true
		}
	}
}

// cut takes from every file what nobody has synced: all of it, a part, or the bytes but not the size.
func (c *tokenCut) cut() {
	var names []string
	for _, suffix := range []string{dataSuffix, tokensSuffix, intentsSuffix} {
		found, err := filepath.Glob(filepath.Join(c.dir, "*"+suffix))
		if err != nil {
			c.t.Fatal(err)
		}
		names = append(names, found...)
	}
	for _, path := range names {
		st, err := os.Stat(path)
		if err != nil {
			c.t.Fatal(err)
		}
		all := st.Size()
		sure := min(c.synced[filepath.Base(path)], all)
		keep := sure
		if c.rnd.IntN(2) == 0 {
			keep += c.rnd.Int64N(all - sure + 1)
		}
		sizes := []int64{keep}
		if c.rnd.IntN(2) == 0 {
			sizes = append(sizes, keep+c.rnd.Int64N(all-keep+1))
		}
		for _, size := range sizes {
			if err := os.Truncate(path, size); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// check wants everything that was acknowledged, once, and token files of which nothing is damaged.
func (c *tokenCut) check() {
	for id, calls := range c.told["recorded"] {
		got := readBack(c.t, c.dir, id).calls()
		for call := range calls {
			if got[call] != 1 {
				c.t.Errorf("%s: record %s is there %d times", id, call, got[call])
			}
		}
	}
	for id, calls := range c.told["put"] {
		snap, err := training.Peek(c.dir, id)
		if err != nil {
			c.t.Fatal(err)
		}
		have := map[string]int{}
		for entries := snap.Entries(); ; {
			v, err := entries.Next()
			if err == io.EOF {
				break
			}
			if d := (*training.Damage)(nil); errors.As(err, &d) && d.Torn {
				continue
			}
			if err != nil {
				c.t.Errorf("%s: %v", id, err)
				break
			}
			if have[v.CallID]++; c.gone[v.CallID] {
				c.t.Errorf("%s: %s was cleared and is there", id, v.CallID)
			}
		}
		snap.Close()
		for call := range calls {
			if have[call] != 1 {
				c.t.Errorf("%s: entry %s is there %d times", id, call, have[call])
			}
		}
		intents, err := os.ReadFile(nameOf(id, PartIntents).path(c.dir))
		if err != nil {
			c.t.Fatal(err)
		}
		there := map[string]int{}
		for _, call := range strings.Split(string(intents), "\n") {
			there[call]++
		}
		for call := range c.told["began"][id] {
			if there[call] != 1 {
				c.t.Errorf("%s: intent %s is there %d times", id, call, there[call])
			}
		}
	}
}

// TestTokenCut: processes under token capture are killed under load, some that clear meanwhile, and everything that was not synced may be
// lost. Whoever opens the store next has every acknowledged record, entry and intent, nothing that was cleared, and no state that its file denies.
func TestTokenCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := identityOf(dirConn(t, dir)); err != nil {
		t.Skip(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &tokenCut{t: t, dir: dir, rnd: rand.New(rand.NewPCG(seed, 0)), synced: map[string]int64{}, told: map[string]map[string]map[string]bool{}, gone: map[string]bool{}}
	restored := map[string]int{}
	for round := range cuts(10) {
		children := []*cutChild{startCutChild(t, dir, "TestTokenCutChild")}
		if round%2 == 1 {
			children = append(children, startCutChild(t, dir, "TestTokenCutChild"))
		}
		time.Sleep(50*time.Millisecond + rand.N(150*time.Millisecond))
		for _, p := range children {
			c.kill(p)
		}
		c.cut()
		err := Replay(t.Context(), dir, func(e ReplayEvent) {
			switch e.Kind {
			case ReplayRestored:
				restored[strings.TrimPrefix(e.File, e.Rollout)] += e.Lines
			case ReplayFailed, ReplayDamaged:
				t.Errorf("replay: %+v", e)
			}
		})
		if left := segments(t, dir); err != nil || len(left) > 0 {
			t.Error(err, left)
		}
		for _, suffix := range []string{dataSuffix, tokensSuffix, intentsSuffix} { // the replay has synced what it wrote
			names, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
			for _, path := range names {
				st, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				c.synced[filepath.Base(path)] = st.Size()
			}
		}
		c.check()
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%v lines came back", restored)
	if !testing.Short() && (restored[dataSuffix] == 0 || restored[tokensSuffix] == 0 || restored[intentsSuffix] == 0) {
		t.Error("not every kind of file had to come back")
	}
	tokens, err := training.Open(training.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close(context.Background())
	for id := range c.told["put"] {
		snap, err := tokens.Freeze(t.Context(), id)
		if err != nil {
			t.Error(err)
			continue
		}
		snap.Close()
		seen, err := training.Verify(dir, id)
		if err != nil {
			t.Error(err)
		}
		for _, p := range seen.Problems {
			if !p.Loss {
				t.Error(p)
			}
		}
	}
	c.check()
}
