package api

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStrayFile: what stands under the name of a data file and is none stops no answer about others, and an answer about it says so.
func TestStrayFile(t *testing.T) {
	for kind, plant := range map[string]func(path string) error{
		"a link":            func(path string) error { return os.Symlink("a.capture.jsonl", path) },
		"a link to nothing": func(path string) error { return os.Symlink("none", path) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o750) },
		"a pipe":            func(path string) error { return syscall.Mkfifo(path, 0o640) },
		"a socket":          func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o640, 0) },
	} {
		t.Run(kind, func(t *testing.T) {
			s := serve(t)
			s.write("a", line("one", 1, 1, ""))
			s.write("z", line("two", 1, 1, ""))
			if err := plant(filepath.Join(s.dir, "m.capture.jsonl")); err != nil {
				t.Fatal(err)
			}
			for path, members := range map[string]int{"/api/rollouts": 6, "/api/aggregates": 7} {
				all := s.get(path)["rollouts"].([]any)
				if len(all) != 3 {
					t.Fatalf("%s: %v", path, all)
				}
				for i, id := range []string{"a", "m", "z"} {
					r := all[i].(map[string]any)
					said, _ := r["unreadable"].(string)
					if r["rollout_id"] != id || strings.Contains(said, "no regular file") != (id == "m") || r["bytes"].(float64) > 0 == (id == "m") {
						t.Errorf("%s: %v", path, r)
					}
					if id == "m" && len(r) != members {
						t.Errorf("%s: %d members, want %d: %v", path, len(r), members, r)
					}
				}
			}
			for _, path := range []string{"", "/aggregates", "/calls/0", "/tail"} {
				s.wantError("GET", "/api/rollouts/m"+path, http.StatusUnprocessableEntity, "damaged")
			}
			s.wantError("DELETE", "/api/rollouts/m", http.StatusUnprocessableEntity, "damaged")
			if got := s.get("/api/rollouts/z"); got["lines"] != 1.0 || got["unreadable"] != nil {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestStrayTokens is TestStrayFile for the files of token capture.
func TestStrayTokens(t *testing.T) {
	for _, name := range []string{"m.tokens.jsonl", "m.tokens.state.json", "m.tokens.intents"} {
		for kind, plant := range map[string]func(path string) error{
			"a link":   func(path string) error { return os.Symlink("none", path) },
			"a folder": func(path string) error { return os.Mkdir(path, 0o750) },
			"a socket": func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o640, 0) },
		} {
			s := serve(t)
			if err := errors.Join(plant(filepath.Join(s.dir, name))); err != nil {
				t.Fatal(err)
			}
			if status, body := s.ask("GET", "/api/rollouts/m/tokens"); status != http.StatusUnprocessableEntity || !strings.Contains(body, `"code":"damaged"`) {
				t.Errorf("%s for %s: %d %s", kind, name, status, body)
			}
			if all := s.get("/api/rollouts")["rollouts"].([]any); len(all) != 1 {
				t.Errorf("%s for %s: %v", kind, name, all)
			}
		}
	}
}
