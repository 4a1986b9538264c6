package conventions

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxLines = 500

// tables are the package-level variables that only hold what the language has no constant for, with the reason. A name may
// have one * in it. Nothing writes to them, which is checked.
var tables = map[string]string{
	"main.version": "set by the linker in release builds",
	"main.commit":  "set by the linker in release builds",

	"metrics.*Buckets":            "bounds of histograms, a list each",
	"metrics.*Words":              "the closed sets of label values, a list each",
	"rewrite/fold.null":           "the word null as bytes, appended from",
	"rewrite/responses.echoed":    "the members of a request that a response repeats, a list",
	"internal/jsonx.bom":          "the three bytes of a byte-order mark, compared with",
	"internal/demomodel.specials": "the tokens of the embedded model's template",
	"internal/demomodel.marks":    "the pieces of text that are one token each",
	"internal/demomodel.garbage":  "what a broken server says, as bytes",
	"internal/cli.demoScenarios":  "the prompts of the demo",
}

// calls that are forbidden everywhere but in tests, save the packages named.
var calls = []struct {
	pkg, name string // name may be a pattern with a last *
	only      []string
	why       string
}{
	{"os", "Getenv", []string{"main"}, "only main reads the environment"},
	{"os", "LookupEnv", []string{"main"}, "only main reads the environment"},
	{"os", "Environ", []string{"main"}, "only main reads the environment"},
	{"os", "ExpandEnv", []string{"main"}, "only main reads the environment"},
	{"os", "Setenv", nil, "the environment belongs to who started the process"},
	{"syscall", "Getenv", nil, "only main reads the environment"},
	{"os", "Exit", []string{"main", "deploy/model"}, "only main ends the process"},
	{"io", "Pipe", nil, "framing is pushed and translation is pulled"},
	{"net/http", "Default*", nil, "no global client, transport or mux"},
	{"net/http", "Handle", nil, "no global mux"},
	{"net/http", "HandleFunc", nil, "no global mux"},
	{prometheus + "prometheus", "Default*", nil, "the registry is injected"},
	{prometheus + "prometheus", "MustRegister", nil, "the registry is injected"},
	{prometheus + "prometheus", "Register", nil, "the registry is injected"},
	{zap, "L", nil, "the logger is injected"},
	{zap, "S", nil, "the logger is injected"},
	{zap, "ReplaceGlobals", nil, "the logger is injected"},
}

// rules hold for every package. Each returns what breaks it.
var rules = map[string]func(pkg) []string{
	"documented":      checkDoc,
	"named":           checkName,
	"no init":         checkInit,
	"no state":        checkVars,
	"calls":           checkCalls,
	"length":          checkLength,
	"harmless names":  checkHarmless,
	"package comment": checkOneComment,
}

// checkDoc: doc.go says what the package is, what it promises and what it does not do. The program itself may say it in main.go.
func checkDoc(p pkg) []string {
	for _, f := range p.files {
		want := "Package " + p.name + " "
		switch {
		case p.name == "main" && (f.name == "main.go" || f.name == "doc.go"):
			if f.ast.Doc != nil && len(f.ast.Doc.Text()) > 20 {
				return nil
			}
		case f.name == "doc.go":
			if f.ast.Doc == nil || !strings.HasPrefix(f.ast.Doc.Text(), want) {
				return []string{"doc.go has no comment that begins with " + want}
			}
			return nil
		}
	}
	return []string{"there is no doc.go with a package comment"}
}

func checkOneComment(p pkg) []string {
	var bad []string
	for _, f := range p.files {
		if f.ast.Doc != nil && f.name != "doc.go" && p.name != "main" {
			bad = append(bad, f.name+" has a package comment; its place is doc.go")
		}
	}
	return bad
}

// checkName: a package is named after what it holds.
func checkName(p pkg) []string {
	for part := range strings.SplitSeq(p.path, "/") {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "types", "misc", "pkg", "lib"}, part) {
			return []string{part + " says nothing about what is inside"}
		}
	}
	return nil
}

func checkInit(p pkg) []string {
	var bad []string
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				bad = append(bad, f.at(fn.Pos())+" has an init function")
			}
		}
	}
	return bad
}

// checkVars: no state at package level. Errors, regular expressions, pools (whose contents nobody can see), embedded files and
// interface assertions are none; any other variable has a line in tables. None is written to after its declaration.
func checkVars(p pkg) []string {
	var bad []string
	vars := map[string]*ast.ValueSpec{}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					vars[name.Name] = spec
					if name.Name == "_" || embedded(gen, spec) || i < len(spec.Values) && constant(spec.Values[i]) || excused(p, name.Name) != "" {
						continue
					}
					bad = append(bad, fmt.Sprintf("%s: variable %s at package level, without a reason in tables", f.at(name.Pos()), name.Name))
				}
			}
		}
	}
	for _, f := range p.files {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, e := range written(n) {
				id := rootOf(e)
				if id == nil || vars[id.Name] == nil || id.Name == "_" {
					continue
				}
				// The parser has resolved names within the file: another declaration there is a local of the same name.
				if id.Obj != nil && id.Obj.Decl != vars[id.Name] {
					continue
				}
				bad = append(bad, fmt.Sprintf("%s writes to %s, a variable at package level", f.at(id.Pos()), id.Name))
			}
			return true
		})
	}
	return bad
}

// excused is the key of tables that a variable is covered by; empty when there is none.
func excused(p pkg, name string) string {
	for key := range tables {
		in, pattern := path.Split(strings.Replace(key, ".", "/", 1))
		if in == p.path+"/" && matches(pattern, name) {
			return key
		}
	}
	return ""
}

func embedded(gen *ast.GenDecl, spec *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{gen.Doc, spec.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	return false
}

func constant(e ast.Expr) bool {
	var fn ast.Expr
	switch e := e.(type) {
	case *ast.CallExpr:
		fn = e.Fun
	case *ast.CompositeLit:
		fn = e.Type
	}
	sel, ok := fn.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "sync.Pool"}, id.Name+"."+sel.Sel.Name)
}

// written are the expressions that a statement or a built-in changes.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy"}, id.Name) && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// rootOf is the variable that an expression such as a.b[c].d goes out from.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func checkCalls(p pkg) []string {
	var bad []string
	for _, f := range p.files {
		if f.test {
			continue
		}
		eachName(f, func(imported, name string, pos token.Pos) {
			for _, c := range calls {
				if c.pkg == imported && matches(c.name, name) && !slices.Contains(c.only, p.path) {
					bad = append(bad, fmt.Sprintf("%s uses %s.%s: %s", f.at(pos), imported, name, c.why))
				}
			}
		})
	}
	return bad
}

func checkHarmless(p pkg) []string {
	var bad []string
	for _, f := range p.files {
		if f.test {
			continue
		}
		eachName(f, func(imported, name string, pos token.Pos) {
			if may := harmless[p.path][imported]; may != nil && !slices.ContainsFunc(may, func(m string) bool { return matches(m, name) }) {
				bad = append(bad, fmt.Sprintf("%s uses %s.%s; of that package only %s", f.at(pos), imported, name, strings.Join(may, ", ")))
			}
		})
	}
	return bad
}

// eachName visits the names that a file uses of the packages it imports, by the path of the import.
func eachName(f *file, visit func(imported, name string, pos token.Pos)) {
	paths := map[string]string{}
	for i, p := range f.imports() {
		name := path.Base(p)
		if n := f.ast.Imports[i].Name; n != nil {
			name = n.Name
		}
		paths[name] = p
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Obj == nil && paths[id.Name] != "" {
				visit(paths[id.Name], sel.Sel.Name, sel.Pos())
			}
		}
		return true
	})
}

// matches compares a name with a pattern, which may hold one * for anything.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

// checkLength: a long file says near its top why it is one job.
func checkLength(p pkg) []string {
	reason := regexp.MustCompile(`^// long: \S.{10,}`)
	var bad []string
	for _, f := range p.files {
		lines := strings.Split(f.text, "\n")
		if len(lines) > maxLines && !slices.ContainsFunc(lines[:30], reason.MatchString) {
			bad = append(bad, fmt.Sprintf("%s has %d lines, more than %d, and no `// long: reason` near its top", f.name, len(lines), maxLines))
		}
	}
	return bad
}

func TestRules(t *testing.T) {
	all := packages(t)
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			for _, p := range all {
				for _, bad := range check(p) {
					t.Errorf("%s: %s", p.path, bad)
				}
			}
		})
	}
}

// TestTables: what is excused exists, and has a reason.
func TestTables(t *testing.T) {
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				gen, ok := d.(*ast.GenDecl)
				if !ok || gen.Tok != token.VAR {
					continue
				}
				for _, s := range gen.Specs {
					for _, name := range s.(*ast.ValueSpec).Names {
						used[excused(p, name.Name)] = true
					}
				}
			}
		}
	}
	for key, reason := range tables {
		if !used[key] {
			t.Errorf("tables excuses %s, which does not exist", key)
		}
		if len(reason) < 10 {
			t.Errorf("tables has no reason for %s", key)
		}
	}
}
