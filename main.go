// Command rolltap is a recording reverse proxy for agents in front of a model server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/alecthomas/kong"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"rolltap/internal/cli"
	"rolltap/internal/logs"
	"rolltap/internal/pace"
	"rolltap/proxy"
	"rolltap/rewrite"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }

// Set by the linker for releases: -ldflags "-X main.version=v1.2.3 -X main.commit=0123abc". Otherwise the build knows.
var version, commit string

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // at run time; after SIGTERM: answers had to be cut
	exitUsage  = 2 // bad usage or configuration, or a store that cannot be opened
)

const description = `A recording reverse proxy for LLM agents in front of a model server: agents call it under /ng-rollout/<rollout-id>/…, the bytes pass through, or are translated where the server speaks another dialect, and every model call is on disk, one JSON line each, before its answer ends.`

// grammar is the command line.
type grammar struct {
	Serve   serve       `cmd:"" help:"Run the sidecar until SIGTERM."`
	Demo    cli.Demo    `cmd:"" help:"See it work, with an embedded model and nothing else."`
	Show    cli.Show    `cmd:"" help:"List rollouts, or read one as a transcript."`
	Stats   cli.Stats   `cmd:"" help:"Add up tokens, times and errors."`
	Export  cli.Export  `cmd:"" help:"Write rollouts for trainers, for Gym and for people."`
	Verify  cli.Verify  `cmd:"" help:"Check every line of a store."`
	Clear   cli.Clear   `cmd:"" help:"Remove rollouts before a new attempt."`
	Version cli.Version `cmd:"" help:"Print version, commit and Go version."`
}

type serve struct {
	File     string   `name:"config" placeholder:"FILE" help:"YAML file with the settings below, named as the flags are, and the section rewrite:."`
	Settings settings `embed:""`
}

// settings is proxy.Config without its methods, of which kong would call Validate and make one error of all problems.
type settings proxy.Config

// Help is shown by --help.
func (s *serve) Help() string {
	return `A setting is taken from its flag, else from its environment variable, else from the file, else it is the default.`
}

// program is one run: where it talks, and how it was configured.
type program struct {
	stdout, stderr io.Writer
	environ        []string
	terminal       bool // people read stderr
	settings       *cli.Settings
	build          cli.Build
}

// run is the program. It reads nothing of the process but signals and files, and returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP) // the terminal is gone
	}
	ctx, stop := signal.NotifyContext(ctx, ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // who is in a hurry sends a second signal

	p := &program{stdout: stdout, stderr: stderr, environ: environ, settings: cli.NewSettings(environ, "rewrite"), build: buildInfo()}
	_, p.terminal = cli.Terminal(stderr)
	var g grammar
	helped := false
	k, err := kong.New(&g, append(p.settings.Options(),
		kong.Name("rolltap"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.Exit(func(int) { helped = true }))...)
	if err != nil {
		panic("internal error: the grammar: " + err.Error())
	}
	command, problems := p.settings.Parse(k, args)
	if helped {
		return exitDone
	}
	serving := command != nil && command.Command() == "serve"
	if serving {
		problems = g.Serve.check(p.settings, problems)
	}
	if len(problems) > 0 {
		for _, problem := range problems {
			p.say(zapcore.ErrorLevel, problem.String())
		}
		p.say(zapcore.InfoLevel, "see rolltap "+strings.TrimLeft(commandOf(k, args)+" --help", " "))
		return exitUsage
	}
	if serving {
		for _, name := range p.settings.UnknownEnv() {
			p.say(zapcore.WarnLevel, "unknown environment variable "+name+": no setting is called so")
		}
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return p.exit(command.Run(p, p.console(), p.build, cli.StartSidecar(p.startSidecar)))
}

// exit says what went wrong and how that counts.
func (p *program) exit(err error) int {
	var usage *cli.UsageError
	var problem *proxy.Problem
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, cli.ErrFound):
		return exitFailed
	}
	p.say(zapcore.ErrorLevel, err.Error())
	if errors.As(err, &usage) || errors.As(err, &problem) || errors.Is(err, proxy.ErrStore) {
		return exitUsage
	}
	return exitFailed
}

// say tells people one thing: text on a terminal, a JSON line elsewhere.
func (p *program) say(level zapcore.Level, text string) {
	lines := logs.New(p.stderr, nil)
	defer lines.Close()
	if p.terminal {
		fmt.Fprintf(lines, "rolltap: %s\n", text)
		return
	}
	p.logger(lines, "json", "debug").Log(level, text)
}

// gathered is the log of who serves: nobody waits for the log, whoever reads it, or does not. Lines of level info are written together, a moment
// late; those of other levels, and whatever stands in front of them, at once. The caller closes lines; nothing may be logged behind that.
func (p *program) gathered(format, level string) (log *zap.Logger, lines *logs.Writer) {
	lines = logs.New(p.stderr, func(n int64) {
		log.Warn("log lines were dropped: whoever reads them did not take them", zap.Int64("lines", n))
	})
	flush := func(e zapcore.Entry) error {
		if e.Level == zapcore.InfoLevel {
			return nil
		}
		return lines.Sync()
	}
	log = p.logger(lines, format, level).WithOptions(zap.Hooks(flush))
	return log, lines
}

// logger has the formats and levels of --log-format and --log-level.
func (p *program) logger(to zapcore.WriteSyncer, format, level string) *zap.Logger {
	c := zap.NewProductionEncoderConfig()
	c.TimeKey, c.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(c)
	if format == "console" || format == "auto" && p.terminal {
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		c.EncodeLevel, c.EncodeDuration = zapcore.CapitalLevelEncoder, zapcore.StringDurationEncoder
		encoder = zapcore.NewConsoleEncoder(c)
	}
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		at = zapcore.InfoLevel // check has refused it
	}
	return zap.New(zapcore.NewCore(encoder, to, at), zap.ErrorOutput(to))
}

func (p *program) console() *cli.Console {
	plain := slices.ContainsFunc(p.environ, func(kv string) bool {
		return kv == "TERM=dumb" || strings.HasPrefix(kv, "NO_COLOR=") && kv != "NO_COLOR="
	})
	columns, terminal := cli.Terminal(p.stdout)
	c := &cli.Console{
		Out: p.stdout, Colour: terminal && !plain, Width: columns,
		Note: func(text string) { p.say(zapcore.InfoLevel, text) },
	}
	if p.terminal && !plain {
		c.Watched = p.stderr
	}
	return c
}

// check adds what is wrong with settings that could be read.
func (s *serve) check(from *cli.Settings, problems []cli.Problem) []cli.Problem {
	var errs []error
	s.Settings.Rewrite = rewrite.DefaultPolicy()
	if section := from.Section("rewrite"); section != nil {
		var err error
		s.Settings.Rewrite, err = rewrite.PolicyFromJSON(section)
		errs = each(err)
	}
	cfg := proxy.Config(s.Settings)
	for _, err := range append(errs, each(cfg.Validate())...) {
		var problem *proxy.Problem
		var key *rewrite.KeyError
		switch {
		case errors.As(err, &key):
			problems = append(problems, from.InSection("rewrite", key.Key, err))
		case errors.As(err, &problem):
			problems = from.Add(problems, problem.Setting, problem.Err)
		case err != nil:
			problems = append(problems, cli.Problem{Err: err})
		}
	}
	return problems
}

// each takes joined errors apart, however deep.
func each(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var all []error
	for _, err := range joined.Unwrap() {
		all = append(all, each(err)...)
	}
	return all
}

// Run serves until ctx is done and everything in flight has had its end.
func (s *serve) Run(ctx context.Context, p *program, k *kong.Context) error {
	signal.Ignore(syscall.SIGPIPE) // which comes when the log is a pipe and its other end is gone, and would end the process
	defer signal.Reset(syscall.SIGPIPE)
	log, lines := p.gathered(s.Settings.LogFormat, s.Settings.LogLevel)
	defer lines.Close()
	defer pace.LeaveRoom()()
	log.Info("configuration", zap.String("version", p.build.Version), zap.String("commit", p.build.Commit),
		zap.Object("settings", effective(k)), zap.Object("origins", origins(k, p.settings)), zap.ByteString("rewrite", p.settings.Section("rewrite")), memoryLimit())
	defer p.raiseProcs()()
	defer pace.Start(p.environ)()
	server, err := proxy.Open(proxy.Config(s.Settings), proxy.Deps{Log: log, LogDropped: lines.Dropped, Version: p.build.Version, Commit: p.build.Commit})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// raiseProcs lets twice as many threads run Go code as there are cores, unless GOMAXPROCS says otherwise. Each record waits
// in fsync; with one thread a core those that come back find none free and are switched once more (measured on two cores:
// a quarter more durable answers a second). The returned func takes it back: run may be called again in one process.
func (p *program) raiseProcs() (lower func()) {
	if slices.ContainsFunc(p.environ, func(kv string) bool { return strings.HasPrefix(kv, "GOMAXPROCS=") }) {
		return func() {}
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(2 * before)
	return func() { runtime.GOMAXPROCS(before) }
}

// memoryLimit is what Go may use, in bytes, if that is limited.
func memoryLimit() zap.Field {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return zap.Int64("memory_limit", limit)
	}
	return zap.Skip()
}

// effective is the configuration that holds, secrets masked. Paths of files that hold secrets are none.
func effective(k *kong.Context) zapcore.ObjectMarshalerFunc {
	return func(e zapcore.ObjectEncoder) error {
		for _, f := range k.Selected().Flags {
			e.AddString(f.Name, shown(f))
		}
		return nil
	}
}

// origins is where the settings came from that are not default.
func origins(k *kong.Context, settings *cli.Settings) zapcore.ObjectMarshalerFunc {
	return func(e zapcore.ObjectEncoder) error {
		for _, f := range k.Selected().Flags {
			if o := settings.Origin(f.Name); o != (cli.Origin{}) {
				e.AddString(f.Name, o.String())
			}
		}
		return nil
	}
}

// shown is a setting's value as it is logged.
func shown(f *kong.Flag) string {
	if f.Target.Kind() == reflect.Slice {
		var parts []string
		for i := range f.Target.Len() {
			parts = append(parts, fmt.Sprint(f.Target.Index(i).Interface()))
		}
		return strings.Join(parts, ",")
	}
	text := fmt.Sprint(f.Target.Interface())
	for _, secret := range []string{"-key", "-token", "-secret", "-password"} {
		if strings.HasSuffix(f.Name, secret) && text != "" {
			return "***" // there is none today: secrets come in files. A new one must not slip through
		}
	}
	return text
}

// startSidecar is the sidecar of the demo: defaults, on a free loopback port, without an admin port.
func (p *program) startSidecar(o cli.SidecarOptions) (*cli.Sidecar, error) {
	var defaults settings
	if err := kong.ApplyDefaults(&defaults); err != nil {
		return nil, err
	}
	cfg := proxy.Config(defaults)
	cfg.Rewrite = rewrite.DefaultPolicy()
	cfg.Listen, cfg.AdminListen, cfg.Upstream, cfg.Store = "127.0.0.1:0", "", o.Upstream, o.Store
	cfg.TokenCapture, cfg.LogprobsMode = "auto", "raw"
	log, lines := p.gathered("auto", "warn")
	server, err := proxy.Open(cfg, proxy.Deps{Log: log, LogDropped: lines.Dropped, Version: p.build.Version, Commit: p.build.Commit})
	if err != nil {
		lines.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var failed error // written before done is closed
	go func() {
		defer close(done)
		defer lines.Close()
		failed = server.Run(ctx)
	}()
	stop := sync.OnceValue(func() error {
		cancel()
		<-done
		return failed
	})
	return &cli.Sidecar{Addr: server.Addr(), Done: done, Stop: stop}, nil
}

// commandOf is the command that args name, "" when they name none.
func commandOf(k *kong.Kong, args []string) string {
	for _, n := range k.Model.Children {
		if slices.Contains(args, n.Name) {
			return n.Name
		}
	}
	return ""
}

// buildInfo says which program this is.
func buildInfo() cli.Build {
	b := cli.Build{Version: version, Commit: commit, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	modified := false
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && b.Commit == "":
			b.Commit = s.Value
		case s.Key == "vcs.modified":
			modified = s.Value == "true"
		}
	}
	switch {
	case b.Commit == "":
		b.Commit = "unknown"
	case modified && commit == "":
		b.Commit += "-modified"
	}
	return b
}
