package deploy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write prometheusrule.yaml from rules.yaml")

const folder = "../../deploy"

var kubernetes = filepath.Join(folder, "kubernetes")

// variants are all ways to put the components together, and the worked overlay.
func variants(t *testing.T) map[string]*Rendered {
	t.Helper()
	all := map[string]*Rendered{}
	overlay, err := Render(filepath.Join(kubernetes, "example"))
	if err != nil {
		t.Fatalf("the worked overlay: %v", err)
	}
	all["example"] = overlay
	for _, base := range []string{"example/vllm", "foreign"} {
		for _, kind := range []string{"sidecar", "container"} {
			for _, store := range []string{"store-pvc", "store-emptydir"} {
				name := strings.Join([]string{base, kind, store}, " ")
				if all[name], err = renderVariant(base, kind, store); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
	}
	return all
}

func renderVariant(base, kind, store string) (*Rendered, error) {
	resource := "../" + base
	if base == "foreign" {
		// kustomize reads files only from below its kustomization, so the foreign server gets one of its own.
		dir, err := os.MkdirTemp(kubernetes, ".foreign-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		text, err := os.ReadFile(filepath.Join("testdata", "foreign.yaml"))
		if err != nil {
			return nil, err
		}
		for name, text := range map[string]string{"foreign.yaml": string(text), "kustomization.yaml": kustomizationHead + "resources: [foreign.yaml]\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
		resource = "../" + filepath.Base(dir)
	}
	return RenderText(kubernetes, Combination(resource, kind, store, "network", "monitoring", "../grafana"))
}

func TestVariants(t *testing.T) {
	for name, r := range variants(t) {
		t.Run(name, func(t *testing.T) {
			if len(r.Deployments) != 1 || len(r.Services) != 1 || len(r.Policies) != 1 || len(r.PodMonitors) != 2 || len(r.Rules) != 1 {
				t.Fatalf("objects are missing: %+v", r)
			}
			d := r.Deployments[0]
			pod := &d.Spec.Template.Spec
			c, native := Sidecar(pod)
			if c == nil {
				t.Fatal("the pod has no container rolltap")
			}
			if native != !strings.Contains(name, "container") {
				t.Errorf("native is %v", native)
			}
			if native && (c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
				t.Error("an init container that does not go on running keeps the pod from starting")
			}
			checkContainer(t, c)
			checkProbes(t, c)
			checkVolumes(t, r, pod, c)
			checkReach(t, r, d.Spec.Template.Labels, c)
			for k, v := range d.Spec.Selector.MatchLabels {
				if d.Spec.Template.Labels[k] != v {
					t.Errorf("the pods no longer have the label %s=%s that the Deployment selects", k, v)
				}
			}
		})
	}
}

// TestForeign: what was there before is there afterwards.
func TestForeign(t *testing.T) {
	r, err := renderVariant("foreign", "sidecar", "store-pvc")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "foreign.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	was, is := before.Deployments[0].Spec.Template.Spec, r.Deployments[0].Spec.Template.Spec
	same := func(what string, a, b any) {
		t.Helper()
		if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); x != y {
			t.Errorf("%s:\n got %s\nwant %s", what, y, x)
		}
	}
	same("the model server", was.Containers, is.Containers)
	same("its group", *was.SecurityContext.RunAsGroup, *is.SecurityContext.RunAsGroup)
	same("its annotations", before.Deployments[0].Spec.Template.Annotations, r.Deployments[0].Spec.Template.Annotations)
	for _, c := range was.InitContainers {
		if !slices.ContainsFunc(is.InitContainers, func(o corev1.Container) bool { return fmt.Sprintf("%+v", o) == fmt.Sprintf("%+v", c) }) {
			t.Errorf("the init container %s is gone or changed", c.Name)
		}
	}
	for _, v := range was.Volumes {
		if !slices.ContainsFunc(is.Volumes, func(o corev1.Volume) bool { return fmt.Sprintf("%+v", o) == fmt.Sprintf("%+v", v) }) {
			t.Errorf("the volume %s is gone or changed", v.Name)
		}
	}
}

func checkContainer(t *testing.T, c *corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	switch {
	case s == nil, s.RunAsNonRoot == nil, !*s.RunAsNonRoot, s.RunAsUser == nil, *s.RunAsUser != 65532, s.ReadOnlyRootFilesystem == nil, !*s.ReadOnlyRootFilesystem,
		s.AllowPrivilegeEscalation == nil, *s.AllowPrivilegeEscalation, s.Capabilities == nil, !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}),
		len(s.Capabilities.Add) > 0, s.SeccompProfile == nil, s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
		t.Errorf("the security context is not the restricted one: %+v", s)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("requests or limits are missing: %+v", c.Resources)
	}
	if len(c.Command) > 0 {
		t.Errorf("the command %q replaces the image's entry point", c.Command)
	}
	names := map[string]bool{}
	for _, p := range c.Ports {
		if p.Name == "" || len(p.Name) > 15 || names[p.Name] {
			t.Errorf("port name %q", p.Name)
		}
		names[p.Name] = true
	}
}

// checkProbes: what starts or restarts the container must not depend on the model server, which starts after it.
func checkProbes(t *testing.T, c *corev1.Container) {
	t.Helper()
	for name, p := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil {
			t.Errorf("no %s probe", name)
			continue
		}
		want := "/livez"
		if name == "readiness" {
			want = "/readyz"
		}
		if p.HTTPGet.Path != want {
			t.Errorf("the %s probe asks %s, want %s", name, p.HTTPGet.Path, want)
		}
	}
	if seconds := c.StartupProbe.PeriodSeconds * c.StartupProbe.FailureThreshold; seconds < 75 {
		t.Errorf("the start is given %d s; a replay of the journal may take 60", seconds)
	}
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.HTTPGet == nil || c.Lifecycle.PreStop.HTTPGet.Path != "/drain" {
		t.Error("preStop does not drain")
	}
}

func checkVolumes(t *testing.T, r *Rendered, pod *corev1.PodSpec, c *corev1.Container) {
	t.Helper()
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	paths := map[string]bool{}
	for _, m := range c.VolumeMounts {
		paths[m.MountPath] = true
		v, ok := volumes[m.Name]
		if !ok {
			t.Errorf("%s is mounted, and there is no volume of that name", m.Name)
		}
		if v.EmptyDir != nil && (v.EmptyDir.Medium != "" || v.EmptyDir.SizeLimit != nil) {
			t.Errorf("the volume %s: %+v", v.Name, v.EmptyDir)
		}
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if !slices.ContainsFunc(r.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == v.PersistentVolumeClaim.ClaimName }) {
			t.Errorf("there is no claim %s", v.PersistentVolumeClaim.ClaimName)
		}
		if pod.SecurityContext == nil || pod.SecurityContext.FSGroup == nil || *pod.SecurityContext.FSGroup != 65532 {
			t.Error("a claim without fsGroup belongs to root")
		}
	}
	if !paths["/rollouts"] || !paths["/tmp"] {
		t.Errorf("mounted are %v; the root is read-only", paths)
	}
}

// checkReach: Service, PodMonitors, NetworkPolicy and hooks lead to ports that there are.
func checkReach(t *testing.T, r *Rendered, labels map[string]string, c *corev1.Container) {
	t.Helper()
	if target := r.Services[0].Spec.Ports[0].TargetPort; portOf(c, target) != 8080 {
		t.Errorf("the Service leads to %s", target.String())
	}
	for _, m := range r.PodMonitors {
		for k, v := range m.Spec.Selector.MatchLabels {
			if labels[k] != v {
				t.Errorf("%s selects %s=%s, the pods have %v", m.Name, k, v, labels)
			}
		}
		for _, e := range m.Spec.PodMetricsEndpoints {
			if e.Port == nil || portOf(c, intstr.FromString(*e.Port)) == 0 {
				t.Errorf("%s scrapes the port %v", m.Name, e.Port)
			}
		}
	}
	for k, v := range r.Policies[0].Spec.PodSelector.MatchLabels {
		if labels[k] != v {
			t.Errorf("the NetworkPolicy selects %s=%s", k, v)
		}
	}
	admin, proxy := false, false
	for _, rule := range r.Policies[0].Spec.Ingress {
		for _, p := range rule.Ports {
			admin, proxy = admin || p.Port.IntValue() == 9464, proxy || p.Port.IntValue() == 8080
		}
	}
	if !admin || !proxy {
		t.Error("the NetworkPolicy lets nobody in")
	}
	for _, d := range r.Deployments {
		for _, o := range d.Spec.Template.Spec.Containers {
			if o.Lifecycle != nil && o.Lifecycle.PreStop != nil && o.Lifecycle.PreStop.HTTPGet != nil && portOf(c, o.Lifecycle.PreStop.HTTPGet.Port) == 0 {
				t.Errorf("the hook of %s asks the port %s", o.Name, o.Lifecycle.PreStop.HTTPGet.Port.String())
			}
		}
	}
}

// portOf is the number of a container's port, by name or number; 0 when it has none such.
func portOf(c *corev1.Container, port intstr.IntOrString) int32 {
	for _, p := range c.Ports {
		if p.Name == port.StrVal && port.Type == intstr.String || p.ContainerPort == port.IntVal && port.Type == intstr.Int {
			return p.ContainerPort
		}
	}
	return 0
}

// TestStrictDecodingBites: a field that the types do not have is told by its path.
func TestStrictDecodingBites(t *testing.T) {
	_, err := Decode([]byte("apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: a, readinesProbe: {}}]}}}\n"))
	if err == nil || !strings.Contains(err.Error(), "readinesProbe") {
		t.Errorf("got %v", err)
	}
}

// TestRulesAreTheSame: the operator's rules are those of the rule file.
func TestRulesAreTheSame(t *testing.T) {
	plain, err := os.ReadFile(filepath.Join(folder, "prometheus", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(kubernetes, "monitoring", "prometheusrule.yaml")
	object, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(object), "spec:\n")
	if !ok {
		t.Fatal("prometheusrule.yaml has no spec")
	}
	_, groups, _ := strings.Cut(string(plain), "groups:\n")
	want := head + "spec:\n  groups:\n"
	for line := range strings.Lines(groups) {
		if line != "\n" {
			line = "  " + line
		}
		want += line
	}
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(object) {
		t.Error("prometheusrule.yaml differs from rules.yaml; run go test -run TestRulesAreTheSame -update in e2e/deploy")
	}
	var a, b struct{ Spec, Groups any }
	if yaml.Unmarshal(plain, &a) != nil || yaml.Unmarshal([]byte(want), &b) != nil {
		t.Error("not YAML")
	}
}
