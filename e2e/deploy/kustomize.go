package deploy

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Rendered are the objects of one kustomization, decoded strictly: a field that the official type does not have is an error.
type Rendered struct {
	Deployments []*appsv1.Deployment
	Services    []*corev1.Service
	ConfigMaps  []*corev1.ConfigMap
	Claims      []*corev1.PersistentVolumeClaim
	Policies    []*networkingv1.NetworkPolicy
	PodMonitors []*monitoring.PodMonitor
	Rules       []*monitoring.PrometheusRule
}

// Render builds the kustomization in a folder.
func Render(dir string) (*Rendered, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	text, err := objects.AsYaml()
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// RenderText builds a kustomization whose text is given as if it stood in the folder beside; paths in it are relative to that.
func RenderText(beside, text string) (*Rendered, error) {
	dir, err := os.MkdirTemp(beside, ".try-") // below the folder, so that relative paths stay short and true
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return Render(dir)
}

// Decode reads a stream of YAML documents.
func Decode(text []byte) (*Rendered, error) {
	out := &Rendered{}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return nil, err
		}
		if err := out.add(head.APIVersion+" "+head.Kind, doc); err != nil {
			return nil, fmt.Errorf("%s: %w", head.Kind, err)
		}
	}
	return out, nil
}

func (r *Rendered) add(kind string, doc []byte) error {
	switch kind {
	case "apps/v1 Deployment":
		return decodeInto(&r.Deployments, doc)
	case "v1 Service":
		return decodeInto(&r.Services, doc)
	case "v1 ConfigMap":
		return decodeInto(&r.ConfigMaps, doc)
	case "v1 PersistentVolumeClaim":
		return decodeInto(&r.Claims, doc)
	case "networking.k8s.io/v1 NetworkPolicy":
		return decodeInto(&r.Policies, doc)
	case "monitoring.coreos.com/v1 PodMonitor":
		return decodeInto(&r.PodMonitors, doc)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return decodeInto(&r.Rules, doc)
	}
	return fmt.Errorf("no type is known for %s", kind)
}

func decodeInto[T any](list *[]*T, doc []byte) error {
	object := new(T)
	if err := yaml.UnmarshalStrict(doc, object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

// Sidecar is the container called rolltap of a pod and whether it is a native sidecar; nil when there is none.
func Sidecar(pod *corev1.PodSpec) (c *corev1.Container, native bool) {
	for i := range pod.InitContainers {
		if pod.InitContainers[i].Name == "rolltap" {
			return &pod.InitContainers[i], true
		}
	}
	for i := range pod.Containers {
		if pod.Containers[i].Name == "rolltap" {
			return &pod.Containers[i], false
		}
	}
	return nil, false
}

// Environment is what the kubelet would give the container: its ConfigMaps, then its own variables.
func (r *Rendered) Environment(c *corev1.Container) ([]string, error) {
	var env []string
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			return nil, fmt.Errorf("envFrom: this source is not resolved here: %+v", from)
		}
		found := from.ConfigMapRef.Optional != nil && *from.ConfigMapRef.Optional
		for _, m := range r.ConfigMaps {
			if m.Name != from.ConfigMapRef.Name {
				continue
			}
			found = true
			for k, v := range m.Data {
				env = append(env, k+"="+v)
			}
		}
		if !found {
			return nil, fmt.Errorf("envFrom names %+v, which is not among the objects", from)
		}
	}
	for _, v := range c.Env {
		switch {
		case v.ValueFrom == nil:
			env = append(env, v.Name+"="+v.Value)
		case v.ValueFrom.ResourceFieldRef != nil && v.ValueFrom.ResourceFieldRef.Resource == "limits.memory":
			limit := c.Resources.Limits[corev1.ResourceMemory]
			if limit.IsZero() {
				return nil, fmt.Errorf("%s asks for a limit that is not set", v.Name)
			}
			env = append(env, fmt.Sprintf("%s=%d", v.Name, limit.Value()))
		default:
			return nil, fmt.Errorf("%s: this source is not resolved here", v.Name)
		}
	}
	return env, nil
}

// kustomizationHead begins every kustomization that is made here.
const kustomizationHead = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

// Combination is a kustomization with components of the folder deploy/kubernetes, one level below it.
func Combination(base string, components ...string) string {
	var b strings.Builder
	io.WriteString(&b, kustomizationHead)
	fmt.Fprintf(&b, "resources: [%s]\ncomponents:\n", base)
	for _, c := range components {
		fmt.Fprintf(&b, "  - ../%s\n", c)
	}
	return b.String()
}
