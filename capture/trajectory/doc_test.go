package trajectory

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocument: every role, gap and reason that this package has a word for is explained in docs/reading.md.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reading.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			lit, ok := spec.Values[0].(*ast.BasicLit)
			name := spec.Names[0].Name
			if ok && lit.Kind == token.STRING && (strings.HasPrefix(name, "Gap") || strings.HasPrefix(name, "Left") || strings.HasPrefix(name, "Role")) {
				looked++
				if !strings.Contains(string(doc), "`"+strings.Trim(lit.Value, `"`)+"`") {
					t.Errorf("docs/reading.md does not explain %s", lit.Value)
				}
			}
			return true
		})
	}
	if looked < 30 {
		t.Errorf("only %d words", looked)
	}
}
