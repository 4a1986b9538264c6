package rewrite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// testdata/gym holds conversions that NeMo Gym 0.7.0 makes, one a file: {"input", "output"}, the output {"raises"} where it makes none. Where
// ours come out in another way differences.txt says so, and why; each line is
//
//	<files> <difference> <reason>
//
// with a pattern for the files, in order, and the difference as compare writes it. A difference that no line has is a fault, and a line that
// nothing needs any more has to go.

type gymCase struct {
	name          string
	Input, Output json.RawMessage
}

func gymCases(t *testing.T, folder string) []gymCase {
	t.Helper()
	files, err := filepath.Glob("testdata/gym/" + folder + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: nothing was found: %v", folder, err)
	}
	var all []gymCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := gymCase{name: folder + "/" + strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, c)
	}
	return all
}

// announced is a line of differences.txt.
type announced struct {
	files, difference string
	needed            bool
}

type announcements []*announced

func readAnnouncements(t *testing.T) announcements {
	t.Helper()
	text, err := os.ReadFile("testdata/gym/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all announcements
	last := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.SplitN(line, " ", 3)
		if len(words) < 3 {
			t.Fatalf("differences.txt: %q has no reason", line)
		}
		if key := words[0] + " " + words[1]; key <= last {
			t.Errorf("differences.txt: %q is not in order", line)
		} else {
			last = key
		}
		all = append(all, &announced{files: words[0], difference: words[1]})
	}
	return all
}

// check tells which differences nobody has announced.
func (all announcements) check(t *testing.T, name string, differences []string) {
	t.Helper()
	slices.Sort(differences)
	for _, d := range slices.Compact(differences) {
		found := false
		for _, a := range all {
			if ok, err := path.Match(a.files, name); err != nil {
				t.Fatal(err)
			} else if ok && a.difference == d {
				found, a.needed = true, true
			}
		}
		if !found {
			t.Errorf("not announced: %s %s", name, d)
		}
	}
}

// compare tells where two JSON values differ: "~path" what is not the same, "-path" what only theirs has, "+path" what only ours has. Numbers
// of places are left out of paths. Null is as good as absent.
func compare(at string, theirs, ours any) []string {
	if reflect.DeepEqual(theirs, ours) {
		return nil
	}
	switch a := theirs.(type) {
	case map[string]any:
		b, ok := ours.(map[string]any)
		if !ok {
			break
		}
		var all []string
		for name, value := range a {
			if value != nil && b[name] == nil {
				all = append(all, "-"+inObject(at, name))
			} else if value != nil {
				all = append(all, compare(inObject(at, name), value, b[name])...)
			}
		}
		for name, value := range b {
			if value != nil && a[name] == nil {
				all = append(all, "+"+inObject(at, name))
			}
		}
		return all
	case []any:
		b, ok := ours.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		var all []string
		for i := range a {
			all = append(all, compare(at+"[]", a[i], b[i])...)
		}
		return all
	}
	return []string{"~" + at}
}

func inObject(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

func anyJSON(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return v
}

func raises(output json.RawMessage) bool {
	var o struct{ Raises string }
	return json.Unmarshal(output, &o) == nil && o.Raises != ""
}

// outcome compares a conversion with theirs; either side may have made none.
func outcome(t *testing.T, theirs json.RawMessage, ours []byte, err error, tidy func(any) any) []string {
	t.Helper()
	var p *canon.Problem
	switch {
	case raises(theirs) && err != nil:
		return nil
	case raises(theirs):
		return []string{"they-raise"}
	case errors.As(err, &p):
		return []string{fmt.Sprintf("we-refuse:%d:%s:%s", p.Status, p.Code, anyIndex(p.Param))}
	case err != nil:
		t.Fatal(err)
	}
	return compare("", tidy(anyJSON(t, theirs)), tidy(anyJSON(t, ours)))
}

// tidyRequest makes the spellings of one request alike: a content of one text is that text, streaming is left out, and so are ids of items
// that nobody can foresee.
func tidyRequest(v any) any {
	r, _ := v.(map[string]any)
	delete(r, "stream")
	delete(r, "stream_options")
	for _, list := range []string{"messages", "input"} {
		items, _ := r[list].([]any)
		for _, m := range items {
			m, _ := m.(map[string]any)
			if m["type"] == "reasoning" {
				delete(m, "id")
			}
			parts, _ := m["content"].([]any)
			if len(parts) != 1 {
				continue
			}
			if part, _ := parts[0].(map[string]any); part["type"] == "text" || part["type"] == "input_text" {
				m["content"] = part["text"]
			}
		}
	}
	return r
}

// tidyAnswer takes ids and clocks away, which nobody can foresee.
func tidyAnswer(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "created_at")
		if id, ok := v["id"].(string); ok && regexp.MustCompile(`^(resp|msg|rs|fc|ctc|chatcmpl)_?`).MatchString(id) {
			delete(v, "id")
		}
		for _, value := range v {
			tidyAnswer(value)
		}
	case []any:
		for _, value := range v {
			tidyAnswer(value)
		}
	}
	return v
}

// asGym is a translation with the settings as they are by default.
func asGym(t *testing.T, client, upstream canon.Dialect) *rewrite.Translation {
	policy := rewrite.DefaultPolicy()
	return rewrite.NewTranslation(translator(t, client), translator(t, upstream), &policy, rewrite.Call{ID: "1"})
}

// askedOfGym is the request that the answers are to.
func askedOfGym(d canon.Dialect, stream bool) []byte {
	switch d {
	case canon.Messages:
		return fmt.Appendf(nil, `{"model":"claude-x","max_tokens":256,"messages":[{"role":"user","content":"hi"}],"stream":%t}`, stream)
	case canon.Chat:
		return fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":%t}`, stream)
	}
	return fmt.Appendf(nil, `{"model":"m","input":"hi","instructions":"I","metadata":{"k":"v"},"temperature":0.5,"tools":[{"name":"get_weather",
		"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"strict":false,"type":"function","description":"Weather"}],"stream":%t}`, stream)
}
