package rewrite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rolltap/rewrite"
	"rolltap/rewrite/canon"
)

// sentRequest is a request that a real client has sent: testdata/harness holds one a file, <client>-<n>.json, credentials and the words of
// prompts taken out.
type sentRequest struct {
	name   string
	Client string
	Method string
	Path   string
	Body   json.RawMessage
}

func sentRequests(tb testing.TB) []sentRequest {
	tb.Helper()
	const dir = "testdata/harness"
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(files) != 90 {
		tb.Fatalf("%d requests were found", len(files))
	}
	var all []sentRequest
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		r := sentRequest{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(text, &r); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		all = append(all, r)
	}
	return all
}

// notModelCalls are the requests among them that nothing translates.
func notModelCalls() []string {
	return []string{
		"claude-code-15", // HEAD of the root
		"claude-code-16", // HEAD /api/hello
		"codex-11",       // GET /v1/models
		"codex-12",       // a web socket
		"sdk-openai-4",   // GET /v1/models/a%2Fb
	}
}

// TestRealClientsReachAChatUpstream: with the settings as they are by default nothing that real clients send is refused, what goes upstream is
// what the strictest server takes, and no more is lost than the committed list says.
func TestRealClientsReachAChatUpstream(t *testing.T) {
	upstream := translator(t, canon.Chat)
	policy := rewrite.DefaultPolicy()
	var left []string
	lost := map[string][]string{} // names of requests by path and reason
	for _, sent := range sentRequests(t) {
		path, _, _ := strings.Cut(sent.Path, "?")
		route := rewrite.ParseRoute(path)
		if sent.Method != "POST" || route.Endpoint != rewrite.Model && route.Endpoint != rewrite.CountTokens {
			left = append(left, sent.name)
			continue
		}
		tr := rewrite.NewTranslation(translator(t, route.Dialect), upstream, &policy, rewrite.Call{ID: "x", Target: route.Target})
		body, err := tr.Request(sent.Body)
		if err != nil {
			var p *canon.Problem
			errors.As(err, &p)
			t.Errorf("%s: refused: %+v", sent.name, p)
			continue
		}
		for _, bad := range strictly(body, route.Dialect == canon.Chat) {
			t.Errorf("%s: %s", sent.name, bad)
		}
		for _, l := range tr.Losses() {
			key := anyIndex(l.Path) + " " + string(l.Reason)
			if !slices.Contains(lost[key], sent.name) {
				lost[key] = append(lost[key], sent.name)
			}
		}
	}
	if want := notModelCalls(); !slices.Equal(want, left) {
		t.Errorf("no model calls: %v; want %v", left, want)
	}
	allowedLosses(t, lost)
}

// anyIndex is a path without the numbers of what it leads through.
func anyIndex(path string) string {
	return regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path, "[]")
}

// allowedLosses compares what was lost with testdata/harness/losses.txt, which says in each line a path, a reason and the requests that may
// lose that, as <client>:<n>,<n>. The list may only shrink: what is not lost any more has to go from it.
func allowedLosses(t *testing.T, lost map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/harness/losses.txt")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]string{}
	var keys []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 3 {
			t.Fatalf("losses.txt: %q", line)
		}
		key := words[0] + " " + words[1]
		if allowed[key] != nil {
			t.Errorf("losses.txt: %s is there twice", key)
		}
		for _, word := range words[2:] {
			client, numbers, _ := strings.Cut(word, ":")
			for n := range strings.SplitSeq(numbers, ",") {
				allowed[key] = append(allowed[key], client+"-"+n)
			}
		}
		keys = append(keys, key)
	}
	if !slices.IsSorted(keys) {
		t.Error("losses.txt is not in order")
	}
	for _, key := range slices.Sorted(maps.Keys(lost)) {
		slices.Sort(lost[key])
		for _, name := range lost[key] {
			if !slices.Contains(allowed[key], name) {
				t.Errorf("%s loses %s, which losses.txt does not allow", name, key)
			}
		}
	}
	for _, key := range keys {
		for _, name := range allowed[key] {
			if !slices.Contains(lost[key], name) {
				t.Errorf("%s does not lose %s any more: take it from losses.txt", name, key)
			}
		}
	}
}

// chatBody is of a request to a Chat upstream what a strict server looks at.
type chatBody struct {
	Model         *string
	Messages      []chatMessage
	Tools         *[]chatTool
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Parallel      json.RawMessage `json:"parallel_tool_calls"`
	Stream        bool
	StreamOptions json.RawMessage `json:"stream_options"`
}

type chatMessage struct {
	Role       string
	Content    json.RawMessage
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  *[]struct {
		ID       string
		Type     string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

type chatTool struct {
	Type     string
	Function struct {
		Name       string
		Parameters map[string]any
	}
}

// strictly tells what of a request the strictest of Chat servers would refuse. A conversation that is as its client wrote it may have a system
// message anywhere.
func strictly(body []byte, asWritten bool) (bad []string) {
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if !json.Valid(body) {
		return []string{"is no JSON"}
	}
	var r chatBody
	if err := json.Unmarshal(body, &r); err != nil {
		return []string{err.Error()}
	}
	if r.Model == nil || len(r.Messages) == 0 {
		wrong("no model or no messages")
	}
	names := map[string]bool{}
	if r.Tools != nil {
		for _, tool := range *r.Tools {
			name := tool.Function.Name
			if tool.Type != "function" || !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
				wrong("tool %q of type %q", name, tool.Type)
			}
			if names[name] {
				wrong("two tools %q", name)
			}
			if names[name] = true; !asWritten && tool.Function.Parameters["type"] != "object" {
				wrong("parameters of %q are of no object", name)
			}
		}
	}
	if len(names) == 0 && (r.Tools != nil || r.ToolChoice != nil || r.Parallel != nil) {
		wrong("no tools, but words about them")
	}
	var choice struct{ Function struct{ Name string } }
	if json.Unmarshal(r.ToolChoice, &choice) == nil && !names[choice.Function.Name] {
		wrong("tool_choice names %q", choice.Function.Name)
	}
	if r.Stream != (r.StreamOptions != nil) {
		wrong("stream_options: %s", r.StreamOptions)
	}
	open := []string{} // calls that are not yet answered
	for i, m := range r.Messages {
		at := fmt.Sprintf("messages[%d], %s", i, m.Role)
		if m.Role == "tool" {
			k := slices.Index(open, m.ToolCallID)
			if k < 0 {
				wrong("%s: answers %q, which is no call in front of it", at, m.ToolCallID)
				continue
			}
			open = slices.Delete(open, k, k+1)
		} else if len(open) > 0 {
			wrong("%s: stands in front of the answers to %v", at, open)
			open = nil
		}
		if m.Role == "system" && i > 0 && !asWritten {
			wrong("%s: is not the first", at)
		}
		if !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role) && !asWritten {
			wrong("%s: unknown role", at)
		}
		bad = append(bad, contentStrictly(at, &m)...)
		if m.ToolCalls == nil {
			continue
		}
		if len(*m.ToolCalls) == 0 || m.Role != "assistant" {
			wrong("%s: tool_calls", at)
		}
		for _, c := range *m.ToolCalls {
			var arguments map[string]any
			if c.ID == "" || c.Type != "function" || c.Function.Name == "" || json.Unmarshal([]byte(c.Function.Arguments), &arguments) != nil {
				wrong("%s: call %+v", at, c)
			}
			open = append(open, c.ID)
		}
	}
	return bad
}

func contentStrictly(at string, m *chatMessage) (bad []string) {
	var text string
	var parts []struct{ Type, Text string }
	switch {
	case string(m.Content) == "null" || m.Content == nil:
		if m.Role != "assistant" || m.ToolCalls == nil {
			bad = append(bad, at+": no content")
		}
	case json.Unmarshal(m.Content, &text) == nil:
		if text == "" && m.Role != "tool" && m.Role != "assistant" {
			bad = append(bad, at+": empty content")
		}
	case json.Unmarshal(m.Content, &parts) == nil && len(parts) > 0:
		for _, p := range parts {
			if !slices.Contains([]string{"text", "image_url", "input_audio", "file", "video_url"}, p.Type) {
				bad = append(bad, at+": part of type "+p.Type)
			}
		}
	default:
		bad = append(bad, fmt.Sprintf("%s: content %.60s", at, m.Content))
	}
	return bad
}
