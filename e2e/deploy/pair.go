package deploy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// Pair is a sidecar and what is behind it, on free ports of the loopback address.
type Pair struct {
	Rolltap      *Process
	Proxy, Admin string // addresses
	Model        string
	model        *Process
	Store        string
}

// StartPair starts a model and a sidecar with its store in a folder. Without a model the sidecar's upstream is a port where nobody
// listens.
func StartPair(p Programs, dir string, withModel bool, settings ...string) (*Pair, error) {
	ports, err := FreePorts(3)
	if err != nil {
		return nil, err
	}
	out := &Pair{Proxy: ports[0], Admin: ports[1], Model: ports[2], Store: dir}
	if withModel {
		if out.model, err = Start(exec.Command(p.Model, "--listen", out.Model)); err != nil {
			return nil, err
		}
	}
	args := append([]string{"serve", "--listen", out.Proxy, "--admin-listen", out.Admin, "--upstream", "http://" + out.Model,
		"--store", dir, "--token-capture=auto", "--keepalive=300ms", "--log-level=warn"}, settings...)
	if out.Rolltap, err = Start(exec.Command(p.Rolltap, args...)); err != nil {
		out.Kill()
		return nil, err
	}
	err = Eventually(10*time.Second, func() error {
		if withModel {
			if _, err := Get("http://" + out.Model + "/health"); err != nil {
				return err
			}
		}
		_, err := Get("http://" + out.Admin + "/livez")
		return err
	})
	if err != nil {
		out.Kill()
		return nil, fmt.Errorf("%w\n%s", err, out.Rolltap.Log())
	}
	return out, nil
}

// Kill ends both.
func (p *Pair) Kill() {
	if p.Rolltap != nil {
		p.Rolltap.Kill()
	}
	if p.model != nil {
		p.model.Kill()
	}
}

// Traffic is a client of the pair.
func (p *Pair) Traffic() *Traffic { return NewTraffic("http://" + p.Proxy) }

// Get fetches a page that has to be there.
func Get(url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := new(http.Client).Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return string(text), err
}

var sample = regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? `)
var labelName = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="`)

// Exposed are the series of an exposition by name, each with the names of its labels.
func Exposed(text string) map[string][]string {
	all := map[string][]string{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		labels := []string{"job", "instance"} // a scrape adds these
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		all[m[1]] = labels
	}
	return all
}

// Missing names what a query asks for and an exposition lacks.
func (e *Expression) Missing(exposed map[string][]string) []string {
	var missing []string
	for series, labels := range e.Labels {
		have, ok := exposed[series]
		if !ok {
			missing = append(missing, series)
			continue
		}
		for _, l := range labels {
			if !strings.Contains(" "+strings.Join(have, " ")+" ", " "+l+" ") {
				missing = append(missing, series+"{"+l+"}")
			}
		}
	}
	return missing
}
