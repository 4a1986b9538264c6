// Command accept is the acceptance run of the image, from nothing but the repository: build it, run it as in production beside the
// demo model, drive traffic, scrape both with Prometheus, ask every query of the dashboard and every alert, stop it, and check the
// store against what was sent. It needs root, Go, and Debian's buildah, podman, runc, busybox-static and prometheus; a registry is
// not needed. It prints a line for each step and ends with status 1 at the first that fails.
//
//	go run ./accept [-image NAME] [-traffic 20s]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"rolltap/e2e/deploy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var r run
	flag.StringVar(&r.image, "image", "", "try this image of the local storage and build none")
	flag.StringVar(&r.repository, "repository", "../..", "the root of the repository")
	flag.DurationVar(&r.traffic, "traffic", 20*time.Second, "time of mixed traffic")
	flag.Parse()
	if err := r.all(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED", err)
		os.Exit(1)
	}
}

// run is one acceptance run. Its fields are filled by its steps, in order.
type run struct {
	image, repository string
	traffic           time.Duration

	dir        string // temporary
	programs   deploy.Programs
	model      *deploy.Process
	upstream   string // the model's address
	container  *deploy.Container
	prometheus *deploy.Prometheus
	sent       tally
}

// all goes through the steps. What was started is ended in any case.
func (r *run) all(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "rolltap-accept-"); err != nil {
		return err
	}
	defer r.cleanUp()
	if err := os.Chmod(r.dir, 0o755); err != nil {
		return err
	}
	began := time.Now()
	for _, step := range []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"image", r.buildImage},
		{"start", r.start},
		{"confinement", r.confinement},
		{"64 connections", r.many},
		{"one large body", r.large},
		{"traffic", r.mix},
		{"panels", r.panels},
		{"alerts", r.alerts},
		{"stop", r.stop},
		{"store", r.store},
	} {
		at := time.Now()
		said, err := step.do(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("ok  %-15s %5.1f s  %s\n", step.name, time.Since(at).Seconds(), said)
	}
	fmt.Printf("ACCEPTED in %.1f min\n", time.Since(began).Minutes())
	return nil
}

func (r *run) cleanUp() {
	if r.container != nil {
		r.container.Remove()
	}
	if r.prometheus != nil {
		r.prometheus.Kill()
	}
	if r.model != nil {
		r.model.Kill()
	}
	os.RemoveAll(r.dir)
}

// buildImage builds it from the Dockerfile, on the stand-in for the official builder unless that is there.
func (r *run) buildImage(ctx context.Context) (said string, err error) {
	if r.programs, err = deploy.Build(ctx, r.repository, r.dir); err != nil {
		return "", err
	}
	if r.image != "" {
		return r.image + ", built before", nil
	}
	r.image = "localhost/rolltap:accept"
	for _, args := range [][]string{{"builder.sh"}, {"build.sh", r.image}} {
		cmd := exec.CommandContext(ctx, filepath.Join(r.repository, "deploy", "image", args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "BUILDAH_ISOLATION=chroot")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", args, err, text)
		}
	}
	return r.image, nil
}

func (r *run) start(context.Context) (string, error) {
	ports, err := deploy.FreePorts(1)
	if err != nil {
		return "", err
	}
	r.upstream = ports[0]
	if r.model, err = deploy.Start(exec.Command(r.programs.Model, "--listen", r.upstream)); err != nil {
		return "", err
	}
	store := filepath.Join(r.dir, "store")
	if err := os.Mkdir(store, 0o755); err != nil {
		return "", err
	}
	settings := []string{"--token-capture=auto", "--keepalive=300ms", "--log-level=warn", "--drain-timeout=10s"}
	if r.container, err = deploy.StartContainer(r.image, store, r.upstream, settings...); err != nil {
		return "", err
	}
	// The server sees both before they are used: rates are of what moves.
	dir := filepath.Join(r.dir, "prometheus")
	rules, err := os.ReadFile(filepath.Join(r.repository, "deploy", "prometheus", "rules.yaml"))
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return "", err
	}
	r.prometheus, err = deploy.StartPrometheus(dir, []deploy.Scrape{{Job: "rolltap", Address: r.container.Admin}, {Job: "engine", Address: r.upstream}}, string(rules))
	if err != nil {
		return "", err
	}
	return "ready", deploy.Eventually(20*time.Second, func() error {
		_, err := deploy.Get("http://" + r.container.Admin + "/readyz")
		return err
	})
}

func (r *run) confinement(context.Context) (string, error) {
	return "user 65532, no capabilities, seccomp, read-only root, 64 MiB, 1024 files", r.container.Confinement()
}

// memory adds to an error what the kernel says about memory.
func (r *run) memory(doing error) (string, error) {
	peak, kills, err := r.container.Memory()
	if err == nil && kills > 0 {
		err = fmt.Errorf("the kernel killed %d times for want of memory", kills)
	}
	if err = errors.Join(doing, err); err != nil {
		err = fmt.Errorf("%w\n%s", err, r.container.Log())
	}
	return fmt.Sprintf("at most %d MiB so far, files and tmpfs included, nothing killed", peak>>20), err
}
