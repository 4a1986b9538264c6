package conventions

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A text rule looks at one line of a file of the repository.
var textRules = []struct {
	files    *regexp.Regexp
	fixtures bool           // also in what was recorded elsewhere and is kept as it came
	bad      *regexp.Regexp // what a line must not hold
	good     *regexp.Regexp // what excuses it, or nil
	why      string
}{
	{
		files: regexp.MustCompile(`.`), fixtures: true,
		bad: regexp.MustCompile(`(^|[^A-Za-z0-9_.])/(work|farm)/`),
		why: "a folder of somebody's machine",
	},
	{
		files: regexp.MustCompile(`.`),
		bad:   regexp.MustCompile(`(^|[^A-Za-z0-9_.~])/(home|Users)/[a-z]+/`),
		why:   "a folder of somebody's machine",
	},
	{
		files: regexp.MustCompile(`.`),
		bad:   regexp.MustCompile(`\b(proxy\.golang\.org|sum\.golang\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|pypi\.org|files\.pythonhosted\.org)\b`),
		why:   "where packages come from is the machine's setting",
	},
	{
		files: regexp.MustCompile(`\.(go|sh|ya?ml|conf)$|(^|/)(Dockerfile|run)$`),
		bad:   regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`),
		good:  regexp.MustCompile(`\bTO` + `DO\([^)]+\): .*\b(when|until|once|after|if)\b`),
		why:   "it needs an owner and a condition: TO" + "DO(name): do this when that",
	},
}

func checkText(name, text string) []string {
	var bad []string
	for i, line := range strings.Split(text, "\n") {
		for _, r := range textRules {
			if strings.Contains("/"+name, "/testdata/") && !r.fixtures {
				continue
			}
			if r.files.MatchString(name) && r.bad.MatchString(line) && (r.good == nil || !r.good.MatchString(line)) {
				bad = append(bad, fmt.Sprintf("%s:%d: %s: %q", name, i+1, r.why, r.bad.FindString(line)))
			}
		}
	}
	return bad
}

// tracked are the repository's files, those not yet committed included; without git, all files.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	}
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestTexts(t *testing.T) {
	looked := 0
	for _, name := range tracked(t) {
		if path.Base(name) == "go.sum" {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted and not yet committed, or a link
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			continue
		}
		looked++
		for _, bad := range checkText(name, string(text)) {
			t.Error(bad)
		}
	}
	if looked < 20 {
		t.Errorf("only %d texts looked at", looked)
	}
}

// TestFixtures: a test that loads nothing passes. Every name below a testdata folder that stands in a test exists, and
// every pattern matches something. A testdata folder that nobody names is a leftover.
func TestFixtures(t *testing.T) {
	all, looked := packages(t), 0
	for _, p := range all {
		for _, f := range p.files {
			if !f.test || p.path == "internal/conventions" {
				continue
			}
			for _, name := range fixtureNames(f) {
				looked++
				if found, err := filepath.Glob(filepath.Join(p.dir, name)); err != nil || len(found) == 0 {
					t.Errorf("%s/%s: %s matches nothing (%v)", p.path, f.name, name, err)
				}
			}
		}
		if _, err := os.Stat(filepath.Join(p.dir, "testdata")); err == nil && !readsTestdata(p, all) {
			t.Errorf("%s: neither the package nor a kit that its tests import names its testdata", p.path)
		}
	}
	if looked == 0 {
		t.Error("no test names a fixture")
	}
}

func readsTestdata(p pkg, all []pkg) bool {
	names := func(f *file) bool { return strings.Contains(f.text, "testdata") }
	if slices.ContainsFunc(p.files, names) {
		return true
	}
	for _, f := range p.files {
		for _, kit := range all {
			if f.test && slices.Contains(f.imports(), module+"/"+kit.path) && slices.ContainsFunc(kit.files, names) {
				return true
			}
		}
	}
	return false
}

// fixtureNames are the names and patterns below testdata in a file, joined where filepath.Join joins them. Of a name that
// is put together at run time it is the folder that is known.
func fixtureNames(f *file) []string {
	var names []string
	add := func(name string, whole bool) {
		if i := strings.IndexAny(name, "%$"); i >= 0 {
			name, whole = name[:i], false
		}
		if !whole {
			name = name[:strings.LastIndexByte(name, '/')+1]
		}
		if name = strings.TrimSuffix(name, "/"); regexp.MustCompile(`^(\.\./|[a-z]+/)*testdata(/|$)`).MatchString(name) {
			names = append(names, name)
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if !isJoin(n.Fun) {
				return true
			}
			parts, known := "", true
			for i, a := range n.Args {
				s, ok := text(a)
				if !ok || !known {
					known = false
					if i > 0 {
						ast.Inspect(a, visit)
					}
					continue
				}
				parts += s + "/"
			}
			add(parts, true)
			return false
		case *ast.BinaryExpr:
			if s, ok := text(n.X); ok && n.Op == token.ADD {
				add(s, false)
				ast.Inspect(n.Y, visit)
				return false
			}
		case *ast.BasicLit:
			if s, ok := text(n); ok {
				add(s, true)
			}
		}
		return true
	}
	ast.Inspect(f.ast, visit)
	return names
}

func isJoin(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && (id.Name == "filepath" || id.Name == "path") && sel.Sel.Name == "Join"
}

func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
