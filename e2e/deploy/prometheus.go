package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Prometheus is a running server of the distribution.
type Prometheus struct {
	*Process
	url    string
	client http.Client
}

// Scrape is one job: a name, an address, and what is dropped of what comes from there, if anything.
type Scrape struct{ Job, Address, Drop string }

// StartPrometheus runs a server on a folder, which scrapes every two seconds. rules may be empty.
func StartPrometheus(dir string, scrapes []Scrape, rules string) (*Prometheus, error) {
	var b strings.Builder
	b.WriteString("global: {scrape_interval: 2s, scrape_timeout: 1s, evaluation_interval: 1s}\n")
	if rules != "" {
		if err := os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(rules), 0o644); err != nil {
			return nil, err
		}
		b.WriteString("rule_files: [rules.yml]\n")
	}
	b.WriteString("scrape_configs:\n")
	for _, s := range scrapes {
		fmt.Fprintf(&b, "  - job_name: %q\n    static_configs: [{targets: [%q]}]\n", s.Job, s.Address)
		if s.Drop != "" {
			fmt.Fprintf(&b, "    metric_relabel_configs: [{source_labels: [__name__], regex: %q, action: drop}]\n", s.Drop)
		}
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(b.String()), 0o644); err != nil {
		return nil, err
	}
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	process, err := Start(exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+ports[0], "--log.level=warn"))
	if err != nil {
		return nil, fmt.Errorf("the server is in Debian's package prometheus: %w", err)
	}
	p := &Prometheus{Process: process, url: "http://" + ports[0], client: http.Client{Timeout: 10 * time.Second}}
	err = Eventually(20*time.Second, func() error {
		res, err := p.client.Get(p.url + "/-/ready")
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("/-/ready: %s", res.Status)
		}
		return nil
	})
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, p.Log())
	}
	return p, nil
}

func (p *Prometheus) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// Points is how many finite values an expression has within the time before now. What Grafana draws are those; NaN is a gap.
func (p *Prometheus) Points(ctx context.Context, expr string, back time.Duration) (int, error) {
	now := time.Now()
	var data struct {
		Result []struct{ Values [][2]any }
	}
	err := p.get(ctx, "/api/v1/query_range", url.Values{
		"query": {expr}, "step": {"2"},
		"start": {fmt.Sprint(now.Add(-back).Unix())}, "end": {fmt.Sprint(now.Unix())},
	}, &data)
	n := 0
	for _, series := range data.Result {
		for _, v := range series.Values {
			text, _ := v[1].(string)
			if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
				n++
			}
		}
	}
	return n, err
}

// Alert is one that fires.
type Alert struct {
	Labels, Annotations map[string]string
	State               string
}

// Alerts are those that fire now.
func (p *Prometheus) Alerts(ctx context.Context) ([]Alert, error) {
	var data struct{ Alerts []Alert }
	if err := p.get(ctx, "/api/v1/alerts", nil, &data); err != nil {
		return nil, err
	}
	var firing []Alert
	for _, a := range data.Alerts {
		if a.State == "firing" {
			firing = append(firing, a)
		}
	}
	return firing, nil
}

// RuleErrors are the errors of the last evaluation.
func (p *Prometheus) RuleErrors(ctx context.Context) (rules int, errs []string, err error) {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.get(ctx, "/api/v1/rules", nil, &data); err != nil {
		return 0, nil, err
	}
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			rules++
			if r.Health != "ok" {
				errs = append(errs, fmt.Sprintf("%s is %s: %s", r.Name, r.Health, r.LastError))
			}
		}
	}
	return rules, errs, nil
}

// URL is where the server answers.
func (p *Prometheus) URL() string { return p.url }
