package conventions

import (
	"slices"
	"strings"
	"testing"
)

// TestRulesBite holds every rule against code that breaks it, and against the nearest code that does not.
func TestRulesBite(t *testing.T) {
	long := strings.Repeat("//\n", maxLines)
	for _, c := range []struct {
		path, file, src string
		want            string // part of the complaint; empty: none
	}{
		{"proxy", "a.go", `package proxy; import "rolltap/capture"`, ""},
		{"proxy", "a.go", `package proxy; import "rolltap/internal/demomodel"`, "no arrow"},
		{"proxy", "a_test.go", `package proxy; import "rolltap/internal/demomodel"`, ""},
		{"proxy", "a.go", `package proxy; import "github.com/gofrs/flock"`, "another place"},
		{"proxy", "a.go", `package proxy; import "github.com/prometheus/client_golang/prometheus"`, "another place"},
		{"capture", "a.go", `package capture; import "rolltap/metrics"`, "no arrow"},
		{"capture", "a.go", `package capture; import "go.uber.org/zap"`, "another place"},
		{"capture", "a.go", `package capture; import "net"`, "sockets"},
		{"capture", "a.go", `package capture; import "net/url"`, ""},
		{"capture", "a_test.go", `package capture; import "net"`, ""},
		{"capture", "a_test.go", `package capture; import "pgregory.net/rapid"`, ""},
		{"capture", "a.go", `package capture; import "pgregory.net/rapid"`, "another place"},
		{"metrics", "a.go", `package metrics; import "net/http"; var _ http.Handler`, ""},
		{"metrics", "a.go", `package metrics; import "net/http"; func f() { _ = http.ListenAndServe }`, "net/http.ListenAndServe"},
		{"rewrite/chat", "a.go", `package chat; import "rolltap/rewrite/messages"`, "no arrow"},
		{"rewrite/chat", "a_test.go", `package chat; import "rolltap/rewrite/messages"`, "dialects do not know"},
		{"rewrite/chat", "a.go", `package chat; import "time"`, "bytes to bytes"},
		{"rewrite/sse", "a.go", `package sse; import "rolltap/internal/jsonx"`, "no arrow"},
		{"rewrite/chat", "a.go", `package chat; import "github.com/valyala/fastjson"`, "another place"},
		{"internal/cli", "a.go", `package cli; import "rolltap/proxy"`, "no arrow"},
		{"internal/demomodel", "a.go", `package demomodel; import "flag"`, "flags"},
		{"newcomer", "a.go", `package newcomer`, "no row"},

		{"proxy", "doc.go", `package proxy`, "no comment that begins"},
		{"proxy", "a.go", "// Package proxy is documented in the wrong file.\npackage proxy", "no doc.go"},
		{"proxy", "a.go", "// Package proxy is documented in the wrong file.\npackage proxy", "its place is doc.go"},
		{"proxy/util", "a.go", `package util`, "says nothing"},
		{"proxy", "a.go", `package proxy; func init() {}`, "init function"},
		{"proxy", "a.go", `package proxy; type t int; func (t) init() {}`, ""},
		{"proxy", "a.go", `package proxy; var seen = map[string]bool{}`, "variable seen"},
		{"proxy", "a.go", `package proxy; var mu sync.Mutex`, "variable mu"},
		{"proxy", "a.go", `package proxy; var a, b = errors.New("a"), 2`, "variable b"},
		{"proxy", "a.go", `package proxy; var a = errors.New("a"); var _ I = T{}; var p = sync.Pool{}`, ""},
		{"proxy", "a.go", "package proxy\n//go:embed page.html\nvar page string", ""},
		{"proxy", "a.go", `package proxy; var a = errors.New("a"); func f() { a = nil }`, "writes to a"},
		{"proxy", "a.go", `package proxy; var a = errors.New("a"); func f() { a := 1; a = 2; _ = a }`, ""},
		{"metrics", "a.go", `package metrics; var xWords = []string{}; func f() { xWords[0] = "a" }`, "writes to xWords"},
		{"metrics", "a.go", `package metrics; var xWords = map[string]int{}; func f() { delete(xWords, "a") }`, "writes to xWords"},
		{"proxy", "a_test.go", `package proxy; var update = flag.Bool("update", false, "")`, ""},
		{"proxy", "a.go", `package proxy; import "os"; func f() { os.Getenv("HOME") }`, "environment"},
		{"proxy", "a.go", `package proxy; import sys "os"; func f() { sys.LookupEnv("HOME") }`, "environment"},
		{"main", "a.go", `package main; import "os"; func f() { os.Environ() }`, ""},
		{"proxy", "a.go", `package proxy; import "io"; func f() { io.Pipe() }`, "pushed"},
		{"proxy", "a.go", `package proxy; import "net/http"; func f() { _ = http.DefaultClient }`, "global"},
		{"proxy", "a.go", `package proxy; import "net/http"; func f() { _ = http.HandlerFunc(nil) }`, ""},
		{"proxy", "a.go", "package proxy\n" + long, "lines, more than"},
		{"proxy", "a.go", "package proxy\n// long: one table that reads from top to bottom\n" + long, ""},
	} {
		f, err := parse(c.file, c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		p := pkg{path: c.path, name: f.ast.Name.Name, files: []*file{f}}
		got := checkImports(p)
		for name, check := range rules {
			if name != "documented" || strings.Contains(c.want, "doc.go") || strings.Contains(c.want, "comment") {
				got = append(got, check(p)...)
			}
		}
		short := c.src[:min(len(c.src), 120)]
		switch found := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, c.want) }); {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s %s: nothing is wrong with\n%s\ngot %q", c.path, c.file, short, got)
		case c.want != "" && !found:
			t.Errorf("%s %s: want a complaint with %q about\n%s\ngot %q", c.path, c.file, c.want, short, got)
		}
	}
}

func TestTextRulesBite(t *testing.T) {
	todo := "// TO" + "DO"
	for _, c := range []struct {
		name, line string
		want       int
	}{
		{"a.go", "a relative/work/folder and https://example.org/work/", 0},
		{"docs/a.md", "see /wo" + "rk/x", 1},
		{"a/testdata/b.json", `{"cwd":"/wo` + `rk/x"}`, 1},
		{"a/testdata/b.json", `{"cwd":"/ho` + `me/me/x"}`, 0},
		{"docs/a.md", "in /Us" + "ers/me/x", 1},
		{"e2e/lock.json", "https://registry.npm" + "js.org/x", 1},
		{"a.go", todo, 1},
		{"a.go", todo + ": later", 1},
		{"a.go", todo + "(ann): drop this when Go 1.30 is out", 0},
		{"docs/a.md", todo, 0},
	} {
		if got := checkText(c.name, c.line); len(got) != c.want {
			t.Errorf("%s: %q: want %d complaints, got %q", c.name, c.line, c.want, got)
		}
	}
}

func TestFixtureNames(t *testing.T) {
	f, err := parse("a_test.go", `package a
func f() {
	filepath.Glob("testdata/*.json")
	os.ReadFile(filepath.Join("testdata", "cases", "a.txt"))
	os.ReadFile(filepath.Join("testdata", "golden", name+".txt"))
	os.ReadFile("../chat/testdata/" + name + ".json")
	fmt.Sprintf("testdata/run-%d/x", n)
	os.ReadFile(filepath.Join(dir, "out.txt"))
	t.Log("no testdata here")
}`)
	if err != nil {
		t.Fatal(err)
	}
	got := fixtureNames(f)
	want := []string{"testdata/*.json", "testdata/cases/a.txt", "testdata/golden", "../chat/testdata", "testdata"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
