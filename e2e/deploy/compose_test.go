package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

var composeFolder = filepath.Join(folder, "compose")

// loadCompose reads the file as docker compose does, with its schema.
func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(composeFolder, "compose.yaml")}, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 4 {
		t.Fatalf("services are %v", project.ServiceNames())
	}
	return project
}

// TestCompose: what is mounted and built is there, nothing is published to the outside, and ours are confined.
func TestCompose(t *testing.T) {
	project := loadCompose(t)
	for name, s := range project.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
					t.Errorf("%s mounts %s: %v, read-only %v", name, v.Source, err, v.ReadOnly)
				}
			} else if _, ok := project.Volumes[v.Source]; !ok {
				t.Errorf("%s mounts %s, which is no volume", name, v.Source)
			}
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s to the outside", name, p.Published)
			}
		}
		if s.Build == nil {
			if _, tag, ok := strings.Cut(s.Image, ":"); !ok || tag == "latest" {
				t.Errorf("%s runs %s, which is another image tomorrow", name, s.Image)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s is not confined", name)
		}
	}
	ours := project.Services["rolltap"]
	if limit := ours.Environment["GOMEMLIMIT"]; limit == nil || types.UnitBytes(mustInt(t, *limit)) != ours.MemLimit {
		t.Errorf("GOMEMLIMIT is %v, the container's limit %d", limit, ours.MemLimit)
	}
	if ours.StopGracePeriod == nil || time.Duration(*ours.StopGracePeriod) <= 30*time.Second {
		t.Errorf("a drain may take 30 s, and there are %v", ours.StopGracePeriod)
	}
}

func mustInt(t *testing.T, text string) int64 {
	t.Helper()
	var n int64
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestComposeRuns: our two services, with the file's own arguments and variables, on its ports, in a network where their names
// lead to each other. Prometheus with the file's configuration scrapes both.
func TestComposeRuns(t *testing.T) {
	needRoot(t)
	project := loadCompose(t)
	ownNetwork(t)
	// The names of the services are this machine's here; nothing else differs.
	local := func(s string) string {
		for name := range project.Services {
			s = strings.NewReplacer("//"+name+":", "//127.0.0.1:", `"`+name+":", `"127.0.0.1:`).Replace(s)
		}
		return s
	}
	start := func(program string, s types.ServiceConfig, more ...string) *Process {
		t.Helper()
		var args []string
		for _, a := range s.Command {
			args = append(args, local(a))
		}
		cmd := exec.Command(program, append(args, more...)...)
		for k, v := range s.Environment {
			if v != nil && k != "TMPDIR" { // a folder of the container
				cmd.Env = append(cmd.Env, k+"="+*v)
			}
		}
		p, err := Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		return p
	}
	start(programs.Model, project.Services["model"])
	ours := start(programs.Rolltap, project.Services["rolltap"], "--store="+t.TempDir())
	err := Eventually(10*time.Second, func() error {
		_, _, err := fetch(9464, "GET", "/livez", "")
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, ours.Log())
	}
	status, answer, err := fetch(8080, "POST", "/ng-rollout/r/v1/chat/completions", `{"model":"rolltap-demo","messages":[{"role":"user","content":"hello"}]}`)
	if err != nil || status != 200 {
		t.Fatalf("%v, status %d: %s", err, status, answer)
	}

	dir := t.TempDir()
	for _, v := range project.Services["prometheus"].Volumes {
		if v.Type == types.VolumeTypeBind {
			text := local(read(t, v.Source))
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(v.Target)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	config := filepath.Join(dir, "prometheus.yaml")
	if text, err := exec.Command("promtool", "check", "config", config).CombinedOutput(); err != nil {
		t.Errorf("promtool check config: %v\n%s", err, text)
	}
	p, err := Start(exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--log.level=warn"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	err = Eventually(25*time.Second, func() error {
		_, answer, err := fetch(9090, "GET", "/api/v1/query?query=count(rolltap_build_info)%2Bcount(vllm:num_requests_running)", "")
		if err == nil && !strings.Contains(answer, `"2"]`) {
			return fmt.Errorf("not both are scraped: %s", answer)
		}
		return err
	})
	if err != nil {
		t.Errorf("%v\n%s", err, p.Log())
	}
}

// TestProvisioning: Grafana finds Prometheus and the dashboard where the compose file has them.
func TestProvisioning(t *testing.T) {
	project := loadCompose(t)
	var sources struct {
		APIVersion  int `json:"apiVersion"`
		Datasources []struct {
			Name, Type, Access, URL string
			IsDefault               bool              `json:"isDefault"`
			JSONData                map[string]string `json:"jsonData"`
		}
	}
	provisioning := filepath.Join(composeFolder, "grafana", "provisioning")
	if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(provisioning, "datasources", "prometheus.yaml"))), &sources); err != nil {
		t.Fatal(err)
	}
	if d := sources.Datasources; len(d) != 1 || d[0].URL != "http://prometheus:9090" || d[0].Type != "prometheus" || !d[0].IsDefault {
		t.Errorf("data sources are %+v", d)
	}
	var config struct {
		Global struct {
			Interval string `json:"scrape_interval"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(composeFolder, "prometheus.yaml"))), &config); err != nil {
		t.Fatal(err)
	}
	if got := sources.Datasources[0].JSONData["timeInterval"]; got != config.Global.Interval {
		t.Errorf("Grafana thinks that the interval is %s, it is %s", got, config.Global.Interval)
	}
	var dashboards struct {
		APIVersion int `json:"apiVersion"`
		Providers  []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(provisioning, "dashboards", "rolltap.yaml"))), &dashboards); err != nil {
		t.Fatal(err)
	}
	s := project.Services["grafana"]
	home := s.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	mounted := slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Target == *home && filepath.Dir(v.Target) == dashboards.Providers[0].Options.Path && filepath.Base(v.Source) == "rolltap.json"
	})
	if !mounted {
		t.Errorf("the dashboard is not where Grafana looks: %s, %+v", *home, dashboards.Providers)
	}
}
