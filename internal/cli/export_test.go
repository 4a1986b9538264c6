package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rolltap/internal/jsonx"
)

// TestExportChat: a line for each rollout with a turn, and everything else in the report.
func TestExportChat(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.jsonl")
	text, told := export(t, Export{Store: store, Format: "chat", Report: report})
	for l := range strings.Lines(text) {
		if !jsonx.Valid([]byte(l)) || !strings.HasPrefix(l, `{"messages":[{"role":`) {
			t.Errorf("no line: %s", l)
		}
	}
	if !strings.HasPrefix(told, "6 lines of 7 rollouts; left out or not learned: ") {
		t.Errorf("told %q", told)
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "chat-report.jsonl", string(b))
}

// TestExportTrajectory: a line for each rollout, one that is damaged and one without calls included.
func TestExportTrajectory(t *testing.T) {
	text, _ := export(t, Export{Store: store, Format: "trajectory"})
	if n := strings.Count(text, "\n"); n != 7 {
		t.Errorf("%d lines", n)
	}
	for l := range strings.Lines(text) {
		if !jsonx.Valid([]byte(l)) {
			t.Errorf("no JSON: %s", l)
		}
	}
	one, _ := export(t, Export{Store: store, Format: "trajectory", Rollouts: []string{"agent"}})
	golden(t, "trajectory.json", one)
}

func TestExportHTML(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pages")
	c := &Console{Out: io.Discard}
	if err := (&Export{Store: store, Format: "html", Out: dir}).Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(pages) != 7 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, p := range pages {
		b, err := os.ReadFile(p)
		if err != nil || !strings.HasPrefix(string(b), "<!doctype html>") || !strings.HasSuffix(string(b), "</html>\n") {
			t.Errorf("%s, %v: no page", p, err)
		}
	}
	// What is there is not written over, and the others are written all the same.
	if err := os.Remove(pages[3]); err != nil {
		t.Fatal(err)
	}
	if err := (&Export{Store: store, Format: "html", Out: dir}).Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "nothing is written over") {
		t.Errorf("written over: %v", err)
	}
	if _, err := os.Stat(pages[3]); err != nil {
		t.Error(err)
	}
	var one strings.Builder
	if err := (&Export{Store: store, Format: "html", Rollouts: []string{"agent"}}).Run(t.Context(), &Console{Out: &one}); err != nil || !strings.HasPrefix(one.String(), "<!doctype html>") {
		t.Errorf("%v: %.60s", err, one.String())
	}
}

// TestExportUsage: what a format has not is refused before anything is written.
func TestExportUsage(t *testing.T) {
	for why, e := range map[string]Export{
		"a page holds one rollout":             {Format: "html"},
		"--report is of --format chat":         {Format: "html", Report: "x"},
		"--payloads is of --format gym and":    {Format: "chat", Payloads: true},
		"--results is of --format gym":         {Format: "trajectory", Results: "x"},
		"--report is a file":                   {Format: "chat", Report: "-"},
		"exists: nothing is written over":      {Format: "chat", Out: "export_test.go"},
		"rollouts are named by the rows of":    {Format: "gym", Results: "x", Rollouts: []string{"agent"}},
		`"../agent" is no rollout id: letters`: {Format: "chat", Rollouts: []string{"../agent"}},
	} {
		e.Store = store
		var out strings.Builder
		err := e.Run(t.Context(), &Console{Out: &out})
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), why) || out.Len() > 0 {
			t.Errorf("%s: %v, %q", why, err, out.String())
		}
	}
}
