package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ Type, UID string }
	GridPos     struct{ H, W, X, Y int }
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Targets []struct {
		RefID      string
		Expr       string
		Datasource struct{ Type, UID string }
	}
}

type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type string }
	}
	Panels []panel
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("grafana", "rolltap.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 20 {
		t.Fatalf("only %d panels", len(d.Panels))
	}
	return d
}

// units are ids that Grafana knows; a word that it does not know is shown as a suffix. There is none for tokens.
var units = []string{"s", "bytes", "binBps", "reqps", "ops", "percentunit", "short", "none"}

func TestPanels(t *testing.T) {
	d := readDashboard(t)
	ids := map[int]bool{}
	for i, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, o := range d.Panels[:i] {
			a, b := p.GridPos, o.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%q covers %q", p.Title, o.Title)
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q is wider than the grid", p.Title)
		}
		if p.Title == "" {
			t.Errorf("panel %d has no title", p.ID)
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || !slices.Contains(units, p.FieldConfig.Defaults.Unit) || len(p.Targets) == 0 {
			t.Errorf("%q lacks a description, a query or a known unit: %q", p.Title, p.FieldConfig.Defaults.Unit)
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("%q has the data source %q", p.Title, p.Datasource.UID)
		}
	}
}

var (
	series    = regexp.MustCompile(`\b(?:rolltap|vllm|go|process)[_:][a-z0-9_]+`)
	overTime  = regexp.MustCompile(`\b(rate|increase|irate)\(`)
	holes     = regexp.MustCompile(`\bor\b|\bvector\(|\babsent|clamp_min\(|unless\b`)
	selectors = regexp.MustCompile(`\{[^}]*\}`)
)

// TestQueries: every selector follows the variables, rates take Grafana's interval, and nothing fills a hole.
func TestQueries(t *testing.T) {
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			if q.Datasource.UID != "${datasource}" {
				t.Errorf("%q %s has the data source %q", p.Title, q.RefID, q.Datasource.UID)
			}
			if holes.MatchString(q.Expr) {
				t.Errorf("%q %s fills holes: %s", p.Title, q.RefID, q.Expr)
			}
			if overTime.MatchString(q.Expr) && !strings.Contains(q.Expr, "[$__rate_interval]") && !strings.Contains(q.Expr, "[$__range]") {
				t.Errorf("%q %s has a rate over something else than $__rate_interval: %s", p.Title, q.RefID, q.Expr)
			}
			names, all := series.FindAllString(q.Expr, -1), selectors.FindAllString(q.Expr, -1)
			if len(names) != len(all) {
				t.Errorf("%q %s: %d series and %d selectors", p.Title, q.RefID, len(names), len(all))
			}
			for i, s := range all {
				want := `job=~"$job", instance=~"$instance"`
				if strings.HasPrefix(names[i], "vllm:") {
					want = `job=~"$engine"`
				}
				if !strings.HasPrefix(s, "{"+want) {
					t.Errorf("%q %s: %s%s does not begin with %s", p.Title, q.RefID, names[i], s, want)
				}
			}
		}
	}
}

// TestSeriesExist compares with metrics/doc.go, which a test of that package compares with the code: whatever dashboard and rules
// name is exported, and every family that is exported is drawn.
func TestSeriesExist(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "metrics", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(rolltap_[a-z_]+)(?:\{[a-z_,]+\})?$`).FindAllStringSubmatch(string(doc), -1) {
		families[m[1]] = false
	}
	if len(families) < 15 {
		t.Fatalf("only %d families found in metrics/doc.go", len(families))
	}
	for _, name := range []string{filepath.Join("grafana", "rolltap.json"), filepath.Join("prometheus", "rules.yaml")} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range regexp.MustCompile(`\brolltap_[a-z_]+`).FindAllString(string(text), -1) {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				if _, ok := families[s]; !ok {
					s = strings.TrimSuffix(s, part)
				}
			}
			if _, ok := families[s]; !ok {
				t.Errorf("%s names %s, which is no family", name, s)
				continue
			}
			families[s] = true
		}
	}
	for family, drawn := range families {
		if !drawn {
			t.Errorf("no panel shows %s", family)
		}
	}
}
