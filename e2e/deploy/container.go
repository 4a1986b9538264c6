package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Container is the image, run as in production: no capabilities, no new privileges, a root that cannot be written, a small tmpfs at
// /tmp, 64 MiB of memory, 1024 files, and the store in a folder of this machine. What is in a tmpfs counts as the container's
// memory, so the spool files of large bodies are kept beside the store. It shares this machine's network.
type Container struct {
	*Process
	Name   string
	Proxy  string // addresses
	Admin  string
	Store  string // the folder, owned by the image's user
	pid    int
	cgroup string // the folder with the files about memory
}

const containerMemory = 64 << 20

// podman runs on its own set of cgroups, with Debian's runc: other settings need a systemd or cgroups of the second version alone.
func podman(args ...string) *exec.Cmd {
	return exec.Command("podman", append([]string{"--cgroup-manager", "cgroupfs", "--runtime", "runc"}, args...)...)
}

// StartContainer runs an image of the local storage in front of an upstream address. Settings are flags of serve.
func StartContainer(image, store, upstream string, settings ...string) (*Container, error) {
	if err := NeedRoot(); err != nil {
		return nil, err
	}
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	// What a kubelet does for fsGroup: the folder's owner stays, its group may write.
	if err := errors.Join(os.Chown(store, 0, 65532), os.Chmod(store, 0o775|os.ModeSetgid)); err != nil {
		return nil, err
	}
	if err := cold(image); err != nil {
		return nil, err
	}
	c := &Container{Name: fmt.Sprintf("rolltap-try-%d", os.Getpid()), Proxy: ports[0], Admin: ports[1], Store: store}
	args := []string{"run", "--rm=false", "--name", c.Name, "--pull", "never", "--read-only", "--read-only-tmpfs=false", "--network", "host",
		"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--cap-drop", "all", "--security-opt", "no-new-privileges",
		"--tmpfs", "/tmp:size=16m", "--memory", strconv.Itoa(containerMemory), "--memory-swap", strconv.Itoa(containerMemory),
		"--env", fmt.Sprintf("GOMEMLIMIT=%d", containerMemory), "--env", "TMPDIR=/rollouts", "--volume", store + ":/rollouts",
		image, "serve", "--listen", c.Proxy, "--admin-listen", c.Admin, "--upstream", "http://" + upstream}
	if c.Process, err = Start(podman(append(args, settings...)...)); err != nil {
		return nil, fmt.Errorf("podman and runc are Debian's packages of these names: %w", err)
	}
	err = Eventually(30*time.Second, func() error {
		select {
		case <-c.done:
			return errors.New("the container ended")
		default:
		}
		_, err := Get("http://" + c.Admin + "/livez")
		return err
	})
	if err == nil {
		err = c.find()
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, c.Log())
		c.Remove()
		return nil, err
	}
	return c, nil
}

// cold puts the image's program out of the page cache, as it is on a node that has just pulled it: the container that brings its pages in is the
// one that they are counted for.
func cold(image string) error {
	mounted, err := podman("image", "mount", image).Output()
	if err != nil {
		return err
	}
	defer func() { _ = podman("image", "unmount", image).Run() }() // a mount more or less is the storage's own business
	f, err := os.Open(filepath.Join(strings.TrimSpace(string(mounted)), "rolltap"))
	if err != nil {
		return err
	}
	defer f.Close()
	// Pages that are not on disk yet would stay.
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// find asks for the container's process and where its memory is counted.
func (c *Container) find() error {
	text, err := podman("inspect", "--format", "{{.State.Pid}}", c.Name).Output()
	if err != nil {
		return err
	}
	if c.pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return err
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.pid))
	if err != nil {
		return err
	}
	for _, version := range []struct{ pattern, root string }{{`(?m)^\d+:memory:(.*)$`, "/sys/fs/cgroup/memory"}, {`(?m)^0::(.*)$`, "/sys/fs/cgroup"}} {
		if m := regexp.MustCompile(version.pattern).FindSubmatch(groups); m != nil {
			c.cgroup = filepath.Join(version.root, string(m[1]))
			return nil
		}
	}
	return fmt.Errorf("no memory group in %q", groups)
}

// Traffic is a client of the container.
func (c *Container) Traffic() *Traffic { return NewTraffic("http://" + c.Proxy) }

// Confinement says what the kernel knows about the process that is not as it should be.
func (c *Container) Confinement() error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		return err
	}
	var bad []error
	for name, want := range map[string]string{
		"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532", "NoNewPrivs": "1", "Seccomp": "2",
		"CapInh": strings.Repeat("0", 16), "CapPrm": strings.Repeat("0", 16), "CapEff": strings.Repeat("0", 16), "CapBnd": strings.Repeat("0", 16), "CapAmb": strings.Repeat("0", 16),
	} {
		m := regexp.MustCompile(`(?m)^` + name + `:\s*(.*)$`).FindSubmatch(status)
		if m == nil || strings.Join(strings.Fields(string(m[1])), " ") != want {
			bad = append(bad, fmt.Errorf("%s is %q, want %q", name, m, want))
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.pid))
	if err != nil {
		return err
	}
	var writable []string
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		kernel := slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(p string) bool { return f[4] == p || strings.HasPrefix(f[4], p+"/") })
		if !kernel && !slices.Contains(strings.Split(f[5], ","), "ro") {
			writable = append(writable, f[4])
		}
	}
	slices.Sort(writable)
	if want := []string{"/rollouts", "/tmp"}; !slices.Equal(writable, want) {
		bad = append(bad, fmt.Errorf("writable are %v, want %v", writable, want))
	}
	return errors.Join(bad...)
}

// Memory is the most that was ever used, and how often the kernel killed for want of it.
func (c *Container) Memory() (peak, kills int64, err error) {
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if text, e := os.ReadFile(filepath.Join(c.cgroup, name)); e == nil {
			peak, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		}
	}
	for _, name := range []string{"memory.oom_control", "memory.events"} {
		if text, e := os.ReadFile(filepath.Join(c.cgroup, name)); e == nil {
			if m := regexp.MustCompile(`(?m)^oom_kill (\d+)$`).FindSubmatch(text); m != nil {
				kills, e = strconv.ParseInt(string(m[1]), 10, 64)
				return peak, kills, errors.Join(err, e)
			}
		}
	}
	text, e := podman("inspect", "--format", "{{json .State}}", c.Name).CombinedOutput()
	return peak, kills, errors.Join(err, fmt.Errorf("the container is gone: %s", text), e)
}

// End stops the container as its users do, with SIGTERM and time to drain, and says what was not clean about it.
func (c *Container) End(ctx context.Context) error {
	defer c.Remove()
	if text, err := podman("stop", "--time", "40", c.Name).CombinedOutput(); err != nil {
		return fmt.Errorf("podman stop: %w: %s", err, text)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	text, err := podman("inspect", c.Name).Output()
	if err != nil {
		return err
	}
	var about []struct {
		State struct {
			OOMKilled bool
			ExitCode  int
		}
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return err
	}
	if s := about[0].State; s.OOMKilled || s.ExitCode != 0 {
		return fmt.Errorf("exit code %d, killed for memory: %v\n%s", s.ExitCode, s.OOMKilled, c.Log())
	}
	return nil
}

// Remove ends the container, whatever it does, and forgets it.
func (c *Container) Remove() {
	podman("rm", "--force", "--time", "0", c.Name).Run()
	<-c.done
}
