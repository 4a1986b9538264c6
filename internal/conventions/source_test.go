package conventions

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "rolltap"

// root is the module's root, seen from this package.
const root = "../.."

// pkg is one package of the module with all its files, those that this system does not build included.
type pkg struct {
	path  string // without the module's name; "main" for the program itself
	name  string
	dir   string
	files []*file
}

type file struct {
	name string // without folder
	test bool
	text string
	ast  *ast.File
	fset *token.FileSet
}

// at is where something stands, for people.
func (f *file) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", f.name, f.fset.Position(p).Line)
}

// imports are the paths that the file imports, in order.
func (f *file) imports() []string {
	var out []string
	for _, i := range f.ast.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func parse(name, text string) (*file, error) {
	f := &file{name: name, test: strings.HasSuffix(name, "_test.go"), text: text, fset: token.NewFileSet()}
	var err error
	f.ast, err = parser.ParseFile(f.fset, name, text, parser.ParseComments)
	return f, err
}

var loaded = sync.OnceValues(load)

// packages are those that `go list` finds; a second module such as e2e is not among them.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	// Far below what there is, so that a list that went wrong is not taken for a clean one.
	if len(all) < 8 {
		t.Fatalf("only %d packages found", len(all))
	}
	return all
}

func load() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-e", "-find",
		"-json=ImportPath,Name,Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l struct {
			ImportPath, Name, Dir                                        string
			GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		p := pkg{path: strings.TrimPrefix(l.ImportPath, module+"/"), name: l.Name, dir: l.Dir}
		if l.ImportPath == module {
			p.path = "main"
		}
		for _, name := range slices.Concat(l.GoFiles, l.CgoFiles, l.IgnoredGoFiles, l.TestGoFiles, l.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(l.Dir, name))
			if err != nil {
				return nil, err
			}
			f, err := parse(name, string(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path.Join(p.path, name), err)
			}
			p.files = append(p.files, f)
		}
		all = append(all, p)
	}
}
