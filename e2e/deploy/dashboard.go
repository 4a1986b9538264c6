package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// Query is one expression of a panel.
type Query struct {
	Panel, Ref, Expr string
}

func (q Query) String() string { return q.Panel + " " + q.Ref }

// ReadDashboard is every query of the dashboard variables as they stand there.
func ReadDashboard(repository string) ([]Query, error) {
	name := filepath.Join(repository, "deploy", "grafana", "rolltap.json")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	var all []Query
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, Query{fmt.Sprintf("%q", p.Title), q.RefID, q.Expr})
		}
	}
	if len(all) < 20 {
		return nil, fmt.Errorf("%s: only %d queries", name, len(all))
	}
	return all, nil
}

// Variables are what Grafana puts into a query.
type Variables struct{ Job, Instance, Engine, Interval, Range string }

// Fill returns the expression with the variables in it.
func (v Variables) Fill(expr string) string {
	return strings.NewReplacer("$__rate_interval", v.Interval, "$__range", v.Range, "$job", v.Job, "$instance", v.Instance, "$engine", v.Engine).Replace(expr)
}

// Expression is a parsed query and what it asks of the series.
type Expression struct {
	Node   parser.Expr
	Labels map[string][]string // by series: the labels that matchers and groupings name
}

// Parse reads a query whose variables are filled in.
func Parse(expr string) (*Expression, error) {
	node, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	e := &Expression{node, map[string][]string{}}
	parser.Inspect(node, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		labels := e.Labels[s.Name]
		for _, m := range s.LabelMatchers {
			if m.Name != "__name__" {
				labels = append(labels, m.Name)
			}
		}
		for _, above := range path {
			if a, ok := above.(*parser.AggregateExpr); ok && !a.Without {
				labels = append(labels, a.Grouping...)
			}
		}
		slices.Sort(labels)
		e.Labels[s.Name] = slices.Compact(labels)
		return nil
	})
	return e, nil
}

// Constant finds what would show a value where there is none: numbers that are no quantile, `or`, and functions that make series.
func (e *Expression) Constant() (found string) {
	parser.Inspect(e.Node, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.NumberLiteral:
			if c, ok := path[len(path)-1].(*parser.Call); !ok || c.Func.Name != "histogram_quantile" {
				found = n.String()
			}
		case *parser.BinaryExpr:
			if n.Op == parser.LOR {
				found = "or"
			}
		case *parser.Call:
			if slices.Contains([]string{"vector", "absent", "absent_over_time", "time", "scalar"}, n.Func.Name) {
				found = n.Func.Name
			}
		}
		return nil
	})
	return found
}

// Family is the name that a family has in an exposition, for the name of one of its series.
func Family(series string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if s, ok := strings.CutSuffix(series, part); ok {
			return s
		}
	}
	return series
}

// Rule is one alert.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ReadRules is every alert of a rule file.
func ReadRules(name string) ([]Rule, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	var all []Rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 5 {
		return nil, fmt.Errorf("%s: only %d rules", name, len(all))
	}
	return all, nil
}

// AtOnce is a rule file with the same alerts, none of which waits. How long they wait is what promtool tests.
func AtOnce(rules []Rule) (string, error) {
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].For = ""
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "rolltap", "interval": "1s", "rules": rules}}})
	return string(text), err
}
