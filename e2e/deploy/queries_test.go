package deploy

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rulesFile = filepath.Join(folder, "prometheus", "rules.yaml")

func queries(t *testing.T) []Query {
	t.Helper()
	all, err := ReadDashboard("../..")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func rules(t *testing.T) []Rule {
	t.Helper()
	all, err := ReadRules(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func startPair(t *testing.T, withModel bool, dir string, settings ...string) *Pair {
	t.Helper()
	p, err := StartPair(programs, dir, withModel, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// TestQueries: every expression parses, asks for series and labels that a sidecar and a model that were used export, and shows
// nothing where there is nothing.
func TestQueries(t *testing.T) {
	p := startPair(t, true, t.TempDir())
	if err := p.Traffic().All(t.Context(), append(Sound("a"), Troubled("a")...)); err != nil {
		t.Fatal(err)
	}
	exposed := map[string][]string{"up": {"job", "instance"}} // Prometheus' own
	for _, address := range []string{p.Admin, p.Model} {
		text, err := Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for series, labels := range Exposed(text) {
			exposed[series] = labels
		}
	}
	v := Variables{Job: "a", Instance: ".*", Engine: "b", Interval: "1m", Range: "1h"}
	for _, q := range queries(t) {
		e, err := Parse(v.Fill(q.Expr))
		if err != nil {
			t.Errorf("%s: %v", q, err)
			continue
		}
		if missing := e.Missing(exposed); len(missing) > 0 {
			t.Errorf("%s asks for %v, which nobody exports", q, missing)
		}
		if found := e.Constant(); found != "" {
			t.Errorf("%s fills holes with %s", q, found)
		}
	}
	for _, r := range rules(t) {
		e, err := Parse(r.Expr)
		if err != nil {
			t.Errorf("%s: %v", r.Alert, err)
			continue
		}
		if missing := e.Missing(exposed); len(missing) > 0 {
			t.Errorf("%s asks for %v, which nobody exports", r.Alert, missing)
		}
	}
}

func TestQueryRulesBite(t *testing.T) {
	for _, c := range []struct {
		expr, constant string
		missing        []string
	}{
		{`sum(rate(a_total{x="1"}[1m])) or vector(0)`, "0", nil},
		{`a_total + 0`, "0", nil},
		{`a_total or b`, "or", []string{"b"}},
		{`a_total * vector(scalar(a_total))`, "scalar", nil},
		{`absent(a_total)`, "absent", nil},
		{`histogram_quantile(0.5, sum by (le, y) (rate(a_total[1m])))`, "", []string{"a_total{le}", "a_total{y}"}},
		{`sum by (x) (a_total{z="1"})`, "", []string{"a_total{z}"}},
	} {
		e, err := Parse(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		missing := e.Missing(map[string][]string{"a_total": {"x"}})
		slices.Sort(missing)
		if got := e.Constant(); got != c.constant || !slices.Equal(missing, c.missing) {
			t.Errorf("%s: constant %q, missing %q", c.expr, got, missing)
		}
	}
	if _, err := Parse("sum("); err == nil {
		t.Error("sum( parses")
	}
}

// TestRules: each alert tells somebody what to do.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules(t) {
		if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Rolltap") {
			t.Errorf("alert %q", r.Alert)
		}
		seen[r.Alert] = true
		for _, a := range []string{"summary", "description", "runbook"} {
			if r.Annotations[a] == "" {
				t.Errorf("%s has no %s", r.Alert, a)
			}
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
		}
	}
}

// TestPromtool runs the distribution's promtool over the rules and over their unit tests, which have one for each alert.
func TestPromtool(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = filepath.Join(folder, "prometheus")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v (Debian's package prometheus): %v\n%s", args, err, text)
		}
	}
	text := read(t, filepath.Join(folder, "prometheus", "rules_test.yaml"))
	for _, r := range rules(t) {
		fires := regexp.MustCompile(`alertname: ` + r.Alert + `\n\s*exp_alerts:\n\s*- `)
		silent := regexp.MustCompile(`alertname: ` + r.Alert + `\n\s*exp_alerts: \[\]`)
		if !fires.MatchString(text) || !silent.MatchString(text) {
			t.Errorf("rules_test.yaml does not show %s both silent and firing", r.Alert)
		}
	}
}
