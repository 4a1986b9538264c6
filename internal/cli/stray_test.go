package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rolltap/capture"
	"rolltap/capture/derive"
	"rolltap/internal/jsonx"
)

// strays are what may stand under the name of a data file and cannot be read as one.
func strays() map[string]func(path string) error {
	kinds := map[string]func(path string) error{
		"a link":            func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a link to a good":  func(path string) error { return os.Symlink("a.capture.jsonl", path) },
		"a link to nothing": func(path string) error { return os.Symlink("none", path) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o750) },
		"a pipe":            func(path string) error { return syscall.Mkfifo(path, 0o640) },
		"a socket":          func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o640, 0) },
	}
	if os.Geteuid() != 0 { // who may read everything
		kinds["a file of somebody else"] = func(path string) error { return os.WriteFile(path, nil, 0) }
	}
	return kinds
}

// TestStrayFileStopsNothing: one rollout that cannot be read is named, and the others are read as ever, by every command that walks a store.
func TestStrayFileStopsNothing(t *testing.T) {
	good, err := os.ReadFile(dataFile(store, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, plant := range strays() {
		t.Run(kind, func(t *testing.T) {
			dir, work := t.TempDir(), t.TempDir()
			for _, id := range []string{"a", "z"} {
				if err := os.WriteFile(dataFile(dir, id), good, 0o640); err != nil {
					t.Fatal(err)
				}
			}
			if err := plant(dataFile(dir, "m")); err != nil {
				t.Fatal(err)
			}
			rows := filepath.Join(work, "rows")
			if err := os.WriteFile(rows, []byte(`{"_ng_rollout_id":"m"}`+"\n"+`{"_ng_rollout_id":"z"}`+"\n"), 0o640); err != nil {
				t.Fatal(err)
			}
			pages, report := filepath.Join(work, "pages"), filepath.Join(work, "report")
			out := map[string]string{}
			for name, run := range map[string]func(*Console) error{
				"show":       func(c *Console) error { return (&Show{Store: dir}).Run(t.Context(), c) },
				"show json":  func(c *Console) error { return (&Show{Store: dir, JSON: true}).Run(t.Context(), c) },
				"stats":      func(c *Console) error { return (&Stats{Store: dir}).Run(t.Context(), c) },
				"stats json": func(c *Console) error { return (&Stats{Store: dir, JSON: true}).Run(t.Context(), c) },
				"stats named": func(c *Console) error {
					return (&Stats{Store: dir, JSON: true, Rollouts: []string{"m", "z"}}).Run(t.Context(), c)
				},
				"gym":        func(c *Console) error { return (&Export{Store: dir, Format: "gym"}).Run(t.Context(), c) },
				"gym rows":   func(c *Console) error { return (&Export{Store: dir, Format: "gym", Results: rows}).Run(t.Context(), c) },
				"trajectory": func(c *Console) error { return (&Export{Store: dir, Format: "trajectory"}).Run(t.Context(), c) },
				"chat": func(c *Console) error {
					return (&Export{Store: dir, Format: "chat", Report: report}).Run(t.Context(), c)
				},
				"html":   func(c *Console) error { return (&Export{Store: dir, Format: "html", Out: pages}).Run(t.Context(), c) },
				"verify": func(c *Console) error { return (&Verify{Store: dir}).Run(t.Context(), c) },
				"clear": func(c *Console) error {
					return (&Clear{Store: work, Rollouts: []string{"m", "z"}}).Run(t.Context(), c)
				},
			} {
				if name == "clear" { // of a store of its own, since it is gone then
					if err := errors.Join(plant(dataFile(work, "m")), os.WriteFile(dataFile(work, "z"), good, 0o640)); err != nil {
						t.Fatal(err)
					}
				}
				var b bytes.Buffer
				var usage *UsageError
				err := run(&Console{Out: &b})
				if err == nil || errors.As(err, &usage) || !strings.Contains(err.Error(), " m: ") || strings.Contains(err.Error(), " z: ") {
					t.Errorf("%s says %v", name, err)
				}
				if !errors.Is(err, capture.ErrNoRegularFile) && !errors.Is(err, os.ErrPermission) {
					t.Errorf("%s does not say what it is: %v", name, err)
				}
				out[name] = b.String()
			}
			for name, want := range map[string][]string{
				"show": {"unreadable", "\nz  "}, "stats": {"unreadable", "\nz  ", "3 rollouts"}, "clear": {"cleared z"},
				"show json":   {`"unreadable":"read m: `, `{"rollout_id":"z","calls":`},
				"stats json":  {`"bytes":0,"unreadable":"read m: `, `{"rollout_id":"z","metrics":`, `"total":{"rollouts":3`},
				"stats named": {`{"rollout_id":"m","calls":[],`, `"unreadable":"read m: `, `{"rollout_id":"z","calls":[{`},
				"gym":         {`"gaps":[{"code":"` + derive.GapReadFailed + `"}]`, `{"_ng_rollout_id":"z",`},
				"gym rows":    {`"gaps":[{"code":"` + derive.GapReadFailed + `"}]`, `{"_ng_rollout_id":"z",`},
				"trajectory":  {`"gaps":[{"code":"` + derive.GapReadFailed + `"`, `"rollout_id":"z"`},
				"chat":        {`"rollout_id":"a"`, `"rollout_id":"z"`},
				"verify":      {"3 rollouts, ", "z.capture.jsonl:1: duplicate_call"},
			} {
				for _, part := range want {
					if !strings.Contains(out[name], part) {
						t.Errorf("%s: %q is not in\n%.2000s", name, part, out[name])
					}
				}
			}
			for _, name := range []string{"show json", "stats json", "stats named"} {
				if !json.Valid([]byte(out[name])) {
					t.Errorf("%s: no JSON: %s", name, out[name])
				}
			}
			for l := range strings.Lines(out["gym"] + out["gym rows"] + out["trajectory"] + out["chat"]) {
				if !jsonx.Valid([]byte(l)) {
					t.Errorf("no JSON: %s", l)
				}
			}
			made, _ := filepath.Glob(filepath.Join(pages, "*"))
			if len(made) != 2 {
				t.Errorf("pages %q", made)
			}
			if b, err := os.ReadFile(report); err != nil || !strings.Contains(string(b), `{"rollout_id":"m","reason":"unreadable"}`) {
				t.Errorf("the report says %s, %v", b, err)
			}
		})
	}
}

// TestVerifyReadsTokensBesideStrays: a data file that is none, and token files that cannot be read, keep verify from no other token file.
func TestVerifyReadsTokensBesideStrays(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Symlink("/etc/passwd", dataFile(dir, "a")), os.Mkdir(filepath.Join(dir, "b.tokens.jsonl"), 0o750),
		os.WriteFile(filepath.Join(dir, "c.tokens.jsonl"), []byte("damaged\n"), 0o640)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err := (&Verify{Store: dir}).Run(t.Context(), &Console{Out: &b})
	if !errors.Is(err, capture.ErrNoRegularFile) {
		t.Errorf("verify says %v", err)
	}
	for _, part := range []string{"b.tokens.jsonl: tokens: ", "c.tokens.jsonl:1: tokens: "} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is not in\n%s", part, b.String())
		}
	}
}

// TestShowStray: a rollout that is asked for by name and cannot be read is an error, never followed and never nothing.
func TestShowStray(t *testing.T) {
	for kind, plant := range strays() {
		for _, follow := range []bool{false, true} {
			dir := t.TempDir()
			if err := plant(dataFile(dir, "m")); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			err := (&Show{Store: dir, Rollout: "m", Follow: follow}).Run(t.Context(), &Console{Out: &b})
			if !errors.Is(err, capture.ErrNoRegularFile) && !errors.Is(err, os.ErrPermission) || strings.Contains(b.String(), "root") {
				t.Errorf("%s, followed %t: %v\n%s", kind, follow, err, b.String())
			}
		}
	}
}
