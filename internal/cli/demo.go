package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rolltap/capture"
	"rolltap/internal/demomodel"
)

// Demo shows in a minute what rolltap does, with nothing but this program.
type Demo struct {
	Once  bool   `env:"-" help:"Exit after the table; 0 only when every call is in the store as ok."`
	Store string `env:"-" placeholder:"DIR" help:"Capture folder; without it a new temporary one."`
}

// Help is shown by --help.
func (d *Demo) Help() string {
	return `Starts an embedded model and the sidecar in front of it on free loopback ports, sends streaming and unary calls in all three dialects (text, reasoning, tools) under real rollout ids, prints what the store holds of them, and goes on serving for calls of your own.`
}

// SidecarOptions is what the demo wants of a sidecar; everything else is default.
type SidecarOptions struct{ Upstream, Store string }

// Sidecar is a running sidecar on a free loopback port.
type Sidecar struct {
	Addr string
	Done <-chan struct{} // closed when it has stopped, by itself too
	Stop func() error    // ends it and says how that went; may be called more than once
}

// StartSidecar starts a sidecar. It is handed in, since this package does not know the proxy.
type StartSidecar func(SidecarOptions) (*Sidecar, error)

// tokenDelay makes the demo model slow enough that the first token and the last are told apart.
const tokenDelay = 3 * time.Millisecond

// Run returns ErrFound when not every call was captured as ok.
func (d *Demo) Run(ctx context.Context, c *Console, start StartSidecar) error {
	store := d.Store
	if store == "" {
		dir, err := os.MkdirTemp("", "rolltap-demo-")
		if err != nil {
			return err
		}
		store = dir
	}
	model, stopModel, err := serveModel()
	if err != nil {
		return err
	}
	defer stopModel()
	sidecar, err := start(SidecarOptions{Upstream: model, Store: store})
	if err != nil {
		return err
	}
	run := &demoRun{base: "http://" + sidecar.Addr, store: store, client: &http.Client{Transport: &http.Transport{}}}
	defer run.client.CloseIdleConnections()
	for _, dialect := range demoDialects() {
		for _, s := range demoScenarios {
			run.play(ctx, dialect, s)
		}
	}
	replay(ctx, c, store)
	ok, err := run.report(c)
	if err == nil && !ok {
		err = ErrFound
	}
	if err == nil && !d.Once && ctx.Err() == nil {
		if err = d.invite(c, run); err == nil {
			select {
			case <-ctx.Done():
			case <-sidecar.Done:
			}
		}
	}
	return errors.Join(err, sidecar.Stop())
}

// serveModel runs the embedded model on a free loopback port.
func serveModel() (base string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: demomodel.New(demomodel.Options{TokenDelay: tokenDelay}), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(ln) // ends with Close
	}()
	return "http://" + ln.Addr().String(), func() { _ = srv.Close(); <-served }, nil
}

// report reads the store back and prints a row for every call that was sent. A call that is not there is a row, too.
func (r *demoRun) report(c *Console) (ok bool, err error) {
	ok = len(r.sent) > 0
	rows := [][]cell{heads("rollout", "dialect", "mode", "outcome", "finish", ">TTFT", ">total", ">prompt", ">completion")}
	for _, s := range r.sent {
		mode := "unary"
		if s.stream {
			mode = "stream"
		}
		row := []cell{{text: s.rollout, style: bold}, {text: s.dialect}, {text: mode}}
		record, found := r.record(s)
		if !found {
			ok = false
			why := "no record"
			if s.err != nil {
				why += ": " + inertLine(s.err.Error())
			}
			rows = append(rows, append(row, cell{text: why, style: red}))
			continue
		}
		if record.failed() {
			ok = false
		}
		ttft := "-"
		if s.stream && record.ttft >= 0 {
			ttft = took(record.ttft)
		}
		rows = append(rows, append(row,
			cell{text: inertLine(record.outcome), style: outcomeStyle(record.outcome)}, cell{text: inertLine(record.finish)},
			cell{text: ttft, right: true}, cell{text: took(record.latency), right: true},
			cell{text: count(record.prompt), right: true}, cell{text: count(record.completion), right: true}))
	}
	if err := c.table(c.Out, rows); err != nil {
		return false, err
	}
	for _, id := range r.rollouts() {
		if capture.Marked(r.store, id) {
			ok = false
			fmt.Fprintln(c.Out, c.paint(red, "rollout "+id+" is marked incomplete: a record was lost or late"))
		}
	}
	verdict := "\nEvery call above was read back from " + r.shown() + ", one JSON line each."
	if !ok {
		verdict = "\nNot every call is in " + r.shown() + " as ok."
	}
	last := r.sent[len(r.sent)-1].rollout
	_, err = fmt.Fprintf(c.Out, "%[1]s\nLook at them, and at the token ids behind them, with\n\n  rolltap show --store %[2]s\n  rolltap show %[3]s --store %[2]s\n  rolltap show %[3]s --store %[2]s --tokens\n",
		verdict, quote(r.store), last)
	return ok, err
}

func (r *demoRun) shown() string {
	if abs, err := filepath.Abs(r.store); err == nil {
		return inertLine(abs)
	}
	return inertLine(r.store)
}

// invite prints lines to paste into another terminal.
func (d *Demo) invite(c *Console, r *demoRun) error {
	var b strings.Builder
	fmt.Fprintf(&b, `
Still serving on %[1]s until you press Ctrl-C. The rollout id is part of the base URL; whatever is called there is captured under it.

curl
  curl -N %[1]s/ng-rollout/my-first/v1/chat/completions -H 'content-type: application/json' \
    -d '{"model":"rolltap-demo","stream":true,"messages":[{"role":"user","content":"Why is the sky blue?"}]}'

Put /training-token-capture behind the id, and the exact token ids are captured, too.

Claude Code
  ANTHROPIC_BASE_URL=%[1]s/ng-rollout/my-claude/training-token-capture ANTHROPIC_AUTH_TOKEN=demo ANTHROPIC_MODEL=rolltap-demo \
    ANTHROPIC_DEFAULT_HAIKU_MODEL=rolltap-demo ANTHROPIC_DEFAULT_SONNET_MODEL=rolltap-demo \
    ANTHROPIC_DEFAULT_OPUS_MODEL=rolltap-demo CLAUDE_CODE_SUBAGENT_MODEL=rolltap-demo claude
  rolltap show my-claude --store %[2]s --tokens --json > my-claude.tokens.json

Codex
  RT_KEY=demo codex -m rolltap-demo -c model_provider=rt \
    -c 'model_providers.rt={name="rt",base_url="%[1]s/ng-rollout/my-codex/v1",wire_api="responses",env_key="RT_KEY"}'
`, r.base, quote(r.store))
	_, err := fmt.Fprint(c.Out, b.String())
	return err
}

// quote makes a path one word of a shell, and harmless to a terminal.
func quote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(inertLine(path), "'", `'\''`) + "'"
}
