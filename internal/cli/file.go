package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// settingsFile is a YAML file of settings: one flat mapping whose keys are flags without dashes.
type settingsFile struct {
	path    string
	entries map[string]fileEntry
}

// fileEntry is one setting as the file has it. Values stay text, so that a file, a variable and a flag are read by the
// very same code: "010" is the model 010 and not eight, and 30 is no duration.
type fileEntry struct {
	line    int
	values  []string
	list    bool
	section []byte         // a section as a JSON object; nil: it is no section
	lines   map[string]int // of the section's keys
}

// readSettings reads the file at path, in which keys that are sections hold mappings. What cannot be used is a problem with its
// line; the rest is returned all the same.
func readSettings(path string, sections []string) (*settingsFile, []Problem) {
	f := &settingsFile{path: path, entries: map[string]fileEntry{}}
	b, err := os.ReadFile(path)
	if err != nil {
		return f, []Problem{{Setting: "config", Err: err}}
	}
	tree, err := parser.ParseBytes(b, 0)
	if err != nil {
		return f, []Problem{yamlProblem(path, err)}
	}
	var problems []Problem
	bad := func(n ast.Node, format string, args ...any) {
		problems = append(problems, Problem{Origin: Origin{File: path, Line: line(n)}, Err: fmt.Errorf(format, args...)})
	}
	documents := 0
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.NullType {
			continue
		}
		if documents++; documents > 1 {
			bad(doc.Body, "a second document: settings are one")
			break
		}
		pairs, ok := mapping(doc.Body)
		if !ok {
			bad(doc.Body, "settings are lines of `name: value`")
		}
		for _, entry := range pairs {
			key := scalar(entry.Key)
			if key == nil {
				bad(entry, "a key that is no plain word")
				continue
			}
			e := fileEntry{line: line(entry.Key)}
			if slices.Contains(sections, *key) {
				if e.section, e.lines, err = sectionOf(entry.Value); err != nil {
					problems = append(problems, Problem{Setting: *key, Origin: Origin{File: path, Line: e.line}, Err: err})
				}
				f.entries[*key] = e
				continue
			}
			if e.values, e.list, err = valuesOf(entry.Value); err != nil {
				problems = append(problems, Problem{Setting: *key, Origin: Origin{File: path, Line: e.line}, Err: err})
				e.values = nil
			}
			f.entries[*key] = e
		}
	}
	return f, problems
}

// mapping is the entries of a mapping; a mapping of one entry is a node of its own kind.
func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// sectionOf is a mapping as a JSON object, with the lines of its keys; an empty one may be written as nothing.
func sectionOf(n ast.Node) ([]byte, map[string]int, error) {
	if n.Type() == ast.NullType {
		return []byte("{}"), nil, nil
	}
	pairs, ok := mapping(n)
	if !ok {
		return nil, nil, errors.New("a mapping is wanted")
	}
	lines := map[string]int{}
	for _, pair := range pairs {
		if key := scalar(pair.Key); key != nil {
			lines[*key] = line(pair.Key)
		}
	}
	var value map[string]any
	if err := yaml.NodeToValue(n, &value); err != nil {
		return nil, nil, errors.New("a mapping of words to values is wanted")
	}
	object, err := json.Marshal(value)
	return object, lines, err
}

func valuesOf(n ast.Node) (values []string, list bool, err error) {
	if seq, ok := n.(*ast.SequenceNode); ok {
		for _, v := range seq.Values {
			text := scalar(v)
			if text == nil {
				return nil, true, errors.New("a list of plain values is wanted")
			}
			values = append(values, *text)
		}
		return values, true, nil
	}
	if pairs, ok := mapping(n); ok {
		for _, pair := range pairs {
			key, text := scalar(pair.Key), scalar(pair.Value)
			if key == nil || text == nil {
				return nil, true, errors.New("a mapping of plain values is wanted")
			}
			values = append(values, *key+"="+*text)
		}
		return values, true, nil
	}
	if n.Type() == ast.NullType {
		return nil, false, errors.New(`no value; write "" for an empty one`)
	}
	if text := scalar(n); text != nil {
		return []string{*text}, false, nil
	}
	return nil, false, errors.New("a plain value is wanted")
}

// scalar is the text of a plain value as it is written, or nil.
func scalar(n ast.Node) *string {
	switch n := n.(type) {
	case *ast.StringNode:
		return &n.Value
	case *ast.LiteralNode:
		return &n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text := strings.TrimSpace(n.GetToken().Value)
		return &text
	}
	return nil
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// yamlProblem takes the line out of an error of the YAML reader. The reader's own text quotes the lines around, which may
// hold what nobody wants in a log.
func yamlProblem(path string, err error) Problem {
	p := Problem{Origin: Origin{File: path}, Err: err}
	var e yaml.Error
	if errors.As(err, &e) {
		p.Err = errors.New(e.GetMessage())
		if t := e.GetToken(); t != nil && t.Position != nil {
			p.Origin.Line = t.Position.Line
		}
	}
	return p
}
