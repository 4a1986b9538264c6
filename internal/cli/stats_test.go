package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"unicode"
)

func stats(t *testing.T, s Stats) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Run(t.Context(), &Console{Out: &b}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStatsGolden(t *testing.T) {
	all := stats(t, Stats{Store: store})
	golden(t, "stats.txt", all)
	named := stats(t, Stats{Store: store, Rollouts: []string{"agent", "hostile", "damaged", "lost"}})
	golden(t, "stats-named.txt", named)
	golden(t, "stats.json", stats(t, Stats{Store: store, JSON: true}))
	golden(t, "stats-named.json", stats(t, Stats{Store: store, JSON: true, Rollouts: []string{"claude", "damaged"}}))
	for _, r := range all + named {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) {
			t.Fatalf("%U reached the terminal", r)
		}
	}
}

func TestStatsJSON(t *testing.T) {
	for _, s := range []Stats{
		{Store: store, JSON: true}, {Store: t.TempDir(), JSON: true}, {Store: store, JSON: true, Rollouts: []string{"agent", "lost", "hostile"}},
	} {
		var v struct {
			Rollouts []struct {
				ID    string `json:"rollout_id"`
				Calls []any
			}
			Total struct{ Rollouts int }
		}
		got := stats(t, s)
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			t.Fatalf("%+v: %v in %s", s, err, got)
		}
		if len(v.Rollouts) != v.Total.Rollouts {
			t.Errorf("%+v: %d rollouts, total %d", s, len(v.Rollouts), v.Total.Rollouts)
		}
	}
}

func TestStatsErrors(t *testing.T) {
	var usage *UsageError
	for _, c := range []struct {
		s     Stats
		usage bool
	}{
		{Stats{Rollouts: []string{"../x"}, Store: store}, true},
		{Stats{Store: filepath.Join(store, "none")}, true},
		{Stats{Rollouts: []string{"none"}, Store: store}, false},
	} {
		err := c.s.Run(t.Context(), &Console{Out: io.Discard})
		if err == nil || errors.As(err, &usage) != c.usage {
			t.Errorf("%+v: got %v, want a usage error: %t", c.s, err, c.usage)
		}
	}
}
