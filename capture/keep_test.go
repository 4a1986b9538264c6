package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// rolloutOfAge makes a sealed rollout with a record, a mark and damaged lines that was last written to some time ago.
func rolloutOfAge(t testing.TB, s *Store, id string, age time.Duration, size int) {
	t.Helper()
	if err := s.Append(t.Context(), record(id, callID(), `{"x":"`+strings.Repeat("x", size)+`"}`)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{markerPath(s.o.Dir, id), damagedPath(s.o.Dir, id)} {
		if err := os.WriteFile(path, []byte("{}\n"), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := Seal(s.o.Dir, id, 0); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dataPath(s.o.Dir, id), markerPath(s.o.Dir, id), damagedPath(s.o.Dir, id), sealPath(s.o.Dir, id)} {
		aged(t, path, age)
	}
}

func aged(t testing.TB, path string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// ids are the rollouts of which there is any file.
func ids(t testing.TB, dir string) []string {
	t.Helper()
	all, err := inventory(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range all {
		ids = append(ids, r.id)
	}
	slices.Sort(ids)
	return ids
}

func TestKeep(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct {
		name string
		keep Keep
		left string
	}{
		{"nothing is asked for", Keep{}, "fresh month new week year"},
		{"by age", Keep{Age: 8 * day}, "fresh new week"},
		{"by an age that all have but the young ones", Keep{Age: time.Second}, "fresh new"},
		{"by a quiet time of one's own", Keep{Age: time.Second, Quiet: 30 * time.Second}, "new"},
		{"by bytes, oldest first", Keep{Bytes: 35 << 10}, "fresh new week"},
		{"by bytes, all but the young ones", Keep{Bytes: 1}, "fresh new"},
		{"by more bytes than there are", Keep{Bytes: 1 << 30}, "fresh month new week year"},
		{"by both, bytes take more", Keep{Age: 100 * day, Bytes: 35 << 10}, "fresh new week"},
		{"by both, age takes more", Keep{Age: 8 * day, Bytes: 100 << 10}, "fresh new week"},
		{"but what is wanted", Keep{Age: time.Second, Wanted: func(id string) bool { return id == "year" }}, "fresh new year"},
		{"by bytes, but what is wanted", Keep{Bytes: 35 << 10, Wanted: func(id string) bool { return id == "year" }}, "fresh new year"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, Options{})
			dir := s.o.Dir
			for id, age := range map[string]time.Duration{"new": 0, "fresh": time.Minute, "week": 7 * day, "month": 30 * day, "year": 365 * day} {
				rolloutOfAge(t, s, id, age, 10<<10)
			}
			foreign := filepath.Join(dir, "notes.txt")
			if err := os.WriteFile(foreign, make([]byte, 100<<10), 0o600); err != nil {
				t.Fatal(err)
			}
			aged(t, foreign, 1000*day)
			before, _ := inventory(dir)
			var removed []Removed
			row.keep.Removed = func(r Removed) { removed = append(removed, r) }
			if _, err := row.keep.Apply(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			left := ids(t, dir)
			if got := strings.Join(left, " "); got != row.left {
				t.Errorf("left: %s, want %s", got, row.left)
			}
			for i, r := range removed {
				if i > 0 && removed[i-1].Last.After(r.Last) {
					t.Errorf("%s was removed before %s, which is older", removed[i-1].Rollout, r.Rollout)
				}
				if slices.Contains(left, r.Rollout) || !slices.Contains(before, stored{r.Rollout, r.Bytes, r.Last}) {
					t.Errorf("told to be removed: %+v", r)
				}
			}
			if len(removed)+len(left) != len(before) {
				t.Errorf("%d removals were told of %d", len(removed), len(before)-len(left))
			}
			for _, id := range left {
				if got := readBack(t, dir, id); len(got.records) != 1 || !Marked(dir, id) {
					t.Errorf("%s has %d records, marked %v", id, len(got.records), Marked(dir, id))
				}
			}
			if _, err := os.Stat(foreign); err != nil {
				t.Errorf("a file that is none of ours: %v", err)
			}
		})
	}
}

// A rollout that is not over is not removed: nobody has sealed it, or a call is in flight, whichever process serves it.
func TestKeep_notWhatIsNotOver(t *testing.T) {
	s := newStore(t, Options{})
	for _, id := range []string{"open", "busy", "over"} {
		rolloutOfAge(t, s, id, time.Hour, 10)
	}
	if err := os.Remove(sealPath(s.o.Dir, "open")); err != nil {
		t.Fatal(err)
	}
	leave, err := newStore(t, Options{Dir: s.o.Dir}).Enter("busy")
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []Keep{{Age: time.Second}, {Bytes: 1}} {
		if stayed, err := keep.Apply(t.Context(), s.o.Dir); stayed != 2 || err != nil {
			t.Errorf("%d stayed, %v", stayed, err)
		}
		if got := ids(t, s.o.Dir); !slices.Equal(got, []string{"busy", "open"}) {
			t.Errorf("left: %v", got)
		}
	}
	leave()
	if err := Seal(s.o.Dir, "open", 0); err != nil {
		t.Fatal(err)
	}
	aged(t, sealPath(s.o.Dir, "open"), time.Hour)
	if stayed, err := (Keep{Bytes: 1}).Apply(t.Context(), s.o.Dir); stayed != 0 || err != nil || len(ids(t, s.o.Dir)) != 0 {
		t.Errorf("once they are over: %d stayed, %v, left %v", stayed, err, ids(t, s.o.Dir))
	}
}

// A rollout whose lock somebody holds is being written, however old its file is.
func TestKeep_notWhatIsLocked(t *testing.T) {
	s := newStore(t, Options{})
	rolloutOfAge(t, s, "held", time.Hour, 10)
	rolloutOfAge(t, s, "free", time.Minute*59, 10)
	held, err := osFiles{}.open(dataPath(s.o.Dir, "held"), false)
	if err != nil {
		t.Fatal(err)
	}
	keep := Keep{Age: time.Second}
	if stayed, err := keep.Apply(t.Context(), s.o.Dir); stayed != 1 || err != nil {
		t.Fatal(stayed, err)
	}
	if got := ids(t, s.o.Dir); !slices.Equal(got, []string{"held"}) {
		t.Errorf("left: %v", got)
	}
	held.Close()
	if stayed, err := keep.Apply(t.Context(), s.o.Dir); stayed != 0 || err != nil {
		t.Fatal(stayed, err)
	}
	if got := ids(t, s.o.Dir); len(got) != 0 {
		t.Errorf("left once the lock is free: %v", got)
	}
}

// What was written to between the look and the lock is not removed.
func TestKeep_notWhatWasWrittenMeanwhile(t *testing.T) {
	s := newStore(t, Options{})
	rolloutOfAge(t, s, "r", time.Hour, 10)
	seen, err := inventory(s.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), record("r", callID(), `{}`)); err != nil {
		t.Fatal(err)
	}
	if removed, err := (Keep{}).remove(s.o.Dir, seen[0], time.Now().Add(-time.Minute)); removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	if got := readBack(t, s.o.Dir, "r"); len(got.records) != 2 {
		t.Errorf("%d records", len(got.records))
	}
}

// One that cannot be removed is told and keeps nothing else; marks without a data file go, too.
func TestKeep_goesOnBehindAFailure(t *testing.T) {
	s := newStore(t, Options{})
	rolloutOfAge(t, s, "b", time.Hour, 10)
	link := dataPath(s.o.Dir, "a")
	victim, untouched := outside(t)
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	marker := markerPath(s.o.Dir, "c")
	if err := os.WriteFile(marker, []byte("{}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "c"} {
		if err := Seal(s.o.Dir, id, 0); err != nil {
			t.Fatal(err)
		}
		aged(t, sealPath(s.o.Dir, id), time.Hour)
	}
	aged(t, marker, time.Hour)
	_, err := Keep{Age: time.Nanosecond, Quiet: time.Nanosecond}.Apply(t.Context(), s.o.Dir)
	if !errors.Is(err, ErrNoRegularFile) || !strings.Contains(err.Error(), "remove a:") {
		t.Errorf("said %v", err)
	}
	if got := ids(t, s.o.Dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("left: %v", got)
	}
	untouched()
	if _, err := (Keep{Age: 1}).Apply(t.Context(), filepath.Join(s.o.Dir, "nowhere")); err != nil {
		t.Errorf("a folder that is missing: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	rolloutOfAge(t, s, "d", time.Hour, 10)
	if _, err := (Keep{Age: 1}).Apply(over, s.o.Dir); err != nil || !slices.Contains(ids(t, s.o.Dir), "d") {
		t.Errorf("with a context that is over: %v, left %v", err, ids(t, s.o.Dir))
	}
}

// Writers beside it lose nothing: whatever was acknowledged behind the last removal of a rollout is in its file.
func TestKeep_besideWriters(t *testing.T) {
	s := newStore(t, Options{Durability: DurabilityJournal})
	var mu sync.Mutex // held while a record is written and while the removal of its rollout is looked at
	since := map[string]int{}
	names := []string{"a", "b", "c", "d"}
	stop := keepWriting(4, func(w int) {
		id := names[w%len(names)]
		mu.Lock()
		defer mu.Unlock()
		if err := s.Append(t.Context(), record(id, callID(), `{}`)); err != nil {
			t.Error(err)
		}
		since[id]++
		if err := Seal(s.o.Dir, id, 0); err != nil {
			t.Error(err)
		}
		aged(t, dataPath(s.o.Dir, id), time.Hour)
		aged(t, sealPath(s.o.Dir, id), time.Hour)
	})
	removals := 0
	for i, end := 0, time.Now().Add(10*time.Second); (i < 50 || removals == 0) && time.Now().Before(end); i++ {
		mu.Lock()
		_, err := Keep{Age: time.Minute, Removed: func(r Removed) { removals++; since[r.Rollout] = 0 }}.Apply(t.Context(), s.o.Dir)
		mu.Unlock()
		if err != nil {
			t.Error(err)
		}
	}
	stop()
	if removals == 0 {
		t.Error("nothing was ever removed")
	}
	for id, n := range since {
		if got := readBack(t, s.o.Dir, id); len(got.records) != n {
			t.Errorf("%s has %d records, %d were acknowledged since it was removed", id, len(got.records), n)
		}
	}
}
