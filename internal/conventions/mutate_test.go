//go:build mutate

package conventions

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestControlsBite turns every control of docs/threats.md off, one at a time, and runs the tests of the document in the packages that
// may feel it: exactly the one of that control has to fail. The repository itself is not touched: the compiler is given an overlay.
//
//	go test -tags mutate -run TestControlsBite -timeout 30m ./internal/conventions
func TestControlsBite(t *testing.T) {
	if out, failed := threatTests(t, nil, "proxy", "capture", "capture/training", "metrics", "rewrite", "internal/cli"); len(failed) > 0 {
		t.Fatalf("with every control on %v fail:\n%s", failed, out)
	}
	for _, c := range controls {
		pkg, name, _ := strings.Cut(c.test, ".")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overlay, packages := map[string]string{}, []string{pkg}
			for _, e := range c.edits {
				path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(e.file)))
				if err != nil {
					t.Fatal(err)
				}
				text := e.off(t)
				if earlier, ok := overlay[path]; ok { // two edits of one file
					before, err := os.ReadFile(earlier)
					if err != nil {
						t.Fatal(err)
					}
					text = strings.Replace(string(before), e.old, e.new, 1)
				}
				overlay[path] = filepath.Join(t.TempDir(), filepath.Base(path))
				if err := os.WriteFile(overlay[path], []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				packages = append(packages, felt(filepath.ToSlash(filepath.Dir(e.file)))...)
			}
			slices.Sort(packages)
			out, failed := threatTests(t, overlay, slices.Compact(packages)...)
			if !slices.Equal(failed, []string{c.test}) {
				t.Errorf("without the control %v fail, want %s alone:\n%s", failed, c.test, out)
			}
		})
	}
}

// felt are the packages with tests of the document that a change of one may break.
func felt(pkg string) []string {
	switch pkg {
	case "proxy":
		return []string{"proxy"}
	case "capture/training", "metrics", "rewrite":
		return []string{pkg, "proxy"}
	case "capture/trajectory":
		return []string{"internal/cli", "proxy"}
	case "capture":
		return []string{pkg, "proxy", "internal/cli"}
	}
	return []string{"capture", "proxy", "rewrite", "internal/cli"}
}

// threatTests runs the tests of the document in the packages and returns which failed. What does not compile, or ends in another way
// than by failing tests, is an error of this test.
func threatTests(t *testing.T, overlay map[string]string, packages ...string) (output string, failed []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pkg := range packages {
		var names []string
		for _, c := range controls {
			if p, name, _ := strings.Cut(c.test, "."); p == pkg {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", file, "-count", "1", "-timeout", "2m", "-run", "^("+strings.Join(names, "|")+")$", "./"+pkg)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		output += string(out)
		before := len(failed)
		for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\w+) `).FindAllStringSubmatch(string(out), -1) {
			failed = append(failed, pkg+"."+m[1])
		}
		if err != nil && (len(failed) == before || strings.Contains(string(out), "\npanic: ")) {
			t.Fatalf("%s: %v\n%s", pkg, err, out)
		}
	}
	return output, failed
}
