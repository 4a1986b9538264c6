package deploy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestRun starts the built binary as each manifest says: its args and variables, its user, its mounts owned as Kubernetes makes
// them, a root that the user cannot write to, and a network of its own, so that the ports are the manifest's.
func TestRun(t *testing.T) {
	needRoot(t)
	for name, r := range variants(t) {
		if strings.HasPrefix(name, "example/vllm") {
			continue // its container is that of foreign
		}
		t.Run(name, func(t *testing.T) {
			ownNetwork(t)
			pod := &r.Deployments[0].Spec.Template.Spec
			c, _ := Sidecar(pod)
			root := podRoot(t, pod, c)
			before := listing(t, root)
			side := startContainer(t, r, pod, c, root)
			defer func() {
				if t.Failed() {
					t.Log(side.Log())
				}
			}()

			// The start must not wait for the model server, which a pod starts after this.
			if err := Eventually(10*time.Second, func() error { return probe(c, c.StartupProbe.HTTPGet, 200) }); err != nil {
				t.Fatalf("without a model server: %v", err)
			}
			if err := probe(c, c.LivenessProbe.HTTPGet, 200); err != nil {
				t.Error(err)
			}
			if err := probe(c, c.ReadinessProbe.HTTPGet, 503); err != nil {
				t.Errorf("without a model server: %v", err)
			}
			model, err := Start(exec.Command(programs.Model))
			if err != nil {
				t.Fatal(err)
			}
			defer model.Kill()
			if err := Eventually(10*time.Second, func() error { return probe(c, c.ReadinessProbe.HTTPGet, 200) }); err != nil {
				t.Fatalf("with the model server: %v", err)
			}

			proxy := portOf(c, r.Services[0].Spec.Ports[0].TargetPort)
			ask := func(user string) {
				body, _ := json.Marshal(map[string]any{"model": "rolltap-demo", "user": user, "messages": []map[string]string{{"role": "user", "content": "What is the capital of France?"}}})
				if status, answer, err := fetch(proxy, "POST", "/ng-rollout/r1/v1/chat/completions", string(body)); err != nil || status != 200 {
					t.Fatalf("a call: %v, status %d: %s", err, status, answer)
				}
			}
			ask("a")
			ask(strings.Repeat("spooled ", 3<<17)) // 3 MiB, whose copy is kept in /tmp
			checkStore(t, filepath.Join(root, "rollouts", "r1.capture.jsonl"), 2)
			for _, m := range r.PodMonitors {
				for _, e := range m.Spec.PodMetricsEndpoints {
					want := map[string]string{"rolltap": "\nrolltap_requests_total{", "rolltap-engine": "\nvllm:request_success_total{"}[m.Name]
					if status, text, err := fetch(portOf(c, intstr.FromString(*e.Port)), "GET", e.Path, ""); err != nil || status != 200 || !strings.Contains(text, want) {
						t.Errorf("%s: status %d, %v; no series %q", m.Name, status, err, want)
					}
				}
			}

			if err := probe(c, c.Lifecycle.PreStop.HTTPGet, 200); err != nil {
				t.Errorf("preStop: %v", err)
			}
			if err := probe(c, c.ReadinessProbe.HTTPGet, 503); err != nil {
				t.Errorf("drained: %v", err)
			}
			if err := probe(c, c.LivenessProbe.HTTPGet, 200); err != nil {
				t.Errorf("drained: %v", err)
			}
			if err := side.Stop(10 * time.Second); err != nil {
				t.Errorf("SIGTERM: %v", err)
			}
			if after := listing(t, root); after != before {
				t.Errorf("outside the mounts there is now\n%s\nthere was\n%s", after, before)
			}
		})
	}
}

// ownNetwork puts the test's thread, and with it what the test starts, into a network with nothing but a loopback.
func ownNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("a network of its own: %v", err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatalf("the loopback: %v", err)
	}
}

// podRoot is the file system of the container: the image's, owned by root, and the mounts as the kubelet makes them.
func podRoot(t *testing.T, pod *corev1.PodSpec, c *corev1.Container) string {
	t.Helper()
	root := t.TempDir()
	// Folders above belong to root alone, and the user has to get through.
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := os.ReadFile(programs.Rolltap)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "rolltap"), binary, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.VolumeMounts {
		dir := filepath.Join(root, m.MountPath)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		mode, group := os.FileMode(0o755), 0 // a fresh claim is root's
		for _, v := range pod.Volumes {
			if v.Name == m.Name && v.EmptyDir != nil {
				mode = 0o777
			}
		}
		if s := pod.SecurityContext; s != nil && s.FSGroup != nil {
			mode, group = mode|0o775|os.ModeSetgid, int(*s.FSGroup)
		}
		if err := os.Chown(dir, 0, group); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var imageEnv = regexp.MustCompile(`(?m)^ENV (\S+=\S+)$`)

func startContainer(t *testing.T, r *Rendered, pod *corev1.PodSpec, c *corev1.Container, root string) *Process {
	t.Helper()
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	env, err := r.Environment(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/rolltap", c.Args...)
	cmd.Err = nil // it is looked up inside the root
	cmd.Dir = "/"
	for _, m := range imageEnv.FindAllStringSubmatch(string(dockerfile), -1) {
		cmd.Env = append(cmd.Env, m[1])
	}
	cmd.Env = append(cmd.Env, env...)
	who := &syscall.Credential{Uid: uint32(*c.SecurityContext.RunAsUser), Gid: uint32(*c.SecurityContext.RunAsGroup)}
	if s := pod.SecurityContext; s != nil && s.FSGroup != nil {
		who.Groups = append(who.Groups, uint32(*s.FSGroup))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: who}
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// checkStore: the records are there, whole, and belong to the image's user.
func checkStore(t *testing.T, name string, want int) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 65532 || info.Mode().Perm() != 0o640 {
		t.Errorf("%s: user %d, mode %v", name, s.Uid, info.Mode())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != want {
		t.Errorf("%d records, want %d", len(lines), want)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("a record is no JSON: %.100s", line)
		}
		if !strings.Contains(line, `"truncated":[]`) {
			t.Errorf("a copy was cut: the folder for temporary files takes nothing")
		}
	}
}

// listing is what the root holds outside the mounts, and what the folder for temporary files holds.
func listing(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		fmt.Fprintf(&b, "%s %v\n", name, d.Type())
		if name == "rollouts" {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// probe fetches as the kubelet does: the port by its name, no redirects.
func probe(c *corev1.Container, get *corev1.HTTPGetAction, want int) error {
	port := portOf(c, get.Port)
	if port == 0 {
		return fmt.Errorf("%s is no port of the container", get.Port.String())
	}
	status, text, err := fetch(port, "GET", get.Path, "")
	if err == nil && status != want {
		err = fmt.Errorf("%s: status %d, want %d: %s", get.Path, status, want, strings.TrimSpace(text))
	}
	return err
}

// fetch does all its work on the calling thread, which is the one that is in the container's network.
func fetch(port int32, method, path, body string) (int, string, error) {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	req, err := http.NewRequest(method, "http://sidecar"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	if err := req.Write(conn); err != nil {
		return 0, "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}
