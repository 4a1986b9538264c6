package conventions

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// arrow is what a package may import: packages of this module by their path, libraries by the beginning of theirs.
type arrow struct {
	module    []string
	libraries []string
}

const (
	compress   = "github.com/klauspost/compress/"
	fastjson   = "github.com/valyala/fastjson"
	flock      = "github.com/gofrs/flock"
	kong       = "github.com/alecthomas/kong"
	prometheus = "github.com/prometheus/client_golang/"
	xsync      = "golang.org/x/sync/"
	xsys       = "golang.org/x/sys/"
	yaml       = "github.com/goccy/go-yaml"
	zap        = "go.uber.org/zap"
)

// jsonx may be known to everybody, except where a row leaves it out on purpose.
const jsonx = "internal/jsonx"

// grow is for whoever keeps what may become long.
const grow = "internal/grow"

// arrows is the whole picture. What a row does not name is forbidden, so that each library has one place that knows it.
var arrows = map[string]arrow{
	"main": {[]string{"proxy", "rewrite", "capture", "metrics", "internal/cli", "internal/logs", "internal/pace", jsonx}, []string{kong, yaml, zap, xsync, xsys}},

	"proxy/api": {[]string{"capture", "capture/derive", "capture/training", jsonx}, []string{zap}},

	"proxy": {[]string{"proxy/api", "rewrite", "rewrite/dialect", "rewrite/canon", "rewrite/lineage", "rewrite/tokens", "capture", "capture/protocol", "capture/training", "metrics", grow, jsonx}, []string{compress, zap, xsync, xsys}},

	"rewrite":           {[]string{"rewrite/chat", "rewrite/gemini", "rewrite/messages", "rewrite/responses", "rewrite/dialect", "rewrite/canon", "rewrite/sse", jsonx}, nil},
	"rewrite/chat":      {[]string{"rewrite/dialect", "rewrite/canon", "rewrite/fold", "rewrite/sse", jsonx}, nil},
	"rewrite/messages":  {[]string{"rewrite/dialect", "rewrite/canon", "rewrite/fold", "rewrite/sse", jsonx}, nil},
	"rewrite/gemini":    {[]string{"rewrite/dialect", "rewrite/canon", "rewrite/fold", "rewrite/sse", jsonx}, nil},
	"rewrite/responses": {[]string{"rewrite/dialect", "rewrite/canon", "rewrite/fold", "rewrite/sse", grow, jsonx}, nil},
	"rewrite/dialect":   {[]string{"rewrite/canon", "rewrite/sse", jsonx}, nil}, // a failure may come as a stream
	"rewrite/canon":     {},                                                     // std only
	"rewrite/fold":      {[]string{grow, jsonx}, nil},
	"rewrite/lineage":   {[]string{"internal/tokendigest", jsonx}, nil}, // hashes and decides; whoever keeps the calls is a function to it
	"rewrite/tokens":    {[]string{"rewrite/canon", "rewrite/sse", jsonx}, nil},
	"rewrite/sse":       {[]string{grow}, nil}, // framing knows no JSON

	"rewrite/dialecttest":          {[]string{"rewrite/dialect", "rewrite/canon", "rewrite/sse", jsonx}, nil}, // a kit like testing/slogtest
	"rewrite/dialecttest/generate": {[]string{"rewrite/canon"}, []string{"pgregory.net/rapid"}},               // of tests alone, likewise

	"capture": {[]string{"capture/protocol", "internal/storefs", jsonx}, []string{flock, xsync, xsys}},

	"capture/protocol": {}, // decisions, without files and clocks

	"capture/training": {[]string{"internal/storefs", "internal/tokendigest", jsonx}, []string{flock, xsys}}, // a store of its own; it does not know capture's

	"capture/derive": {[]string{"capture", jsonx}, nil},

	"capture/trajectory": {[]string{"capture", "capture/derive", jsonx}, nil},
	"capture/page":       {[]string{"capture", "capture/derive", "capture/trajectory", jsonx}, nil},

	"metrics": {nil, []string{prometheus}},

	"internal/cli": {[]string{"capture", "capture/derive", "capture/trajectory", "capture/page", "capture/training", "internal/demomodel", jsonx}, []string{kong, yaml, xsys}},

	"internal/demomodel":   {[]string{jsonx}, nil},
	"internal/grow":        {}, // std only
	"internal/jsonx":       {nil, []string{fastjson}},
	"internal/tokendigest": {}, // std only
	"internal/logs":        {}, // std only
	"internal/pace":        {}, // std only
	"internal/storefs":     {nil, []string{xsys}},
	"internal/conventions": {},

	"deploy":       {}, // tests alone
	"deploy/model": {[]string{"internal/demomodel"}, []string{prometheus}},
}

// testLibraries may be imported by any test. A test may import any package of the module too, except that dialects do not
// know each other even there.
var testLibraries = []string{
	"github.com/google/go-cmp/", "github.com/rogpeppe/go-internal/", "pgregory.net/rapid", "go.uber.org/goleak",
}

var dialects = []string{"rewrite/chat", "rewrite/gemini", "rewrite/messages", "rewrite/responses"}

// standard restricts packages of the standard library, and what is below them, to some of ours. Tests are free.
var standard = []struct {
	name string
	only []string
	why  string
}{
	{"net", []string{"main", "proxy", "proxy/api", "internal/cli", "internal/demomodel", "deploy/model"}, "opens sockets"},
	{"flag", []string{"main", "internal/cli", "deploy/model"}, "reads flags"},
	{"log", []string{"main", "proxy"}, "errors are returned and logged once, at the edge"},
	{"os", []string{"main", "proxy", "proxy/api", "capture", "capture/training", "internal/storefs", "metrics", "internal/cli", "internal/demomodel", "rewrite/dialecttest", "deploy/model"}, "bytes to bytes"},
	{"time", []string{"main", "proxy", "proxy/api", "capture", "capture/training", "capture/page", "metrics", "internal/cli", "internal/demomodel", "internal/logs", "deploy/model"}, "bytes to bytes, without a clock"},
	{"syscall", []string{"main", "proxy", "capture", "capture/training", "internal/storefs", "deploy/model"}, "the operating system has its places"},
	{"plugin", nil, "one static binary"},
}

// harmless are the exceptions to standard: names of a package that may be used by a package which may not import it
// otherwise. A last * stands for any ending.
var harmless = map[string]map[string][]string{
	"metrics": {"net/http": {"Handler", "HandlerFunc", "ResponseWriter", "Request"}}, // it hands out a handler; the listener is proxy's
	"rewrite": {"net/http": {"Method*", "Status*"}},                                  // words of the protocol
}

func checkImports(p pkg) []string {
	row, ok := arrows[p.path]
	if !ok {
		return []string{"the package has no row in arrows: which packages and libraries may it import?"}
	}
	var bad []string
	for _, f := range p.files {
		for _, path := range f.imports() {
			if why := forbidden(p, row, f, path); why != "" {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s", f.name, path, why))
			}
		}
	}
	return bad
}

// forbidden says why a file may not import a path; empty when it may.
func forbidden(p pkg, row arrow, f *file, path string) string {
	begins := func(with string) bool { return strings.HasPrefix(path, with) }
	first, _, _ := strings.Cut(path, "/")
	switch inside, ours := strings.CutPrefix(path, module+"/"); {
	case ours && f.test:
		if inside != p.path && slices.Contains(dialects, inside) && slices.Contains(dialects, p.path) {
			return "dialects do not know each other, not even in tests"
		}
	case ours:
		if !slices.Contains(row.module, inside) {
			return "no arrow leads there"
		}
	case strings.Contains(first, "."):
		if !slices.ContainsFunc(row.libraries, begins) && !(f.test && slices.ContainsFunc(testLibraries, begins)) {
			return "this library has another place"
		}
	case !f.test:
		for _, s := range standard {
			if (path == s.name || begins(s.name+"/")) && path != "net/url" && path != "net/netip" &&
				!slices.Contains(s.only, p.path) && harmless[p.path][path] == nil {
				return s.why
			}
		}
	}
	return ""
}

func TestImports(t *testing.T) {
	found := map[string]bool{}
	for _, p := range packages(t) {
		found[p.path] = true
		for _, bad := range checkImports(p) {
			t.Errorf("%s: %s", p.path, bad)
		}
	}
	for path := range arrows {
		if !found[path] {
			t.Errorf("arrows has a row for %s, which is no package", path)
		}
	}
}
