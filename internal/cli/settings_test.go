package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// command is a grammar like the program's.
type command struct {
	Serve struct {
		File     string        `name:"config" help:"Settings."`
		Wait     time.Duration `default:"4s" help:"How long."`
		Pause    time.Duration `help:"How long, without a default."`
		Names    []string      `default:"a" help:"Who."`
		Bold     bool          `help:"Whether."`
		Name     string        `default:"x"`
		Hidden   bool          `env:"-"`
		AFewName string        `name:"a-few-name"`
	} `cmd:""`
	Show struct {
		ID   string `arg:"" optional:""`
		Name string
	} `cmd:""`
}

func parse(t *testing.T, environ []string, args ...string) (*command, *Settings, *kong.Context, []Problem) {
	t.Helper()
	var g command
	s := NewSettings(environ)
	k, err := kong.New(&g, append(s.Options(), kong.Name("p"), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, problems := s.Parse(k, args)
	return &g, s, ctx, problems
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	for combination := range 16 {
		flag, env, file, def := combination&8 != 0, combination&4 != 0, combination&2 != 0, combination&1 != 0
		name, variable := "pause", "ROLLTAP_PAUSE"
		if def {
			name, variable = "wait", "ROLLTAP_WAIT"
		}
		var args, environ []string
		want, origin := time.Duration(0), "default"
		if def {
			want = 4 * time.Second
		}
		text := "names: b\n"
		if file {
			text += name + ": 3s\n"
			want = 3 * time.Second
		}
		path := write(t, text)
		if file {
			origin = path + ":2"
		}
		if env {
			environ = append(environ, variable+"=2s")
			want, origin = 2*time.Second, "env "+variable
		}
		args = []string{"serve", "--config", path}
		if flag {
			args = append(args, "--"+name+"=1s")
			want, origin = time.Second, "flag"
		}
		t.Run(fmt.Sprintf("flag=%t env=%t file=%t default=%t", flag, env, file, def), func(t *testing.T) {
			g, s, _, problems := parse(t, environ, args...)
			if problems != nil {
				t.Fatal(problems)
			}
			got := g.Serve.Pause
			if def {
				got = g.Serve.Wait
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if o := s.Origin(name).String(); o != origin {
				t.Errorf("origin %q, want %q", o, origin)
			}
		})
	}
}

// The process's own variables are read by main and by nobody else.
func TestProcessEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("ROLLTAP_WAIT", "9s")
	g, _, _, problems := parse(t, nil, "serve")
	if problems != nil || g.Serve.Wait != 4*time.Second {
		t.Errorf("got %s, %v", g.Serve.Wait, problems)
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		file    string
		want    []string
	}{
		{"all at once, each with its place", []string{"ROLLTAP_PAUSE=soon"}, []string{"--bold=perhaps", "--nmae=x"}, "wait: 30\nwhat: 1\n", []string{
			`unknown flag --nmae`,
			`--bold (ROLLTAP_BOLD): bool value must be`,
			`FILE:2: unknown key "what"`,
			`FILE:1: --wait (ROLLTAP_WAIT): expected duration but got "30"`,
			`ROLLTAP_PAUSE (--pause): expected duration but got "soon"`,
		}},
		{"unknown flags with and without values", nil, []string{"--retention", "7d", "--tokens=auto", "--wait", "--bold"}, "", []string{
			"unknown flag --retention", "unknown flag --tokens", "--wait (ROLLTAP_WAIT): a value is missing",
		}},
		{"a file does not name a file", nil, nil, "config: other.yaml\n", []string{`FILE:1: unknown key "config"`}},
		{"keys are spelled as flags", nil, nil, "a_few_name: x\nWait: 1s\n", []string{`FILE:1: unknown key "a_few_name"`, `FILE:2: unknown key "Wait"`}},
		{"a flag without a variable has no name to give", nil, []string{"--hidden=x"}, "", []string{"--hidden: bool value"}},
		{"an empty duration", []string{"ROLLTAP_WAIT="}, nil, "", []string{"ROLLTAP_WAIT (--wait): expected duration"}},
		{"a list for one value", nil, nil, "wait: [1s]\n", []string{"FILE:1: --wait (ROLLTAP_WAIT): one value is wanted, not a list"}},
		{"a mapping for a value", nil, nil, "wait: {a: 1s}\n", []string{"FILE:1: --wait (ROLLTAP_WAIT): one value is wanted, not a list"}},
		{"a mapping in a list", nil, nil, "names: [{a: b}]\n", []string{"FILE:1: --names (ROLLTAP_NAMES): a list of plain values is wanted"}},
		{"no value", nil, nil, "name:\n", []string{`FILE:1: --name (ROLLTAP_NAME): no value`}},
		{"an alias", nil, nil, "name: &a x\na-few-name: *a\n", []string{"FILE:1: --name (ROLLTAP_NAME): a plain value", "FILE:2: --a-few-name (ROLLTAP_A_FEW_NAME): a plain value"}},
		{"a list at the top", nil, nil, "- wait\n", []string{"FILE:1: settings are lines of"}},
		{"a second document", nil, nil, "wait: 1s\n---\nwait: 2s\n", []string{"FILE:3: a second document"}},
		{"a key twice", nil, nil, "wait: 1s\nwait: 2s\n", []string{"FILE:2: mapping key \"wait\" already defined"}},
		{"no YAML", nil, nil, "wait: 1s\nnames: [\n", []string{"FILE:2: "}},
		{"arguments that no command has", nil, []string{"now"}, "", []string{"unexpected argument now"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"serve"}, c.args...)
			path := ""
			if c.file != "" {
				path = write(t, c.file)
				args = append(args, "--config="+path)
			}
			_, _, _, problems := parse(t, c.environ, args...)
			var got []string
			for _, p := range problems {
				got = append(got, strings.ReplaceAll(p.String(), path, "FILE"))
			}
			if path == "" {
				got = got[:0]
				for _, p := range problems {
					got = append(got, p.String())
				}
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
					t.Errorf("want a problem that begins with\n  %s\ngot\n  %s", want, strings.Join(got, "\n  "))
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("got %d problems, want %d:\n  %s", len(got), len(c.want), strings.Join(got, "\n  "))
			}
		})
	}
}

func TestCommandsThatAreNone(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"export", `unknown command "export": there are serve, show`},
		{"", `expected one of "serve", "show"`},
		{"--nothing", "unknown flag --nothing"},
	} {
		_, _, ctx, problems := parse(t, nil, strings.Fields(c.args)...)
		if ctx != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) {
			t.Errorf("%q: got %v, want %s", c.args, problems, c.want)
		}
	}
}

// Values in a file are text, read by the code that reads flags.
func TestFileValues(t *testing.T) {
	path := write(t, "# a comment\nnames:\n  - b\n  - 'c'\nbold: true\nname: 010 # a name\na-few-name: \"\"\n---\n")
	g, _, _, problems := parse(t, []string{"ROLLTAP_CONFIG=" + path}, "serve")
	if problems != nil {
		t.Fatal(problems)
	}
	if got := g.Serve; !slices.Equal(got.Names, []string{"b", "c"}) || !got.Bold || got.Name != "010" || got.AFewName != "" {
		t.Errorf("got %+v", got)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if _, _, _, problems := parse(t, nil, "serve", "--config", write(t, empty)); problems != nil {
			t.Errorf("%q: %v", empty, problems)
		}
	}
}

// An argument that looks like the value of an unknown flag may be a rollout.
func TestUnknownFlagKeepsArguments(t *testing.T) {
	g, _, _, problems := parse(t, nil, "show", "--what", "id")
	if len(problems) != 1 || g.Show.ID != "id" {
		t.Errorf("got %v and id %q", problems, g.Show.ID)
	}
}

func TestUnknownEnvironment(t *testing.T) {
	_, s, _, _ := parse(t, []string{
		"PATH=/bin", "ROLLTAP_WAIT=1s", "ROLLTAP_WIAT=1s", "ROLLTAP_HIDDEN=1",
		"ROLLTAP_PORT=tcp://10.0.0.1:8080", "ROLLTAP_SERVICE_HOST=10.0.0.1", "ROLLTAP_SERVICE_PORT=1", "ROLLTAP_SERVICE_PORT_HTTP=1",
		"ROLLTAP_PORT_8080_TCP_ADDR=10.0.0.1", "ROLLTAP_ADMIN_SERVICE_HOST=10.0.0.2",
	}, "serve")
	if got := s.UnknownEnv(); !slices.Equal(got, []string{"ROLLTAP_HIDDEN", "ROLLTAP_WIAT"}) {
		t.Errorf("got %v", got)
	}
}
