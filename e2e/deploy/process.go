package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Programs are the built binaries that are tried.
type Programs struct{ Rolltap, Model string }

// Build compiles the sidecar, as a release is, and the demo model from the repository's root into a folder.
func Build(ctx context.Context, repository, dir string) (Programs, error) {
	p := Programs{Rolltap: filepath.Join(dir, "rolltap"), Model: filepath.Join(dir, "model")}
	for out, pkg := range map[string]string{p.Rolltap: ".", p.Model: "./deploy/model"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, pkg)
		cmd.Dir = repository
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return p, fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
		}
	}
	return p, nil
}

// Process is a started program. Whoever starts it stops it.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how; written before done is closed

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

// Write keeps what the program says.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// Log is what the program has said so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Start runs the command. It dies with the thread that started it at the latest.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Stop asks the program to end, by SIGTERM, and says how it did. One that takes longer than the time given is killed.
func (p *Process) Stop(within time.Duration) error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return p.err
	case <-time.After(within):
		p.Kill()
		return fmt.Errorf("it did not end within %v of SIGTERM", within)
	}
}

// Kill ends the program at once.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Eventually asks until there is no error any more, and returns the last one when the time is over.
func Eventually(within time.Duration, try func() error) error {
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// FreePorts are ports of the loopback address that nobody had a moment ago.
func FreePorts(n int) ([]string, error) {
	var ports []string
	var open []net.Listener
	defer func() {
		for _, l := range open {
			l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		open = append(open, l)
		ports = append(ports, l.Addr().String())
	}
	return ports, nil
}

var errNotRoot = errors.New("this needs root, to run programs as the user of the image and to make file systems")

// NeedRoot is an error for whoever is not root.
func NeedRoot() error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	return nil
}
