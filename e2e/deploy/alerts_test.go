package deploy

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// smallDisk is a file system of its own, so that nobody else fills it.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("a small file system: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// scene is one sidecar with one thing wrong with it.
type scene struct {
	pair   *Pair
	alerts []string                        // those that must fire for it, and no others
	happen func(ctx context.Context) error // after the first scrapes, until ctx is done
}

// TestAlerts: each alert fires from a fault that really happens, on what the server scraped of a real sidecar, and no other alert
// does. The alerts are the rule file's, save that none waits; how long they wait is tested with promtool.
func TestAlerts(t *testing.T) {
	big := "2g" // more than RolltapStoreLow asks for; nothing is taken until it is used
	scenes := map[string]*scene{}
	add := func(name string, s *scene) { scenes[name] = s }
	often := func(p *Pair, calls func(n int) []Call) func(context.Context) error {
		return func(ctx context.Context) error {
			for n := 0; ctx.Err() == nil; n++ {
				if err := p.Traffic().All(context.WithoutCancel(ctx), calls(n)); err != nil {
					return err
				}
				pause(ctx, time.Second)
			}
			return nil
		}
	}
	sound := func(n int) []Call { return Sound(fmt.Sprintf("r-%d", n))[1:2] }

	healthy := startPair(t, true, smallDisk(t, big))
	add("healthy", &scene{pair: healthy, happen: often(healthy, sound)})

	full := startPair(t, true, smallDisk(t, "1m"))
	fill(t, full.Store)
	add("store full", &scene{pair: full, alerts: []string{"RolltapRecordsLost", "RolltapStoreLow"}, happen: often(full, sound)})

	required := startPair(t, true, smallDisk(t, "1m"), "--capture=required", "--capture-deadline=300ms")
	fill(t, required.Store)
	add("store full, capture required", &scene{
		pair: required, alerts: []string{"RolltapRecordsLost", "RolltapStoreLow", "RolltapAnswersAborted"},
		happen: often(required, func(n int) []Call {
			c := sound(n)
			c[0].Status = 0 // aborted
			return c
		}),
	})

	filling := startPair(t, true, smallDisk(t, big))
	add("store filling", &scene{pair: filling, alerts: []string{"RolltapStoreFilling"}, happen: func(ctx context.Context) error {
		f, err := os.Create(filepath.Join(filling.Store, ".somebody"))
		if err != nil {
			return err
		}
		defer f.Close()
		for ctx.Err() == nil {
			if _, err := f.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
			pause(ctx, 500*time.Millisecond)
		}
		return nil
	}})

	down := startPair(t, false, smallDisk(t, big))
	add("upstream down", &scene{pair: down, alerts: []string{"RolltapUpstreamFailing"}, happen: often(down, func(n int) []Call {
		c := sound(n)
		c[0].Status = 502
		return c
	})})

	locked := startPair(t, true, smallDisk(t, big), "--capture-deadline=500ms")
	add("lock held", &scene{pair: locked, alerts: []string{"RolltapRecordsLate", "RolltapLockHeld"}, happen: func(ctx context.Context) error {
		f, err := os.Create(filepath.Join(locked.Store, "held.capture.jsonl"))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return err
		}
		if err := locked.Traffic().All(ctx, Sound("held")[1:2]); err != nil {
			return err
		}
		pause(ctx, 4*time.Second)
		return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}})

	lossy := startPair(t, true, smallDisk(t, big))
	add("losses", &scene{pair: lossy, alerts: []string{"RolltapTranslationLosses"}, happen: often(lossy, func(n int) []Call { return Troubled(fmt.Sprintf("r-%d", n))[:1] })})

	astray := startPair(t, true, smallDisk(t, big))
	add("no prefix", &scene{pair: astray, alerts: []string{"RolltapUncapturedCalls"}, happen: often(astray, func(int) []Call {
		return []Call{{Dialect: "chat", Text: "hello", Status: 200}}
	})})

	killed := startPair(t, true, smallDisk(t, big))
	add("killed", &scene{pair: killed, alerts: []string{"RolltapDown"}, happen: func(context.Context) error { killed.Rolltap.Kill(); return nil }})

	watch(t, scenes)
}

// watch scrapes all scenes, lets happen what happens in them, and compares what fires.
func watch(t *testing.T, scenes map[string]*scene) {
	var scrapes []Scrape
	for name, s := range scenes {
		scrapes = append(scrapes, Scrape{Job: name, Address: s.pair.Admin})
	}
	all := rules(t)
	text, err := AtOnce(all)
	if err != nil {
		t.Fatal(err)
	}
	prometheus, err := StartPrometheus(t.TempDir(), scrapes, text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(prometheus.Kill)
	for name := range scenes { // each is seen in its first state before anything happens; the server's first scrape takes seconds
		err := Eventually(30*time.Second, func() error {
			if n, err := prometheus.Points(t.Context(), fmt.Sprintf("rolltap_build_info{job=%q}", name), 30*time.Second); err != nil || n < 2 {
				return fmt.Errorf("%s: %d scrapes, %v", name, n, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()

	fired := map[string]map[string]bool{}
	for name := range scenes {
		fired[name] = map[string]bool{}
	}
	var group sync.WaitGroup
	for name, s := range scenes {
		group.Go(func() {
			if err := s.happen(ctx); err != nil {
				t.Errorf("%s: %v\n%s", name, err, s.pair.Rolltap.Log())
			}
		})
	}
	for ctx.Err() == nil {
		alerts, err := prometheus.Alerts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range alerts {
			fired[a.Labels["job"]][a.Labels["alertname"]] = true
			for _, words := range a.Annotations {
				if words == "" {
					t.Errorf("%s: an empty annotation", a.Labels["alertname"])
				}
			}
		}
		pause(ctx, time.Second)
	}
	group.Wait()
	shown := map[string]bool{}
	for name, s := range scenes {
		got := slices.Sorted(maps.Keys(fired[name]))
		want := slices.Sorted(slices.Values(s.alerts))
		if !slices.Equal(got, want) {
			t.Errorf("%s: fired are %v, want %v", name, got, want)
		}
		for _, a := range got {
			shown[a] = true
		}
	}
	for _, r := range all {
		if !shown[r.Alert] {
			t.Errorf("nothing that happened here made %s fire", r.Alert)
		}
	}
	if n, errs, err := prometheus.RuleErrors(t.Context()); err != nil || n != len(all) || len(errs) > 0 {
		t.Errorf("%d rules of %d, %v, %v", n, len(all), errs, err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// fill takes all the room there is.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, ".somebody"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 12, 1} {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}
