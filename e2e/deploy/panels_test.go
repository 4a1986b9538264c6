package deploy

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPanels: with live traffic no query is empty. Every series that a query names is also missing from one scrape job; seen
// through that job exactly the queries that name it are empty.
func TestPanels(t *testing.T) {
	p := startPair(t, true, t.TempDir())
	all := queries(t)
	asks := map[Query][]string{} // families
	var families []string
	for _, q := range all {
		e, err := Parse(Variables{Job: "a", Instance: ".*", Engine: "b", Interval: "1m", Range: "1h"}.Fill(q.Expr))
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		for series := range e.Labels {
			asks[q] = append(asks[q], Family(series))
		}
		families = append(families, asks[q]...)
	}
	slices.Sort(families)
	families = slices.Compact(families)

	scrapes := []Scrape{{Job: "rolltap", Address: p.Admin}, {Job: "engine", Address: p.Model}}
	for _, f := range families {
		address := p.Admin
		if strings.HasPrefix(f, "vllm:") {
			address = p.Model
		}
		scrapes = append(scrapes, Scrape{"without " + f, address, f + "(_bucket|_sum|_count)?"})
	}
	prometheus, err := StartPrometheus(t.TempDir(), scrapes, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(prometheus.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	rounds, err := p.Traffic().Mix(ctx, 3)
	if err != nil || rounds < 3 {
		t.Fatalf("%d rounds of traffic, %v", rounds, err)
	}

	points := func(q Query, job, engine string) int {
		n, err := prometheus.Points(t.Context(), Variables{job, ".*", engine, "12s", "20s"}.Fill(q.Expr), 10*time.Second)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		return n
	}
	for _, q := range all {
		if points(q, "rolltap", "engine") == 0 {
			t.Errorf("%s is empty: %s", q, q.Expr)
		}
	}
	looked := 0
	for _, f := range families {
		job, engine := "without "+f, "engine"
		if strings.HasPrefix(f, "vllm:") {
			job, engine = "rolltap", job
		}
		for _, q := range all {
			looked++
			named, n := slices.Contains(asks[q], f), points(q, job, engine)
			if named && n > 0 {
				t.Errorf("%s has %d points without %s, which it names", q, n, f)
			} else if !named && n == 0 {
				t.Errorf("%s is empty without %s, which it does not name", q, f)
			}
		}
	}
	t.Logf("%d queries, %d families, %d looks, %d rounds of traffic", len(all), len(families), looked, rounds)
}
