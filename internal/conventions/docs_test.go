package conventions

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"rolltap/capture"
	"rolltap/internal/cli"
	"rolltap/proxy"
)

// documents are the texts that people read, by name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names := []string{"README.md", "DESIGN.md", "deploy/README.md"}
	more, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(more) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, name := range more {
		names = append(names, "docs/"+filepath.Base(name))
	}
	docs := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		docs[name] = string(text)
	}
	return docs
}

// rows are the rows of tables whose first column is in backquotes and begins with prefix, cells without their backquotes.
func rows(text, prefix string) [][]string {
	var out [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| `"+prefix) {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "`", ""))
		}
		out = append(out, cells)
	}
	return out
}

// flagName is how the command line spells a field, unless its tag says otherwise.
func flagName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(f.Name[i-1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// settingsRows are the rows that docs/settings.md has to have, in the order of the fields.
func settingsRows() [][]string {
	var want [][]string
	for f := range reflect.TypeFor[proxy.Config]().Fields() {
		if f.Tag.Get("kong") == "-" {
			continue // a section of the file, which has a document of its own
		}
		name, value := flagName(f), f.Tag.Get("default")
		switch {
		case value == "" && f.Type.Kind() == reflect.Bool:
			value = "off"
		case value == "":
			value = "none"
		}
		want = append(want, []string{"--" + name, "ROLLTAP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")), value})
	}
	return want
}

func TestSettingsTable(t *testing.T) {
	var got [][]string
	for _, r := range rows(documents(t)["docs/settings.md"], "--") {
		if len(r) != 4 || r[3] == "" {
			t.Errorf("a row of %d cells: %q", len(r), r)
			continue
		}
		got = append(got, r[:3])
	}
	want := settingsRows()
	if len(want) < 10 {
		t.Fatalf("only %d settings found", len(want))
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("no row for %q", want[i])
		case i >= len(want):
			t.Errorf("a row for %q, which is no setting", got[i])
		case !slices.Equal(got[i], want[i]):
			t.Fatalf("row %d is %q, want %q", i+1, got[i], want[i])
		}
	}
}

// foreignFlags are flags of other programs that the documents show.
var foreignFlags = []string{
	"--local", "--message", "--model", "--session-id", // OpenClaw
	"--network", "--rm", "--stop-timeout", "--user", // docker
	"--build", "--output", // docker compose, docker build
	"--twice",          // deploy/release.sh
	"--host", "--port", // vLLM
}

// TestFlagsExist: a document names no flag that there is not.
func TestFlagsExist(t *testing.T) {
	known := []string{"--config", "--help"}
	for _, r := range settingsRows() {
		known = append(known, r[0])
	}
	for _, command := range []reflect.Type{
		reflect.TypeFor[cli.Demo](), reflect.TypeFor[cli.Show](), reflect.TypeFor[cli.Stats](), reflect.TypeFor[cli.Export](), reflect.TypeFor[cli.Verify](), reflect.TypeFor[cli.Clear](), reflect.TypeFor[cli.Version](),
	} {
		for f := range command.Fields() {
			known = append(known, "--"+flagName(f))
		}
	}
	flag := regexp.MustCompile("(?:^|[\\s`(\"\\[])(--[a-z][a-z-]*)")
	looked := 0
	for name, text := range documents(t) {
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			looked++
			if !slices.Contains(known, m[1]) && !slices.Contains(foreignFlags, m[1]) {
				t.Errorf("%s names %s, which is no flag", name, m[1])
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d flags looked at", looked)
	}
}

// TestMetricsTable compares with metrics/doc.go, which a test of its package compares with the code.
func TestMetricsTable(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "metrics", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(rolltap_[a-z_]+)(?:\{([a-z_,]+)\})?$`).FindAllStringSubmatch(string(doc), -1) {
		want[m[1]] = m[2]
	}
	if len(want) < 15 {
		t.Fatalf("only %d families found in metrics/doc.go", len(want))
	}
	for _, r := range rows(documents(t)["docs/metrics.md"], "rolltap_") {
		labels, ok := want[r[0]]
		if !ok {
			t.Errorf("a row for %s, which is no family, or a second one", r[0])
		} else if got := strings.ReplaceAll(r[1], " ", ""); got != labels {
			t.Errorf("%s has the labels %q, want %q", r[0], got, labels)
		}
		delete(want, r[0])
	}
	for name := range want {
		t.Errorf("no row for %s", name)
	}
	for name, text := range documents(t) {
		for _, m := range regexp.MustCompile(`rolltap_[a-z_]+[a-z]`).FindAllString(text, -1) {
			if !strings.Contains(string(doc), m) {
				t.Errorf("%s names %s, which is no family", name, m)
			}
		}
	}
}

// outcomeConstants are the values of the string constants of proxy/outcome.go whose names begin with prefix.
func outcomeConstants(t *testing.T, prefix string) []string {
	t.Helper()
	var out []string
	for _, p := range packages(t) {
		for _, f := range p.files {
			if p.path != "proxy" || f.name != "outcome.go" {
				continue
			}
			for _, d := range f.ast.Decls {
				gen, ok := d.(*ast.GenDecl)
				if !ok || gen.Tok != token.CONST {
					continue
				}
				for _, s := range gen.Specs {
					spec := s.(*ast.ValueSpec)
					for i, name := range spec.Names {
						if strings.HasPrefix(name.Name, prefix) && i < len(spec.Values) {
							if v, ok := text(spec.Values[i]); ok {
								out = append(out, v)
							}
						}
					}
				}
			}
		}
	}
	if len(out) < 5 {
		t.Fatalf("only %d constants %s… found", len(out), prefix)
	}
	return out
}

// TestWordsTables: every outcome and every code of rolltap's own answers has a row, and no other word has.
func TestWordsTables(t *testing.T) {
	docs := documents(t)
	_, outcomes, _ := strings.Cut(docs["docs/store.md"], "\n## Outcomes\n")
	outcomes, _, _ = strings.Cut(outcomes, "\n## ")
	var got []string
	for _, r := range rows(outcomes, "") {
		if r[0] != "outcome" {
			got = append(got, r[0])
		}
	}
	sameWords(t, "outcomes in docs/store.md", got, outcomeConstants(t, "outcome"))

	got = nil
	for _, m := range regexp.MustCompile("(?m)^\\| [45]\\d\\d \\| `([a-z_]+)` \\| .* \\| .* \\|$").FindAllStringSubmatch(docs["docs/answers.md"], -1) {
		got = append(got, m[1])
	}
	sameWords(t, "codes in docs/answers.md", got, outcomeConstants(t, "code"))
}

func sameWords(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// members are the names in a JSON object, in order.
func members(t *testing.T, object []byte) []string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(object)))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
	}
	return names
}

// inside is one member of an object.
func inside(t *testing.T, object []byte, name string) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		t.Fatal(err)
	}
	return all[name]
}

// storedRecord is a record as the store writes it.
func storedRecord(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	store, err := capture.Open(capture.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	body := func(s string) *capture.Copy {
		c := capture.NewCopy(capture.CopyOptions{})
		c.Write([]byte(s))
		return c
	}
	if err := store.Append(t.Context(), &capture.Record{
		Rollout: "r", CallID: "d5ede0b0ed6e0154041fe3b0d599217f", Dialect: "chat", Request: body("{}"), Response: body("{}"),
		Upstream: &capture.Upstream{Dialect: "chat"}, Usage: &capture.Usage{}, Client: capture.Client{UserAgent: "u"},
	}); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(filepath.Join(dir, "r.capture.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestRecordExample: the example of the README has the members that the store writes, in their order, and docs/store.md
// explains each.
func TestRecordExample(t *testing.T) {
	docs, record := documents(t), storedRecord(t)
	examples := 0
	for name, text := range docs {
		for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(text, -1) {
			example := []byte(m[1])
			if !json.Valid(example) {
				t.Errorf("%s: an example is no JSON:\n%s", name, example)
				continue
			}
			if !strings.Contains(m[1], `"model_call_id"`) {
				continue
			}
			examples++
			for _, in := range []string{"", "rolltap", "usage", "upstream"} {
				got, want := example, record
				switch in {
				case "":
				case "rolltap":
					got, want = inside(t, got, in), inside(t, want, in)
				default:
					got, want = inside(t, inside(t, got, "rolltap"), in), inside(t, inside(t, want, "rolltap"), in)
				}
				if g, w := members(t, got), members(t, want); !slices.Equal(g, w) {
					t.Errorf("%s: members of the example %s:\n got %q\nwant %q", name, in, g, w)
				}
			}
		}
	}
	if examples == 0 {
		t.Error("no record is shown")
	}
	explained := map[string]bool{}
	for _, r := range rows(docs["docs/store.md"], "") {
		for _, name := range strings.Split(r[0], ", ") {
			explained[name] = true
		}
	}
	for _, name := range slices.Concat(members(t, record), members(t, inside(t, record, "rolltap"))) {
		if name != "rolltap" && !explained[name] {
			t.Errorf("docs/store.md does not explain %s", name)
		}
	}
}

// TestCommandsTable: the README has a row for every command of main's grammar.
func TestCommandsTable(t *testing.T) {
	var want []string
	for _, p := range packages(t) {
		for _, f := range p.files {
			if p.path != "main" || f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok || spec.Name.Name != "grammar" {
					return true
				}
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					want = append(want, "rolltap "+strings.ToLower(field.Names[0].Name))
				}
				return false
			})
		}
	}
	if len(want) == 0 {
		t.Fatal("no grammar found in main")
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(rolltap [a-z]+)` \\|").FindAllStringSubmatch(documents(t)["README.md"], -1) {
		got = append(got, m[1])
	}
	sameWords(t, "commands in README.md", got, want)
}

// TestLinks: every link into the repository leads somewhere, to a heading where it names one.
func TestLinks(t *testing.T) {
	docs, looked := documents(t), 0
	for name, text := range docs {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			looked++
			if err := follow(docs, name, m[1]); err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
			}
		}
	}
	if looked < 10 {
		t.Errorf("only %d links looked at", looked)
	}
}

func follow(docs map[string]string, from, link string) error {
	path, heading, named := strings.Cut(link, "#")
	to := from
	if path != "" {
		to = filepath.ToSlash(filepath.Join(filepath.Dir(from), path))
		if _, err := os.Stat(filepath.Join(root, to)); err != nil {
			return errors.New("there is no such file")
		}
	}
	if !named {
		return nil
	}
	for line := range strings.Lines(docs[to]) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") && anchor(title) == heading {
			return nil
		}
	}
	return fmt.Errorf("%s has no such heading", to)
}

// anchor is what a heading is called in links: lower case, punctuation gone, spaces as dashes.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(title))
}

// TestDocumentRulesBite tries the readers above on texts that are wrong.
func TestDocumentRulesBite(t *testing.T) {
	if got := rows("| flag | x |\n|---|---|\n| `--a` | `b`, `c` |\n| --d | e |\n", "--"); len(got) != 1 || !slices.Equal(got[0], []string{"--a", "b, c"}) {
		t.Errorf("rows: %q", got)
	}
	docs := map[string]string{"a.md": "# One thing, and `another`\n"}
	for link, ok := range map[string]bool{"#one-thing-and-another": true, "#one": false, "README.md": true, "README.txt": false} {
		if err := follow(docs, "a.md", link); (err == nil) != ok {
			t.Errorf("link %s: %v", link, err)
		}
	}
}
