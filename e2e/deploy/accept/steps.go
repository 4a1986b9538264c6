package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rolltap/e2e/deploy"
)

// tally is how many records the calls that were sent must have left.
type tally struct{ records int }

const (
	manyCalls, connections = 512, 64
	manySize               = 400 << 10
	largeSize              = 64<<20 - 1024 // the head of the body included it is just within --max-request-bytes
)

func (r *run) many(ctx context.Context) (string, error) {
	err := r.container.Traffic().Big(ctx, "many", manyCalls, connections, manySize)
	r.sent.records += manyCalls
	return r.memory(err)
}

func (r *run) large(ctx context.Context) (string, error) {
	err := r.container.Traffic().Big(ctx, "large", 1, 1, largeSize)
	r.sent.records++
	return r.memory(err)
}

func (r *run) mix(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.traffic)
	defer cancel()
	rounds, err := r.container.Traffic().Mix(ctx, 4)
	r.sent.records += rounds * (len(deploy.Sound("")) + deploy.TroubledRecords)
	said, err := r.memory(err)
	return fmt.Sprintf("%d rounds of sound and troubled calls; %s", rounds, said), err
}

// panels asks every query of the dashboard for the time of the traffic.
func (r *run) panels(ctx context.Context) (string, error) {
	queries, err := deploy.ReadDashboard(r.repository)
	if err != nil {
		return "", err
	}
	var empty []error
	for _, q := range queries {
		v := deploy.Variables{Job: "rolltap", Instance: ".*", Engine: "engine", Interval: "12s", Range: "1m"}
		n, err := r.prometheus.Points(ctx, v.Fill(q.Expr), r.traffic)
		if err != nil {
			return "", fmt.Errorf("%s: %w", q, err)
		}
		if n == 0 {
			empty = append(empty, fmt.Errorf("%s is empty: %s", q, q.Expr))
		}
	}
	return fmt.Sprintf("%d queries, none empty", len(queries)), errors.Join(empty...)
}

// alerts: every rule is evaluated without an error, and what fires is no fault of the sidecar. The store's disk is this machine's,
// so what is said about its space is not judged.
func (r *run) alerts(ctx context.Context) (string, error) {
	n, errs, err := r.prometheus.RuleErrors(ctx)
	if err != nil || len(errs) > 0 {
		return "", fmt.Errorf("%w %s", err, strings.Join(errs, "; "))
	}
	firing, err := r.prometheus.Alerts(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range firing {
		if name := a.Labels["alertname"]; !strings.HasPrefix(name, "RolltapStore") {
			return "", fmt.Errorf("%s fires: %s", name, a.Annotations["description"])
		}
	}
	return fmt.Sprintf("%d rules evaluated, no false alarm", n), nil
}

// stop ends the container while calls run: they have their ends.
func (r *run) stop(ctx context.Context) (string, error) {
	const running = 8
	done := make(chan error, running)
	for i := range running {
		call := deploy.Call{Rollout: fmt.Sprintf("drain-%d", i), Dialect: "chat", Text: "60 words [demo-fault: slow=20ms]", Stream: true, Status: 200}
		go func() { done <- r.container.Traffic().Do(ctx, call) }()
	}
	r.sent.records += running
	time.Sleep(300 * time.Millisecond) // in the middle of them; a call takes more than a second
	err := r.container.End(ctx)
	r.container = nil
	for range running {
		err = errors.Join(err, <-done)
	}
	return fmt.Sprintf("exit code 0 after SIGTERM, with %d streams in flight, which came to their ends", running), err
}

// store checks what was left: every line whole, nothing missing or marked, as many records as calls, the image's user as owner.
func (r *run) store(ctx context.Context) (string, error) {
	dir := filepath.Join(r.dir, "store")
	verify := exec.CommandContext(ctx, r.programs.Rolltap, "verify", "--strict", "--store", dir)
	if text, err := verify.CombinedOutput(); err != nil {
		return "", fmt.Errorf("verify: %w\n%s", err, text)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	records, cut := 0, 0
	for _, entry := range files {
		info, err := entry.Info()
		if err != nil {
			return "", err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid != 65532 || stat.Gid != 65532 {
			return "", fmt.Errorf("%s belongs to %+v", entry.Name(), stat)
		}
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if info.Mode() != 0o640 {
			return "", fmt.Errorf("%s has the mode %v", entry.Name(), info.Mode())
		}
		if !strings.HasSuffix(entry.Name(), ".capture.jsonl") {
			continue // of token capture
		}
		n, c, err := count(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		records, cut = records+n, cut+c
	}
	if records != r.sent.records {
		return "", fmt.Errorf("%d records for %d calls", records, r.sent.records)
	}
	if cut > 0 {
		return "", fmt.Errorf("%d records are cut", cut)
	}
	return fmt.Sprintf("%d records for as many calls, the large body whole, verified strictly, 0640 and 65532:65532", records), nil
}

// count is the number of records in a file, and of those that say that a part was cut.
func count(name string) (records, cut int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return records, cut, nil
		}
		if err != nil || !json.Valid(line) {
			return records, cut, fmt.Errorf("%s: record %d: %w", name, records+1, errors.Join(err, errors.New("not a JSON line")))
		}
		records++
		if !bytes.Contains(line, []byte(`"truncated":[]`)) {
			cut++
		}
	}
}
