package cli

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix is in front of every variable that rolltap reads.
const envPrefix = "ROLLTAP_"

// Settings fills the flags of the selected command: command line before environment before file (--config, where the
// command has it) before default. One Settings serves one Parse.
//
// kong reads variables from the process, lets a resolver win over them and stops at the first mistake. So Settings keeps
// the names of the variables from kong, is the one resolver for both the environment and the file, and puts a decoder
// around each flag's own that notes an error and goes on.
type Settings struct {
	environ  map[string]string
	envs     map[*kong.Value]string // the variable of a flag; flags tagged env:"-" have none
	file     *settingsFile          // nil before it is read, or without one
	sections []string               // keys of the file that hold mappings and are no flags
	origins  map[string]Origin
	problems []Problem
}

// Origin is where a setting's value came from: the zero value is its default.
type Origin struct {
	Flag bool
	Env  string
	File string
	Line int
}

func (o Origin) String() string {
	switch {
	case o.Flag:
		return "flag"
	case o.Env != "":
		return "env " + o.Env
	case o.Line > 0:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case o.File != "":
		return o.File
	}
	return "default"
}

// Problem is one thing that is wrong with a command line, a variable or a line of a settings file.
type Problem struct {
	Setting string // the flag without dashes; "" when there is none to name
	Env     string // its variable, "" when it has none
	Origin  Origin // where the value came from, as far as that is known
	Err     error
}

func (p Problem) String() string {
	text := p.Err.Error()
	switch flag := "--" + p.Setting; {
	case p.Setting == "":
	case p.Env == "":
		text = flag + ": " + text
	case p.Origin.Env != "":
		text = fmt.Sprintf("%s (%s): %s", p.Env, flag, text)
	default:
		text = fmt.Sprintf("%s (%s): %s", flag, p.Env, text)
	}
	if p.Origin.File != "" {
		text = p.Origin.String() + ": " + text
	}
	return text
}

// NewSettings reads variables from environ only. The file may have the sections named, which are no flags.
func NewSettings(environ []string, sections ...string) *Settings {
	s := &Settings{sections: sections, environ: map[string]string{}, envs: map[*kong.Value]string{}, origins: map[string]Origin{}}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			s.environ[name] = value
		}
	}
	return s
}

// Options ties a parser to s.
func (s *Settings) Options() []kong.Option {
	return []kong.Option{
		kong.PostBuild(func(k *kong.Kong) error { s.adopt(k.Model.Node); return nil }),
		kong.WithBeforeResolve(func(ctx *kong.Context) error { s.open(ctx); return nil }),
		kong.Resolvers(s),
		kong.ValueFormatter(s.help),
	}
}

func (s *Settings) adopt(n *kong.Node) {
	for _, f := range n.Flags {
		envs := f.Tag.Envs
		f.Envs, f.Tag.Envs = nil, nil // else kong reads the process
		if f.Name != "help" && !slices.Contains(envs, "-") {
			s.envs[f.Value] = envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		}
		if f.PlaceHolder == "" && !f.HasDefault && !f.IsBool() {
			f.PlaceHolder = strings.ToUpper(f.Name[strings.LastIndexByte(f.Name, '-')+1:])
		}
		f.Mapper = noting{f.Mapper, s}
	}
	for _, c := range n.Children {
		s.adopt(c)
	}
}

func (s *Settings) help(v *kong.Value) string {
	if env := s.envs[v]; env != "" {
		return v.Help + " [$" + env + "]"
	}
	return v.Help
}

// noting is a flag's decoder that keeps errors for later, so that one run names all of them.
type noting struct {
	kong.Mapper
	s *Settings
}

func (n noting) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if !ctx.Value.IsBool() && !ctx.Scan.Peek().IsValue() {
		n.s.problem(ctx.Value.Name, errors.New("a value is missing; one that begins with a dash is written behind an equals sign"))
		return nil
	}
	if err := n.Mapper.Decode(ctx, target); err != nil {
		n.s.problem(ctx.Value.Name, err)
	}
	return nil
}

// problem notes what is wrong with a setting, with the place that its value came from.
func (s *Settings) problem(setting string, err error) {
	s.problems = append(s.problems, Problem{setting, s.envOf(setting), s.origins[setting], err})
}

func (s *Settings) envOf(setting string) string {
	for v, env := range s.envs {
		if v.Name == setting {
			return env
		}
	}
	return ""
}

// open reads the file that --config or its variable names and refuses what is no setting of the command.
func (s *Settings) open(ctx *kong.Context) {
	node := ctx.Selected()
	if s.file != nil || node == nil {
		return // kong calls a hook once for every element of the command line
	}
	known := map[string]bool{}
	path := ""
	for _, f := range node.Flags {
		known[f.Name] = f.Name != "config" // a file that names another file is a riddle
		if f.Name != "config" {
			continue
		}
		path, _ = ctx.FlagValue(f).(string)
		if env, ok := s.environ[s.envs[f.Value]]; ok && path == "" {
			path = env
		}
	}
	if path == "" {
		s.file = &settingsFile{}
		return
	}
	file, problems := readSettings(path, s.sections)
	for i := range problems {
		problems[i].Env = s.envOf(problems[i].Setting)
	}
	for _, key := range slices.Sorted(maps.Keys(file.entries)) {
		if !known[key] && !slices.Contains(s.sections, key) {
			problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.Setting == key })
			problems = append(problems, Problem{
				Origin: Origin{File: path, Line: file.entries[key].line}, Err: fmt.Errorf("unknown key %q", key)})
			delete(file.entries, key)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Origin.Line - b.Origin.Line })
	s.file = file
	s.problems = append(s.problems, problems...)
}

// Resolve implements kong.Resolver. kong asks only for flags that the command line does not have.
func (s *Settings) Resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	if env := s.envs[f.Value]; env != "" {
		if value, ok := s.environ[env]; ok {
			s.origins[f.Name] = Origin{Env: env}
			return value, nil
		}
	}
	if s.file == nil {
		return nil, nil
	}
	e, ok := s.file.entries[f.Name]
	if !ok || e.values == nil && !e.list {
		return nil, nil
	}
	s.origins[f.Name] = Origin{File: s.file.path, Line: e.line}
	if e.list && !f.IsSlice() && f.Target.Kind() != reflect.Map {
		s.problem(f.Name, fmt.Errorf("one value is wanted, not a list or a mapping"))
		return nil, nil
	}
	return strings.Join(e.values, ","), nil
}

// Validate implements kong.Resolver.
func (s *Settings) Validate(*kong.Application) error { return nil }

// Parse reads args and returns every problem at once; the context is nil when there is no command to speak of.
func (s *Settings) Parse(k *kong.Kong, args []string) (*kong.Context, []Problem) {
	args = s.takeUnknown(k, args)
	if len(s.problems) > 0 && args == nil {
		return nil, s.problems
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return nil, append(s.problems, Problem{Err: err})
	}
	for _, p := range ctx.Path {
		if p.Flag != nil && !p.Resolved {
			s.origins[p.Flag.Name] = Origin{Flag: true}
		}
	}
	return ctx, s.problems
}

// takeUnknown notes flags that the command does not have and takes them out, since kong would read nothing behind one. It
// returns nothing when the command is none.
func (s *Settings) takeUnknown(k *kong.Kong, args []string) []string {
	at := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if at < 0 {
		return args
	}
	i := slices.IndexFunc(k.Model.Children, func(n *kong.Node) bool { return n.Name == args[at] })
	if i < 0 {
		var names []string
		for _, n := range k.Model.Children {
			names = append(names, n.Name)
		}
		s.problems = append(s.problems, Problem{Err: fmt.Errorf("unknown command %q: there are %s", args[at], strings.Join(names, ", "))})
		return nil
	}
	command := k.Model.Children[i]
	known := map[string]bool{"--help": true}
	for _, f := range command.Flags {
		known["--"+f.Name] = true
	}
	kept := slices.Clone(args[:at+1])
	for rest := args[at+1:]; len(rest) > 0; rest = rest[1:] {
		name, _, joined := strings.Cut(rest[0], "=")
		if name == "--" {
			return append(kept, rest...)
		}
		if !strings.HasPrefix(name, "--") || known[name] {
			kept = append(kept, rest[0])
			continue
		}
		// kong knows flags of a similar spelling.
		if ctx, err := kong.Trace(k, []string{command.Name, name}); err == nil && ctx.Error != nil {
			s.problems = append(s.problems, Problem{Err: ctx.Error})
		}
		if !joined && len(command.Positional) == 0 && len(rest) > 1 && !strings.HasPrefix(rest[1], "-") {
			rest = rest[1:] // its value; where a command has arguments the word may as well be one
		}
	}
	return kept
}

// Add appends problems that a command found in its own settings. Where a value could not be read already, the command
// judged nothing but its absence, so the first word stands.
func (s *Settings) Add(problems []Problem, setting string, err error) []Problem {
	for _, p := range problems {
		if p.Setting == setting {
			return problems
		}
	}
	return append(problems, Problem{setting, s.envOf(setting), s.origins[setting], err})
}

// Section is what the file has under a key that holds a mapping, as a JSON object; nil when it has none.
func (s *Settings) Section(name string) []byte {
	if s.file == nil {
		return nil
	}
	e, ok := s.file.entries[name]
	if ok {
		s.origins[name] = Origin{File: s.file.path, Line: e.line}
	}
	return e.section
}

// InSection is a problem with a key of a section, which may have a place inside it: "sampling[0].model".
func (s *Settings) InSection(section, key string, err error) Problem {
	e := s.file.entries[section]
	line := e.line
	if at, ok := e.lines[key[:len(key)-len(strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyz_"))]]; ok {
		line = at
	}
	return Problem{Origin: Origin{File: s.file.path, Line: line}, Err: err}
}

// Origin says where the setting's value came from.
func (s *Settings) Origin(setting string) Origin { return s.origins[setting] }

// kubernetesService matches what a Kubernetes service called rolltap, or rolltap-something, puts into the environment of
// every pod of its namespace: those are no misspelt settings.
var kubernetesService = regexp.MustCompile(`^ROLLTAP_(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)$`)

// UnknownEnv is the variables that begin like ours and are none of any command's.
func (s *Settings) UnknownEnv() []string {
	known := map[string]bool{}
	for _, env := range s.envs {
		known[env] = true
	}
	var unknown []string
	for name := range s.environ {
		if strings.HasPrefix(name, envPrefix) && !known[name] && !kubernetesService.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
